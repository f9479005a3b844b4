// Products with packed weights. Constant weights are packed into panels once, for all plans;
// activations are quantized by units of 32, so that products are sums of integers. In 16 bits a
// product is computed as two of bytes: 128 * high + low.

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/parallel.h"
#include "hwy/targets.h"
#include "kernels/common/convert.h"
#include "kernels/common/prepack_cache.h"
#include "kernels/common/rounding.h"
#include "kernels/packed/panels.h"
#include "kernels/packed/tiles.h"
#include "ops/core/kernel.h"
#include "ops/generated/generation.h"
#include "ops/generation/packed_format.h"

namespace paddle::cpu {

const PackedLoops& packed_loops() {
#if HWY_ARCH_X86
  const int64_t targets = hwy::SupportedTargets();
  if ((targets & HWY_AVX3) != 0 && __builtin_cpu_supports("avx512vnni")) return packed_loops_vnni();
  if ((targets & (HWY_AVX2 | HWY_AVX3)) != 0) return packed_loops_avx2();
#endif
  return packed_loops_plain();
}

namespace {

struct PanelKey {
  std::string format;
  DType dtype;
  int64_t features, columns;
  bool operator==(const PanelKey&) const = default;
};

PrepackCache<PanelKey>& panel_cache() {
  static PrepackCache<PanelKey> cache;
  return cache;
}

class PackedLinear final : public Kernel {
 public:
  PackedLinear(const KernelRequest& request, const PackedLinearAttrs& attrs)
      : loops_(packed_loops()) {
    const Layout& weight = request.operands[1];
    columns_ = weight.shape[0];
    row_bytes_ = weight.shape[1] * item_size(weight.dtype);
    dtype_ = weight.dtype;
    features_ = attrs.features;
    rows_ = request.operands[0].size() / features_;
    layout_ = panel_layout(attrs.format, dtype_, features_, columns_);
    if (weight.constant) {
      const auto* const data = static_cast<const std::byte*>(weight.constant);
      panels_ = panel_cache().get(
          data, static_cast<size_t>(columns_ * row_bytes_),
          {attrs.format, dtype_, features_, columns_}, layout_.bytes(),
          [&](std::byte* to) { pack_panels(layout_, dtype_, data, row_bytes_, to); });
    } else {
      panel_bytes_ = round_up_to_cache_line(layout_.bytes());
    }
    if (layout_.packed) {
      const auto rows = static_cast<size_t>(rows_), units = static_cast<size_t>(layout_.units());
      values_bytes_ = round_up_to_cache_line(rows * static_cast<size_t>(features_));
      if (attrs.activation_bits == 16) low_bytes_ = values_bytes_;
      scale_bytes_ = round_up_to_cache_line(rows * units * sizeof(float));
      correction_bytes_ = round_up_to_cache_line(rows * units * 2 * sizeof(int32_t));
    }
  }

  size_t scratch_bytes() const override {
    return panel_bytes_ + values_bytes_ + low_bytes_ + 2 * scale_bytes_ + correction_bytes_;
  }
  bool reads(size_t i) const override { return i != 1 || !panels_; }
  std::string implementation() const override { return loops_.name; }

  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    std::byte* scratch = context.scratch;
    const std::byte* panels;
    if (panels_) {
      panels = panels_->data();
    } else {
      pack_panels(layout_, dtype_, static_cast<const std::byte*>(operands[1]), row_bytes_, scratch);
      panels = scratch;
      scratch += panel_bytes_;
    }
    const auto* const x = static_cast<const float*>(operands[0]);
    TileProduct product{};
    product.layout = &layout_;
    product.rows = rows_;
    product.pitch = columns_;
    product.x = x;
    if (layout_.packed) product.quantized = quantize(x, scratch);
    const auto* const bias = static_cast<const float*>(operands[2]);
    auto* const out = static_cast<float*>(results[0]);
    const int64_t cost = std::max<int64_t>(1, rows_ * features_ * kPanelColumns);
    const int64_t grain = std::max<int64_t>(1, kGrain / cost);
    // Whole sets of groups that the loops take at a time.
    const int64_t sets = (layout_.groups() + kGroupSet - 1) / kGroupSet;
    parallel_for(sets, (grain + kGroupSet - 1) / kGroupSet, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * kGroupSet;
      TileProduct part = product;
      part.groups = std::min(end * kGroupSet, layout_.groups()) - first;
      part.panels = panels + static_cast<size_t>(first) * layout_.group_bytes;
      part.bias = bias ? bias + first * kPanelColumns : nullptr;
      part.out = out + first * kPanelColumns;
      part.columns = columns_ - first * kPanelColumns;
      loops_.multiply(part);
    });
  }

