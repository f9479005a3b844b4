#include "base/interrupt.h"

#include <csignal>

namespace paddle {
namespace {

volatile std::sig_atomic_t pending = 0;

void on_signal(int signal) {
  if (pending != 0) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  pending = signal;
}

}  // namespace

void watch_for_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

int pending_interrupt() { return pending; }

void request_interrupt(int signal) { pending = signal; }

void clear_interrupt() { pending = 0; }

}  // namespace paddle
