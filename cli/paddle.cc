// paddle COMMAND …: the umbrella. Hands over to the program of that name beside this one.

#include <unistd.h>

#include <algorithm>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "common.h"

namespace {

using namespace paddle;

struct Command {
  const char* name;
  const char* doc;
};

constexpr Command kCommands[] = {
    {"new", "write a commented config for a task, filled in from your data"},
    {"train", "train a model as a config describes it"},
    {"infer", "predict with a model, or generate text"},
    {"op", "list, show, run, check and time operations"},
    {"ir", "print, check, transform and run modules"},
    {"convert", "convert weights between safetensors, NPZ, ONNX and model folders"},
    {"show", "layers, shapes, parameters and FLOPs of a model"},
    {"eval", "the loss and the metrics of a trained model"},
    {"export", "write a model as an ONNX file"},
    {"quant", "quantize a model to int8 and measure what that costs"},
    {"schema", "the JSON Schema of configs, for editors"},
    {"onnx", "check ONNX models against the outputs that come with them"},
};

std::string usage() {
  std::string out = "usage: paddle COMMAND …\n\n";
  for (const Command& c : kCommands) {
    std::string name = c.name;
    name.resize(10, ' ');
    out += "  " + name + c.doc + "\n";
  }
  return out + "\n`paddle COMMAND --help` describes a command, `paddle --version` this build.\n";
}

int run(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command.empty() || command == "--help" || command == "-h" || command == "help") {
    cli::print(usage());
    return command.empty() ? 2 : 0;
  }
  if (command == "--version") {
    cli::print(cli::version_text() + "\n");
    return 0;
  }
  std::vector<std::string> names;
  for (const Command& c : kCommands) names.emplace_back(c.name);
  if (std::find(names.begin(), names.end(), command) == names.end())
    fail(ErrorCode::kUsage, "unknown command '", command, "'", did_you_mean(command, names),
         "; `paddle --help` lists them");
  const std::filesystem::path self = program_path();
  const std::string program = (self.parent_path() / ("paddle-" + command)).string();
  std::vector<char*> arguments = {const_cast<char*>(program.c_str())};
  for (int i = 2; i <= argc; ++i) arguments.push_back(argv[i]);
  execvp(program.c_str(), arguments.data());
  fail(ErrorCode::kUsage, program, ": cannot be started");
}

}  // namespace

int main(int argc, char** argv) {
  return paddle::cli::run_tool([&] { return run(argc, argv); });
}
