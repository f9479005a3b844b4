// quantized_conv and quantized_linear as a GEMM of rows [rows, depth] with packed panels of
// weights. Rows (im2col windows for convolutions) are loaded as int16 minus their zero point, block
// by block.

#include "kernels/quantized/int16_gemm.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "kernels/common/constant.h"
#include "kernels/common/prepack_cache.h"
#include "kernels/common/rounding.h"
#include "kernels/common/workers.h"
#include "kernels/conv/conv_shape.h"
#include "kernels/elementwise/loops.h"
#include "kernels/quantized/int16_gemm_simd.h"
#include "ops/generated/quantization.h"
#include "ops/quantization/quantized.h"

namespace paddle::cpu {
namespace {

namespace q = quantized;

constexpr int64_t kStrip = 64;                     // columns that are requantized at once
constexpr int64_t kBlockBytes = int64_t{1} << 17;  // of rows, which fits in the L2 cache
constexpr int64_t kPairsPerBlock = 256;            // of a panel, which fits in the L1 cache
constexpr int64_t kMaxBlock = 60;  // rows, so that their accumulators stay in cache too

/// The original layout of the weights, and their sizes.
struct WeightLayout {
  int64_t depth, columns;  ///< columns of one group
  int64_t groups;
  bool transposed;   ///< [column, depth], otherwise [depth, column]
  int64_t channels;  ///< of a window; kernel positions are the inner axis in the weights and the
                     ///< outer one in the rows
  bool operator==(const WeightLayout&) const = default;
};

int64_t panel_columns() { return int16_gemm_loops().columns; }
int64_t strips_of(const WeightLayout& w) { return ceil_div(w.columns, kStrip); }
int64_t pairs_of(const WeightLayout& w) { return ceil_div(w.depth, 2); }
/// Bytes of all panels of a group.
int64_t group_bytes(const WeightLayout& w) {
  return round_up(w.columns, panel_columns()) * 2 * pairs_of(w);
}

/// Packs weights in the order in which they are read, [group, strip, block of pairs, panel, pair,
/// column, 2], with zeros past the last column and depth.
void prepack_weights(const int8_t* weight, const WeightLayout& e, int8_t* packed) {
  const int64_t width = panel_columns(), panels = ceil_div(e.columns, width), pairs = pairs_of(e);
  const int64_t positions = e.depth / e.channels;
  parallel_for(e.groups * panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t group = panel / panels, first = panel % panels * width;
      const int64_t strip = first / kStrip * kStrip;
      const int64_t strip_width = round_up(std::min(kStrip, e.columns - strip), width);
      int8_t* const strip_at = packed + group * group_bytes(e) + strip * pairs * 2;
      const int64_t count = std::min(width, e.columns - first);
      for (int64_t p = 0; p < pairs; ++p) {
        const int64_t part = p / kPairsPerBlock * kPairsPerBlock,
                      part_pairs = std::min(kPairsPerBlock, pairs - part);
        int8_t* const to = strip_at + part * strip_width * 2 +
                           ((first - strip) * part_pairs + (p - part) * width) * 2;
        std::fill_n(to, width * 2, int8_t{0});
        for (int64_t k = 2 * p; k < std::min(2 * p + 2, e.depth); ++k) {
          const int64_t source = k % e.channels * positions + k / e.channels;
          for (int64_t c = 0; c < count; ++c) {
            const int64_t column = group * e.columns + first + c;
            to[c * 2 + k % 2] =
                e.transposed ? weight[column * e.depth + source] : weight[k * e.columns + column];
          }
        }
      }
    }
  });
}

std::shared_ptr<Storage> prepacked_weights(const Layout& weight, const WeightLayout& form) {
  static PrepackCache<WeightLayout> constants;
  const auto bytes = static_cast<size_t>(form.groups * group_bytes(form));
  return constants.get(weight.constant, static_cast<size_t>(weight.size()), form, bytes,
                       [&](std::byte* to) {
                         prepack_weights(static_cast<const int8_t*>(weight.constant), form,
                                         reinterpret_cast<int8_t*>(to));
                       });
}

/// Expands one value, or one per column, to floats for all columns.
void broadcast(const float* values, int64_t size, int64_t columns, float* to) {
  for (int64_t i = 0; i < columns; ++i) to[i] = values[size > 1 ? i : 0];
}

