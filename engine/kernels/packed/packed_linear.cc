// Products with packed weights, of one matrix or several. Constant weights are packed into panels
// once, for all plans, or multiplied as they are stored where the loops can; activations are
// quantized by units of 32, so that products are sums of integers. In 16 bits a product is computed
// as two of bytes, 128 * high + low, or as one of words.

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "hwy/targets.h"
#include "kernels/common/convert.h"
#include "kernels/common/prepack_cache.h"
#include "kernels/common/rounding.h"
#include "kernels/common/rows.h"
#include "kernels/common/workers.h"
#include "kernels/norm/rms_normalize.h"
#include "kernels/packed/panels.h"
#include "kernels/packed/tiles.h"
#include "kernels/packed/weight_reader.h"
#include "ops/core/kernel.h"
#include "ops/core/rules.h"
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

/// A weight of a product, and its operands.
struct PackedMatrix {
  PanelLayout layout;
  std::shared_ptr<Storage> panels;  ///< null for a weight that is not constant, or stays as it is
  bool as_stored = false;           ///< multiplied without panels
  bool widens = false;              ///< multiplied by multiply_words
  DType dtype = DType::kF32;
  int64_t columns = 0, row_bytes = 0;
  size_t weight = 0, bias = 0;  ///< operands; a bias of 0: none
  size_t form = 0;              ///< of the quantized activations
  size_t panel_bytes = 0;       ///< of panels in scratch
  int64_t first_set = 0;        ///< among those of all matrices
};

/// Whether activations are quantized in the same way for both.
bool same_activations(const UnpackedFormat& a, const UnpackedFormat& b) {
  const auto halves = [](const UnpackedFormat& f) { return f.scales == PanelScales::kSuper16; };
  return halves(a) == halves(b) && a.offset == b.offset && a.most == b.most;
}

/// The rows that are multiplied: their size, how they are quantized, and an RMS norm in front.
struct Activations {
  int64_t features = 0, bits = 8;
  size_t norm = 0;  ///< operand: the weight of an RMS norm of x; 0: none
  double epsilon = 0;
};

/// Products of the rows of one x with several matrices, which are computed as one list of columns.
class PackedProducts final : public Kernel {
 public:
  PackedProducts(const KernelRequest& request, Activations x)
      : loops_(packed_loops()), x_(x), rows_(request.operands[0].size() / x.features) {}

  void add(const KernelRequest& request, const std::string& format, size_t weight, size_t bias) {
    const Layout& layout = request.operands[weight];
    PackedMatrix m;
    m.columns = layout.shape[0];
    m.row_bytes = layout.shape[1] * item_size(layout.dtype);
    m.dtype = layout.dtype;
    m.weight = weight;
    m.bias = bias;
    m.layout = panel_layout(format, m.dtype, x_.features, m.columns);
    m.as_stored = m.layout.packed && loops_.reads_rows && loops_.reads_rows(*m.layout.packed);
    if (m.as_stored) {
      has_words_ = true;
      m.widens = rows_ >= kStoredRows;
    } else if (layout.constant) {
      const auto* const data = static_cast<const std::byte*>(layout.constant);
      m.panels = panel_cache().get(
          data, static_cast<size_t>(m.columns * m.row_bytes),
          {format, m.dtype, x_.features, m.columns}, m.layout.bytes(),
          [&](std::byte* to) { pack_panels(m.layout, m.dtype, data, m.row_bytes, to); });
    } else {
      m.panel_bytes = round_up_to_cache_line(m.layout.bytes());
      panel_bytes_ += m.panel_bytes;
    }
    m.first_set = sets_;
    sets_ += (m.layout.groups() + kGroupSet - 1) / kGroupSet;
    if (m.layout.packed) {
      m.form = form_of(*m.layout.packed);
      if (!m.as_stored && x_.bits == 16 && rows_ >= kWordRows && loops_.multiply_words)
        has_words_ = m.widens = true;
      if (m.widens)
        widened_bytes_ = std::max(widened_bytes_, round_up_to_cache_line(widened_bytes(m.layout)));
    } else {
      reads_floats_ = true;
    }
    matrices_.push_back(std::move(m));
  }

