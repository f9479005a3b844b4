#pragma once
// The newest instructions that the program may use. PADDLE_MAX_ISA limits them (sse4, avx2 or
// avx512), to see on one machine what another would compute, and to keep a processor's frequency.

namespace paddle {

enum class InstructionSet { kSse4, kAvx2, kAvx512, kAny };

/// What PADDLE_MAX_ISA says, kAny without it; kUsage for a word that is none of these.
InstructionSet allowed_instructions();

}  // namespace paddle
