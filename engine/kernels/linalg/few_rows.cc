#include "kernels/linalg/few_rows.h"

#include <algorithm>
#include <vector>

#include "base/parallel.h"
#include "kernels/common/convert.h"

namespace paddle::cpu {
namespace {

template <class T>
class FewRowsProduct final : public Kernel {
 public:
  FewRowsProduct(const MatmulShape& shape, const OperandIndices& at, bool biased,
                 const Epilogue& epilogue, ActivationLoop loop, DType dtype)
      : shape_(shape),
        at_(at),
        biased_(biased),
        residual_(epilogue.residual),
        loop_(std::move(loop)),
        widen_(convert_fn(dtype, DType::kF32)),
        narrow_(convert_fn(DType::kF32, dtype)) {}

  void run(const RunContext&, void* const* operands, void* const* results) const override {
    const FewRows<T> product{shape_.m,
                             shape_.k,
                             static_cast<const T*>(operands[at_[0]]),
                             shape_.x_row,
                             static_cast<const T*>(operands[at_[1]]),
                             shape_.y_row,
                             shape_.y_column};
    const T* const bias = biased_ ? static_cast<const T*>(operands[at_[2]]) : nullptr;
    const T* const residual = residual_ >= 0 ? static_cast<const T*>(operands[residual_]) : nullptr;
    T* const out = static_cast<T*>(results[0]);
    const int64_t tile = few_rows_tile(shape_.m);
    // Elements do not depend on how the columns are divided.
    parallel_for(shape_.n, kColumnsPerThread, [&](int64_t begin, int64_t end) {
      alignas(64) float sums[kSums], more[kSums];
      for (int64_t j = begin; j < end; j += tile) {
        const int64_t columns = std::min(tile, end - j);
        multiply_few_rows(product, j, columns, sums, columns);
        for (int64_t r = 0; r < shape_.m; ++r) {
          float* const row = sums + r * columns;
          const int64_t place = r * shape_.n + j;
          if (bias) add(bias + j, columns, more, row);
          if (residual) add(residual + place, columns, more, row);
          if (loop_.clamp_min == 0)
            for (int64_t i = 0; i < columns; ++i) row[i] = std::max(row[i], 0.0f);
          if (loop_.step.loop) {
            const void* const operand = row;
            loop_.step.loop(&operand, row, columns, loop_.step.params.data());
          }
          narrow_(row, 1, out + place, columns);
        }
      }
    });
  }

  std::string implementation() const override { return "cpu:few_rows"; }

 private:
  static constexpr int64_t kSums = 4096, kColumnsPerThread = 64;

  void add(const T* values, int64_t count, float* wide, float* row) const {
    widen_(values, 1, wide, count);
    for (int64_t i = 0; i < count; ++i) row[i] += wide[i];
  }

  MatmulShape shape_;
  OperandIndices at_;
  bool biased_;
  int residual_;
  ActivationLoop loop_;
  ConvertFn widen_, narrow_;
};

/// Smaller matrices stay in the cache, where packed forms are as fast.
constexpr int64_t kMinElements = int64_t{1} << 17;

}  // namespace

bool is_few_rows(const MatmulShape& s) {
  return s.batches() == 1 && s.m <= kMaxFewRows && s.k * s.n >= kMinElements && s.x_column == 1 &&
         (s.y_column == 1 || s.y_row == 1);
}

std::unique_ptr<Kernel> prepare_few_rows(const KernelRequest& request, const MatmulShape& shape,
                                         const OperandIndices& at, const Epilogue& epilogue,
                                         bool biased) {
  const DType dtype = request.operands[0].dtype;
  if (biased && (request.operands[2].dtype != dtype || !request.operands[2].is_contiguous()))
    return nullptr;
  auto loop = activation_loop(epilogue.activation, few_rows_tile(shape.m));
  if (!loop) return nullptr;
  if (dtype == DType::kF32)
    return std::make_unique<FewRowsProduct<float>>(shape, at, biased, epilogue, std::move(*loop),
                                                   dtype);
  if (dtype == DType::kBF16)
    return std::make_unique<FewRowsProduct<uint16_t>>(shape, at, biased, epilogue, std::move(*loop),
                                                      dtype);
  return nullptr;
}

}  // namespace paddle::cpu