  size_t scratch_bytes() const override {
    return panel_bytes_ + normalized_bytes() + forms_.size() * form_bytes() +
           static_cast<size_t>(workers()) * widened_bytes_;
  }
  bool reads(size_t i) const override {
    return std::none_of(matrices_.begin(), matrices_.end(),
                        [&](const PackedMatrix& m) { return m.weight == i && m.panels; });
  }
  std::string implementation() const override { return loops_.name; }

  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    std::byte* const normalized = context.scratch + panel_bytes_;
    std::byte* const forms = normalized + normalized_bytes();
    pack_others(context.scratch, operands);
    read_activations(operands, normalized, forms);
    TileProduct product{};
    product.rows = rows_;
    product.x = x_.norm > 0 ? reinterpret_cast<const float*>(normalized)
                            : static_cast<const float*>(operands[0]);
    const auto multiply_sets = [&](int64_t begin, int64_t end, std::byte* widened) {
      const std::byte* unpacked = context.scratch;
      for (size_t i = 0; i < matrices_.size(); ++i) {
        const PackedMatrix& m = matrices_[i];
        const std::byte* const panels = m.as_stored
                                            ? static_cast<const std::byte*>(operands[m.weight])
                                        : m.panels ? m.panels->data()
                                                   : unpacked;
        unpacked += m.panel_bytes;
        TileProduct part = product;
        if (m.layout.packed) part.quantized = quantized_rows(forms + m.form * form_bytes());
        part.bias = m.bias > 0 ? static_cast<const float*>(operands[m.bias]) : nullptr;
        part.out = static_cast<float*>(results[i]);
        multiply(m, panels, begin - m.first_set, end - m.first_set, part, widened);
      }
    };
    if (widened_bytes_ > 0) {
      for_each_task(sets_, workers(), forms + forms_.size() * form_bytes(), widened_bytes_,
                    [&](int64_t set, std::byte* widened) { multiply_sets(set, set + 1, widened); });
      return;
    }
    const int64_t cost = std::max<int64_t>(1, rows_ * x_.features * kPanelColumns);
    const int64_t grain = std::max<int64_t>(1, kGrain / cost);
    parallel_for(sets_, (grain + kGroupSet - 1) / kGroupSet,
                 [&](int64_t begin, int64_t end) { multiply_sets(begin, end, nullptr); });
  }

 private:
  static constexpr int64_t kGroupSet = 2;     ///< groups that the loops take at a time
  static constexpr int64_t kGrain = 1 << 16;  ///< multiplications that are worth a thread
  static constexpr int64_t kWordRows = 2;     ///< rows that are worth widening panels
  static constexpr int64_t kStoredRows = 4;   ///< rows that are worth widening stored rows

  /// That have memory for widened weights: some more than threads, which even out their pace.
  int64_t workers() const { return std::min(workers_, sets_); }

  /// The sets of a matrix that are within [begin, end).
  void multiply(const PackedMatrix& m, const std::byte* panels, int64_t begin, int64_t end,
                TileProduct& part, std::byte* widened) const {
    const int64_t first = std::max<int64_t>(0, begin) * kGroupSet;
    const int64_t last = std::min(end * kGroupSet, m.layout.groups());
    if (first >= last) return;
    part.layout = &m.layout;
    part.groups = last - first;
    part.row_bytes = m.as_stored ? m.row_bytes : 0;
    part.panels = panels + static_cast<size_t>(first) *
                               (m.as_stored ? static_cast<size_t>(kPanelColumns * m.row_bytes)
                                            : m.layout.group_bytes);
    if (part.bias) part.bias += first * kPanelColumns;
    part.out += first * kPanelColumns;
    part.pitch = m.columns;
    part.columns = m.columns - first * kPanelColumns;
    if (m.widens)
      loops_.multiply_words(part, widened);
    else if (m.as_stored)
      loops_.multiply_rows(part);
    else
      loops_.multiply(part);
  }

  void pack_others(std::byte* scratch, void* const* operands) const {
    for (const PackedMatrix& m : matrices_) {
      if (!m.panels && !m.as_stored)
        pack_panels(m.layout, m.dtype, static_cast<const std::byte*>(operands[m.weight]),
                    m.row_bytes, scratch);
      scratch += m.panel_bytes;
    }
  }

  // Layout of quantized rows in scratch: values, low bytes, words, scales, totals, corrections.
  size_t value_bytes() const {
    return round_up_to_cache_line(static_cast<size_t>(rows_ * x_.features));
  }
  size_t scale_bytes() const {
    return round_up_to_cache_line(static_cast<size_t>(rows_ * x_.features / kUnit) * sizeof(float));
  }
  size_t form_bytes() const {
    return value_bytes() * (x_.bits == 16 ? 2 : 1) + (has_words_ ? 2 * value_bytes() : 0) +
           2 * scale_bytes() +
           round_up_to_cache_line(static_cast<size_t>(rows_ * x_.features / kUnit) * 2 *
                                  sizeof(int32_t));
  }
  QuantizedRows quantized_rows(const std::byte* at) const {
    const auto* const values = reinterpret_cast<const int8_t*>(at);
    at += value_bytes();
    const auto* const low = x_.bits == 16 ? reinterpret_cast<const int8_t*>(at) : nullptr;
    if (low) at += value_bytes();
    const auto* const words = has_words_ ? reinterpret_cast<const int16_t*>(at) : nullptr;
    if (words) at += 2 * value_bytes();
    return {values,
            low,
            words,
            reinterpret_cast<const float*>(at),
            reinterpret_cast<const int32_t*>(at + 2 * scale_bytes()),
            reinterpret_cast<const float*>(at + scale_bytes())};
  }

  size_t form_of(const UnpackedFormat& format) {
    for (size_t i = 0; i < forms_.size(); ++i)
      if (same_activations(*forms_[i], format)) return i;
    forms_.push_back(&format);
    return forms_.size() - 1;
  }

  size_t normalized_row_bytes() const { return row_buffer_bytes(x_.features, sizeof(float)); }
  /// All rows where floats are multiplied, else a row for each worker.
  size_t normalized_bytes() const {
    if (x_.norm == 0) return 0;
    return reads_floats_
               ? round_up_to_cache_line(static_cast<size_t>(rows_ * x_.features) * sizeof(float))
               : row_scratch(rows_, normalized_row_bytes());
  }

  /// Normalizes and quantizes the rows of x.
  void read_activations(void* const* operands, std::byte* normalized, std::byte* forms) const {
    if (x_.norm == 0 && forms_.empty()) return;
    const auto* const x = static_cast<const float*>(operands[0]);
    const auto* const norm = static_cast<const float*>(operands[x_.norm]);
    const bool own = x_.norm > 0 && !reads_floats_;
    for_each_row({normalized, nullptr}, rows_, x_.features, own ? normalized_row_bytes() : 0,
                 [&](int64_t r, std::byte* buffer) {
                   const float* row = x + r * x_.features;
                   if (x_.norm > 0) {
                     auto* const to =
                         reinterpret_cast<float*>(buffer) + (reads_floats_ ? r * x_.features : 0);
                     rms_normalize(row, norm, to, x_.features, x_.epsilon);
                     row = to;
                   }
                   for (size_t i = 0; i < forms_.size(); ++i)
                     quantize(*forms_[i], row, r, forms + i * form_bytes());
                 });
  }

  void quantize(const UnpackedFormat& format, const float* row, int64_t r, std::byte* form) const {
    const int64_t units = x_.features / kUnit;
    const QuantizedRows to = quantized_rows(form);
    // The rows are in scratch memory.
    loops_.quantize(format, row, units, const_cast<int8_t*>(to.values) + r * x_.features,
                    to.low ? const_cast<int8_t*>(to.low) + r * x_.features : nullptr,
                    const_cast<float*>(to.scales) + r * units,
                    const_cast<int32_t*>(to.corrections) + r * units * 2,
                    const_cast<float*>(to.totals) + r * units);
    if (!to.words) return;
    auto* const words = const_cast<int16_t*>(to.words) + r * x_.features;
    const int8_t *values = to.values + r * x_.features,
                 *low = to.low ? to.low + r * x_.features : nullptr;
    for (int64_t i = 0; i < x_.features; ++i)
      words[i] = static_cast<int16_t>(low ? values[i] * 128 + low[i] : values[i]);
  }

  const PackedLoops& loops_;
  Activations x_;
  int64_t rows_ = 0, sets_ = 0, workers_ = 4 * int64_t{thread_count()};
  std::vector<PackedMatrix> matrices_;
  std::vector<const UnpackedFormat*> forms_;  ///< one of each kind of quantized activations
  bool reads_floats_ = false, has_words_ = false;
  size_t panel_bytes_ = 0;
  size_t widened_bytes_ = 0;  ///< of a worker; 0: weights are not widened
};

}  // namespace

