#include "plugin/frame.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>

namespace paddle::plugin {
namespace {

struct Record {
  const char* plugin;
  const char* function;
  const char* location;
};
thread_local Record record{};

void write_text(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

/// Only calls what a signal handler may call.
void on_signal(int signal) {
  if (record.plugin) {
    char number[4] = {};
    number[0] = static_cast<char>('0' + signal / 10);
    number[1] = static_cast<char>('0' + signal % 10);
    write_text("error: signal ");
    write_text(number[0] == '0' ? number + 1 : number);
    write_text(" inside plug-in ");
    write_text(record.plugin);
    write_text(": ");
    write_text(record.function);
    if (record.location && *record.location) {
      write_text(", ");
      write_text(record.location);
    }
    write_text("\n");
  }
  std::signal(signal, SIG_DFL);
  raise(signal);
}

}  // namespace

Frame::Frame(const char* plugin, const char* function, const char* location) {
  record = {plugin, function, location};
}
Frame::~Frame() { record = {}; }

void attribute_crashes() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
      struct sigaction action {};
      action.sa_handler = on_signal;
      action.sa_flags = SA_NODEFER;
      sigaction(signal, &action, nullptr);
    }
  });
}

}  // namespace paddle::plugin