class Int16Gemm : public Kernel {
 public:
  Int16Gemm(const KernelRequest& request, int64_t rows, const WeightLayout& form, DType step_dtype,
            std::optional<double> low, std::optional<double> high)
      : rows_(rows),
        form_(form),
        pitch_(2 * pairs_of(form)),
        weights_(prepacked_weights(request.operands[q::kWeight], form)),
        result_(request.results[0].dtype),
        step_dtype_(step_dtype),
        low_(static_cast<float>(low.value_or(-std::numeric_limits<double>::infinity()))),
        high_(static_cast<float>(high.value_or(std::numeric_limits<double>::infinity()))),
        bounded_(low || high) {
    for (const Layout& layout : request.operands) {
      dtypes_.push_back(layout.dtype);
      sizes_.push_back(layout.present ? layout.size() : 0);
    }
    const Layout& residual = request.operands[q::kResidual];
    requantize_ =
        requantize_loop(result_, residual.present ? std::optional(residual.dtype) : std::nullopt);
    const int64_t row_bytes = pitch_ * static_cast<int64_t>(sizeof(int16_t));
    const int64_t tile = loops_.rows;
    const int64_t max_rows =
        std::clamp<int64_t>(kBlockBytes / row_bytes / tile * tile, tile, kMaxBlock);
    block_ = round_up(ceil_div(rows_, ceil_div(rows_, max_rows)), tile);
    const int64_t threads = threads_for(rows_ * form_.depth * form_.columns * form_.groups / 2);
    // Few blocks are also split by columns.
    constexpr int64_t kTasksPerThread = 6;
    const int64_t blocks = ceil_div(rows_, block_) * form_.groups;
    const int64_t target_tasks = threads > 1 ? ceil_div(kTasksPerThread * threads, blocks) : 1;
    column_splits_ = std::min(target_tasks, strips_of(form_));
    tasks_ = blocks * column_splits_;
    workers_ = std::min(threads, tasks_);
  }

  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    const int64_t all = form_.columns * form_.groups;
    auto* const scales = reinterpret_cast<float*>(context.scratch);
    float* const biases = scales + round_up_floats(all);
    const bool biased = has(q::kBias) && dtypes_[q::kBias] == DType::kF32;
    if (has(q::kScale))
      broadcast(static_cast<const float*>(operands[q::kScale]), sizes_[q::kScale], all, scales);
    if (biased)
      broadcast(static_cast<const float*>(operands[q::kBias]), sizes_[q::kBias], all, biases);
    const RunState run = {
        .operands = operands,
        .result = results[0],
        .zero = static_cast<int16_t>(has(q::kXZero) ? number(operands, q::kXZero) : 0.0f),
        .scales = scales,
        .biases = biased ? biases : nullptr,
        .requantize = requantize_params(operands)};
    // Idle workers take the next task, so that a slow core delays only one of them.
    std::atomic<int64_t> next = 0;
    parallel_for(workers_, 1, [&](int64_t begin, int64_t) {
      std::byte* const worker_scratch =
          context.scratch + shared_bytes() + static_cast<size_t>(begin) * task_bytes();
      for (int64_t task = next++; task < tasks_; task = next++)
        compute_task(task, run, worker_scratch);
    });
  }
  size_t scratch_bytes() const override {
    return shared_bytes() + static_cast<size_t>(workers_) * task_bytes();
  }
  bool reads(size_t i) const override { return i != q::kWeight; }
  std::string implementation() const override { return "cpu:int16_gemm"; }

 protected:
  /// Loads rows of a group, each of `pitch_` integers.
  virtual void load_rows(const void* x, int64_t row, int64_t count, int64_t group, int16_t zero,
                         int16_t* to) const = 0;
  /// Where a row's columns from `column` (over all groups) on are in the result and the residual.
  struct OutputLocation {
    int64_t offset, stride;
  };
  virtual OutputLocation output_location(int64_t row, int64_t column) const {
    return {row * form_.columns * form_.groups + column, 1};
  }

  bool has(size_t i) const { return sizes_[i] > 0; }
  void load_centered(const void* x, int64_t offset, int64_t n, int16_t zero, int16_t* to) const {
    if (dtypes_[q::kX] == DType::kU8)
      loops_.widen_u8(static_cast<const uint8_t*>(x) + offset, n, zero, to);
    else
      loops_.widen_i8(static_cast<const int8_t*>(x) + offset, n, zero, to);
  }
  /// Rows of x that are consecutive from `offset` on.
  void load_centered_rows(const void* x, int64_t offset, int64_t count, int16_t zero,
                          int16_t* to) const {
    if (form_.depth == pitch_) return load_centered(x, offset, count * pitch_, zero, to);
    for (int64_t r = 0; r < count; ++r)
      load_centered(x, offset + r * form_.depth, form_.depth, zero, to + r * pitch_);
  }

  int64_t rows_;
  WeightLayout form_;
  int64_t pitch_;  ///< integers per row

 private:
  float number(void* const* operands, size_t i) const {
    return read_scalar(operands[i], dtypes_[i]);
  }
  IntegerGrid integer_grid(void* const* operands, size_t scale, float zero, DType dtype) const {
    if (!has(scale)) return {};
    IntegerGrid out;
    out.scale = number(operands, scale);
    out.inverse = 1.0f / out.scale;
    const auto [min, max] = integer_range(dtype);
    out.min = min - zero;
    out.max = max - zero;
    return out;
  }
  RequantizeParams requantize_params(void* const* operands) const {
    const auto zero = [&](size_t i) { return has(i) ? number(operands, i) : 0.0f; };
    RequantizeParams f;
    f.step = integer_grid(operands, q::kStepScale, zero(q::kStepZero), step_dtype_);
    if (has(q::kResidualScale)) {
      f.residual_scale = number(operands, q::kResidualScale);
      f.residual_shift = -zero(q::kResidualZero) * f.residual_scale;
    }
    f.bounded = bounded_;
    f.low = low_;
    f.high = high_;
    f.out = integer_grid(operands, q::kOutScale, zero(q::kOutZero), result_);
    f.out_zero = static_cast<int32_t>(zero(q::kOutZero));
    if (bounded_ && has(q::kOutScale)) {
      const auto quantize_bound = [&](float bound) {
        return std::clamp(std::nearbyint(bound * f.out.inverse), f.out.min, f.out.max);
      };
      const float min = quantize_bound(low_), max = quantize_bound(high_);
      f.out.min = min;
      f.out.max = max;
    }
    return f;
  }
  static RequantizeLoop requantize_loop(DType result, std::optional<DType> residual) {
    const Int16GemmLoops& loops = int16_gemm_loops();
    const auto& of = result == DType::kU8   ? loops.to_u8
                     : result == DType::kI8 ? loops.to_i8
                                            : loops.to_f32;
    if (!residual) return of[0];
    return *residual == DType::kU8 ? of[1] : *residual == DType::kI8 ? of[2] : of[3];
  }

  size_t shared_bytes() const {
    return 2 * round_up_floats(form_.columns * form_.groups) * sizeof(float);
  }
  size_t rows_bytes() const {
    return round_up_to_cache_line(static_cast<size_t>(block_ * pitch_) * sizeof(int16_t));
  }
  size_t task_bytes() const {
    return rows_bytes() + static_cast<size_t>(block_ * kStrip) * sizeof(int32_t);
  }

  /// State of a run that all tasks read.
  struct RunState {
    void* const* operands;
    void* result;
    int16_t zero;
    const float* scales;
    const float* biases;  ///< null if there are none in float32
    RequantizeParams requantize;
  };

  void compute_task(int64_t task, const RunState& run, std::byte* worker_scratch) const {
    auto* const rows = reinterpret_cast<int16_t*>(worker_scratch);
    auto* const sums = reinterpret_cast<int32_t*>(worker_scratch + rows_bytes());
    const int64_t blocks = ceil_div(rows_, block_);
    const int64_t part = task % column_splits_, block = task / column_splits_ % blocks,
                  group = task / column_splits_ / blocks;
    const int64_t first_row = block * block_, count = std::min(block_, rows_ - first_row);
    for (int64_t r = 0; r < count; ++r) rows[(r + 1) * pitch_ - 1] = 0;
    load_rows(run.operands[q::kX], first_row, count, group, run.zero, rows);
    const int64_t strips = strips_of(form_), width = loops_.columns;
    const auto* const panels =
        reinterpret_cast<const int8_t*>(weights_->data()) + group * group_bytes(form_);
    for (int64_t strip = strips * part / column_splits_;
         strip < strips * (part + 1) / column_splits_; ++strip) {
      const int64_t first = strip * kStrip, columns = std::min(kStrip, form_.columns - first);
      const int64_t column = group * form_.columns + first;
      const OutputLocation to = output_location(first_row, column);
      if (to.stride == 1) prefetch_outputs(to.offset, count, columns, run);
      alignas(64) int32_t start[kStrip];
      init_accumulators(column, columns, run.operands, start);
      const int8_t* panel = panels + first * pitch_;
      for (int64_t pair = 0; pair < pitch_ / 2; pair += kPairsPerBlock) {
        const int64_t pairs = std::min(kPairsPerBlock, pitch_ / 2 - pair);
        const int32_t* const begin = pair == 0 ? start : sums;
        const int64_t begin_pitch = pair == 0 ? 0 : kStrip;
        for (int64_t c = 0; c < columns; c += width, panel += pairs * width * 2)
          for (int64_t r = 0; r < count; r += loops_.rows)
            loops_.tile(rows + r * pitch_ + 2 * pair, pitch_, std::min(loops_.rows, count - r),
                        panel, pairs, begin + r * begin_pitch + c, begin_pitch,
                        sums + r * kStrip + c, kStrip);
      }
      if (to.stride == 1)
        requantize(sums, count, columns, to.offset, column, run);
      else
        for (int64_t r = 0; r < count; ++r)
          requantize_scattered(sums + r * kStrip, columns, output_location(first_row + r, column),
                               column, run);
    }
  }

  /// Initializes accumulators with int32 biases, or zeros, for all columns of the panels.
  void init_accumulators(int64_t column, int64_t columns, void* const* operands,
                         int32_t* start) const {
    std::fill_n(start, kStrip, 0);
    if (!has(q::kBias) || dtypes_[q::kBias] != DType::kI32) return;
    const auto* const bias = static_cast<const int32_t*>(operands[q::kBias]);
    for (int64_t c = 0; c < columns; ++c) start[c] = bias[sizes_[q::kBias] > 1 ? column + c : 0];
  }

  const std::byte* residual_at(int64_t offset, const RunState& run) const {
    return static_cast<const std::byte*>(run.operands[q::kResidual]) +
           offset * item_size(dtypes_[q::kResidual]);
  }
  std::byte* result_at(int64_t offset, const RunState& run) const {
    return static_cast<std::byte*>(run.result) + offset * item_size(result_);
  }

  /// Prefetches the residual and the result while accumulators are computed: cache lines far apart,
  /// a few per row.
  void prefetch_outputs(int64_t offset, int64_t rows, int64_t columns, const RunState& run) const {
    constexpr int64_t kLine = 64;
    const auto prefetch_rows = [&](const std::byte* first, int64_t item, auto prefetch_line) {
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t b = 0; b < columns * item; b += kLine)
          prefetch_line(first + r * output_columns() * item + b);
    };
    if (has(q::kResidual))
      prefetch_rows(residual_at(offset, run), item_size(dtypes_[q::kResidual]),
                    [](const std::byte* line) { __builtin_prefetch(line); });
    prefetch_rows(result_at(offset, run), item_size(result_),
                  [](const std::byte* line) { __builtin_prefetch(line, 1); });
  }

  int64_t output_columns() const { return form_.columns * form_.groups; }

  /// Rows whose columns are adjacent.
  void requantize(const int32_t* sums, int64_t rows, int64_t columns, int64_t offset,
                  int64_t column, const RunState& run) const {
    if (!has(q::kScale)) {
      for (int64_t r = 0; r < rows; ++r)
        std::memcpy(result_at(offset + r * output_columns(), run), sums + r * kStrip,
                    static_cast<size_t>(columns) * sizeof(int32_t));
      return;
    }
    requantize_({sums, kStrip, rows, columns, output_columns()}, run.requantize,
                run.scales + column, run.biases ? run.biases + column : nullptr,
                has(q::kResidual) ? residual_at(offset, run) : nullptr, result_at(offset, run));
  }

  /// A row whose columns are strided.
  void requantize_scattered(const int32_t* sums, int64_t columns, OutputLocation at, int64_t column,
                            const RunState& run) const {
    alignas(64) std::byte residual_copy[kStrip * sizeof(float)], results[kStrip * sizeof(float)];
    const void* values = sums;
    if (has(q::kScale)) {
      if (has(q::kResidual)) {
        const int64_t size = item_size(dtypes_[q::kResidual]);
        const std::byte* const residual = residual_at(at.offset, run);
        for (int64_t c = 0; c < columns; ++c)
          std::memcpy(residual_copy + c * size, residual + c * at.stride * size,
                      static_cast<size_t>(size));
      }
      requantize_({sums, kStrip, 1, columns, columns}, run.requantize, run.scales + column,
                  run.biases ? run.biases + column : nullptr,
                  has(q::kResidual) ? residual_copy : nullptr, results);
      values = results;
    }
    const int64_t item = item_size(result_);
    const auto* const from = static_cast<const std::byte*>(values);
    std::byte* const to = result_at(at.offset, run);
    for (int64_t c = 0; c < columns; ++c)
      std::memcpy(to + c * at.stride * item, from + c * item, static_cast<size_t>(item));
  }

  const Int16GemmLoops& loops_ = int16_gemm_loops();
  std::shared_ptr<Storage> weights_;
  DType result_, step_dtype_;
  float low_, high_;
  bool bounded_;
  RequantizeLoop requantize_;
  std::vector<DType> dtypes_;
  std::vector<int64_t> sizes_;  ///< of operands; 0 if absent
  int64_t block_;               ///< rows per block
  int64_t column_splits_, tasks_, workers_;
};