std::unique_ptr<Kernel> prepare_packed_linear(const KernelRequest& request) {
  if (request.results[0].size() == 0) return nothing_to_do();
  const PackedLinearAttrs attrs(request.attrs);
  auto out = std::make_unique<PackedProducts>(
      request, Activations{attrs.features, attrs.activation_bits, 0, 0});
  out->add(request, attrs.format, 1, request.operands[2].present ? 2 : 0);
  return out;
}

std::unique_ptr<Kernel> prepare_packed_linears(const KernelRequest& request) {
  if (request.operands[0].size() == 0) return nothing_to_do();
  const PackedLinearsAttrs attrs(request.attrs);
  const OperandMap map(request.op, request.attrs);
  const size_t norm = map.begin(3);
  auto out = std::make_unique<PackedProducts>(
      request, Activations{attrs.features, attrs.activation_bits,
                           request.operands[norm].present ? norm : 0, attrs.epsilon});
  for (size_t i = 0; i < attrs.formats.size(); ++i)
    out->add(request, attrs.formats[i], map.begin(1) + i,
             map.begin(2) < map.end(2) ? map.begin(2) + i : 0);
  return out;
}

std::unique_ptr<Kernel> prepare_packed_rows(const KernelRequest& request) {
  const PackedRowsAttrs attrs(request.attrs);
  const Layout &weight = request.operands[0], &index = request.operands[1];
  const int64_t rows = weight.shape[0], features = attrs.features,
                row_bytes = weight.shape[1] * item_size(weight.dtype);
  const WeightReader reader(attrs.format, weight.dtype);
  const ConvertFn read_index = index.present ? convert_fn(index.dtype, DType::kI64) : nullptr;
  const int64_t count = index.present ? index.size() : rows,
                index_bytes = index.present ? item_size(index.dtype) : 0;
  return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
    const auto* const table = static_cast<const std::byte*>(operands[0]);
    auto* const out = static_cast<float*>(results[0]);
    parallel_for(count, std::max<int64_t>(1, 16384 / features), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t row = i;
        if (read_index)
          read_index(static_cast<const std::byte*>(operands[1]) + i * index_bytes, 1, &row, 1);
        if (row < -rows || row >= rows)
          fail(ErrorCode::kData, "packed_rows: index ", row, " is out of range for ", rows,
               " elements");
        reader.read(table + (row < 0 ? row + rows : row) * row_bytes, 0, features,
                    out + i * features);
      }
    });
  });
}

}  // namespace paddle::cpu
