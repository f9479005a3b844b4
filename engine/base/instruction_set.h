#pragma once
// The newest instruction set (ISA) that kernels may use. PADDLE_MAX_ISA limits it to sse4, avx2 or
// avx512, to reproduce the results of another machine or to avoid frequency throttling.

namespace paddle {

enum class InstructionSet { kSse4, kAvx2, kAvx512, kAny };

/// The value of PADDLE_MAX_ISA, kAny if unset; throws kUsage for an unknown one.
InstructionSet allowed_instructions();

}  // namespace paddle
