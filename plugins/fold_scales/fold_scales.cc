// A pass: x * 0.5 * 4.0 becomes x * 2.0. It reads and writes the text of a module, one operation a
// line:
//
//     %2 = constant float32[] [0.5]
//     %3 'h' = multiply(%0, %2) : float32[n, 4]  // model.yaml:3:9
//
// Products are rounded once instead of twice, so results may change in their last bit.

#include <paddle/plugin/plugin.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

namespace {

struct Product {
  size_t line;
  int left, right;  // the numbers of its operands
};

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return out;
}

/// How often a value is read, and the largest number of a value.
struct Values {
  std::map<int, int> uses;
  int largest = 0;
  explicit Values(const std::vector<std::string>& lines) {
    for (const std::string& line : lines)
      for (size_t at = line.find('%'); at != std::string::npos; at = line.find('%', at + 1)) {
        const int number = std::atoi(line.c_str() + at + 1);
        ++uses[number];
        largest = std::max(largest, number);
      }
    for (auto& [number, count] : uses) --count;  // its definition
  }
};

/// Folds one pair of products; false if there is none.
bool fold_once(std::vector<std::string>& lines) {
  std::map<int, std::pair<size_t, float>> constants;  // by number: the line and the value
  std::map<int, Product> products;
  for (size_t i = 0; i < lines.size(); ++i) {
    int number = 0, left = 0, right = 0;
    if (std::sscanf(lines[i].c_str(), " %%%d", &number) != 1) continue;
    const size_t equals = lines[i].find(" = ");
    if (equals == std::string::npos) continue;
    const char* const rest = lines[i].c_str() + equals;
    float value = 0;
    if (std::sscanf(rest, " = constant float32[] [%f]", &value) == 1)
      constants[number] = {i, value};
    else if (std::sscanf(rest, " = multiply(%%%d, %%%d)", &left, &right) == 2)
      products[number] = {i, left, right};
  }
  const Values values(lines);
  for (const auto& [number, outer] : products) {
    if (!constants.count(outer.right) || !products.count(outer.left)) continue;
    const Product inner = products.at(outer.left);
    if (!constants.count(inner.right) || values.uses.at(outer.left) != 1) continue;
    const auto [place, factor] = constants.at(outer.right);
    const float both = factor * constants.at(inner.right).second;
    if (!std::isnormal(both)) continue;  // 0 * inf is not 0
    char constant[96], call[96];
    std::snprintf(constant, sizeof constant, "    %%%d = constant float32[] [%.9g]\n",
                  values.largest + 1, static_cast<double>(both));
    std::snprintf(call, sizeof call, "multiply(%%%d, %%%d)", inner.left, values.largest + 1);
    std::string& text = lines[outer.line];
    const size_t begin = text.find("multiply("), end = text.find(')', begin);
    text.replace(begin, end + 1 - begin, call);
    lines[inner.line].clear();
    lines[place] += constant;
    return true;
  }
  return false;
}

std::optional<std::string> fold_scales(std::string_view module) {
  std::vector<std::string> lines = lines_of(module);
  bool changed = false;
  while (fold_once(lines)) {
    changed = true;
    std::string text;
    for (const std::string& line : lines) text += line;
    lines = lines_of(text);
  }
  if (!changed) return std::nullopt;
  std::string out;
  for (const std::string& line : lines) out += line;
  return out;
}

}  // namespace

PADDLE_PLUGIN(fold_scales, "1.0.0", plugin) {
  plugin.summary("folds products with two numbers");
  plugin.pass("fold_scales", PADDLE_STAGE_CANONICALIZE, PADDLE_PASS_TRAINING, fold_scales);
}
