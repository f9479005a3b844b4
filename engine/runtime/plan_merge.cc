// Kernels of a device that are computed by one launch, such as the updates of many parameters.

#include <algorithm>

#include "runtime/plan.h"

namespace paddle::runtime {

bool Plan::share_memory(const Instruction& a, const Instruction& b) const {
  const auto overlap = [&](int first, int second) {
    if (first < 0 || second < 0) return false;
    const int at = value_buffers_[static_cast<size_t>(first)].buffer,
              other = value_buffers_[static_cast<size_t>(second)].buffer;
    if (at < 0 || other < 0) return true;  // unknown
    if (at == other) return true;
    const Buffer &x = buffers_[static_cast<size_t>(at)], &y = buffers_[static_cast<size_t>(other)];
    if (x.kind != BufferKind::kArena || y.kind != BufferKind::kArena) return false;
    return x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
  };
  const auto any = [&](const std::vector<int>& written, const std::vector<int>& used) {
    return std::ranges::any_of(written, [&](int result) {
      return std::ranges::any_of(used, [&](int value) { return overlap(result, value); });
    });
  };
  return any(a.results, b.operands) || any(a.results, b.results) || any(b.results, a.operands);
}

void Plan::merge_kernels() {
  std::vector<Instruction> out;
  for (size_t begin = 0, end = 0; begin < instructions_.size(); begin = end) {
    Instruction& first = instructions_[begin];
    const void* const key = first.kernel ? first.kernel->merge_key() : nullptr;
    const auto can_join = [&](const Instruction& next) {
      if (next.kind != Instruction::Kind::kKernel || !next.kernel ||
          next.kernel->merge_key() != key || next.copies != first.copies || next.scratch >= 0 ||
          !next.waits.empty())
        return false;
      for (size_t i = begin; i < end; ++i)
        if (instructions_[i].records >= 0 || share_memory(instructions_[i], next)) return false;
      return true;
    };
    end = begin + 1;
    if (key && first.kind == Instruction::Kind::kKernel && first.scratch < 0)
      while (end < instructions_.size() && can_join(instructions_[end])) ++end;
    std::vector<const Kernel*> kernels;
    for (size_t i = begin; i < end; ++i) kernels.push_back(instructions_[i].kernel.get());
    auto kernel = kernels.size() > 1 ? first.kernel->merged(kernels) : nullptr;
    if (!kernel) {
      for (size_t i = begin; i < end; ++i) out.push_back(std::move(instructions_[i]));
      continue;
    }
    for (size_t i = begin + 1; i < end; ++i) {
      Instruction& next = instructions_[i];
      first.operands.insert(first.operands.end(), next.operands.begin(), next.operands.end());
      first.results.insert(first.results.end(), next.results.begin(), next.results.end());
      first.records = next.records;
      first.merged.push_back(std::move(next.kernel));
    }
    first.merged.push_back(std::exchange(first.kernel, std::move(kernel)));
    out.push_back(std::move(first));
  }
  instructions_ = std::move(out);
}

}  // namespace paddle::runtime
