#include "runtime/loop_limit.h"

#include <atomic>

namespace paddle::runtime {
namespace {

std::atomic<int64_t> turns_limit = 0;

}  // namespace

int64_t most_loop_turns() { return turns_limit; }

LoopLimit::LoopLimit(int64_t turns) : before_(turns_limit.exchange(turns)) {}
LoopLimit::~LoopLimit() { turns_limit = before_; }

}  // namespace paddle::runtime