class Int16Linear final : public Int16Gemm {
  using Int16Gemm::Int16Gemm;

 protected:
  void load_rows(const void* x, int64_t row, int64_t count, int64_t /*group*/, int16_t zero,
                 int16_t* to) const override {
    load_centered_rows(x, row * form_.depth, count, zero, to);
  }
};

class Int16Convolution final : public Int16Gemm {
 public:
  Int16Convolution(const KernelRequest& request, const WeightLayout& form, const ConvShape& shape,
                   const QuantizedConvAttrs& attrs)
      : Int16Gemm(request, shape.batch * shape.positions(), form, attrs.step_dtype, attrs.low,
                  attrs.high),
        s_(shape),
        in_(ImageStrides::of(s_.in_channels, s_.height, s_.width, s_.channels_last)),
        out_(ImageStrides::of(s_.out_channels, s_.out_height, s_.out_width, s_.channels_last)),
        is_pointwise_(in_.channel == 1 && s_.groups == 1 &&
                      s_.kernel_height * s_.kernel_width == 1 &&
                      s_.stride_height * s_.stride_width == 1 &&
                      (s_.top | s_.bottom | s_.left | s_.right) == 0) {}

 protected:
  void load_rows(const void* x, int64_t row, int64_t count, int64_t group, int16_t zero,
                 int16_t* to) const override {
    if (is_pointwise_) return load_centered_rows(x, row * form_.depth, count, zero, to);
    for (int64_t r = 0; r < count; ++r) im2col_row(x, row + r, group, zero, to + r * pitch_);
  }
  OutputLocation output_location(int64_t row, int64_t column) const override {
    const int64_t image = row / s_.positions(), at = row % s_.positions();
    return {image * out_.batch + column * out_.channel + at * out_.column, out_.channel};
  }

