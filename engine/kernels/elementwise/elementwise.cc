#include "kernels/elementwise/elementwise.h"

#include <algorithm>

#include "base/parallel.h"
#include "kernels/elementwise/elementwise_step.h"
#include "tensor/strided_copy.h"

namespace paddle::cpu {
namespace {

// Elements of up to 8 bytes; four buffers of them stay in the L1 cache. Half as many of 16 bytes.
constexpr int64_t kBlock = 1024;
constexpr int kMaxOperands = 4;

class ElementwiseKernel final : public Kernel {
 public:
  ElementwiseKernel(const KernelRequest& request, Loop loop,
                    const std::vector<DType>& operand_types, DType result_type,
                    std::vector<double> params, int cost, std::string_view name)
      : step_{name, loop, std::move(params), {}, result_type, cost} {
    const Layout& result = request.results[0];
    size_ = result.size();
    result_item_ = item_size(result.dtype);
    store_ = result.dtype == result_type ? nullptr : convert_fn(result_type, result.dtype);
    is_contiguous_ = store_ == nullptr;
    for (size_t i = 0; i < request.operands.size(); ++i) {
      if (!request.operands[i].present) continue;
      ensure(readers_.size() < operand_types.size() && readers_.size() < kMaxOperands,
             request.op.name(), ": too many operands for an elementwise loop");
      step_.operands.push_back(operand_types[readers_.size()]);
      readers_.emplace_back(request.operands[i], result.shape, step_.operands.back());
      positions_.push_back(i);
      is_contiguous_ = is_contiguous_ && readers_.back().is_direct();
    }
    block_ = std::any_of(step_.operands.begin(), step_.operands.end(),
                         [](DType d) { return item_size(d) > 8; }) ||
                     item_size(result_type) > 8
                 ? kBlock / 2
                 : kBlock;
    row_ = common_row();
    // About 20 µs of work per thread.
    grain_ = std::max<int64_t>(kBlock, 65536 / std::max(1, cost));
  }

  void run(const RunContext&, void* const* operands, void* const* results) const override {
    parallel_for(size_, grain_, [&](int64_t begin, int64_t end) {
      run_range(operands, static_cast<std::byte*>(results[0]), begin, end);
    });
  }
  const ElementwiseStep& step() const { return step_; }

 private:
  /// The length of rows that no operand's runs cross, if blocks that end with them pay off; else 0.
  int64_t common_row() const {
    constexpr int64_t kMinRow = 128;
    int64_t row = 0;
    for (const StridedReader& reader : readers_) {
      if (reader.is_direct() || reader.is_constant()) continue;
      const int64_t own = reader.shape().back();
      if (own < kMinRow || (row != 0 && own != row)) return 0;
      row = own;
    }
    return row;
  }

  void run_range(void* const* operands, std::byte* result, int64_t begin, int64_t end) const {
    alignas(64) std::byte buffers[kMaxOperands + 1][kBlock * 8];
    const void* in[kMaxOperands];
    const int64_t step = is_contiguous_ ? end - begin : block_;
    for (int64_t at = begin, n = 0; at < end; at += n) {
      n = std::min(step, end - at);
      if (row_ > 0) n = std::min(n, row_ - at % row_);
      for (size_t k = 0; k < readers_.size(); ++k) {
        // A block of a constant operand is filled once.
        if (readers_[k].is_constant() && at != begin) continue;
        const int64_t count = readers_[k].is_constant() ? std::min(step, end - begin) : n;
        in[k] = readers_[k].read_run(operands[positions_[k]], at, count, buffers[k]);
      }
      std::byte* const out = result + at * result_item_;
      if (store_) {
        step_.loop(in, buffers[kMaxOperands], n, step_.params.data());
        store_(buffers[kMaxOperands], 1, out, n);
      } else {
        step_.loop(in, out, n, step_.params.data());
      }
    }
  }

