// Limits the instruction sets that oneDNN may use.

#include "base/instruction_set.h"

#include "oneapi/dnnl/dnnl.hpp"

namespace paddle::onednn {

/// Disables what PADDLE_MAX_ISA forbids. Call it before creating the first primitive.
void limit_instructions() {
  switch (allowed_instructions()) {
    case InstructionSet::kAny:
      return;
    case InstructionSet::kAvx512:
      dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core);
      return;
    case InstructionSet::kAvx2:
      dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
      return;
    case InstructionSet::kSse4:
      dnnl::set_max_cpu_isa(dnnl::cpu_isa::sse41);
      return;
  }
}

}  // namespace paddle::onednn
