// CTC and RNN transducer losses: forward and backward recursions over log-probabilities, a task per
// sequence.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/parallel.h"
#include "ops/core/kernel.h"
#include "ops/generated/loss.h"

namespace paddle::cpu {
namespace {

template <class T>
constexpr T kNone = -std::numeric_limits<T>::infinity();

template <class T>
T log_add(T a, T b) {
  const T high = std::max(a, b);
  if (high == kNone<T>) return high;
  return high + std::log1p(std::exp(std::min(a, b) - high));
}

template <class T>
T log_add(T a, T b, T c) {
  const T high = std::max({a, b, c});
  if (high == kNone<T>) return high;
  return high + std::log(std::exp(a - high) + std::exp(b - high) + std::exp(c - high));
}

int64_t checked_length(std::string_view op, const char* name, int64_t length, int64_t least,
                       int64_t most) {
  if (length < least || length > most)
    fail(ErrorCode::kData, op, ": ", name, " has ", length, ", which is not from ", least, " to ",
         most);
  return length;
}

/// One sequence of CTC.
template <class T>
struct CtcSequence {
  const T* x;  ///< log-probabilities of the first step
  int64_t stride, steps, classes, blank;
  std::vector<int64_t> states;  ///< labels between blanks

  T emitted(int64_t t, size_t s) const { return x[t * stride + states[s]]; }
  bool may_skip(size_t s) const {
    return s >= 2 && states[s] != blank && states[s] != states[s - 2];
  }

  void forward(std::vector<T>& alpha) const {
    const size_t n = states.size();
    alpha.assign(static_cast<size_t>(steps) * n, kNone<T>);
    for (size_t s = 0; s < std::min<size_t>(n, 2); ++s) alpha[s] = emitted(0, s);
    for (int64_t t = 1; t < steps; ++t) {
      const T* const before = alpha.data() + static_cast<size_t>(t - 1) * n;
      T* const now = alpha.data() + static_cast<size_t>(t) * n;
      for (size_t s = 0; s < n; ++s)
        now[s] = emitted(t, s) + log_add(before[s], s > 0 ? before[s - 1] : kNone<T>,
                                         may_skip(s) ? before[s - 2] : kNone<T>);
    }
  }
  T total(const std::vector<T>& alpha) const {
    const size_t n = states.size(), last = static_cast<size_t>(steps) * n;
    return log_add(alpha[last - 1], n > 1 ? alpha[last - 2] : kNone<T>);
  }
  /// Adds the probability of each class to `out`, laid out as x.
  void occupancy(const std::vector<T>& alpha, T log_total, T* out) const {
    const size_t n = states.size();
    std::vector<T> beta(n, kNone<T>), next(n);
    beta[n - 1] = 0;
    if (n > 1) beta[n - 2] = 0;
    for (int64_t t = steps; t-- > 0;) {
      if (t + 1 < steps) {
        for (size_t s = 0; s < n; ++s) next[s] = beta[s] + emitted(t + 1, s);
        for (size_t s = 0; s < n; ++s)
          beta[s] = log_add(next[s], s + 1 < n ? next[s + 1] : kNone<T>,
                            s + 2 < n && may_skip(s + 2) ? next[s + 2] : kNone<T>);
      }
      const T* const now = alpha.data() + static_cast<size_t>(t) * n;
      for (size_t s = 0; s < n; ++s)
        out[t * stride + states[s]] += std::exp(now[s] + beta[s] - log_total);
    }
  }
};

template <class T>
std::unique_ptr<Kernel> ctc_kernel(const KernelRequest& request, bool occupancy, int64_t blank) {
  const Dims shape = request.operands[0].shape;
  const int64_t longest = request.operands[1].shape[1];
  return make_kernel([=, op = std::string("ctc_loss")](const RunContext&, void* const* operands,
                                                       void* const* results) {
    const T* const x = static_cast<const T*>(operands[0]);
    const int64_t* const labels = static_cast<const int64_t*>(operands[1]);
    T* const out = static_cast<T*>(results[0]);
    if (occupancy) std::fill_n(out, shape[0] * shape[1] * shape[2], T(0));
    parallel_for(shape[1], 1, [&](int64_t begin, int64_t end) {
      std::vector<T> alpha;
      for (int64_t b = begin; b < end; ++b) {
        const int64_t steps = checked_length(
            op, "input_lengths", static_cast<const int64_t*>(operands[2])[b], 0, shape[0]);
        const int64_t count = checked_length(
            op, "label_lengths", static_cast<const int64_t*>(operands[3])[b], 0, longest);
        CtcSequence<T> sequence{x + b * shape[2], shape[1] * shape[2], steps, shape[2], blank,
                                {blank}};
        for (int64_t i = 0; i < count; ++i) {
          const int64_t label = labels[b * longest + i];
          if (label < 0 || label >= shape[2])
            fail(ErrorCode::kData, op, ": label ", label, " is not one of ", shape[2], " classes");
          sequence.states.insert(sequence.states.end(), {label, blank});
        }
        T total = count == 0 ? T(0) : kNone<T>;
        if (steps > 0) {
          sequence.forward(alpha);
          total = sequence.total(alpha);
        }
        if (!occupancy)
          out[b] = -total;
        else if (steps > 0 && total > kNone<T>)
          sequence.occupancy(alpha, total, out + b * shape[2]);
      }
    });
  });
}

/// One sequence of a transducer; places are [step, label].
template <class T>
struct TransducerSequence {
  const T *blank, *label;
  int64_t blank_stride, label_stride, steps, labels;