 private:
  void im2col_row(const void* x, int64_t row, int64_t group, int16_t zero, int16_t* to) const {
    const int64_t image = row / s_.positions(), at = row % s_.positions();
    const int64_t top = at / s_.out_width * s_.stride_height - s_.top;
    const int64_t left = at % s_.out_width * s_.stride_width - s_.left;
    const int64_t channels = s_.group_in_channels();
    const int64_t base = image * in_.batch + group * channels * in_.channel;
    for (int64_t r = 0; r < s_.kernel_height; ++r) {
      const int64_t y = top + r * s_.dilation_height;
      if (y < 0 || y >= s_.height) {
        std::fill_n(to, s_.kernel_width * channels, int16_t{0});
        to += s_.kernel_width * channels;
        continue;
      }
      const int64_t line = base + y * in_.row;
      // Adjacent kernel positions of a row are one run if they hold all channels.
      if (in_.channel == 1 && s_.groups == 1 && s_.dilation_width == 1) {
        const int64_t begin = std::clamp<int64_t>(-left, 0, s_.kernel_width);
        const int64_t end = std::clamp<int64_t>(s_.width - left, begin, s_.kernel_width);
        std::fill_n(to, begin * channels, int16_t{0});
        load_centered(x, line + (left + begin) * in_.column, (end - begin) * channels, zero,
                      to + begin * channels);
        std::fill_n(to + end * channels, (s_.kernel_width - end) * channels, int16_t{0});
        to += s_.kernel_width * channels;
        continue;
      }
      for (int64_t c = 0; c < s_.kernel_width; ++c, to += channels) {
        const int64_t column = left + c * s_.dilation_width;
        if (column < 0 || column >= s_.width)
          std::fill_n(to, channels, int16_t{0});
        else if (in_.channel == 1)
          load_centered(x, line + column * in_.column, channels, zero, to);
        else
          for (int64_t i = 0; i < channels; ++i)
            load_centered(x, line + column * in_.column + i * in_.channel, 1, zero, to + i);
      }
    }
  }

