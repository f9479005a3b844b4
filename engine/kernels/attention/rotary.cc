// Rotary position embedding in one pass: pairs of features are rotated by the angles of their
// positions. Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021.

#include "base/parallel.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/norm/norm_types.h"
#include "ops/generated/sequence.h"

namespace paddle::cpu {
namespace {

/// Offset between the two features of a pair, and between pairs.
struct PairLayout {
  int64_t second, step;
};

/// Rotates one row of `count` pairs; cos and sin have layouts of their own.
template <class T>
void rotate(const T* __restrict x, const T* __restrict cos, const T* __restrict sin,
            T* __restrict y, int64_t count, PairLayout in, PairLayout cosines, PairLayout sines) {
  using C = Compute<T>;
  const auto at = [&](int64_t k, int64_t x_step, int64_t cos_step, int64_t sin_step) {
    const C a = static_cast<C>(x[k * x_step]), b = static_cast<C>(x[k * x_step + in.second]);
    const C first = a * static_cast<C>(cos[k * cos_step]) - b * static_cast<C>(sin[k * sin_step]);
    const C second = b * static_cast<C>(cos[k * cos_step + cosines.second]) +
                     a * static_cast<C>(sin[k * sin_step + sines.second]);
    y[k * x_step] = static_cast<T>(first);
    y[k * x_step + in.second] = static_cast<T>(second);
  };
  if (in.step == 1) {
    for (int64_t k = 0; k < count; ++k) at(k, 1, 1, 1);
  } else {
    for (int64_t k = 0; k < count; ++k) at(k, 2, cosines.step, sines.step);
  }
}

/// Strides of an operand broadcast to `shape`, without the last axis.
Dims row_strides(const Layout& layout, const Dims& shape) {
  Dims strides(shape.size() - 1, 0);
  const size_t rank = layout.shape.size();
  for (size_t i = 0; i + 1 < rank; ++i)
    if (layout.shape[rank - 2 - i] != 1)
      strides[strides.size() - 1 - i] = layout.strides[rank - 2 - i];
  return strides;
}

}  // namespace

std::unique_ptr<Kernel> prepare_rotary_embedding(const KernelRequest& request) {
  const Layout& x = request.operands[0];
  const int64_t features = x.shape.back(), pairs = features / 2;
  for (const Layout& operand : request.operands)
    if (operand.shape.back() > 1 && operand.strides.back() != 1) return nullptr;
  const bool interleaved = RotaryEmbeddingAttrs(request.attrs).interleaved;
  const auto pairs_of = [&](const Layout& l) {
    if (l.shape.back() != features) return PairLayout{0, 1};
    return interleaved ? PairLayout{1, 2} : PairLayout{pairs, 1};
  };
  const PairLayout in = pairs_of(x), cosines = pairs_of(request.operands[1]),
                   sines = pairs_of(request.operands[2]);
  const Dims outer(x.shape.begin(), x.shape.end() - 1);
  const Dims from = row_strides(x, x.shape), by_cos = row_strides(request.operands[1], x.shape),
             by_sin = row_strides(request.operands[2], x.shape);
  const int64_t rows = features == 0 ? 0 : request.results[0].size() / features;
  return visit_float(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      parallel_for(rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, features)),
                   [&](int64_t first, int64_t last) {
                     for (int64_t row = first; row < last; ++row) {
                       int64_t at_x = 0, at_cos = 0, at_sin = 0, remaining = row;
                       for (size_t i = outer.size(); i-- > 0;) {
                         const int64_t index = remaining % outer[i];
                         remaining /= outer[i];
                         at_x += index * from[i];
                         at_cos += index * by_cos[i];
                         at_sin += index * by_sin[i];
                       }
                       rotate(static_cast<const T*>(operands[0]) + at_x,
                              static_cast<const T*>(operands[1]) + at_cos,
                              static_cast<const T*>(operands[2]) + at_sin,
                              static_cast<T*>(results[0]) + row * features, pairs, in, cosines,
                              sines);
                     }
                   });
    });
  });
}

}  // namespace paddle::cpu
