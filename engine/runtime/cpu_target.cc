#include "runtime/cpu_target.h"

#include <algorithm>
#include <utility>

#include "base/instruction_set.h"
#include "runtime/batch_tiling.h"

namespace paddle::runtime {

void describe_cpu(TargetInfo& target) {
#if defined(__x86_64__)
  target.architecture = "x86-64";
  const InstructionSet allowed = allowed_instructions();
  const auto add = [&](bool has, InstructionSet from, const char* name) {
    if (has && allowed >= from) target.features.emplace_back(name);
  };
  add(__builtin_cpu_supports("avx2"), InstructionSet::kAvx2, "avx2");
  add(__builtin_cpu_supports("fma"), InstructionSet::kAvx2, "fma");
  add(__builtin_cpu_supports("avx512f"), InstructionSet::kAvx512, "avx512f");
  add(__builtin_cpu_supports("avx512vnni"), InstructionSet::kAvx512, "avx512vnni");
  std::sort(target.features.begin(), target.features.end());
#elif defined(__aarch64__)
  target.architecture = "aarch64";
#else
  target.architecture = "cpu";
#endif
  target.tile_bytes = tile_working_set();
}

bool has_products_in([[maybe_unused]] DType low) {
#if defined(__x86_64__)
  if (allowed_instructions() < InstructionSet::kAvx512) return false;
  return low == DType::kBF16 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

}  // namespace paddle::runtime
