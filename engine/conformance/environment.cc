#include "conformance/environment.h"

#include <unistd.h>

#include <csignal>
#include <filesystem>

namespace paddle::conformance {
namespace {

size_t count_threads() {
  std::error_code failed;
  size_t out = 0;
  for (auto at = std::filesystem::directory_iterator("/proc/self/task", failed);
       !failed && at != std::filesystem::directory_iterator(); at.increment(failed))
    ++out;
  return out;
}

}  // namespace

Environment::Environment() : threads_(count_threads()) {
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGCHLD, SIGALRM, SIGUSR1, SIGUSR2}) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    handlers_.push_back(action.sa_handler);
  }
  for (char** variable = environ; variable && *variable; ++variable)
    variables_.emplace_back(*variable);
}

std::string Environment::change(const Environment& to) const {
  if (handlers_ != to.handlers_) return "it changes the handlers of signals";
  if (variables_ != to.variables_) return "it changes the variables of the environment";
  if (threads_ != to.threads_) return "it starts threads when it is loaded";
  return "";
}

}  // namespace paddle::conformance
