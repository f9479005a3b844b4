// Recurrent layers and their gradients, step by step. A step is a small GEMM, parallel over
// columns, and the cell's arithmetic, parallel over the batch.
//
//   lstm: [i f g o] = gates + W h; c' = σ(f) c + σ(i) tanh(g); h' = σ(o) tanh(c')
//   gru:  [r z n] = gates; r, z += W h; n = tanh(n + σ(r) (W h + b)); h' = σ(z) h + (1 - σ(z)) n
//   rnn:  h' = activation(gates + W h)

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/parallel.h"
#include "kernels/common/rounding.h"
#include "kernels/recurrent/packed_scan.h"
#include "kernels/recurrent/recurrent_simd.h"
#include "kernels/recurrent/scan.h"
#include "ops/generated/sequence.h"

namespace paddle::cpu {
namespace {

constexpr int64_t kColumns = 64;

Cell cell_of(const std::string& word) {
  if (word == "lstm") return Cell::kLstm;
  if (word == "gru") return Cell::kGru;
  return word == "tanh" ? Cell::kTanh : Cell::kRelu;
}

/// Our own GEMM loops, for few rows; the weight is not packed.
template <class T>
class SimdScanGemm final : public ScanGemm<T> {
 public:
  explicit SimdScanGemm(const ScanShape& shape) : s(shape) {}
  void forward(const RunContext&, const T* weight, const T* h, bool first_step,
               T* hidden_gates) const override {
    const int64_t stride = first_step ? s.hidden : s.steps * s.hidden;
    parallel_for(s.width(), grain(s.hidden), [&](int64_t first, int64_t last) {
      recurrent_loops<T>().forward(h, s.batch, stride, weight, s.hidden, first, last, hidden_gates,
                                   s.width());
    });
  }
  void backward(const RunContext&, const T* weight, const T* g, T* out) const override {
    // Whole vectors, so that values do not depend on where a thread starts.
    parallel_for((s.hidden + kColumns - 1) / kColumns, grain(s.width() * kColumns) / 4,
                 [&](int64_t first, int64_t last) {
                   recurrent_loops<T>().backward(g, s.batch, s.steps * s.width(), weight, s.width(),
                                                 s.hidden, first * kColumns,
                                                 std::min(s.hidden, last * kColumns), out);
                 });
  }

 private:
  int64_t grain(int64_t work) const {
    return std::max<int64_t>(4, 131072 / std::max<int64_t>(1, s.batch * work));
  }
  ScanShape s;
};

template <class T>
class Scan {
 public:
  Scan(const ScanShape& shape, std::unique_ptr<ScanGemm<T>> gemm)
      : s(shape), gemm_(std::move(gemm)) {}

  /// One row of one step; `hidden_gates` is W h, `h` the previous state, `c` the cell state
  /// (updated).
  void cell(const T* gates, T* hidden_gates, const T* bias, const T* h, T* c, T* saved,
            T* out) const {
    const RecurrentLoops<T>& loops = recurrent_loops<T>();
    const int64_t n = s.hidden;
    if (s.cell == Cell::kLstm) {
      for (int64_t k = 0; k < 4 * n; ++k) hidden_gates[k] += gates[k];
      loops.sigmoid(hidden_gates, saved, 2 * n);
      loops.tanh(hidden_gates + 2 * n, saved + 2 * n, n);
      loops.sigmoid(hidden_gates + 3 * n, saved + 3 * n, n);
      for (int64_t k = 0; k < n; ++k) c[k] = saved[n + k] * c[k] + saved[k] * saved[2 * n + k];
      std::copy(c, c + n, saved + 4 * n);
      loops.tanh(c, out, n);
      for (int64_t k = 0; k < n; ++k) out[k] *= saved[3 * n + k];
    } else if (s.cell == Cell::kGru) {
      if (bias)
        for (int64_t k = 0; k < 3 * n; ++k) hidden_gates[k] += bias[k];
      std::copy(hidden_gates + 2 * n, hidden_gates + 3 * n, saved + 3 * n);
      for (int64_t k = 0; k < 2 * n; ++k) hidden_gates[k] += gates[k];
      loops.sigmoid(hidden_gates, saved, 2 * n);
      for (int64_t k = 0; k < n; ++k)
        hidden_gates[2 * n + k] = gates[2 * n + k] + saved[k] * saved[3 * n + k];
      loops.tanh(hidden_gates + 2 * n, saved + 2 * n, n);
      for (int64_t k = 0; k < n; ++k)
        out[k] = saved[n + k] * (h[k] - saved[2 * n + k]) + saved[2 * n + k];
    } else {
      for (int64_t k = 0; k < n; ++k) hidden_gates[k] += gates[k];
      if (s.cell == Cell::kTanh)
        loops.tanh(hidden_gates, out, n);
      else
        for (int64_t k = 0; k < n; ++k) out[k] = hidden_gates[k] > T(0) ? hidden_gates[k] : T(0);
    }
  }

