#include "convert/rules.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <set>

#include "config/document.h"

namespace paddle::convert {
namespace {

using config::Node;

/// Longer names are not put to expressions: their matcher recurses once a character.
constexpr size_t kMaxName = 1000;

[[noreturn]] void wrong(const Node& node, const std::string& why) {
  throw Error(ErrorCode::kConfig, why, node.location());
}

std::regex expression_of(const Node& node) {
  try {
    return std::regex(node.as_string());
  } catch (const std::regex_error&) {
    wrong(node, "'" + node.text + "' is not a regular expression");
  }
}

/// `$3` of a replacement needs a third group.
void check_groups(const Node& rename, size_t groups) {
  const std::string& text = rename.text;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] != '$') continue;
    ++i;
    const auto digit = [&](size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '9';
    };
    if (!digit(i)) continue;
    size_t group = static_cast<size_t>(text[i] - '0');
    if (digit(i + 1)) group = group * 10 + static_cast<size_t>(text[i + 1] - '0');
    if (group == 0 || group > groups)
      wrong(rename, str("'$", group, "' names a group that the expression does not have (it has ",
                        groups, ")"));
  }
}

constexpr int64_t kMaxAdded = 1'000'000;

/// The group plus `add` where it is a number of up to 9 digits, as a format of std::match_results.
std::string shifted(const std::string& group, int64_t add, const SourceLocation& place) {
  const bool number = !group.empty() && group.size() <= 9 &&
                      group.find_first_not_of("0123456789") == std::string::npos;
  if (number) {
    const int64_t sum = std::stoll(group) + add;
    if (sum < 0)
      throw Error(ErrorCode::kConfig,
                  str("the number ", group, " of a name plus ", add, " is below 0"), place);
    return std::to_string(sum);
  }
  std::string out;
  for (const char c : group) out += c == '$' ? std::string("$$") : std::string(1, c);
  return out;
}

/// The replacement with each `$1`, `$2` … replaced by what `text_of` its number gives.
std::string with_sums(const std::string& rename,
                      const std::function<std::string(size_t)>& text_of) {
  const auto digit = [&](size_t at) {
    return at < rename.size() && rename[at] >= '0' && rename[at] <= '9';
  };
  std::string out;
  for (size_t i = 0; i < rename.size(); ++i) {
    if (rename[i] == '$' && digit(i + 1)) {
      size_t group = static_cast<size_t>(rename[++i] - '0');
      if (digit(i + 1)) group = group * 10 + static_cast<size_t>(rename[++i] - '0');
      out += text_of(group);
    } else {
      out += rename[i];
      if (rename[i] == '$' && i + 1 < rename.size()) out += rename[++i];
    }
  }
  return out;
}

std::vector<int64_t> permutation_of(const Node& node) {
  std::vector<int64_t> perm;
  if (!node.is_sequence()) wrong(node, "expected a list of axes, found " + node.describe());
  for (const Node& item : node.items) perm.push_back(item.as_int());
  const std::set<int64_t> axes(perm.begin(), perm.end());
  if (axes.size() != perm.size() || perm.empty() || *axes.begin() != 0 ||
      *axes.rbegin() != static_cast<int64_t>(perm.size()) - 1)
    wrong(node, "expected each axis from 0 once, found " + str(perm));
  return perm;
}

}  // namespace

Rules Rules::read(const std::string& path) {
  config::Diagnostics diagnostics;
  const Node document = config::read_document(path, diagnostics);
  Rules out;
  const auto read_rule = [&](const Node& node) {
    if (!node.is_map())
      wrong(node, "expected a rule such as {match: …, rename: …}, found " + node.describe());
    static const std::vector<std::string> kKeys = {"match", "name",      "rename", "add",
                                                   "drop",  "transpose", "perm"};
    for (const config::Entry& e : node.entries)
      if (std::find(kKeys.begin(), kKeys.end(), e.key.text) == kKeys.end())
        wrong(e.key, "unknown key '" + e.key.text + "'" + did_you_mean(e.key.text, kKeys) +
                         "; a rule has " + join(kKeys, ", "));
    const Node *match = node.find("match"), *name = node.find("name"), *drop = node.find("drop"),
               *transpose = node.find("transpose"), *rename = node.find("rename"),
               *perm = node.find("perm"), *add = node.find("add");
    if ((match != nullptr) + (name != nullptr) + (drop != nullptr) + (transpose != nullptr) != 1)
      wrong(node, "a rule has one of match, name, drop and transpose");
    if ((rename != nullptr) != (match || name))
      wrong(node, rename ? "rename needs match or name" : "rename is missing");
    if (perm && !transpose) wrong(*perm, "perm needs transpose");
    if (add && !match) wrong(*add, "add needs match");
    const Node& pattern = match ? *match : name ? *name : drop ? *drop : *transpose;
    Rule rule;
    rule.kind = drop ? Rule::Kind::kDrop : transpose ? Rule::Kind::kTranspose : Rule::Kind::kRename;
    rule.place = pattern.location();
    rule.pattern = pattern.as_string();
    rule.exact = name != nullptr;
    if (!rule.exact) rule.expression = expression_of(pattern);
    if (rename) rule.rename = rename->as_string();
    if (match) check_groups(*rename, rule.expression.mark_count());
    if (perm) rule.perm = permutation_of(*perm);
    if (add) rule.add = add->as_int();
    if (std::abs(rule.add) > kMaxAdded) wrong(*add, str("add is beyond ", kMaxAdded));
    out.rules_.push_back(std::move(rule));
  };
  if (!document.is_sequence())
    wrong(document, "expected a list of rules, found " + document.describe());
  for (const Node& node : document.items) diagnostics.guard([&] { read_rule(node); });
  diagnostics.raise();
  return out;
}

