#include "plugin/frame.h"

#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/crash_report.h"

namespace paddle::plugin {
namespace {

thread_local FrameRecord record{};

/// The memory of a plug-in's code.
struct Code {
  uintptr_t begin, end;
  uintptr_t base;  ///< what addresses in the file are relative to
  const char* label;
};
constexpr size_t kMaxCodes = 64;
std::array<Code, kMaxCodes> codes;
std::atomic<size_t> code_count = 0;

const Code* code_at(uintptr_t address) {
  for (size_t i = 0; i < code_count.load(std::memory_order_acquire); ++i)
    if (address >= codes[i].begin && address < codes[i].end) return &codes[i];
  return nullptr;
}

// --- the handler calls only what a handler of signals may call ---

int crash_descriptor = STDERR_FILENO;

void write_text(const char* text) {
  if (write(crash_descriptor, text, std::strlen(text)) < 0) return;
}

void write_number(uintptr_t number, unsigned base) {
  char digits[24];
  char* at = digits + sizeof digits - 1;
  *at = '\0';
  do {
    *--at = "0123456789abcdef"[number % base];
    number /= base;
  } while (number);
  write_text(at);
}

/// The code of a plug-in that is running, or was called from, by the addresses on the stack.
const Code* running_code(void* context, uintptr_t* address) {
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  const auto at = static_cast<uintptr_t>(registers.gregs[REG_RIP]);
  const auto stack = static_cast<uintptr_t>(registers.gregs[REG_RSP]);
#elif defined(__aarch64__)
  const uintptr_t at = registers.pc, stack = registers.sp;
#else
  const uintptr_t at = 0, stack = 0;
#endif
  *address = at;
  if (const Code* const code = code_at(at)) return code;
  constexpr uintptr_t kPage = 4096;
  // To the end of the page, which is mapped as far as the stack pointer is valid.
  const uintptr_t end = (stack / kPage + 1) * kPage;
  if (stack == 0 || stack % sizeof(uintptr_t) != 0) return nullptr;
  for (uintptr_t slot = stack; slot + sizeof slot <= end; slot += sizeof slot) {
    *address = *std::bit_cast<const uintptr_t*>(slot);
    if (const Code* const code = code_at(*address)) return code;
  }
  return nullptr;
}

void write_begin(int signal, const char* plugin) {
  write_text("error: signal ");
  write_number(static_cast<uintptr_t>(signal), 10);
  write_text(" inside plug-in ");
  write_text(plugin);
  write_text(": ");
}

/// The function that the thread is in.
void write_record() {
  write_text(record.function);
  if (record.subject && *record.subject) {
    write_text(" of ");
    write_text(record.subject);
  }
  if (record.location && *record.location) {
    write_text(", ");
    write_text(record.location);
  }
  write_text("\n");
}

/// At the end of the process: a plug-in that ends it is an error.
void on_exit_of_process() {
  if (!record.plugin) return;
  write_text("error: the plug-in ");
  write_text(record.plugin);
  write_text(" ends the program: ");
  write_record();
  _exit(static_cast<int>(ErrorCode::kInternal));
}

/// The thread whose signal is reported; 0 before. Others wait for the end of the process.
std::atomic<pid_t> reporter = 0;

void on_signal(int signal, siginfo_t*, void* context) {
  const auto self = static_cast<pid_t>(syscall(SYS_gettid));
  pid_t first = 0;
  if (!reporter.compare_exchange_strong(first, self) && first != self)
    while (true) pause();
  uintptr_t address = 0;
  if (first == self) {
    // A second signal, in this function.
  } else if (record.plugin) {
    write_begin(signal, record.plugin);
    write_record();
  } else if (const Code* const code = running_code(context, &address)) {
    write_begin(signal, code->label);
    write_text("its code at 0x");
    write_number(address - code->base, 16);
    write_text("\n");
  } else if (is_operation_running()) {
    write_crash(signal);
  }
  std::signal(signal, SIG_DFL);
  raise(signal);
}

/// A stack for the handler of this thread, so that it also runs when the thread's own is full.
void give_stack() {
  thread_local bool has = false;
  if (has) return;
  has = true;
  constexpr size_t kBytes = size_t{64} << 10;
  stack_t old{};
  if (sigaltstack(nullptr, &old) == 0 && !(old.ss_flags & SS_DISABLE)) return;
  void* const memory =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  const stack_t stack = {.ss_sp = memory, .ss_flags = 0, .ss_size = kBytes};
  sigaltstack(&stack, nullptr);
}

}  // namespace

Frame::Frame(const char* plugin, const char* function, const char* subject, const char* location)
    : Frame(FrameRecord{plugin, function, subject, location}) {}
Frame::Frame(const FrameRecord& given) : before_(record) {
  give_stack();
  record = given;
}
Frame::~Frame() { record = before_; }

FrameRecord current_frame() { return record; }

void write_crashes_to(int descriptor) { crash_descriptor = descriptor; }

void attribute_crashes() {
  static std::once_flag once;
  std::call_once(once, [] {
    (void)std::atexit(on_exit_of_process);
    for (const int signal : kCrashSignals) {
      struct sigaction action {};
      action.sa_sigaction = on_signal;
      action.sa_flags = SA_NODEFER | SA_ONSTACK | SA_SIGINFO;
      sigaction(signal, &action, nullptr);
    }
  });
}

void note_code(const void* address, const char* label) {
  struct Search {
    uintptr_t wanted;
    Code found;
  } search{reinterpret_cast<uintptr_t>(address), {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        for (size_t i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          const uintptr_t begin = info->dlpi_addr + part.p_vaddr, end = begin + part.p_memsz;
          if (part.p_type != PT_LOAD || s.wanted < begin || s.wanted >= end) continue;
          s.found = {begin, end, info->dlpi_addr, nullptr};
          return 1;
        }
        return 0;
      },
      &search);
  const size_t count = code_count.load(std::memory_order_relaxed);
  if (search.found.end == 0 || count == kMaxCodes) return;
  search.found.label = label;
  codes[count] = search.found;
  code_count.store(count + 1, std::memory_order_release);
}

}  // namespace paddle::plugin
