#pragma once
// The command line of a program as data: read from its App, passed between programs as
// JSON, and made into manual pages and shell completions. Every tool prints its own with the hidden
// option `--describe`; `paddle man` and `paddle completion` read them.

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace paddle::cli {

struct OptionDescription {
  std::vector<std::string> names;    ///< "-o", "--output"
  std::string value;                 ///< "TEXT"; "" for a flag
  std::vector<std::string> choices;  ///< the values that it takes, if they are few
  std::string help;
};

struct ArgumentDescription {
  std::string name, help;
  bool required = false, repeated = false;
};

struct CommandDescription {
  std::string name;     ///< "paddle-op", "check"
  std::string summary;  ///< one sentence
  std::string footer;
  std::vector<ArgumentDescription> arguments;
  std::vector<OptionDescription> options;
  std::vector<CommandDescription> commands;
};

CommandDescription describe(const CLI::App& app);
std::string to_json(const CommandDescription& command);
/// kInternal for text that `to_json` did not write.
CommandDescription from_json(const std::string& text);

/// A manual page of section 1, as troff.
std::string manual_page(const CommandDescription& command);
/// The completion script of a shell for all programs; `umbrella` has them as its commands, too.
/// kUsage for other shells than bash, zsh and fish.
std::string completion_script(const std::string& shell, const CommandDescription& umbrella,
                              const std::vector<CommandDescription>& programs);

}  // namespace paddle::cli