  /// Scratch for W h of one step, and for cell states and saved values that are not results.
  size_t step_scratch() const {
    return round_up_to_cache_line(
        static_cast<size_t>(s.batch * s.hidden * (s.gates + 1 + s.saved)) * sizeof(T));
  }
  size_t grad_step_scratch() const {
    return round_up_to_cache_line(static_cast<size_t>(s.batch * s.hidden) * sizeof(T));
  }
  size_t gemm_scratch() const { return gemm_->scratch_bytes(); }
  std::string name() const { return gemm_->name(); }

  void run(const RunContext& context, void* const* operands, void* const* results) const {
    const T* const gates = static_cast<const T*>(operands[0]);
    const T* const weight = static_cast<const T*>(operands[1]);
    const T* const bias = static_cast<const T*>(operands[2]);
    T* const out = static_cast<T*>(results[0]);
    T* const last_h = static_cast<T*>(results[1]);
    T* const hidden_gates = reinterpret_cast<T*>(context.scratch);
    const int64_t n = s.hidden, width = s.gates * n;
    T* const spare = hidden_gates + s.batch * width;
    T* const c = results[2] ? static_cast<T*>(results[2]) : spare;
    T* const saved = static_cast<T*>(results[3]);
    if (s.batch * n > 0) std::memcpy(c, operands[4], static_cast<size_t>(s.batch * n) * sizeof(T));
    const T* h = static_cast<const T*>(operands[3]);
    int64_t h_stride = n;
    const RunContext gemm_context{context.scratch + step_scratch(), nullptr};
    gemm_->begin(gemm_context, weight);
    for (int64_t i = 0; i < s.steps; ++i) {
      const int64_t t = s.step(i);
      gemm_->forward(gemm_context, weight, h, i == 0, hidden_gates);
      parallel_for(s.batch, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, width)),
                   [&](int64_t first, int64_t last) {
                     for (int64_t b = first; b < last; ++b) {
                       const int64_t at = b * s.steps + t;
                       cell(gates + at * width, hidden_gates + b * width, bias, h + b * h_stride,
                            c + b * n,
                            saved ? saved + at * s.saved * n : spare + (s.batch + b * s.saved) * n,
                            out + at * n);
                     }
                   });
      h = out + t * n;
      h_stride = s.steps * n;
    }
    for (int64_t b = 0; last_h && b < s.batch; ++b)
      std::copy(h + b * h_stride, h + b * h_stride + n, last_h + b * n);
  }

