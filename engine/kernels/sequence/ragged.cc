// Indices of sequences that are stored one after another.

#include <algorithm>

#include "ops/core/kernel.h"
#include "ops/generated/sequence.h"

namespace paddle::cpu {
namespace {

constexpr int64_t kMaxRows = int64_t{1} << 40;

int64_t checked_total(std::string_view op, const int64_t* lengths, int64_t count) {
  int64_t total = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (lengths[i] < 0 || lengths[i] > kMaxRows - total)
      fail(ErrorCode::kData, op, ": the length ", lengths[i], " is out of range");
    total += lengths[i];
  }
  return total;
}

}  // namespace

std::unique_ptr<Kernel> prepare_sequence_rows(const KernelRequest& request) {
  const int64_t count = request.operands[0].size();
  const auto given = SequenceRowsAttrs(request.attrs).total;
  const int64_t wanted = given ? given->value() : -1;
  return make_kernel([=](const RunContext& context, void* const* operands, void* const*) {
    const int64_t* const lengths = static_cast<const int64_t*>(operands[0]);
    const int64_t total = checked_total("sequence_rows", lengths, count);
    if (wanted >= 0 && total != wanted)
      fail(ErrorCode::kData, "the lengths add up to ", total, ", there are ", wanted, " rows");
    auto* out = static_cast<int64_t*>(context.allocator->allocate(0, {total}));
    for (int64_t i = 0; i < count; ++i) out = std::fill_n(out, lengths[i], i);
  });
}

std::unique_ptr<Kernel> prepare_concat_ranges(const KernelRequest& request) {
  const int64_t count = request.operands[0].size();
  return make_kernel([=](const RunContext& context, void* const* operands, void* const*) {
    const int64_t* const starts = static_cast<const int64_t*>(operands[0]);
    const int64_t* const lengths = static_cast<const int64_t*>(operands[1]);
    const int64_t total = checked_total("concat_ranges", lengths, count);
    auto* out = static_cast<int64_t*>(context.allocator->allocate(0, {total}));
    for (int64_t i = 0; i < count; ++i)
      for (int64_t k = 0; k < lengths[i]; ++k) *out++ = starts[i] + k;
  });
}

}  // namespace paddle::cpu
