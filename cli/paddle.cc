// The program of all commands. `paddle NAME …` runs one, as does a link paddle-NAME to this
// program; other programs of such names in its folder are commands, too.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "commands.h"
#include "common.h"
#include "common_describe.h"

namespace {

using namespace paddle;

struct Command {
  const char* group;  ///< heading in the list of commands
  const char* name;
  const char* doc;
  int (*run)(int argc, char** argv);
};

constexpr Command kCommands[] = {
    {"Data and configs", "new", "write a commented config for a task, filled in from your data",
     cli::new_command},
    {"Data and configs", "get", "download data sets, weights and repositories of models",
     cli::get_command},
    {"Data and configs", "data", "list, describe and check datasets", cli::data_command},
    {"Data and configs", "graph", "build, check and sample graphs of nodes and edges",
     cli::graph_command},
    {"Data and configs", "schema", "the JSON Schema of configs, for editors", cli::schema_command},
    {"Training", "train", "train a model as a config describes it", cli::train_command},
    {"Training", "launch", "start a command on several ranks that share its work",
     cli::launch_command},
    {"Training", "lr-range", "find a learning rate by training with an increasing one",
     cli::lr_range_command},
    {"Training", "sweep", "train a config with many settings and compare the runs",
     cli::sweep_command},
    {"Training", "average", "average the weights of the last checkpoints of a run",
     cli::average_command},
    {"Runs", "runs", "a table of run folders: settings, progress, metrics", cli::runs_command},
    {"Runs", "diff", "how two runs differ: config, data, and where their numbers diverge",
     cli::diff_command},
    {"Runs", "compare-runs", "the first step and operation at which two runs diverge",
     cli::compare_runs_command},
    {"Runs", "checkpoint", "check the files of checkpoints", cli::checkpoint_command},
    {"Runs", "exchanges", "the last exchanges of the ranks of a run, and where they diverge",
     cli::exchanges_command},
    {"Prediction and evaluation", "infer", "predict with a model, or generate text",
     cli::infer_command},
    {"Prediction and evaluation", "serve", "serve models over HTTP", cli::serve_command},
    {"Prediction and evaluation", "eval", "the loss and the metrics of a trained model",
     cli::eval_command},
    {"Prediction and evaluation", "score",
     "score predictions in files: BLEU, error rates, average precision of boxes",
     cli::score_command},
    {"Models and files", "show", "layers, shapes, parameters and FLOPs of a model",
     cli::show_command},
    {"Models and files", "ps", "inspect, shrink and merge tables of rows by key", cli::ps_command},
    {"Models and files", "convert", "convert weights to safetensors, NPZ, GGUF or a model folder",
     cli::convert_command},
    {"Models and files", "sign", "sign the files of a model", cli::sign_command},
    {"Models and files", "verify", "check that a model is what was signed", cli::verify_command},
    {"Models and files", "export", "write a model as an ONNX file", cli::export_command},
    {"Models and files", "quant", "quantize or prune a model and measure what that costs",
     cli::quant_command},
    {"Models and files", "onnx",
     "check ONNX models against reference outputs, and compare two of them", cli::onnx_command},
    {"Language models", "tokenize", "convert text to token ids and back", cli::tokenize_command},
    {"Language models", "chat-template", "render a conversation with a model's chat template",
     cli::chat_template_command},
    {"Speed", "profile", "measure where the time and the memory of a step go",
     cli::profile_command},
    {"Speed", "tune", "measure settings that decide the speed, and keep what helps",
     cli::tune_command},
    {"Operations and compiler", "op", "list, show, run, check and time operations",
     cli::op_command},
    {"Operations and compiler", "plugin", "build, check and describe plug-ins",
     cli::plugin_command},
    {"Operations and compiler", "doctor",
     "check an installation: modules, devices, cache, and what to fix", cli::doctor_command},
    {"Operations and compiler", "ir", "print, check, transform and run modules", cli::ir_command},
};

/// Of this program itself.
constexpr Command kOwnCommands[] = {
    {"Help", "man", "print the manual page of a command, or of paddle itself, for `man -l -`",
     nullptr},
    {"Help", "completion", "print the completion script of a shell: bash, zsh or fish", nullptr},
};

bool is_known(const std::string& command) {
  const auto named = [&](const Command& c) { return c.name == command; };
  return std::ranges::any_of(kCommands, named) || std::ranges::any_of(kOwnCommands, named);
}

const Command* find_command(std::string_view name) {
  const auto* const found =
      std::ranges::find_if(kCommands, [&](const Command& c) { return c.name == name; });
  return found == std::end(kCommands) ? nullptr : found;
}

/// Commands of programs in the same folder that are not part of the toolchain, such as those of
/// plug-ins: executable files named paddle-*.
std::vector<std::string> further_commands() {
  namespace fs = std::filesystem;
  constexpr std::string_view kPrefix = "paddle-";
  std::vector<std::string> out;
  std::error_code ignored;
  for (const auto& entry :
       fs::directory_iterator(fs::path(program_path()).parent_path(), ignored)) {
    const std::string file = entry.path().filename().string();
    if (!file.starts_with(kPrefix) || !entry.is_regular_file(ignored) ||
        access(entry.path().c_str(), X_OK) != 0)
      continue;
    const std::string command = file.substr(kPrefix.size());
    if (!command.empty() && !is_known(command)) out.push_back(command);
  }
  std::ranges::sort(out);
  return out;
}

std::string usage() {
  std::string out = "usage: paddle COMMAND …\n";
  std::string_view group;
  for (const std::span<const Command> commands :
       {std::span<const Command>(kCommands), std::span<const Command>(kOwnCommands)})
    for (const Command& c : commands) {
      if (c.group != group) out += str("\n", c.group, ":\n");
      group = c.group;
      std::string name = c.name;
      name.resize(15, ' ');
      out += "  " + name + c.doc + "\n";
    }
  const std::vector<std::string> further = further_commands();
  if (!further.empty()) out += "\nFurther programs:\n";
  for (const std::string& command : further)
    out += "  " + command + std::string(command.size() < 15 ? 15 - command.size() : 1, ' ') +
           "(a separate program)\n";
  return out + "\n`paddle COMMAND --help` describes a command, `paddle --version` this build.\n";
}

/// The program of a command, in the folder of this one.
std::string program_of(const std::string& command) {
  const std::filesystem::path self = program_path();
  return (self.parent_path() / ("paddle-" + command)).string();
}

/// The description that a program prints of its command line.
cli::CommandDescription description_of(const std::string& command) {
  std::string shell_word = "'";
  for (const char c : program_of(command)) shell_word += c == '\'' ? "'\\''" : std::string(1, c);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
      popen((shell_word + "' --describe").c_str(), "r"), pclose);
  if (!pipe) fail(ErrorCode::kDevice, program_of(command), ": cannot be started");
  std::string text;
  char buffer[4096];
  while (const size_t got = std::fread(buffer, 1, sizeof buffer, pipe.get()))
    text.append(buffer, got);
  return cli::from_json(text);
}