  T out(int64_t t, int64_t u) const { return blank[t * blank_stride + u]; }
  T emit(int64_t t, int64_t u) const { return label[t * label_stride + u]; }

  void forward(std::vector<T>& alpha) const {
    const int64_t width = labels + 1;
    alpha.assign(static_cast<size_t>(steps * width), kNone<T>);
    for (int64_t t = 0; t < steps; ++t)
      for (int64_t u = 0; u <= labels; ++u) {
        T* const now = alpha.data() + t * width + u;
        if (t == 0 && u == 0) {
          *now = 0;
          continue;
        }
        const T up = t > 0 ? now[-width] + out(t - 1, u) : kNone<T>,
                left = u > 0 ? now[-1] + emit(t, u - 1) : kNone<T>;
        *now = log_add(up, left);
      }
  }
  T total(const std::vector<T>& alpha) const { return alpha.back() + out(steps - 1, labels); }

  void occupancy(const std::vector<T>& alpha, T log_total, T* blanks, T* emits) const {
    const int64_t width = labels + 1;
    std::vector<T> beta(static_cast<size_t>(width), kNone<T>);
    for (int64_t t = steps; t-- > 0;)
      for (int64_t u = labels; u >= 0; --u) {
        const T here = alpha[static_cast<size_t>(t * width + u)];
        const T follow = t + 1 < steps ? beta[static_cast<size_t>(u)]
                         : u == labels ? T(0)
                                       : kNone<T>;
        const T through = follow + out(t, u);
        blanks[t * blank_stride + u] = std::exp(here + through - log_total);
        T right = kNone<T>;
        if (u < labels) {
          right = beta[static_cast<size_t>(u + 1)] + emit(t, u);
          emits[t * label_stride + u] = std::exp(here + right - log_total);
        }
        beta[static_cast<size_t>(u)] = log_add(through, right);
      }
  }
};

template <class T>
std::unique_ptr<Kernel> rnnt_kernel(const KernelRequest& request, bool occupancy) {
  const Dims shape = request.operands[0].shape;
  return make_kernel([=, op = std::string("rnnt_loss")](const RunContext&, void* const* operands,
                                                        void* const* results) {
    const int64_t blanks_each = shape[1] * shape[2], labels_each = shape[1] * (shape[2] - 1);
    T* const out = static_cast<T*>(results[0]);
    T* const emits = occupancy ? static_cast<T*>(results[1]) : nullptr;
    if (occupancy) {
      std::fill_n(out, shape[0] * blanks_each, T(0));
      std::fill_n(emits, shape[0] * labels_each, T(0));
    }
    parallel_for(shape[0], 1, [&](int64_t begin, int64_t end) {
      std::vector<T> alpha;
      for (int64_t b = begin; b < end; ++b) {
        const TransducerSequence<T> sequence{
            static_cast<const T*>(operands[0]) + b * blanks_each,
            static_cast<const T*>(operands[1]) + b * labels_each,
            shape[2],
            shape[2] - 1,
            checked_length(op, "input_lengths", static_cast<const int64_t*>(operands[2])[b], 1,
                           shape[1]),
            checked_length(op, "label_lengths", static_cast<const int64_t*>(operands[3])[b], 0,
                           shape[2] - 1)};
        sequence.forward(alpha);
        const T total = sequence.total(alpha);
        if (!occupancy)
          out[b] = -total;
        else if (total > kNone<T>)
          sequence.occupancy(alpha, total, out + b * blanks_each, emits + b * labels_each);
      }
    });
  });
}

}  // namespace

std::unique_ptr<Kernel> prepare_ctc_alignment(const KernelRequest& request) {
  const int64_t blank = CtcAlignmentAttrs(request.attrs).blank;
  return request.operands[0].dtype == DType::kF32 ? ctc_kernel<float>(request, false, blank)
                                                  : ctc_kernel<double>(request, false, blank);
}

std::unique_ptr<Kernel> prepare_ctc_occupancy(const KernelRequest& request) {
  const int64_t blank = CtcOccupancyAttrs(request.attrs).blank;
  return request.operands[0].dtype == DType::kF32 ? ctc_kernel<float>(request, true, blank)
                                                  : ctc_kernel<double>(request, true, blank);
}

std::unique_ptr<Kernel> prepare_rnnt_alignment(const KernelRequest& request) {
  return request.operands[0].dtype == DType::kF32 ? rnnt_kernel<float>(request, false)
                                                  : rnnt_kernel<double>(request, false);
}

std::unique_ptr<Kernel> prepare_rnnt_occupancy(const KernelRequest& request) {
  return request.operands[0].dtype == DType::kF32 ? rnnt_kernel<float>(request, true)
                                                  : rnnt_kernel<double>(request, true);
}

}  // namespace paddle::cpu