 private:
  static constexpr int64_t kGroupSet = 2;
  static constexpr int64_t kGrain = 1 << 16;  ///< multiplications that are worth a thread

  QuantizedRows quantize(const float* x, std::byte* scratch) const {
    const int64_t units = layout_.units();
    auto* const values = reinterpret_cast<int8_t*>(scratch);
    auto* const low = low_bytes_ > 0 ? values + values_bytes_ : nullptr;
    scratch += values_bytes_ + low_bytes_;
    auto* const scales = reinterpret_cast<float*>(scratch);
    auto* const totals = reinterpret_cast<float*>(scratch + scale_bytes_);
    auto* const corrections = reinterpret_cast<int32_t*>(scratch + 2 * scale_bytes_);
    parallel_for(rows_, std::max<int64_t>(1, kGrain / features_), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        loops_.quantize(*layout_.packed, x + r * features_, units, values + r * features_,
                        low ? low + r * features_ : nullptr, scales + r * units,
                        corrections + r * units * 2, totals + r * units);
    });
    return {values, low, scales, corrections, totals};
  }

  const PackedLoops& loops_;
  PanelLayout layout_;
  std::shared_ptr<Storage> panels_;
  DType dtype_ = DType::kF32;
  int64_t rows_ = 0, features_ = 0, columns_ = 0, row_bytes_ = 0;
  size_t panel_bytes_ = 0, values_bytes_ = 0, low_bytes_ = 0, scale_bytes_ = 0,
         correction_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> prepare_packed_linear(const KernelRequest& request) {
  if (request.results[0].size() == 0) return nothing_to_do();
  return std::make_unique<PackedLinear>(request, PackedLinearAttrs(request.attrs));
}

std::unique_ptr<Kernel> prepare_packed_rows(const KernelRequest& request) {
  const PackedRowsAttrs attrs(request.attrs);
  const Layout &weight = request.operands[0], &index = request.operands[1];
  const int64_t rows = weight.shape[0], features = attrs.features,
                row_bytes = weight.shape[1] * item_size(weight.dtype);
  const UnpackedFormat* const format = find_unpacked_format(attrs.format);
  const PackedFormat* const blocks = find_packed_format(attrs.format);
  const ConvertFn read_index = convert_fn(index.dtype, DType::kI64);
  const ConvertFn widen = format ? nullptr : convert_fn(weight.dtype, DType::kF32);
  const int64_t count = index.size(), index_bytes = item_size(index.dtype);
  return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
    const auto* const table = static_cast<const std::byte*>(operands[0]);
    auto* const out = static_cast<float*>(results[0]);
    parallel_for(count, std::max<int64_t>(1, 16384 / features), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t row;
        read_index(static_cast<const std::byte*>(operands[1]) + i * index_bytes, 1, &row, 1);
        if (row < -rows || row >= rows)
          fail(ErrorCode::kData, "packed_rows: index ", row, " is out of range for ", rows,
               " elements");
        const std::byte* const from = table + (row < 0 ? row + rows : row) * row_bytes;
        float* const to = out + i * features;
        if (!format) {
          widen(from, 1, to, features);
          continue;
        }
        const int64_t units_of_block = blocks->values / kUnit;
        for (int64_t u = 0; u < features / kUnit; ++u) {
          WeightUnit unit;
          format->unpack(
              reinterpret_cast<const uint8_t*>(from) + u / units_of_block * blocks->bytes,
              u % units_of_block, unit);
          for (int64_t k = 0; k < kUnit; ++k)
            to[u * kUnit + k] =
                unit.factor[k / 16] * static_cast<float>(unit.quants[k] - format->offset) +
                unit.minimum_value;
        }
      }
    });
  });
}

}  // namespace paddle::cpu
