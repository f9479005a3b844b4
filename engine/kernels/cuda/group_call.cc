#include "kernels/cuda/group_call.h"

#include <algorithm>

#include "kernels/cuda/prepare.h"

namespace paddle::cuda {

GroupCall::GroupCall(const FusedRequest& request, const cpu::FusionProgram& program,
                     const Group& group)
    : stores_(group.stores) {
  const bool large = group.size >= kSmallIndex;
  for (const auto& reduction : program.reductions) {
    folded_.push_back(reduction.result);
    const bool narrow = reduction.operand == DType::kF32 || reduction.operand == DType::kF16 ||
                        reduction.operand == DType::kBF16;
    const int64_t item = is_complex(reduction.operand) ? 16 : narrow ? 4 : 8;
    partial_bytes_.push_back(
        group.chunks > 1 ? cpu::round_up(group.chunks * group.results * item, 256) : 0);
    scratch_ += static_cast<size_t>(partial_bytes_.back());
  }
  words_.resize(group.reads.size() + group.stores.size() + 2 * folded_.size() +
                (folded_.empty() ? 0 : 1));
  words_.push_back(static_cast<uint64_t>(group.size));
  words_.push_back(static_cast<uint64_t>(group.results));
  words_.push_back(static_cast<uint64_t>(group.count));
  const int64_t unit = static_cast<int64_t>(group.width) * group.row_threads;
  const int64_t chunk = (group.count + group.chunks - 1) / group.chunks;
  words_.push_back(static_cast<uint64_t>((chunk + unit - 1) / unit * unit));
  words_.push_back(static_cast<uint64_t>(group.chunks));
  for (const int64_t size : group.shape) append_divider(words_, size, large);
  int64_t stride = 1;
  std::vector<uint64_t> element_strides;
  for (size_t axis = group.shape.size(); axis-- > 0; stride *= group.shape[axis])
    element_strides.insert(element_strides.begin(), static_cast<uint64_t>(stride));
  words_.insert(words_.end(), element_strides.begin(), element_strides.end());
  for (const GroupRead& read : group.reads)
    for (const int64_t each : read.strides) words_.push_back(static_cast<uint64_t>(each));
  const auto wide_bytes = [&](DType type) {
    return std::min<size_t>(16, static_cast<size_t>(item_size(type) * group.width));
  };
  for (size_t r = 0; r < group.reads.size(); ++r) {
    const bool product = group.reads[r].operand == group.product;
    reads_.push_back(product ? -1 : group.reads[r].operand);
    if (group.reads[r].vector && !product)
      wide_reads_.push_back(
          {static_cast<size_t>(group.reads[r].operand), wide_bytes(group.read_types[r])});
  }
  for (const int result : group.stores)
    wide_stores_.push_back({static_cast<size_t>(result),
                            wide_bytes(request.results[static_cast<size_t>(result)].dtype)});
}

void GroupCall::write_arguments(void* const* operands, void* const* results, std::byte* scratch,
                                CUdeviceptr counters, uint64_t* words) const {
  std::ranges::copy(words_, words);
  size_t at = 0;
  const auto put = [&](const void* pointer) { words[at++] = reinterpret_cast<uintptr_t>(pointer); };
  for (const int operand : reads_) put(operand < 0 ? nullptr : operands[operand]);
  for (const int result : stores_) put(results[result]);
  for (const int result : folded_) put(results[result]);
  for (const int64_t bytes : partial_bytes_) {
    put(scratch);
    scratch += bytes;
  }
  if (!folded_.empty()) words[at] = counters;
}

bool GroupCall::is_aligned(void* const* operands, void* const* results) const {
  const auto fits = [](const std::vector<Wide>& all, void* const* pointers) {
    return std::ranges::all_of(all, [&](const Wide& wide) {
      return reinterpret_cast<uintptr_t>(pointers[wide.index]) % wide.alignment == 0;
    });
  };
  return fits(wide_reads_, operands) && fits(wide_stores_, results);
}

}  // namespace paddle::cuda
