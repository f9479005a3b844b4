#include "runtime/loop_limit.h"

#include <atomic>

namespace paddle::runtime {
namespace {

std::atomic<int64_t> iteration_limit = 0;

}  // namespace

int64_t max_loop_iterations() { return iteration_limit; }

LoopLimit::LoopLimit(int64_t iterations) : before_(iteration_limit.exchange(iterations)) {}
LoopLimit::~LoopLimit() { iteration_limit = before_; }

}  // namespace paddle::runtime