  /// One row of one backward step: computes the gates' gradients from dh and dc, and leaves in dh
  /// and dc what goes directly to the previous step.
  void cell_grad(T* dh, T* dc, const T* h_before, const T* c_before, const T* out, const T* saved,
                 T* dgates, T* dhidden) const {
    const int64_t n = s.hidden;
    if (s.cell == Cell::kLstm) {
      const T *i = saved, *f = saved + n, *g = saved + 2 * n, *o = saved + 3 * n,
              *c = saved + 4 * n;
      recurrent_loops<T>().tanh(c, dhidden, n);  // dhidden is unused until the end
      for (int64_t k = 0; k < n; ++k) {
        const T t = dhidden[k];
        const T d = dc[k] + dh[k] * o[k] * (T(1) - t * t);
        dgates[3 * n + k] = dh[k] * t * o[k] * (T(1) - o[k]);
        dgates[k] = d * g[k] * i[k] * (T(1) - i[k]);
        dgates[n + k] = d * c_before[k] * f[k] * (T(1) - f[k]);
        dgates[2 * n + k] = d * i[k] * (T(1) - g[k] * g[k]);
        dc[k] = d * f[k];
        dh[k] = T(0);
      }
    } else if (s.cell == Cell::kGru) {
      const T *r = saved, *z = saved + n, *m = saved + 2 * n, *hidden_gates = saved + 3 * n;
      for (int64_t k = 0; k < n; ++k) {
        const T dn = dh[k] * (T(1) - z[k]) * (T(1) - m[k] * m[k]);
        dgates[2 * n + k] = dn;
        dgates[k] = dn * hidden_gates[k] * r[k] * (T(1) - r[k]);
        dgates[n + k] = dh[k] * (h_before[k] - m[k]) * z[k] * (T(1) - z[k]);
        dh[k] *= z[k];
      }
    } else {
      for (int64_t k = 0; k < n; ++k) {
        const T slope = s.cell == Cell::kTanh ? T(1) - out[k] * out[k] : T(out[k] > T(0));
        dgates[k] = dh[k] * slope;
        dh[k] = T(0);
      }
    }
    std::copy(dgates, dgates + s.gates * n, dhidden);
    if (s.cell == Cell::kGru)
      for (int64_t k = 0; k < n; ++k) dhidden[2 * n + k] *= saved[k];
  }

  void run_grad(const RunContext& context, void* const* operands, void* const* results) const {
    const T* const grad_out = static_cast<const T*>(operands[0]);
    const T* const weight = static_cast<const T*>(operands[4]);
    const T* const h0 = static_cast<const T*>(operands[6]);
    const T* const c0 = static_cast<const T*>(operands[7]);
    const T* const out = static_cast<const T*>(operands[8]);
    const T* const saved = static_cast<const T*>(operands[9]);
    T* const dgates = static_cast<T*>(results[0]);
    T* const dhidden = static_cast<T*>(results[1]);
    T* const dh = static_cast<T*>(results[2]);
    T* const dc = static_cast<T*>(results[3]);
    T* const product = reinterpret_cast<T*>(context.scratch);
    const int64_t n = s.hidden, width = s.gates * n;
    const size_t bytes = static_cast<size_t>(s.batch * n) * sizeof(T);
    std::memcpy(dh, operands[1], bytes);
    if (s.cell == Cell::kLstm)
      std::memcpy(dc, operands[2], bytes);
    else
      std::memset(dc, 0, bytes);
    const RunContext gemm_context{context.scratch + grad_step_scratch(), nullptr};
    gemm_->begin(gemm_context, weight);
    for (int64_t i = s.steps; i-- > 0;) {
      const int64_t t = s.step(i), previous = i > 0 ? s.step(i - 1) : -1;
      parallel_for(
          s.batch, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, width)),
          [&](int64_t first, int64_t last) {
            for (int64_t b = first; b < last; ++b) {
              const int64_t at = b * s.steps + t, previous_row = b * s.steps + previous;
              T* const row = dh + b * n;
              for (int64_t k = 0; k < n; ++k) row[k] += grad_out[at * n + k];
              const T* const h_before = previous < 0 ? h0 + b * n : out + previous_row * n;
              const T* const c_before = s.cell != Cell::kLstm ? nullptr
                                        : previous < 0        ? c0 + b * n
                                                       : saved + previous_row * s.saved * n + 4 * n;
              cell_grad(row, dc + b * n, h_before, c_before, out + at * n, saved + at * s.saved * n,
                        dgates + at * width, dhidden + at * width);
            }
          });
      gemm_->backward(gemm_context, weight, dhidden + t * width, product);
      for (int64_t k = 0; k < s.batch * n; ++k) dh[k] += product[k];
    }
  }

 private:
  ScanShape s;
  std::unique_ptr<ScanGemm<T>> gemm_;
};

