#include "compiler/passes/rules/rule.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <mutex>
#include <set>
#include <unordered_map>

#include "base/files.h"
#include "base/text.h"
#include "compiler/generated/standard_rules.h"
#include "ops/core/access.h"

namespace paddle::passes {
namespace {

constexpr int kMaxNesting = 64;
constexpr int kMaxRank = 64;

/// Recursive-descent parser for one rule.
class RuleReader {
 public:
  RuleReader(std::string_view text, const std::string& file, int line)
      : text_(text), file_(file), line_(line) {}

  Rule read() {
    Rule rule;
    rule.name = word("a rule's name");
    expect(":");
    rule.pattern = term(true, 0);
    if (rule.pattern.kind != Term::Kind::kCall) reject("a pattern must be an operation");
    expect("->");
    rule.replacement = term(false, 0);
    if (take_word("where")) do {
        rule.conditions.push_back(condition());
      } while (take(","));
    skip();
    if (at_ < text_.size()) reject(str("'", text_.substr(at_, 20), "' after the end of the rule"));
    return rule;
  }

 private:
  [[noreturn]] void reject(const std::string& message) const {
    throw Error(ErrorCode::kConfig, message, {file_, line_, 0});
  }

  void skip() {
    for (; at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])); ++at_)
      if (text_[at_] == '\n') ++line_;
  }
  bool take(std::string_view mark) {
    skip();
    if (!text_.substr(at_).starts_with(mark)) return false;
    at_ += mark.size();
    return true;
  }
  void expect(std::string_view mark) {
    if (!take(mark)) reject(str("expected '", mark, "', found '", text_.substr(at_, 20), "'"));
  }
  static bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
  std::string word(const char* what) {
    skip();
    const size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    if (at_ == begin) reject(str("expected ", what, ", found '", text_.substr(at_, 20), "'"));
    return std::string(text_.substr(begin, at_ - begin));
  }
  bool take_word(std::string_view wanted) {
    skip();
    if (!text_.substr(at_).starts_with(wanted)) return false;
    if (at_ + wanted.size() < text_.size() && is_word(text_[at_ + wanted.size()])) return false;
    at_ += wanted.size();
    return true;
  }
  bool starts_number() const {
    if (at_ >= text_.size()) return false;
    const char c = text_[at_];
    return std::isdigit(static_cast<unsigned char>(c)) || c == '-' || c == '.';
  }
  double number() {
    double value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) reject(str("'", text_.substr(at_, 20), "' is not a number"));
    at_ += static_cast<size_t>(end - begin);
    return value;
  }

  Term term(bool pattern, int depth) {
    if (depth > kMaxNesting) reject("nested too deeply");
    skip();
    Term out;
    if (take(":")) {
      if (!pattern) reject("a number is not a tensor: names like ':n' are for attributes");
      out.kind = Term::Kind::kScalar;
      out.name = word("a name after ':'");
      scalars_.insert(out.name);
      return out;
    }
    if (starts_number()) {
      if (!pattern) reject("found a number, expected a tensor");
      out.kind = Term::Kind::kNumber;
      out.number = number();
      return out;
    }
    out.name = word("an operation, a name or a number");
    if (out.name == "_") {
      out.kind = Term::Kind::kAbsent;
      return out;
    }
    if (pattern && take("@")) {
      const std::string name = out.name;
      out = term(true, depth + 1);
      if (out.kind != Term::Kind::kCall)
        reject("'@' names the result of an operation, found no operation");
      out.name = name;
      tensors_.insert(name);
      return out;
    }
    // Operations of plug-ins have the name of the plug-in in front.
    while (at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      out.name += "." + word("an operation after '.'");
    }
    const bool prefixed = out.name.find('.') != std::string::npos;
    if (prefixed && !text_.substr(at_).starts_with("(")) reject("expected '(' after " + out.name);
    if (!take("(")) {
      if (pattern)
        tensors_.insert(out.name);
      else
        require(tensors_, out.name);
      return out;
    }
    out.kind = Term::Kind::kCall;
    out.op = find_op(out.name);
    if (!out.op) {
      std::vector<std::string> names;
      for (const Op* op : all_ops()) names.emplace_back(op->name());
      reject(str("there is no operation '", out.name, "'", did_you_mean(out.name, names)));
    }
    if (const std::string error = access_error(*out.op); !error.empty()) reject(error);
    out.name.clear();
    const auto declared = out.op->operands();
    size_t place = 0;
    if (!take(")")) {
      do {
        if (const auto attr = attribute_name())
          out.attrs.push_back(attribute(*out.op, *attr, pattern, depth));
        else if (!out.attrs.empty())
          reject("operands must come before attributes");
        else if (place == declared.size())
          reject(str(out.op->name(), " has ", declared.size(), " operands, found more"));
        else
          operand(out, declared[place++], pattern, depth);
      } while (take(","));
      expect(")");
    }
    for (; place < declared.size(); ++place) {
      if (declared[place].kind == OperandKind::kList)
        out.list_sizes.push_back(0);
      else
        out.operands.emplace_back().kind = Term::Kind::kAbsent;
    }
    return out;
  }

  /// An operand, or a list of them: `[a, b]`.
  void operand(Term& call, const OperandDef& declared, bool pattern, int depth) {
    if (declared.kind != OperandKind::kList) {
      call.operands.push_back(term(pattern, depth + 1));
      return;
    }
    expect("[");
    int32_t length = 0;
    do {
      call.operands.push_back(term(pattern, depth + 1));
      ++length;
    } while (take(","));
    expect("]");
    call.list_sizes.push_back(length);
  }

  /// The name of an attribute if `name=` comes next.
  std::optional<std::string> attribute_name() {
    skip();
    size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    if (end == at_ || end >= text_.size() || text_[end] != '=' ||
        text_.substr(end).starts_with("=="))
      return std::nullopt;
    std::string name(text_.substr(at_, end - at_));
    at_ = end + 1;
    return name;
  }

  RuleAttr attribute(const Op& op, const std::string& name, bool pattern, int depth) {
    RuleAttr out = pattern ? captured() : computed(depth);
    out.index = op.attr_index(name);
    if (out.index < 0) {
      std::vector<std::string> names;
      for (const AttrDef& d : op.attrs()) names.emplace_back(d.name);
      reject(str(op.name(), " has no attribute '", name, "'", did_you_mean(name, names)));
    }
    return out;
  }

  RuleAttr captured() {
    RuleAttr out;
    if (take(":")) {
      out.kind = RuleAttr::Kind::kName;
      out.name = word("a name after ':'");
      scalars_.insert(out.name);
    } else {
      out.value = value();
    }
    return out;
  }

  RuleAttr computed(int depth) {
    RuleAttr left = factor(depth);
    while (true) {
      const bool product = take("*");
      if (!product && !take("/")) return left;
      RuleAttr both;
      both.kind = product ? RuleAttr::Kind::kProduct : RuleAttr::Kind::kQuotient;
      both.parts.push_back(std::move(left));
      both.parts.push_back(factor(depth));
      left = std::move(both);
    }
  }

  RuleAttr factor(int depth) {
    if (depth > kMaxNesting) reject("nested too deeply");
    RuleAttr out;
    if (take(":")) {
      out.kind = RuleAttr::Kind::kName;
      out.name = word("a name after ':'");
      require(scalars_, out.name);
    } else if (const bool last = take_word("last"); last || take_word("shape")) {
      out.kind = last ? RuleAttr::Kind::kLast : RuleAttr::Kind::kShape;
      expect("(");
      out.name = word("a tensor's name");
      require(tensors_, out.name);
      expect(")");
    } else if (take_word("chain")) {
      out.kind = RuleAttr::Kind::kChain;
      expect("(");
      out.parts.push_back(factor(depth + 1));
      expect(",");
      out.parts.push_back(factor(depth + 1));
      expect(")");
    } else {
      out.value = value();
    }
    return out;
  }

  /// A literal in the syntax of the IR's text form.
  AttrValue value() {
    skip();
    size_t end = at_;
    for (int open = 0; end < text_.size(); ++end) {
      const char c = text_[end];
      if (c == '[') ++open;
      if (c == ']') --open;
      if (open == 0 && (c == ',' || c == ')' || c == '*' || c == '/' || c == '=')) break;
    }
    const std::string literal(trim(text_.substr(at_, end - at_)));
    at_ = end;
    try {
      return AttrValue::parse(literal);
    } catch (const Error& e) {
      reject(e.message());
    }
  }

  RuleCondition condition() {
    RuleCondition out;
    const bool constant = take_word("constant");
    if (!constant && !take_word("rank")) return equality();
    expect("(");
    out.name = word("a tensor's name");
    require(tensors_, out.name);
    expect(")");
    if (constant) return out;
    out.kind = RuleCondition::Kind::kRank;
    expect("==");
    skip();
    const double rank = number();
    if (!(rank >= 0 && rank <= kMaxRank) || rank != std::floor(rank))
      reject(str("a rank is an integer of at most ", kMaxRank));
    out.rank = static_cast<int64_t>(rank);
    return out;
  }

  RuleCondition equality() {
    skip();
    const std::string_view text = text_.substr(at_);
    const size_t mark = text.find("==");
    if (mark == std::string_view::npos)
      reject(str("'", trim(text.substr(0, text.find(','))),
                 "' is not a condition; there are constant(x), rank(x) == n and equalities such as "
                 ":h == last(x) / 2"));
    RuleCondition out;
    out.kind = RuleCondition::Kind::kEqual;
    out.sides.push_back(computed(0));
    expect("==");
    out.sides.push_back(computed(0));
    return out;
  }

  void require(const std::set<std::string>& known, const std::string& name) const {
    if (known.count(name)) return;
    reject(str("the pattern does not bind '", name, "'",
               did_you_mean(name, std::vector<std::string>(known.begin(), known.end()))));
  }

  std::string_view text_;
  const std::string& file_;
  int line_;
  size_t at_ = 0;
  std::set<std::string> tensors_, scalars_;
};