std::string Rules::replaced(const std::string& name, const Rule& rule) {
  if (rule.add == 0) return std::regex_replace(name, rule.expression, rule.rename);
  std::string out;
  size_t end = 0;
  for (std::sregex_iterator match(name.begin(), name.end(), rule.expression), last; match != last;
       ++match) {
    const auto begin = static_cast<size_t>(match->position());
    out += name.substr(end, begin - end) + match->format(with_sums(rule.rename, [&](size_t group) {
      return shifted(match->str(group), rule.add, rule.place);
    }));
    end = begin + static_cast<size_t>(match->length());
  }
  return out + name.substr(end);
}

bool Rules::matches(const Rule& rule, const std::string& name) const {
  if (rule.exact) return name == rule.pattern;
  if (name.size() > kMaxName)
    fail(ErrorCode::kModel, "a tensor's name has ", name.size(), " bytes, expressions take up to ",
         kMaxName);
  try {
    return std::regex_search(name, rule.expression);
  } catch (const std::regex_error&) {
    throw Error(ErrorCode::kConfig, "the expression is too complex for the name '" + name + "'",
                rule.place);
  }
}

Rules::Outcome Rules::apply(const std::string& name) {
  Outcome out;
  out.name = name;
  for (Rule& rule : rules_) {
    if (!matches(rule, out.name)) continue;
    rule.used = true;
    switch (rule.kind) {
      case Rule::Kind::kDrop:
        out.dropped = true;
        return out;
      case Rule::Kind::kTranspose:
        if (out.transposed)
          throw Error(ErrorCode::kConfig, "'" + name + "' is transposed twice", rule.place);
        out.transposed = true;
        out.perm = rule.perm;
        break;
      case Rule::Kind::kRename:
        out.name = rule.exact ? rule.rename : replaced(out.name, rule);
        if (out.name.empty())
          throw Error(ErrorCode::kConfig, "'" + name + "' gets an empty name", rule.place);
    }
  }
  return out;
}

std::vector<std::string> Rules::unused(const std::vector<std::string>& names) const {
  std::vector<std::string> lines;
  for (const Rule& rule : rules_) {
    if (rule.used) continue;
    if (rule.exact)
      throw Error(
          ErrorCode::kConfig,
          "no tensor is called '" + rule.pattern + "' here" + did_you_mean(rule.pattern, names),
          rule.place);
    lines.push_back(str(rule.place, ": '", rule.pattern, "' matches no tensor"));
  }
  return lines;
}

std::vector<int64_t> axes_of(const Rules::Outcome& rule, const std::string& tensor, DType dtype,
                             const Dims& shape) {
  const auto rank = static_cast<int64_t>(shape.size());
  std::vector<int64_t> perm = rule.perm;
  if (perm.empty())
    for (int64_t i = rank; i-- > 0;) perm.push_back(i);
  if (static_cast<int64_t>(perm.size()) != rank)
    fail(ErrorCode::kConfig, "'", tensor, "' has the shape ", str(shape), ", perm has ",
         perm.size(), " axes");
  if (info(dtype).bits < 8)
    fail(ErrorCode::kConfig, "'", tensor, "' is ", text(dtype), ", which cannot be transposed");
  return perm;
}

Array transposed(const Array& array, const std::vector<int64_t>& perm) {
  Array out = array;
  for (size_t d = 0; d < perm.size(); ++d) {
    out.shape[d] = array.shape[static_cast<size_t>(perm[d])];
    out.strides[d] = array.strides[static_cast<size_t>(perm[d])];
  }
  return out.contiguous();
}

}  // namespace paddle::convert
