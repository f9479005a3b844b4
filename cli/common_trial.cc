#include "common_trial.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"

namespace paddle::cli {

std::string only_config(const std::vector<std::string>& arguments, const char* command) {
  if (arguments.size() != 1)
    fail(ErrorCode::kUsage, arguments.empty() ? "no config is given" : "one config is expected",
         " (see ", command, " --help)");
  return arguments[0];
}

int run_trainer(const std::vector<std::string>& arguments, const std::string& log) {
  const std::string program = program_path();
  std::string name = "paddle-train";  // of the command
  std::vector<char*> words = {name.data()};
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) fail(ErrorCode::kDevice, program, ": ", std::strerror(errno));
  if (child == 0) {
    if (!std::freopen(log.c_str(), "a", stdout)) _exit(127);
    dup2(STDOUT_FILENO, STDERR_FILENO);
    execv(program.c_str(), words.data());
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string last_line(const std::string& log) {
  const std::string text = file_exists(log) ? read_file(log, 1 << 28) : "";
  const size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  return text.substr(text.rfind('\n', end) + 1, end - text.rfind('\n', end));
}

}  // namespace paddle::cli