/// Calls `visit(entry, line)` for the text of each rule.
template <class Visit>
void for_each_entry(std::string_view text, int line, const Visit& visit) {
  size_t at = 0;
  while (at < text.size()) {
    // Lines that begin with a space continue the rule.
    size_t end = at;
    int lines = 0;
    do {
      end = std::min(text.find('\n', end), text.size() - 1) + 1;
      ++lines;
    } while (end < text.size() && (text[end] == ' ' || text[end] == '\t'));
    const std::string_view entry = trim(text.substr(at, end - at));
    if (!entry.empty() && entry[0] != '#') visit(entry, line);
    at = end;
    line += lines;
  }
}

/// The standard rules of one root operation.
struct RootRules {
  std::vector<std::pair<std::string_view, int>> entries;  ///< with their lines
  std::once_flag once;
  std::vector<Rule> rules;  ///< of the entries, once they are parsed
};

/// By the name of the root, which each entry has after the rule's name: "silu: multiply(…".
std::unordered_map<std::string_view, RootRules>& standard_rules_by_root() {
  static auto* const kByRoot = [] {
    auto* out = new std::unordered_map<std::string_view, RootRules>;
    for_each_entry(kStandardRules, 1, [&](std::string_view entry, int line) {
      const std::string_view pattern = trim(entry.substr(entry.find(':') + 1));
      (*out)[pattern.substr(0, pattern.find('('))].entries.emplace_back(entry, line);
    });
    return out;
  }();
  return *kByRoot;
}

}  // namespace