  ConvShape s_;
  ImageStrides in_, out_;
  bool is_pointwise_;  ///< windows are consecutive pixels
};

/// True for operands that these kernels support, whatever their sizes.
bool is_supported(const KernelRequest& request) {
  const Layout &x = request.operands[q::kX], &weight = request.operands[q::kWeight],
               &zero = request.operands[q::kXZero], &residual = request.operands[q::kResidual];
  const DType result = request.results[0].dtype;
  if (vector_bytes() < 32 || kStrip % panel_columns() != 0 || x.size() == 0 || !weight.constant ||
      weight.size() == 0)
    return false;
  const auto is_byte = [](DType dtype) { return dtype == DType::kU8 || dtype == DType::kI8; };
  // Differences of bytes fit in 16 bits.
  if (zero.present && !is_byte(zero.dtype) &&
      !(zero.constant && std::abs(constant_of(zero).number()) <= 255))
    return false;
  // Values are multiplied by the inverse of the scale, which must be a normal number.
  for (const size_t i : {q::kStepScale, q::kOutScale}) {
    const Layout& scale = request.operands[i];
    if (scale.present &&
        !(scale.constant && std::isnormal(1.0f / static_cast<float>(constant_of(scale).number()))))
      return false;
  }
  if (!is_byte(result) && result != DType::kF32 && result != DType::kI32) return false;
  return !residual.present || is_byte(residual.dtype) || residual.dtype == DType::kF32;
}

}  // namespace

