#pragma once
// The options of a command line. CLI11 reads them; its headers take seconds to compile in each file
// that includes them, so only the common_*.cc files do.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace paddle::cli {

/// A condition on the values of an option.
struct Check {
  enum class Kind {
    kIntegerRange,
    kNumberRange,
    kPositive,
    kNonNegative,
    kOneOf,
    kDType,
    kDuration
  };
  Kind kind;
  int64_t low = 0, high = 0;          // kIntegerRange, inclusive
  double lowest = 0, highest = 0;     // kNumberRange, kDuration, inclusive
  std::vector<std::string> values{};  // kOneOf, kDType
};

/// From `low` to `high`, inclusive.
Check in_range(int low, int high);
Check in_range(int64_t low, int64_t high);
Check in_range(double low, double high);
/// One of `values`.
Check one_of(std::initializer_list<const char*> values);
/// One of `values`, which are names of dtypes; other usual names of the same dtype stand for it
/// (bf16 for bfloat16, float32 for f32).
Check one_dtype_of(std::initializer_list<const char*> values);
/// A duration (base/duration.h) from `low` to `high` seconds; the target is in seconds.
Check duration(double low, double high);
/// A number above zero.
inline const Check kPositive{Check::Kind::kPositive};
/// Zero or a number above it.
inline const Check kNonNegative{Check::Kind::kNonNegative};

/// An option, a flag or a positional argument. Setters return the option itself.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option* check(const Check& check);
  /// A usual name of a dtype is read as the one of `values` that names the same dtype.
  Option* dtype_names(const std::vector<std::string>& values);
  Option* required();
  /// Not together with `other`.
  Option* excludes(Option* other);
  /// Only together with `other`.
  Option* needs(Option* other);
  /// For options of several values: whether one `--name` may be followed by several.
  Option* allow_extra_args(bool allow = true);
  /// A character between values in one argument.
  Option* delimiter(char separator);
  /// Exactly `count` values.
  Option* expected(int count);
  /// Shows the variable's present value as the default in the help text.
  Option* capture_default_str();

  /// How many values were given.
  size_t count() const;
  bool empty() const { return count() == 0; }
  /// The name with its dashes, as messages show it.
  std::string get_name() const;

 private:
  CLI::Option* option_;
};

/// A program's command line, or that of a subcommand.
class App {
 public:
  /// `description`: what the program does, for the help text.
  explicit App(const std::string& description);
  ~App();
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  /// Adds an option or, for a `name` without dashes, a positional argument. Its value is stored in
  /// `target`, which must outlive the parsing; `help` describes it. `T` is std::string, bool, an
  /// integer of 32 or 64 bits, float, double, or a vector of these.
  template <class T>
  Option* add_option(const std::string& name, T& target, const std::string& help);
  /// Adds an option without value that sets `target`.
  Option* add_flag(const std::string& name, bool& target, const std::string& help);
  App* add_subcommand(const std::string& name, const std::string& description);
  /// At least `count` subcommands must be given.
  void require_subcommand(int count);
  /// The heading in the help text of the options that are added from now on.
  void group(const std::string& heading);
  /// Text below the help text's list of options.
  void footer(const std::string& text);
  /// The number of arguments up to the first positional one or `--`, the program included: the rest
  /// is the command line of another program. Options that do not exist count, too.
  int leading_options(int argc, const char* const* argv) const;

  /// Whether this subcommand was given.
  bool parsed() const;
  /// How many values `option` (such as "--steps") was given.
  size_t count(const std::string& option) const;

  /// The parser of the command line.
  CLI::App& parser() { return *parser_; }
  const CLI::App& parser() const { return *parser_; }

 private:
  explicit App(CLI::App* parser);
  Option* keep(CLI::Option* option);

  std::unique_ptr<CLI::App> owned_;  // null for a subcommand
  CLI::App* parser_;
  std::vector<std::unique_ptr<Option>> options_;
  std::vector<std::unique_ptr<App>> subcommands_;
};

}  // namespace paddle::cli
