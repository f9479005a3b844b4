#include "common_options.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/duration.h"
#include "base/text.h"
#include "tensor/dtype.h"

namespace paddle::cli {
namespace {

/// The one of `values` that is a name of the same dtype as `name`; `name` itself if there is none.
std::string canonical_dtype(const std::vector<std::string>& values, const std::string& name) {
  if (std::ranges::find(values, name) != values.end()) return name;
  const std::optional<DType> dtype = parse_dtype(name);
  if (!dtype) return name;
  const auto found =
      std::ranges::find_if(values, [&](const std::string& v) { return parse_dtype(v) == dtype; });
  return found == values.end() ? name : *found;
}

CLI::Validator dtype_names(const std::vector<std::string>& values) {
  const auto convert = [values](std::string& name) {
    name = canonical_dtype(values, name);
    return std::string();
  };
  return CLI::Validator(convert, "", "dtype");
}

/// Durations become numbers of seconds before they are read as numbers.
CLI::Validator duration_text(double low, double high) {
  const auto convert = [low, high](std::string& text) {
    const auto seconds = parse_duration(text);
    if (!seconds) return str("expected ", kDurationForms, ", found '", text, "'");
    if (!(*seconds >= low && *seconds <= high))
      return str("expected ", low, " to ", high, " seconds, found '", text, "'");
    const std::string number = fmt::format("{:.17g}", *seconds);
    text = number;
    return std::string();
  };
  return CLI::Validator(convert, "", "duration");
}

/// Groups follow each other with one blank line between them, those of every program last. The help
/// does not say which options are mutually exclusive; the error does.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    if (mode == CLI::AppFormatMode::Sub) return make_expanded(app);
    return make_description(app) + make_usage(app, name) + make_positionals(app) + groups_of(*app) +
           make_subcommands(app, mode) + "\n" + make_footer(app);
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    std::string out;
    if (option->get_type_size() != 0) {
      const std::string type = type_text(*option);
      if (!type.empty()) out = " " + type;
      if (!option->get_default_str().empty()) out += "=" + option->get_default_str();
      if (option->get_expected_max() == CLI::detail::expected_max_vector_size)
        out += " ...";
      else if (option->get_expected_min() > 1)
        out += str(" x ", option->get_expected());
      if (option->get_required()) out += " REQUIRED";
    }
    return out;
  }

 private:
  std::string groups_of(const CLI::App& app) const {
    std::vector<std::string> groups = app.get_groups();
    const auto common = std::ranges::find(groups, "Options");
    if (common != groups.end()) std::rotate(common, common + 1, groups.end());
    std::string out;
    for (const std::string& group : groups) {
      const auto options = app.get_options([&](const CLI::Option* option) {
        return option->get_group() == group && option->nonpositional();
      });
      if (!group.empty() && !options.empty()) out += make_group(group, false, options);
    }
    return out;
  }

  /// "INT in [0 - 20]" for "INT:INT in [0 - 20]".
  static std::string type_text(const CLI::Option& option) {
    const std::string text = option.get_type_name();
    const size_t colon = text.find(':');
    if (colon != text.npos && text.compare(colon + 1, colon, text, 0, colon) == 0)
      return text.substr(colon + 1);
    return text;
  }
};

/// Ranges without a useful upper bound show their lower one only.
CLI::Validator integer_range(int64_t low, int64_t high) {
  constexpr int64_t kNoBound = int64_t{1} << 20;
  CLI::Range range(low, high);
  if (high < kNoBound) return range;
  return range.description(str("INT >= ", low));
}

void add_check(CLI::Option& option, const Check& check) {
  switch (check.kind) {
    case Check::Kind::kIntegerRange:
      option.check(integer_range(check.low, check.high));
      break;
    case Check::Kind::kNumberRange:
      option.check(CLI::Range(check.lowest, check.highest));
      break;
    case Check::Kind::kPositive:
      option.check(CLI::PositiveNumber);
      break;
    case Check::Kind::kNonNegative:
      option.check(CLI::NonNegativeNumber);
      break;
    case Check::Kind::kOneOf:
      option.check(CLI::IsMember(check.values));
      break;
    case Check::Kind::kDuration:
      option.type_name("TIME");
      option.transform(duration_text(check.lowest, check.highest));
      break;
    case Check::Kind::kDType:
      option.check(CLI::IsMember(check.values));
      option.transform(dtype_names(check.values));
      break;
  }
}

}  // namespace

Check in_range(int low, int high) { return in_range(int64_t{low}, int64_t{high}); }

