// The steps of recurrent layers and their gradients. A step is a small matrix product, dealt out by
// columns, and the cell's arithmetic, dealt out by rows of the batch.
//
//   lstm: [i f g o] = gates + W h; c' = σ(f) c + σ(i) tanh(g); h' = σ(o) tanh(c')
//   gru:  [r z n] = gates; r, z += W h; n = tanh(n + σ(r) (W h + b)); h' = σ(z) h + (1 - σ(z)) n
//   rnn:  h' = activation(gates + W h)

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/parallel.h"
#include "kernels/cpu/recurrent_loops.h"
#include "ops/generated/attrs.h"
#include "ops/kernel.h"

namespace paddle::cpu {
namespace {

constexpr int64_t kColumns = 64;

enum class Cell : uint8_t { kLstm, kGru, kTanh, kRelu };

Cell cell_of(const std::string& word) {
  if (word == "lstm") return Cell::kLstm;
  if (word == "gru") return Cell::kGru;
  return word == "tanh" ? Cell::kTanh : Cell::kRelu;
}

struct ScanShape {
  Cell cell;
  bool reverse;
  int64_t batch, steps, hidden, gates, saved;
  int64_t grain(int64_t rows_of_work) const {
    return std::max<int64_t>(4, 32768 / std::max<int64_t>(1, batch * rows_of_work));
  }
  int64_t step(int64_t i) const { return reverse ? steps - 1 - i : i; }
};

ScanShape scan_shape(const std::string& cell, bool reverse, const Dims& out) {
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
class Scan {
 public:
  explicit Scan(const ScanShape& shape) : s(shape) {}

  /// One row of one step; `share` is W h, `h` the state before, `c` the cell's memory (updated).
  void cell(const T* gates, T* share, const T* bias, const T* h, T* c, T* saved, T* out) const {
    const RecurrentLoops<T>& loops = recurrent_loops<T>();
    const int64_t n = s.hidden;
    if (s.cell == Cell::kLstm) {
      for (int64_t k = 0; k < 4 * n; ++k) share[k] += gates[k];
      loops.sigmoid(share, saved, 2 * n);
      loops.tanh(share + 2 * n, saved + 2 * n, n);
      loops.sigmoid(share + 3 * n, saved + 3 * n, n);
      for (int64_t k = 0; k < n; ++k) c[k] = saved[n + k] * c[k] + saved[k] * saved[2 * n + k];
      std::copy(c, c + n, saved + 4 * n);
      loops.tanh(c, out, n);
      for (int64_t k = 0; k < n; ++k) out[k] *= saved[3 * n + k];
    } else if (s.cell == Cell::kGru) {
      if (bias)
        for (int64_t k = 0; k < 3 * n; ++k) share[k] += bias[k];
      std::copy(share + 2 * n, share + 3 * n, saved + 3 * n);
      for (int64_t k = 0; k < 2 * n; ++k) share[k] += gates[k];
      loops.sigmoid(share, saved, 2 * n);
      for (int64_t k = 0; k < n; ++k)
        share[2 * n + k] = gates[2 * n + k] + saved[k] * saved[3 * n + k];
      loops.tanh(share + 2 * n, saved + 2 * n, n);
      for (int64_t k = 0; k < n; ++k)
        out[k] = saved[n + k] * (h[k] - saved[2 * n + k]) + saved[2 * n + k];
    } else {
      for (int64_t k = 0; k < n; ++k) share[k] += gates[k];
      if (s.cell == Cell::kTanh)
        loops.tanh(share, out, n);
      else
        for (int64_t k = 0; k < n; ++k) out[k] = share[k] > T(0) ? share[k] : T(0);
    }
  }

  /// For the hidden state's share of one step's gates, and room for the cell's memory and for what
  /// a step saves where nobody reads those.
  size_t scratch_bytes() const {
    return static_cast<size_t>(s.batch * s.hidden * (s.gates + 1 + s.saved)) * sizeof(T);
  }

  void run(const RunContext& context, void* const* operands, void* const* results) const {
    const T* const gates = static_cast<const T*>(operands[0]);
    const T* const weight = static_cast<const T*>(operands[1]);
    const T* const bias = static_cast<const T*>(operands[2]);
    T* const out = static_cast<T*>(results[0]);
    T* const last_h = static_cast<T*>(results[1]);
    T* const share = reinterpret_cast<T*>(context.scratch);
    const int64_t n = s.hidden, width = s.gates * n;
    T* const spare = share + s.batch * width;
    T* const c = results[2] ? static_cast<T*>(results[2]) : spare;
    T* const saved = static_cast<T*>(results[3]);
    std::memcpy(c, operands[4], static_cast<size_t>(s.batch * n) * sizeof(T));
    const T* h = static_cast<const T*>(operands[3]);
    int64_t h_stride = n;
    for (int64_t i = 0; i < s.steps; ++i) {
      const int64_t t = s.step(i);
      parallel_for(width, s.grain(n), [&](int64_t first, int64_t last) {
        recurrent_loops<T>().forward(h, s.batch, h_stride, weight, n, first, last, share, width);
      });
      parallel_for(s.batch, std::max<int64_t>(1, 4096 / width), [&](int64_t first, int64_t last) {
        for (int64_t b = first; b < last; ++b) {
          const int64_t at = b * s.steps + t;
          cell(gates + at * width, share + b * width, bias, h + b * h_stride, c + b * n,
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

  /// One row of one step backwards: from dh and dc to the gates' gradients, and what of dh and dc
  /// goes past the matrix product to the step before.
  void cell_grad(T* dh, T* dc, const T* h_before, const T* c_before, const T* out, const T* saved,
                 T* dgates, T* dhidden) const {
    const int64_t n = s.hidden;
    if (s.cell == Cell::kLstm) {
      const T *i = saved, *f = saved + n, *g = saved + 2 * n, *o = saved + 3 * n,
              *c = saved + 4 * n;
      recurrent_loops<T>().tanh(c, dhidden, n);  // dhidden is free until the end
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
      const T *r = saved, *z = saved + n, *m = saved + 2 * n, *share = saved + 3 * n;
      for (int64_t k = 0; k < n; ++k) {
        const T dn = dh[k] * (T(1) - z[k]) * (T(1) - m[k] * m[k]);
        dgates[2 * n + k] = dn;
        dgates[k] = dn * share[k] * r[k] * (T(1) - r[k]);
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
    for (int64_t i = s.steps; i-- > 0;) {
      const int64_t t = s.step(i), before = i > 0 ? s.step(i - 1) : -1;
      parallel_for(s.batch, std::max<int64_t>(1, 4096 / width), [&](int64_t first, int64_t last) {
        for (int64_t b = first; b < last; ++b) {
          const int64_t at = b * s.steps + t, earlier = b * s.steps + before;
          T* const row = dh + b * n;
          for (int64_t k = 0; k < n; ++k) row[k] += grad_out[at * n + k];
          const T* const h_before = before < 0 ? h0 + b * n : out + earlier * n;
          const T* const c_before = s.cell != Cell::kLstm ? nullptr
                                    : before < 0          ? c0 + b * n
                                                          : saved + earlier * s.saved * n + 4 * n;
          cell_grad(row, dc + b * n, h_before, c_before, out + at * n, saved + at * s.saved * n,
                    dgates + at * width, dhidden + at * width);
        }
      });
      // Whole vectors, so that a value does not depend on where a thread begins.
      parallel_for((n + kColumns - 1) / kColumns, s.grain(width * kColumns) / 4,
                   [&](int64_t first, int64_t last) {
                     recurrent_loops<T>().backward(dhidden + t * width, s.batch, s.steps * width,
                                                   weight, width, n, first * kColumns,
                                                   std::min(n, last * kColumns), product);
                   });
      for (int64_t k = 0; k < s.batch * n; ++k) dh[k] += product[k];
    }
  }

 private:
  ScanShape s;
};

template <class F>
std::unique_ptr<Kernel> with_type(DType dtype, F f) {
  if (dtype == DType::kF32) return f(TypeTag<float>{});
  if (dtype == DType::kF64) return f(TypeTag<double>{});
  return nullptr;
}

}  // namespace

std::unique_ptr<Kernel> prepare_recurrent_scan(const KernelRequest& request) {
  const RecurrentScanAttrs attrs(request.attrs);
  const ScanShape shape = scan_shape(attrs.cell, attrs.reverse, request.results[0].shape);
  return with_type(request.operands[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Scan<T> scan(shape);
    return make_kernel([scan](const RunContext& context, void* const* operands,
                              void* const* results) { scan.run(context, operands, results); },
                       scan.scratch_bytes());
  });
}

std::unique_ptr<Kernel> prepare_recurrent_scan_grad(const KernelRequest& request) {
  const RecurrentScanGradAttrs attrs(request.attrs);
  const ScanShape shape = scan_shape(attrs.cell, attrs.reverse, request.operands[8].shape);
  return with_type(request.operands[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return make_kernel([scan = Scan<T>(shape)](
                           const RunContext& context, void* const* operands,
                           void* const* results) { scan.run_grad(context, operands, results); },
                       static_cast<size_t>(shape.batch * shape.hidden) * sizeof(T));
  });
}

}  // namespace paddle::cpu
