// Group normalization. Means and variances are summed in f64; 16-bit floats are computed in f32.

#include <cmath>

#include "kernels/common/rows.h"
#include "kernels/norm/norm_types.h"
#include "kernels/reduce/reduce_simd.h"
#include "ops/generated/nn.h"

namespace paddle::cpu {
namespace {

/// Groups of neighbors are normalized in place; others, of channels last or of another type than C,
/// go through a buffer.
template <class T>
class GroupNorm {
  using C = Compute<T>;

 public:
  GroupNorm(const KernelRequest& request, const GroupNormAttrs& attrs)
      : groups_(attrs.num_groups),
        epsilon_(attrs.epsilon),
        weight_type_(dtype_or(request, 1, dtype_of<C>())),
        bias_type_(dtype_or(request, 2, dtype_of<C>())) {
    const Dims& shape = request.operands[0].shape;
    last_ = attrs.data_format.size() > 2 && attrs.data_format.ends_with('C') && shape.size() > 2;
    all_channels_ = last_ ? shape.back() : shape[1];
    channels_ = all_channels_ / groups_;
    rows_ = shape[0] * groups_;
    pixels_ = rows_ == 0 || channels_ == 0 ? 0 : request.operands[0].size() / (rows_ * channels_);
  }

  size_t scratch_bytes() const { return 2 * vector() + row_scratch(rows_, each()); }

  void run(const RunContext& context, void* const* operands, void* const* results) const {
    const C* const weight =
        as_compute_type<C>(operands[1], weight_type_, all_channels_, context.scratch);
    const C* const bias =
        as_compute_type<C>(operands[2], bias_type_, all_channels_, context.scratch + vector());
    const RunContext rows{context.scratch + 2 * vector(), nullptr};
    for_each_row(rows, rows_, 2 * size(), each(), [&](int64_t row, std::byte* buffer) {
      const T* x = static_cast<const T*>(operands[0]);
      T* out = static_cast<T*>(results[0]);
      const int64_t first = row % groups_ * channels_;
      if (direct()) {
        normalize(as_compute(x + row * size()), as_compute(out + row * size()),
                  weight ? weight + first : nullptr, bias ? bias + first : nullptr);
        return;
      }
      C* const values = reinterpret_cast<C*>(buffer);
      const auto place = [&](int64_t c, int64_t p) {
        return last_ ? (row / groups_ * pixels_ + p) * all_channels_ + first + c
                     : row * size() + c * pixels_ + p;
      };
      for (int64_t c = 0; c < channels_; ++c)
        for (int64_t p = 0; p < pixels_; ++p)
          values[c * pixels_ + p] = static_cast<C>(x[place(c, p)]);
      normalize(values, values, weight ? weight + first : nullptr, bias ? bias + first : nullptr);
      for (int64_t c = 0; c < channels_; ++c)
        for (int64_t p = 0; p < pixels_; ++p)
          out[place(c, p)] = static_cast<T>(values[c * pixels_ + p]);
    });
  }

 private:
  int64_t size() const { return channels_ * pixels_; }
  bool direct() const { return !last_ && std::is_same_v<T, C>; }
  size_t vector() const { return row_buffer_bytes(all_channels_, sizeof(C)); }
  size_t each() const { return direct() ? 0 : row_buffer_bytes(size(), sizeof(C)); }
  static const C* as_compute(const T* x) { return reinterpret_cast<const C*>(x); }
  static C* as_compute(T* x) { return reinterpret_cast<C*>(x); }

  /// x may be out.
  void normalize(const C* x, C* out, const C* weight, const C* bias) const {
    const RowLoops<C>& loops = row_loops<C>();
    const auto count = static_cast<double>(size());
    const C center = static_cast<C>(loops.sum(x, size()) / count);
    const double variance = loops.squared_distance(x, size(), center) / count;
    const C scale = static_cast<C>(1 / std::sqrt(variance + epsilon_));
    for (int64_t c = 0; c < channels_; ++c) {
      C* const to = out + c * pixels_;
      loops.normalize(x + c * pixels_, nullptr, nullptr, to, pixels_, center, scale);
      if (weight || bias)
        loops.affine(to, to, pixels_, C(0), weight ? weight[c] : C(1), bias ? bias[c] : C(0));
    }
  }

  int64_t groups_, channels_, all_channels_, rows_, pixels_;
  double epsilon_;
  bool last_;
  DType weight_type_, bias_type_;
};

}  // namespace

std::unique_ptr<Kernel> prepare_group_norm(const KernelRequest& request) {
  const GroupNormAttrs attrs(request.attrs);
  if (request.operands[0].size() == 0) return nothing_to_do();
  return visit_float(request.operands[0].dtype, [&](auto tag) {
    const GroupNorm<typename decltype(tag)::type> norm(request, attrs);
    return make_kernel([norm](const RunContext& context, void* const* operands,
                              void* const* results) { norm.run(context, operands, results); },
                       norm.scratch_bytes());
  });
}

}  // namespace paddle::cpu
