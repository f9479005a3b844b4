#pragma once
// The conditions of timings on this machine, as a text that tables of timings carry.

#include <string>

namespace paddle {

/// The processor, the instruction sets that are used, and the threads.
std::string timing_conditions();

}  // namespace paddle
