#include "paddle_program/rule_table.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>

#include "base/error.h"
#include "paddle_program/generated/table.h"

namespace paddle::paddle_program {
namespace {

using formats::PaddleAttribute;

/// Reads the rules of a table, one after the other.
class RuleParser {
 public:
  explicit RuleParser(std::string_view text) : text_(text) {}

  std::vector<ProgramRule> parse() {
    std::vector<ProgramRule> out;
    for (skip(); at_ < text_.size(); skip()) out.push_back(rule());
    return out;
  }

 private:
  [[noreturn]] void bad(const std::string& expected) const {
    fail(ErrorCode::kInternal, "table of program operations, line ", line_, ": expected ",
         expected);
  }
  void skip() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (std::isspace(static_cast<unsigned char>(text_[at_]))) {
        if (text_[at_] == '\n') ++line_;
        ++at_;
      } else {
        break;
      }
    }
  }
  bool take(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) bad(str("'", token, "'"));
  }
  std::string word() {
    skip();
    const size_t begin = at_;
    const auto belongs = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '@';
    };
    while (at_ < text_.size() && belongs(text_[at_])) ++at_;
    if (at_ == begin) bad("a name");
    return std::string(text_.substr(begin, at_ - begin));
  }

  /// A number, a truth value, a word, or a list of numbers in parentheses.
  PaddleAttribute literal() {
    PaddleAttribute out;
    if (take("(")) {
      while (!take(")")) {
        number(out);
        take(",");
      }
      return out;
    }
    skip();
    const char c = at_ < text_.size() ? text_[at_] : ' ';
    if (c == '-' || std::isdigit(static_cast<unsigned char>(c))) {
      number(out);
      return out;
    }
    if (take("\"\"")) {
      out.texts.emplace_back();
      return out;
    }
    const std::string text = word();
    if (text == "true" || text == "false")
      out.integers.push_back(text == "true" ? 1 : 0);
    else
      out.texts.push_back(text);
    return out;
  }
  void number(PaddleAttribute& out) {
    skip();
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) ||
                                  text_[at_] == '-' || text_[at_] == '.' || text_[at_] == '+'))
      ++at_;
    const std::string text(text_.substr(begin, at_ - begin));
    if (text.empty()) bad("a number");
    if (text.find_first_of(".e") == std::string::npos)
      out.integers.push_back(std::strtoll(text.c_str(), nullptr, 10));
    else
      out.reals.push_back(std::strtod(text.c_str(), nullptr));
  }

  /// [NAME|NAME=DEFAULT], [NAME==VALUE] or, without a parameter, [NAME].
  void attribute(ProgramArgument& out) {
    do out.attributes.push_back(word());
    while (take("|"));
    if (take("==")) {
      out.is_fixed = true;
      out.value = literal();
    } else if (take("=")) {
      out.value = literal();
    }
    expect("]");
  }

  ProgramArgument argument() {
    ProgramArgument out;
    if (take("[")) {
      attribute(out);
      out.is_ignored = !out.is_fixed;
      return out;
    }
    take("@") ? out.name = "@" + word() : out.name = word();
    expect("=");
    if (take("{")) {
      out.value = literal();
      expect("}");
      return out;
    }
    if (!take("[")) {
      out.is_operand = true;
      out.in_pir = !take("!");
      if (!take("_")) do
          out.slots.push_back(word());
        while (take("|"));
      out.is_list = take("*");
      out.is_optional = take("?");
      if (!take("[")) return out;
      out.is_optional = true;
    }
    attribute(out);
    return out;
  }

  ProgramRule rule() {
    ProgramRule out;
    skip();
    out.line = line_;
    if (take("pir ")) out.form = ProgramRule::Form::kPir;
    if (take("pb ")) out.form = ProgramRule::Form::kProtobuf;
    do out.names.push_back(word());
    while (!take(":"));
    out.is_function = take("@");
    out.target = word();
    expect("(");
    while (!take(")")) {
      out.arguments.push_back(argument());
      take(",");
    }
    expect("->");
    do {
      ProgramResult result;
      do result.slots.push_back(word());
      while (take("|"));
      result.is_list = take("*");
      out.results.push_back(std::move(result));
    } while (take(","));
    return out;
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

int ProgramRule::argument_index(std::string_view name) const {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name == name) return static_cast<int>(i);
  return -1;
}

std::vector<ProgramRule> parse_program_rules(std::string_view text) {
  return RuleParser(text).parse();
}

const std::vector<ProgramRule>& program_rules() {
  static const auto* const kRules = [] {
    return new std::vector<ProgramRule>(parse_program_rules(kProgramRules));
  }();
  return *kRules;
}

std::optional<size_t> find_program_rule(const std::string& type, bool is_pir) {
  static const auto* const kByName = [] {
    auto* out = new std::map<std::pair<std::string, bool>, size_t>;
    for (size_t i = 0; i < program_rules().size(); ++i) {
      const ProgramRule& rule = program_rules()[i];
      for (const std::string& name : rule.names) {
        if (rule.form != ProgramRule::Form::kProtobuf) out->emplace(std::pair(name, true), i);
        if (rule.form != ProgramRule::Form::kPir) out->emplace(std::pair(name, false), i);
      }
    }
    return out;
  }();
  const auto found = kByName->find({type, is_pir});
  return found == kByName->end() ? std::nullopt : std::optional(found->second);
}

}  // namespace paddle::paddle_program