/// `programs`: also the commands that are programs of their own.
cli::CommandDescription own_description(bool programs) {
  cli::CommandDescription out;
  out.name = "paddle";
  out.summary = "Deep learning from the command line.";
  out.footer =
      "Trains, evaluates and runs neural networks that are described in YAML, and runs ONNX "
      "models. Every command is also a program: `paddle train` is `paddle-train`.";
  out.options = {{{"-h", "--help"}, "", {}, "list the commands"},
                 {{"--version"}, "", {}, "print the version and what it supports"}};
  const auto add = [&](const Command& c) {
    cli::CommandDescription command;
    command.name = c.name;
    command.summary = c.doc;
    out.commands.push_back(std::move(command));
  };
  for (const Command& c : kCommands)
    if (programs) add(c);
  for (const Command& c : kOwnCommands) add(c);
  return out;
}

int print_manual(const std::vector<std::string>& arguments) {
  if (arguments.size() > 1)
    fail(ErrorCode::kUsage, "man: one command is expected, found ", arguments.size());
  if (arguments.empty() || arguments[0] == "paddle") {
    cli::print(cli::manual_page(own_description(true)));
    return 0;
  }
  std::vector<std::string> names;
  for (const Command& c : kCommands) names.emplace_back(c.name);
  if (std::find(names.begin(), names.end(), arguments[0]) == names.end())
    fail(ErrorCode::kUsage, "man: unknown command '", arguments[0], "'",
         did_you_mean(arguments[0], names));
  cli::print(cli::manual_page(description_of(arguments[0])));
  return 0;
}

int print_completion(const std::vector<std::string>& arguments) {
  if (arguments.size() != 1)
    fail(ErrorCode::kUsage, "completion: the name of a shell is expected: bash, zsh or fish");
  std::vector<cli::CommandDescription> programs;
  for (const Command& c : kCommands) programs.push_back(description_of(c.name));
  cli::print(cli::completion_script(arguments[0], own_description(false), programs));
  return 0;
}

int run(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  const bool asks_for_help = command == "--help" || command == "-h" || command == "help";
  if (command.empty() || (asks_for_help && argc == 2)) {
    cli::print(usage());
    return command.empty() ? 2 : 0;
  }
  if (command == "help") {
    std::string help = "--help";
    std::vector<char*> arguments = {argv[0], argv[2], help.data(), nullptr};
    return run(3, arguments.data());
  }
  if (command == "--version") {
    cli::print(cli::version_text() + "\n");
    return 0;
  }
  if (command == "man") return print_manual({argv + 2, argv + argc});
  if (command == "completion") return print_completion({argv + 2, argv + argc});
  std::string program = program_of(command);
  std::vector<char*> arguments = {program.data()};
  for (int i = 2; i <= argc; ++i) arguments.push_back(argv[i]);
  if (const Command* const found = find_command(command))
    return found->run(argc - 1, arguments.data());
  std::vector<std::string> names = further_commands();
  const bool is_program = std::ranges::find(names, command) != names.end();
  for (const Command& c : kCommands) names.emplace_back(c.name);
  for (const Command& c : kOwnCommands) names.emplace_back(c.name);
  if (!is_program)
    fail(ErrorCode::kUsage, "unknown command '", command, "'", did_you_mean(command, names),
         "; `paddle --help` lists them");
  execvp(program.c_str(), arguments.data());
  fail(ErrorCode::kUsage, program, ": cannot be started");
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::string_view kPrefix = "paddle-";
  const std::string name = argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "";
  if (name.starts_with(kPrefix))
    if (const Command* const command = find_command(std::string_view(name).substr(kPrefix.size())))
      return command->run(argc, argv);
  return paddle::cli::run_tool([&] { return run(argc, argv); });
}
