#include "partition/factor_text.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace paddle::partition {
namespace {

/// "[rows, ...]": the words of a list; nothing for "?".
struct DimWords {
  bool is_free = false;
  std::vector<std::string> words;
};

struct FactorText {
  std::vector<DimWords> operands, results;
  Combine combine = Combine::kSum;
};

constexpr std::string_view kRest = "...";

[[noreturn]] void reject(std::string_view text, const std::string& why) {
  fail(ErrorCode::kUsage, "rule '", text, "': ", why,
       "; expected one such as '[rows, inner], [inner, columns] -> [rows, columns]'");
}

bool is_word(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  });
}

std::vector<DimWords> parse_lists(std::string_view text, std::string_view part) {
  std::vector<DimWords> lists;
  std::string_view left = trim(part);
  while (!left.empty()) {
    DimWords list;
    if (left.front() == '?') {
      list.is_free = true;
      left.remove_prefix(1);
    } else {
      const size_t end = left.find(']');
      if (left.front() != '[' || end == std::string_view::npos)
        reject(text, str("found '", left, "' where a list in brackets begins"));
      const std::string inner(trim(left.substr(1, end - 1)));
      if (!inner.empty())
        for (const std::string& word : split(inner, ',')) {
          list.words.emplace_back(trim(word));
          if (list.words.back() != kRest && !is_word(list.words.back()))
            reject(text, str("'", list.words.back(), "' is not a name of a dim"));
        }
      if (std::count(list.words.begin(), list.words.end(), kRest) > 1)
        reject(text, "a list has '...' twice");
      left.remove_prefix(end + 1);
    }
    lists.push_back(std::move(list));
    left = trim(left);
    if (left.empty()) break;
    if (left.front() != ',') reject(text, str("found '", left, "' where a comma is missing"));
    left = trim(left.substr(1));
    if (left.empty()) reject(text, "a list is missing after the last comma");
  }
  return lists;
}

FactorText parse(std::string_view text) {
  FactorText out;
  const size_t arrow = text.find("->");
  if (arrow == std::string_view::npos) reject(text, "there is no '->'");
  std::string_view results = trim(text.substr(arrow + 2));
  for (const auto& [word, combine] :
       {std::pair("max", Combine::kMax), std::pair("min", Combine::kMin),
        std::pair("sum", Combine::kSum)})
    if (results.ends_with(word)) {
      out.combine = combine;
      results = trim(results.substr(0, results.size() - 3));
    }
  out.operands = parse_lists(text, text.substr(0, arrow));
  out.results = parse_lists(text, results);
  if (out.results.empty()) reject(text, "there is no result");
  return out;
}

/// The words of the dims of a value; nullopt if it has too few or too many.
std::optional<std::vector<std::string>> words_of(const DimWords& list, size_t rank) {
  std::vector<std::string> out;
  const bool has_rest = std::count(list.words.begin(), list.words.end(), kRest) > 0;
  const size_t named = list.words.size() - (has_rest ? 1 : 0);
  if (rank < named || (!has_rest && rank > named)) return std::nullopt;
  for (const std::string& word : list.words) {
    if (word != kRest) {
      out.push_back(word);
      continue;
    }
    for (size_t i = 0; i < rank - named; ++i) out.push_back(str("...", i));
  }
  return out;
}

std::optional<Rule> rule_of(const FactorText& text, const ir::Operation& o) {
  if (text.operands.size() < o.operands.size() || text.results.size() != o.results.size())
    return std::nullopt;
  for (size_t i = o.operands.size(); i < text.operands.size(); ++i)
    if (!text.operands[i].is_free) return std::nullopt;
  Rule rule(o);
  rule.combine = text.combine;
  std::map<std::string, std::pair<int, int64_t>> factors;  // with their sizes
  bool fits = true;
  const auto read = [&](const std::vector<DimWords>& lists, const auto& values, auto& dims) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (!values[i] || lists[i].is_free) continue;
      const auto words = words_of(lists[i], dims[i].size());
      if (!words) {
        fits = false;
        return;
      }
      for (size_t d = 0; d < words->size(); ++d) {
        if ((*words)[d] == "_") continue;
        const int64_t size = size_of(*values[i], d);
        const auto it = factors.find((*words)[d]);
        if (it == factors.end())
          factors[(*words)[d]] = {dims[i][d] = rule.add(), size};
        else if (it->second.second == size)
          dims[i][d] = it->second.first;
        else
          fits = false;
      }
    }
  };
  read(text.operands, o.operands, rule.operands);
  read(text.results, o.results, rule.results);
  return fits ? std::optional(rule) : std::nullopt;
}

}  // namespace

RuleFn parse_rule(std::string_view text) {
  return [parsed = std::make_shared<const FactorText>(parse(text))](const ir::Operation& o) {
    return rule_of(*parsed, o);
  };
}

void register_rule(std::string_view operation, std::string_view text) {
  register_rule(operation, parse_rule(text));
}

}  // namespace paddle::partition
