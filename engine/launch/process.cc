#include "launch/process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"

namespace paddle::launch {
namespace {

/// The path of the program if it is in the folder of this one, else its name.
std::string find_program(const std::string& name) {
  namespace fs = std::filesystem;
  if (name.find('/') != std::string::npos) return name;
  const fs::path beside = fs::path(program_path()).parent_path() / name;
  std::error_code ignored;
  return fs::exists(beside, ignored) ? beside.string() : name;
}

void make_pipe(int (&ends)[2]) {
  if (::pipe2(ends, O_CLOEXEC) != 0)
    fail(ErrorCode::kDevice, "cannot make a pipe: ", std::strerror(errno));
}

}  // namespace

Process::Process(const std::vector<std::string>& command,
                 const std::vector<std::pair<std::string, std::string>>& environment,
                 const std::string& input) {
  const std::string program = find_program(command[0]);
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  int in[2], out[2], err[2], failure[2];
  make_pipe(in);
  // It fits into the pipe, so that no wait for the child is needed.
  if (!input.empty()) (void)!::write(in[1], input.data(), input.size());
  ::close(in[1]);
  make_pipe(out);
  make_pipe(err);
  make_pipe(failure);
  const pid_t parent = ::getpid();
  id_ = ::fork();
  if (id_ == 0) {
    // Its own process group: signals of the terminal reach it through the launcher only.
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(7);  // the launcher has ended meanwhile
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(err[1], STDERR_FILENO);
    ::dup2(in[0], STDIN_FILENO);
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
    std::signal(SIGPIPE, SIG_DFL);
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
    ::execvp(program.c_str(), arguments.data());
    const int reason = errno;
    (void)!::write(failure[1], &reason, sizeof reason);
    ::_exit(127);
  }
  ::close(in[0]);
  ::close(out[1]);
  ::close(err[1]);
  ::close(failure[1]);
  output_ = out[0];
  error_ = err[0];
  int reason = 0;
  const bool failed = id_ < 0 || ::read(failure[0], &reason, sizeof reason) > 0;
  ::close(failure[0]);
  if (!failed) {
    ::fcntl(output_, F_SETFL, O_NONBLOCK);
    ::fcntl(error_, F_SETFL, O_NONBLOCK);
    return;
  }
  ::close(output_);
  ::close(error_);
  if (id_ < 0) fail(ErrorCode::kDevice, "cannot start a process: ", std::strerror(errno));
  ::waitpid(id_, nullptr, 0);
  fail(ErrorCode::kUsage, "cannot start '", command[0], "': ", std::strerror(reason));
}

Process::~Process() {
  if (!status_) {
    signal(SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }
  if (output_ >= 0) ::close(output_);
  if (error_ >= 0) ::close(error_);
}

void Process::signal(int number) const {
  if (!status_) ::kill(id_, number);
}

void Process::update() {
  int status = 0;
  while (!status_ && ::waitpid(id_, &status, WNOHANG | WUNTRACED | WCONTINUED) == id_) {
    if (WIFSTOPPED(status)) {
      stopped_since_ = std::chrono::steady_clock::now();
    } else if (WIFCONTINUED(status)) {
      stopped_since_.reset();
    } else if (WIFSIGNALED(status)) {
      killed_by_ = WTERMSIG(status);
      status_ = 128 + killed_by_;
    } else {
      status_ = WEXITSTATUS(status);
    }
  }
}

std::string Process::read(int& pipe) {
  char buffer[16384];
  const ssize_t n = pipe < 0 ? -1 : ::read(pipe, buffer, sizeof buffer);
  if (n > 0) return std::string(buffer, static_cast<size_t>(n));
  if (pipe >= 0 && (n == 0 || (errno != EAGAIN && errno != EINTR))) {
    ::close(pipe);
    pipe = -1;
  }
  return {};
}

}  // namespace paddle::launch
