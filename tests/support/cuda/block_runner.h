#pragma once
// Runs the blocks of an emulated kernel: the threads of a block take turns in a random order
// between barriers, on stacks of their own.

#include <sys/mman.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>

namespace {

constexpr size_t kStack = 64 * 1024;
constexpr unsigned kMaxThreads = 1024;

struct EmulatedIndex {
  unsigned x, y, z;
};
struct Emulation {
  EmulatedIndex thread, block, block_size, grid_size;
  void (*barrier)();
  unsigned long long round;  ///< of all that ran: all threads of a block are between two barriers
};

#if defined(__x86_64__)
extern "C" void paddle_switch_stack(void** save, void* load);
asm(R"(
.text
.globl paddle_switch_stack
.hidden paddle_switch_stack
.type paddle_switch_stack, @function
paddle_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size paddle_switch_stack, .-paddle_switch_stack
)");
#endif

class BlockRunner {
 public:
  static BlockRunner& get() {
    static auto& runner = *new BlockRunner;
    return runner;
  }

  void run(void (*kernel)(const void*), const void* arguments, Emulation& emulation,
           EmulatedIndex grid, EmulatedIndex block, std::mt19937_64& random) {
    kernel_ = kernel;
    arguments_ = arguments;
    emulation_ = &emulation;
    emulation.barrier = [] { get().suspend(); };
    emulation.block_size = block;
    emulation.grid_size = grid;
    const unsigned threads = block.x * block.y * block.z;
    const uint64_t blocks = uint64_t{grid.x} * grid.y * grid.z;
    const bool backwards = random() & 1;
    for (uint64_t i = 0; i < blocks; ++i) {
      const uint64_t which = backwards ? blocks - 1 - i : i;
      emulation.block = {static_cast<unsigned>(which % grid.x),
                         static_cast<unsigned>(which / grid.x % grid.y),
                         static_cast<unsigned>(which / grid.x / grid.y)};
      run_block(block, threads, random);
    }
  }

 private:
  BlockRunner() {
    stacks_ = static_cast<std::byte*>(mmap(nullptr, kStack * kMaxThreads, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  }

  void run_block(EmulatedIndex block, unsigned threads, std::mt19937_64& random) {
    for (unsigned t = 0; t < threads; ++t) prepare(t);
    unsigned left = threads;
    while (left > 0) {
      const uint64_t order = random();
      const unsigned first = static_cast<unsigned>(order % threads);
      const bool backwards = order >> 63;
      emulation_->round = ++rounds_;
      for (unsigned i = 0; i < threads; ++i) {
        const unsigned t = (first + (backwards ? threads - i : i)) % threads;
        if (done_[t]) continue;
        current_ = t;
        emulation_->thread = {t % block.x, t / block.x % block.y, t / block.x / block.y};
        resume(t);
        if (done_[t]) --left;
      }
    }
  }

  static void begin() {
    BlockRunner& runner = get();
    runner.kernel_(runner.arguments_);
    runner.done_[runner.current_] = true;
    runner.suspend();
    std::abort();  // a thread that is done is not resumed
  }

#if defined(__x86_64__)
  void prepare(unsigned t) {
    done_[t] = false;
    auto* const top = reinterpret_cast<uint64_t*>(stacks_ + kStack * (t + 1));
    uint64_t* at = top;
    *--at = 0;  // where begin would return to
    *--at = reinterpret_cast<uint64_t>(&begin);
    for (int i = 0; i < 6; ++i) *--at = 0;
    places_[t] = at;
  }
  void resume(unsigned t) { paddle_switch_stack(&caller_, places_[t]); }
  void suspend() { paddle_switch_stack(&places_[current_], caller_); }
  void* caller_ = nullptr;
  void* places_[kMaxThreads] = {};
#else
  void prepare(unsigned t) {
    done_[t] = false;
    getcontext(&places_[t]);
    places_[t].uc_stack.ss_sp = stacks_ + kStack * t;
    places_[t].uc_stack.ss_size = kStack;
    places_[t].uc_link = nullptr;
    makecontext(&places_[t], &begin, 0);
  }
  void resume(unsigned t) { swapcontext(&caller_, &places_[t]); }
  void suspend() { swapcontext(&places_[current_], &caller_); }
  ucontext_t caller_;
  ucontext_t places_[kMaxThreads];
#endif

  std::byte* stacks_;
  bool done_[kMaxThreads] = {};
  unsigned current_ = 0;
  unsigned long long rounds_ = 0;
  void (*kernel_)(const void*) = nullptr;
  const void* arguments_ = nullptr;
  Emulation* emulation_ = nullptr;
};

}  // namespace
