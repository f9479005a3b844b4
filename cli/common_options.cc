#include "common_options.h"

#include <CLI/CLI.hpp>

namespace paddle::cli {
namespace {

void add_check(CLI::Option& option, const Check& check) {
  switch (check.kind) {
    case Check::Kind::kIntegerRange:
      option.check(CLI::Range(check.low, check.high));
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

Check one_of(std::initializer_list<const char*> values) {
  return {.kind = Check::Kind::kOneOf, .values = {values.begin(), values.end()}};
}

Option* Option::check(const Check& check) {
  add_check(*option_, check);
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
    : owned_(std::make_unique<CLI::App>(description)), parser_(owned_.get()) {}

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