std::vector<Rule> parse_rules(std::string_view text, const std::string& file, int first_line) {
  std::vector<Rule> rules;
  std::set<std::string> names;
  for_each_entry(text, first_line, [&](std::string_view entry, int line) {
    rules.push_back(RuleReader(entry, file, line).read());
    if (!names.insert(rules.back().name).second)
      throw Error(ErrorCode::kConfig, str("two rules are called '", rules.back().name, "'"),
                  {file, line, 0});
  });
  return rules;
}

std::vector<Rule> read_rules(const std::string& path) {
  if (!file_exists(path)) fail(ErrorCode::kUsage, path, ": no such file");
  return parse_rules(read_file(path, 1 << 24, ErrorCode::kConfig), path);
}

std::span<const Rule> standard_rules(const Op& root) {
  auto& by_root = standard_rules_by_root();
  const auto found = by_root.find(root.name());
  if (found == by_root.end()) return {};
  RootRules& of = found->second;
  std::call_once(of.once, [&of] {
    for (const auto& [entry, line] : of.entries)
      of.rules.push_back(RuleReader(entry, "standard.rules", line).read());
  });
  return of.rules;
}

Registry<RuleSet>& added_rules() {
  static Registry<RuleSet> sets("set of rewrite rules", {});
  return sets;
}

}  // namespace paddle::passes