Check in_range(int64_t low, int64_t high) {
  return {.kind = Check::Kind::kIntegerRange, .low = low, .high = high};
}

Check in_range(double low, double high) {
  return {.kind = Check::Kind::kNumberRange, .lowest = low, .highest = high};
}

Check duration(double low, double high) {
  return {.kind = Check::Kind::kDuration, .lowest = low, .highest = high};
}

Check one_of(std::initializer_list<const char*> values) {
  return {.kind = Check::Kind::kOneOf, .values = {values.begin(), values.end()}};
}

Check one_dtype_of(std::initializer_list<const char*> values) {
  return {.kind = Check::Kind::kDType, .values = {values.begin(), values.end()}};
}

Option* Option::check(const Check& check) {
  add_check(*option_, check);
  return this;
}

Option* Option::dtype_names(const std::vector<std::string>& values) {
  option_->transform(cli::dtype_names(values));
  return this;
}

Option* Option::required() {
  option_->required();
  return this;
}

Option* Option::excludes(Option* other) {
  option_->excludes(other->option_);
  return this;
}

Option* Option::needs(Option* other) {
  option_->needs(other->option_);
  return this;
}

Option* Option::allow_extra_args(bool allow) {
  option_->allow_extra_args(allow);
  return this;
}

Option* Option::delimiter(char separator) {
  option_->delimiter(separator);
  return this;
}

Option* Option::expected(int count) {
  option_->expected(count);
  return this;
}

Option* Option::capture_default_str() {
  option_->capture_default_str();
  return this;
}

size_t Option::count() const { return option_->count(); }

std::string Option::get_name() const { return option_->get_name(); }

App::App(const std::string& description)
    : owned_(std::make_unique<CLI::App>(description)), parser_(owned_.get()) {
  parser_->formatter(std::make_shared<HelpFormatter>());
}

App::App(CLI::App* parser) : parser_(parser) {}

App::~App() = default;

Option* App::keep(CLI::Option* option) {
  options_.push_back(std::make_unique<Option>(option));
  return options_.back().get();
}

template <class T>
Option* App::add_option(const std::string& name, T& target, const std::string& help) {
  return keep(parser_->add_option(name, target, help));
}

template Option* App::add_option(const std::string&, std::string&, const std::string&);
template Option* App::add_option(const std::string&, bool&, const std::string&);
template Option* App::add_option(const std::string&, int32_t&, const std::string&);
template Option* App::add_option(const std::string&, int64_t&, const std::string&);
template Option* App::add_option(const std::string&, uint32_t&, const std::string&);
template Option* App::add_option(const std::string&, uint64_t&, const std::string&);
template Option* App::add_option(const std::string&, float&, const std::string&);
template Option* App::add_option(const std::string&, double&, const std::string&);
template Option* App::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template Option* App::add_option(const std::string&, std::vector<int32_t>&, const std::string&);
template Option* App::add_option(const std::string&, std::vector<int64_t>&, const std::string&);
template Option* App::add_option(const std::string&, std::vector<float>&, const std::string&);
template Option* App::add_option(const std::string&, std::vector<double>&, const std::string&);

Option* App::add_flag(const std::string& name, bool& target, const std::string& help) {
  return keep(parser_->add_flag(name, target, help));
}

App* App::add_subcommand(const std::string& name, const std::string& description) {
  subcommands_.emplace_back(new App(parser_->add_subcommand(name, description)));
  return subcommands_.back().get();
}

void App::require_subcommand(int count) { parser_->require_subcommand(count); }

void App::group(const std::string& heading) { parser_->option_defaults()->group(heading); }

void App::footer(const std::string& text) { parser_->footer(text); }

int App::leading_options(int argc, const char* const* argv) const {
  int at = 1;
  while (at < argc) {
    const std::string argument = argv[at];
    if (argument == "--" || argument.size() < 2 || argument[0] != '-') break;
    const bool is_long = argument[1] == '-';
    const size_t equals = argument.find('=');
    const CLI::Option* const option =
        parser_->get_option_no_throw(is_long ? argument.substr(0, equals) : argument.substr(0, 2));
    const bool has_own_value = is_long ? equals != std::string::npos : argument.size() > 2;
    // read_command_line adds --threads to every program.
    const bool takes_value = option ? option->get_expected_max() > 0 && option->get_type_size() > 0
                                    : argument == "--threads";
    at += takes_value && !has_own_value ? 2 : 1;
  }
  return std::min(at, argc);
}

bool App::parsed() const { return parser_->parsed(); }

size_t App::count(const std::string& option) const { return parser_->count(option); }

}  // namespace paddle::cli