/// Packing a weight takes about as long as three products with one row.
bool packs_weight(const ScanShape& s) {
  return s.batch >= 4 && s.hidden >= 64 && s.batch * s.steps >= 64;
}

template <class T>
std::unique_ptr<ScanGemm<T>> scan_gemm(const ScanShape& shape, bool backward) {
  if constexpr (std::is_same_v<T, float>)
    if (packs_weight(shape)) return packed_scan_gemm(shape, backward);
  return std::make_unique<SimdScanGemm<T>>(shape);
}

template <class F>
std::unique_ptr<Kernel> with_type(DType dtype, F f) {
  if (dtype == DType::kF32) return f(TypeTag<float>{});
  if (dtype == DType::kF64) return f(TypeTag<double>{});
  return nullptr;
}

}  // namespace

ScanShape ScanShape::of(const std::string& cell, bool reverse, const Dims& out) {
  ScanShape s{cell_of(cell), reverse, out[0], out[1], out[2], 1, 0};
  if (s.cell == Cell::kLstm) {
    s.gates = 4;
    s.saved = 5;
  } else if (s.cell == Cell::kGru) {
    s.gates = 3;
    s.saved = 4;
  }
  return s;
}

template <class T>
std::unique_ptr<Kernel> scan_kernel(const ScanShape& shape, std::unique_ptr<ScanGemm<T>> gemm) {
  Scan<T> scan(shape, std::move(gemm));
  const size_t scratch = scan.step_scratch() + scan.gemm_scratch();
  std::string name = scan.name();
  return make_kernel(
      [scan = std::move(scan)](const RunContext& context, void* const* operands,
                               void* const* results) { scan.run(context, operands, results); },
      scratch, std::move(name));
}

template <class T>
std::unique_ptr<Kernel> scan_grad_kernel(const ScanShape& shape,
                                         std::unique_ptr<ScanGemm<T>> gemm) {
  Scan<T> scan(shape, std::move(gemm));
  const size_t scratch = scan.grad_step_scratch() + scan.gemm_scratch();
  std::string name = scan.name();
  return make_kernel(
      [scan = std::move(scan)](const RunContext& context, void* const* operands,
                               void* const* results) { scan.run_grad(context, operands, results); },
      scratch, std::move(name));
}

template std::unique_ptr<Kernel> scan_kernel(const ScanShape&, std::unique_ptr<ScanGemm<float>>);
template std::unique_ptr<Kernel> scan_grad_kernel(const ScanShape&,
                                                  std::unique_ptr<ScanGemm<float>>);

std::unique_ptr<Kernel> prepare_recurrent_scan(const KernelRequest& request) {
  const RecurrentScanAttrs attrs(request.attrs);
  const auto shape = ScanShape::of(attrs.cell, attrs.reverse, request.results[0].shape);
  return with_type(request.operands[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return scan_kernel<T>(shape, scan_gemm<T>(shape, false));
  });
}

std::unique_ptr<Kernel> prepare_recurrent_scan_grad(const KernelRequest& request) {
  const RecurrentScanGradAttrs attrs(request.attrs);
  const auto shape = ScanShape::of(attrs.cell, attrs.reverse, request.operands[8].shape);
  return with_type(request.operands[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return scan_grad_kernel<T>(shape, scan_gemm<T>(shape, true));
  });
}

}  // namespace paddle::cpu
