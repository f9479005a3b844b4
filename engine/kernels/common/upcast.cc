#include "kernels/common/upcast.h"

#include <algorithm>

#include "base/pages.h"
#include "base/parallel.h"
#include "kernels/common/constant.h"
#include "kernels/common/convert.h"
#include "kernels/common/rounding.h"

namespace paddle::cpu {
namespace {

constexpr int64_t kGrain = 16384;  // minimum elements per thread

void to_float32(const void* from, int64_t n, float* to) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    half_to_float(static_cast<const float16*>(from) + begin, to + begin, end - begin);
  });
}

void to_float16(const float* from, int64_t n, void* to) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    float_to_half(from + begin, static_cast<float16*>(to) + begin, end - begin);
  });
}

/// A copy of a constant in float32.
std::shared_ptr<Storage> upcast_constant(const Layout& layout) {
  auto out = Storage::allocate(static_cast<size_t>(layout.size()) * sizeof(float));
  to_float32(constant_of(layout).raw(), layout.size(), reinterpret_cast<float*>(out->data()));
  return out;
}

/// A converted operand or result: index, element count, and offset of its float32 copy in scratch.
struct UpcastArray {
  size_t at;
  int64_t count;
  size_t offset;
};

class UpcastKernel final : public Kernel {
 public:
  bool prepare(const KernelRequest& request, PrepareFn prepare_inner) {
    std::vector<Layout> operands(request.operands.begin(), request.operands.end());
    std::vector<Layout> results(request.results.begin(), request.results.end());
    constants_.resize(operands.size());
    for (size_t i = 0; i < operands.size(); ++i) {
      Layout& layout = operands[i];
      if (!layout.present || layout.dtype != DType::kF16) continue;
      if (layout.constant && !request.prepare.skip_prepack) {
        constants_[i] = upcast_constant(layout);
        layout.constant = constants_[i]->data();
      } else {
        layout.constant = nullptr;
        operands_.push_back(allocate(i, layout));
      }
      layout.dtype = DType::kF32;
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i].present || results[i].dtype != DType::kF16) continue;
      results_.push_back(allocate(i, results[i]));
      results[i].dtype = DType::kF32;
    }
    KernelRequest inner = request;
    inner.operands = operands;
    inner.results = results;
    inner_ = prepare_inner(inner);
    operand_count_ = operands.size();
    result_count_ = results.size();
    // If the inner kernel prepacked the constant, the converted copy is not read again. Its pages
    // are released but its address stays reserved, because kernels identify constants by address.
    for (size_t i = 0; inner_ && i < operand_count_; ++i)
      if (const auto& c = constants_[i]; c && !inner_->reads(i))
        release_pages(c->data(), c->bytes());
    return inner_ != nullptr && operand_count_ <= kMaxArrays && result_count_ <= kMaxArrays;
  }

  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    void *reads[kMaxArrays], *writes[kMaxArrays];
    std::copy_n(operands, operand_count_, reads);
    std::copy_n(results, result_count_, writes);
    for (size_t i = 0; i < operand_count_; ++i)
      if (constants_[i]) reads[i] = constants_[i]->data();
    for (const UpcastArray& w : operands_) {
      reads[w.at] = context.scratch + w.offset;
      to_float32(operands[w.at], w.count, static_cast<float*>(reads[w.at]));
    }
    for (const UpcastArray& w : results_) writes[w.at] = context.scratch + w.offset;
    inner_->run({context.scratch + bytes_, context.allocator}, reads, writes);
    for (const UpcastArray& w : results_)
      to_float16(static_cast<const float*>(writes[w.at]), w.count, results[w.at]);
  }
  size_t scratch_bytes() const override { return bytes_ + inner_->scratch_bytes(); }
  bool reads(size_t i) const override { return !constants_[i] && inner_->reads(i); }
  std::string implementation() const override { return inner_->implementation() + " upcast"; }

 private:
  static constexpr size_t kMaxArrays = 8;  ///< operands, and results

  UpcastArray allocate(size_t at, const Layout& layout) {
    const size_t offset = bytes_;
    bytes_ += round_up_to_cache_line(static_cast<size_t>(layout.size()) * sizeof(float));
    return {at, layout.size(), offset};
  }

  std::unique_ptr<Kernel> inner_;
  std::vector<UpcastArray> operands_, results_;
  std::vector<std::shared_ptr<Storage>> constants_;  ///< by operand; null for others
  size_t operand_count_ = 0, result_count_ = 0, bytes_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> upcast_to_float32(const KernelRequest& request, PrepareFn prepare) {
  auto kernel = std::make_unique<UpcastKernel>();
  return kernel->prepare(request, prepare) ? std::move(kernel) : nullptr;
}

}  // namespace paddle::cpu