float read_scalar(const void* value, DType dtype) {
  float number = 0;
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    number = static_cast<float>(*static_cast<const T*>(value));
  });
  return number;
}

std::pair<float, float> integer_range(DType dtype) {
  switch (dtype) {
    case DType::kU8:
      return {0.0f, 255.0f};
    case DType::kI8:
      return {-128.0f, 127.0f};
    case DType::kU16:
      return {0.0f, 65535.0f};
    default:
      return {-32768.0f, 32767.0f};
  }
}

bool int16_gemm_is_faster(const Array& weight) {
  if (vector_bytes() < 32) return false;
  return weight.shape.size() == 2 || (weight.shape.size() == 4 && weight.shape[1] > 1);
}

std::unique_ptr<Kernel> prepare_quantized_linear(const KernelRequest& request) {
  if (request.results[0].size() == 0) return nothing_to_do();
  if (!is_supported(request)) return nullptr;
  const QuantizedLinearAttrs attrs(request.attrs);
  const Layout& weight = request.operands[q::kWeight];
  const int64_t depth = weight.shape[0];
  return std::make_unique<Int16Linear>(request, request.operands[q::kX].size() / depth,
                                       WeightLayout{depth, weight.shape[1], 1, false, depth},
                                       attrs.step_dtype, attrs.low, attrs.high);
}

std::unique_ptr<Kernel> prepare_quantized_conv(const KernelRequest& request) {
  if (request.results[0].size() == 0) return nothing_to_do();
  if (!is_supported(request)) return nullptr;
  const ConvShape s = ConvShape::of(request.op, request.attrs, request.operands[q::kX].shape,
                                    request.operands[q::kWeight].shape, request.results[0].shape);
  if (s.is_3d()) return nullptr;
  return std::make_unique<Int16Convolution>(
      request,
      WeightLayout{s.window_size(), s.group_out_channels(), s.groups, true, s.group_in_channels()},
      s, QuantizedConvAttrs(request.attrs));
}

}  // namespace paddle::cpu
