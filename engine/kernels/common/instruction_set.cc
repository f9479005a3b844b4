// Limits the instruction sets that Highway may choose.

#include "hwy/targets.h"

#include "base/instruction_set.h"

namespace paddle::cpu {

/// Disables what PADDLE_MAX_ISA forbids. Call it before preparing the first kernel.
void limit_instructions() {
  int64_t newer = 0;
  const InstructionSet allowed = allowed_instructions();
#if HWY_ARCH_X86
  // Highway numbers x86 sets from the newest: smaller bits are newer sets.
  if (allowed == InstructionSet::kAvx512) newer = HWY_AVX3 - 1;
  if (allowed == InstructionSet::kAvx2) newer = HWY_AVX2 - 1;
  if (allowed == InstructionSet::kSse4) newer = HWY_SSE4 - 1;
#endif
  if (newer != 0) hwy::DisableTargets(newer);
}

}  // namespace paddle::cpu
