#include "common.h"

#include <unistd.h>
#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/error.h"
#include "base/parallel.h"
#include "model/overrides.h"

namespace paddle::cli {

void print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    if (errno == EPIPE) std::_Exit(141);
    fail(ErrorCode::kDevice, "standard output: ", std::strerror(errno));
  }
}

void print_error(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

bool stdout_is_terminal() { return isatty(STDOUT_FILENO) == 1; }
bool stderr_is_terminal() { return isatty(STDERR_FILENO) == 1; }

void CommonOptions::apply() const {
  if (threads < 0 || threads > 1024)
    fail(ErrorCode::kUsage, "--threads: expected 1 to 1024, found ", threads);
  if (threads > 0) set_thread_count(threads);
}

std::vector<std::string> take_overrides(std::vector<std::string>& arguments) {
  std::vector<std::string> overrides, rest;
  for (std::string& a : arguments)
    (model::is_override(a) ? overrides : rest).push_back(std::move(a));
  arguments = std::move(rest);
  return overrides;
}

int run_tool(const std::function<int()>& body) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    const int status = body();
    if (std::fflush(stdout) != 0 && errno == EPIPE) return 141;
    return status;
  } catch (const Error& e) {
    std::fflush(stdout);
    print_error(std::string("error: ") + e.what());
    return static_cast<int>(e.code());
  } catch (const std::bad_alloc&) {
    print_error("error: out of memory");
    return static_cast<int>(ErrorCode::kDevice);
  } catch (const std::exception& e) {
    print_error(std::string("internal error: ") + e.what());
    return static_cast<int>(ErrorCode::kInternal);
  }
}

}  // namespace paddle::cli
