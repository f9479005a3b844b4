#include "kernels/recurrent/packed_scan.h"

#include <algorithm>

#include "base/parallel.h"
#include "kernels/common/rounding.h"
#include "kernels/common/workers.h"
#include "kernels/linalg/gemm.h"

namespace paddle::cpu {
namespace {

/// Columns of a task: a multiple of a panel's columns for every instruction set.
constexpr int64_t kTaskColumns = 32;

class PackedScanGemm final : public ScanGemm<float> {
 public:
  PackedScanGemm(const ScanShape& shape, bool backward)
      : s_(shape),
        depth_(backward ? shape.width() : shape.hidden),
        columns_(backward ? shape.hidden : shape.width()),
        // The weight [gates * hidden, hidden] is the matrix [depth, columns], or its transpose.
        strides_{backward ? shape.hidden : 1, backward ? 1 : shape.hidden},
        workers_(std::min<int64_t>(threads_for(shape.batch * depth_ * columns_), tasks())) {}

  size_t scratch_bytes() const override {
    return packed_size() + static_cast<size_t>(workers_) * workspace_size();
  }
  std::string name() const override { return "cpu:packed"; }

  void begin(const RunContext& context, const float* weight) const override {
    float* const packed = reinterpret_cast<float*>(context.scratch);
    parallel_for(tasks(), 1, [&](int64_t first, int64_t last) {
      const int64_t column = first * kTaskColumns;
      const int64_t count = std::min(columns_, last * kTaskColumns) - column;
      pack(depth_, count, {weight + column * strides_.column, strides_.row, strides_.column},
           packed + column * depth_);
    });
  }
  void forward(const RunContext& context, const float*, const float* h, bool first,
               float* hidden_gates) const override {
    run(context, h, first ? s_.hidden : s_.steps * s_.hidden, hidden_gates);
  }
  void backward(const RunContext& context, const float*, const float* g,
                float* out) const override {
    run(context, g, s_.steps * s_.width(), out);
  }

 private:
  struct Strides {
    int64_t row, column;
  };

  int64_t tasks() const { return (columns_ + kTaskColumns - 1) / kTaskColumns; }
  size_t packed_size() const {
    return round_up_to_cache_line(packed_bytes(depth_, columns_, sizeof(float)));
  }
  size_t workspace_size() const {
    return round_up_to_cache_line(packed_product_workspace_bytes(depth_, sizeof(float)));
  }
  /// out = rows packed, [batch, columns].
  void run(const RunContext& context, const float* rows, int64_t row_stride, float* out) const {
    const float* const packed = reinterpret_cast<const float*>(context.scratch);
    for_each_worker(tasks(), workers_, [&](int64_t first, int64_t last, int64_t worker) {
      const int64_t column = first * kTaskColumns;
      if (first == last) return;
      multiply(PackedProduct<float>{.m = s_.batch,
                                    .n = std::min(columns_, last * kTaskColumns) - column,
                                    .k = depth_,
                                    .a = {rows, row_stride, 1},
                                    .packed = packed + column * depth_,
                                    .depth = depth_,
                                    .factor = 1,
                                    .add = false,
                                    .c = out + column,
                                    .c_stride = columns_},
               context.scratch + packed_size() + static_cast<size_t>(worker) * workspace_size());
    });
  }

  ScanShape s_;
  int64_t depth_, columns_;
  Strides strides_;
  int64_t workers_;
};

}  // namespace

std::unique_ptr<ScanGemm<float>> packed_scan_gemm(const ScanShape& shape, bool backward) {
  return std::make_unique<PackedScanGemm>(shape, backward);
}

}  // namespace paddle::cpu