  ElementwiseStep step_;
  std::vector<StridedReader> readers_;
  std::vector<size_t> positions_;
  ConvertFn store_;
  int64_t size_, result_item_, grain_, block_, row_;
  bool is_contiguous_;
};

}  // namespace

DType compute_type(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 ? DType::kF32 : dtype;
}

StridedReader::StridedReader(const Layout& layout, const Dims& shape, DType target)
    : convert_(convert_fn(layout.dtype, target)),
      source_size_(item_size(layout.dtype)),
      target_size_(item_size(target)) {
  const size_t missing = shape.size() - layout.shape.size();
  shape_ = shape;
  strides_.assign(shape.size(), 0);
  for (size_t axis = missing; axis < shape.size(); ++axis)
    if (layout.shape[axis - missing] != 1) strides_[axis] = layout.strides[axis - missing];
  merge_axes(shape_, strides_);
  if (shape_.empty()) {
    shape_ = {1};
    strides_ = {0};
  }
  constant_ = shape_.size() == 1 && strides_[0] == 0;
  direct_ = shape_.size() == 1 &&
            (shape_[0] == 0 || (layout.dtype == target && (strides_[0] == 1 || shape_[0] == 1)));
  if (direct_) constant_ = false;
  runs_ = strides_.back() == 1 && layout.dtype == target;
  if (shape_.size() == 2 && strides_[0] == 0 && runs_) period_ = shape_[1];
}

const void* StridedReader::read_run(const void* base, int64_t begin, int64_t n,
                                    void* buffer) const {
  if (!runs_ || direct_ || begin % shape_.back() + n > shape_.back())
    return read(base, begin, n, buffer);
  int64_t remaining = begin, offset = 0;
  for (size_t axis = shape_.size(); axis-- > 0;) {
    offset += remaining % shape_[axis] * strides_[axis];
    remaining /= shape_[axis];
  }
  return static_cast<const std::byte*>(base) + offset * source_size_;
}

const void* StridedReader::read(const void* base, int64_t begin, int64_t n, void* buffer) const {
  const std::byte* const source = static_cast<const std::byte*>(base);
  if (direct_) return source + begin * source_size_;
  const size_t rank = shape_.size();
  if (rank == 1) {
    convert_(source + begin * strides_[0] * source_size_, strides_[0], buffer, n);
    return buffer;
  }
  // The multi-index of `begin`. At most 62 merged axes have two elements or more.
  std::array<int64_t, 64> index;
  int64_t remaining = begin, offset = 0;
  for (size_t axis = rank; axis-- > 0;) {
    index[axis] = remaining % shape_[axis];
    remaining /= shape_[axis];
    offset += index[axis] * strides_[axis];
  }
  const int64_t inner = shape_[rank - 1], inner_stride = strides_[rank - 1];
  std::byte* out = static_cast<std::byte*>(buffer);
  while (true) {
    const int64_t run = std::min(inner - index[rank - 1], n);
    convert_(source + offset * source_size_, inner_stride, out, run);
    n -= run;
    if (n == 0) return buffer;
    out += run * target_size_;
    offset -= index[rank - 1] * inner_stride;
    index[rank - 1] = 0;
    for (size_t axis = rank - 1; axis-- > 0;) {
      offset += strides_[axis];
      if (++index[axis] < shape_[axis]) break;
      offset -= shape_[axis] * strides_[axis];
      index[axis] = 0;
    }
  }
}

std::unique_ptr<Kernel> elementwise(const KernelRequest& request, Loop loop,
                                    const std::vector<DType>& operand_types, DType result_type,
                                    const std::vector<double>& params, int cost,
                                    std::string_view name) {
  return std::make_unique<ElementwiseKernel>(request, loop, operand_types, result_type, params,
                                             cost, name);
}

std::optional<ElementwiseStep> elementwise_step(const Kernel& kernel) {
  auto step = any_elementwise_step(kernel);
  if (!step || is_complex(step->result) || std::ranges::any_of(step->operands, is_complex))
    return std::nullopt;
  return step;
}

std::optional<ElementwiseStep> any_elementwise_step(const Kernel& kernel) {
  const auto* elementwise = dynamic_cast<const ElementwiseKernel*>(&kernel);
  return elementwise ? std::optional(elementwise->step()) : std::nullopt;
}

namespace {

std::unique_ptr<Kernel> complex_map(const KernelRequest& request, std::string_view loop,
                                    DType result, const std::vector<double>& params, int cost) {
  const DType type = request.operands[0].dtype;
  const Loop found = complex_loop(loop, type);
  if (!found) return nullptr;
  return elementwise(request, found, std::vector<DType>(kMaxOperands, type), result, params,
                     4 * cost, loop);
}

}  // namespace

std::unique_ptr<Kernel> map(const KernelRequest& request, std::string_view loop,
                            const std::vector<double>& params, int cost) {
  if (is_complex(request.operands[0].dtype))
    return complex_map(request, loop, request.results[0].dtype, params, cost);
  if (!info(request.operands[0].dtype).has_kernels) return nullptr;
  const DType compute = compute_type(request.operands[0].dtype);
  const Loop found = is_float(compute) ? float_loop(loop, compute) : integer_loop(loop, compute);
  if (!found) return nullptr;
  return elementwise(request, found, std::vector<DType>(kMaxOperands, compute), compute, params,
                     cost, loop);
}

std::unique_ptr<Kernel> predicate(const KernelRequest& request, std::string_view loop) {
  if (is_complex(request.operands[0].dtype)) return complex_map(request, loop, DType::kBool, {}, 1);
  if (!info(request.operands[0].dtype).has_kernels) return nullptr;
  const DType compute = compute_type(request.operands[0].dtype);
  const Loop found = predicate_loop(loop, compute);
  if (!found) return nullptr;
  return elementwise(request, found, std::vector<DType>(kMaxOperands, compute), DType::kBool, {}, 1,
                     loop);
}

}  // namespace paddle::cpu
