#pragma once
// Counts what a program allocates with operator new. A program that refers to this has it counted
// throughout; others keep the library's operator.

#include <cstdint>
#include <functional>

namespace paddle::testing_support {

/// How often `work` allocates, on any thread.
int64_t count_allocations(const std::function<void()>& work);

}  // namespace paddle::testing_support
