// Lazy optimizer updates: only the rows of a table that a batch has read. Places are sorted by row,
// so that each row is updated once, by the sum of its gradients, whatever the number of threads.

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/row_places.h"
#include "ops/generated/attrs.h"
#include "ops/kernel.h"

namespace paddle::cpu {
namespace {

/// One update rule: its constants, fixed when prepared, and those of the step.
struct Rule {
  enum class Kind { kSgd, kMomentum, kAdam, kAdagrad } kind = Kind::kSgd;
  size_t states = 0;
  double momentum = 0, beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
  bool nesterov = false, decoupled = false;
  double bound = std::numeric_limits<double>::infinity();

  static Rule of(const KernelRequest& request) {
    Rule r;
    const std::string_view name = request.op.name();
    if (name == "sgd_update_rows") {
      r.weight_decay = SgdUpdateRowsAttrs(request.attrs).weight_decay;
    } else if (name == "momentum_update_rows") {
      const MomentumUpdateRowsAttrs a(request.attrs);
      r = {Kind::kMomentum, 1, a.momentum, 0, 0, 0, a.weight_decay, a.nesterov, false};
    } else if (name == "adagrad_update_rows") {
      const AdagradUpdateRowsAttrs a(request.attrs);
      r = {Kind::kAdagrad, 1, 0, 0, 0, a.epsilon, a.weight_decay, false, false};
    } else {
      const AdamUpdateRowsAttrs a(request.attrs);
      r = {Kind::kAdam, 2, 0, a.beta1, a.beta2, a.epsilon, a.weight_decay, false, a.decoupled};
    }
    const auto bound = request.attrs[static_cast<size_t>(request.op.attr_index("bound"))];
    if (!bound.is_none()) r.bound = bound.as_double();
    return r;
  }
};

/// What an update reads beside arrays.
struct Scalars {
  double lr = 0, step = 1, scale = 1;
};

/// Updates `n` elements of a row; `g` is their summed gradient.
template <class T>
void update(const Rule& r, const Scalars& scalars, int64_t n, T* p, T* g, T* s0, T* s1) {
  const T decay = static_cast<T>(r.decoupled ? 0 : r.weight_decay);
  const T scale = static_cast<T>(scalars.scale), bound = static_cast<T>(r.bound);
  for (int64_t i = 0; i < n; ++i) {
    const T scaled = g[i] * scale, above = scaled < -bound ? -bound : scaled;
    g[i] = (above > bound ? bound : above) + decay * p[i];
  }
  const double lr = scalars.lr, step = scalars.step;
  const T rate = static_cast<T>(lr);
  switch (r.kind) {
    case Rule::Kind::kSgd:
      for (int64_t i = 0; i < n; ++i) p[i] -= rate * g[i];
      return;
    case Rule::Kind::kMomentum: {
      const T m = static_cast<T>(r.momentum);
      for (int64_t i = 0; i < n; ++i) {
        s0[i] = m * s0[i] + g[i];
        p[i] -= rate * (r.nesterov ? g[i] + m * s0[i] : s0[i]);
      }
      return;
    }
    case Rule::Kind::kAdagrad: {
      const T epsilon = static_cast<T>(r.epsilon);
      for (int64_t i = 0; i < n; ++i) {
        s0[i] += g[i] * g[i];
        p[i] -= rate * g[i] / (std::sqrt(s0[i]) + epsilon);
      }
      return;
    }
    case Rule::Kind::kAdam: {
      const double root = std::sqrt(1 - std::pow(r.beta2, step));
      const T scaled = static_cast<T>(lr * root / (1 - std::pow(r.beta1, step)));
      const T epsilon = static_cast<T>(r.epsilon);
      const T b1 = static_cast<T>(r.beta1), b2 = static_cast<T>(r.beta2);
      const T shrink = static_cast<T>(r.decoupled ? 1 - lr * r.weight_decay : 1);
      for (int64_t i = 0; i < n; ++i) {
        s0[i] = b1 * s0[i] + (1 - b1) * g[i];
        s1[i] = b2 * s1[i] + (1 - b2) * g[i] * g[i];
        p[i] = p[i] * shrink - scaled * s0[i] / (std::sqrt(s1[i]) + epsilon);
      }
      return;
    }
  }
}

double scalar(DType dtype, const void* data) {
  return visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return static_cast<double>(
        static_cast<std::conditional_t<sizeof(T) == 2, float, T>>(*static_cast<const T*>(data)));
  });
}

template <class T>
std::unique_ptr<Kernel> prepare(const KernelRequest& request) {
  const Rule rule = Rule::of(request);
  const auto at = [&](std::string_view name) {
    return static_cast<size_t>(request.op.operand_index(name));
  };
  const int64_t rows = request.operands[0].shape[0], width = request.operands[0].shape[1];
  const int64_t count = request.operands[1].shape[0];
  const size_t lr_at = at("lr"), index_at = at("indices"), skip_at = at("skip");
  const size_t scale_at = at("scale");
  const bool adam = rule.kind == Rule::Kind::kAdam, skips = request.operands[skip_at].present;
  const bool scaled = request.operands[scale_at].present;
  const bool has_master = request.operands[at("master")].present;
  const DType lr_type = request.operands[lr_at].dtype;
  const DType step_type = adam ? request.operands[lr_at + 1].dtype : DType::kI64;
  const DType scale_type = request.operands[scale_at].dtype;
  const DType kept_type = request.operands[0].dtype;
  const RowSums<T> row_sums(request.operands[1]);
  const ConvertFn round = has_master ? convert_fn(dtype_of<T>(), kept_type) : nullptr;
  const int64_t kept_item = item_size(kept_type);
  // Result i is the new version of `versions[i]`.
  std::vector<size_t> versions = {0};
  for (size_t i = 0; i < rule.states; ++i) versions.push_back(2 + i);
  if (has_master) versions.push_back(at("master"));
  std::vector<size_t> bytes;
  for (const size_t operand : versions)
    bytes.push_back(static_cast<size_t>(rows * width * item_size(request.operands[operand].dtype)));
  return make_kernel(
      [=](const RunContext& c, void* const* operands, void* const* results) {
        // In a plan the results lie where their operands do; eagerly they are new.
        for (size_t i = 0; i < versions.size(); ++i) {
          const void* from = operands[versions[i]];
          if (from != results[i] && bytes[i] > 0) std::memcpy(results[i], from, bytes[i]);
        }
        if (skips && *static_cast<const bool*>(operands[skip_at])) return;
        Scalars scalars;
        scalars.lr = scalar(lr_type, operands[lr_at]);
        if (adam) scalars.step = scalar(step_type, operands[lr_at + 1]);
        if (scaled) scalars.scale = scalar(scale_type, operands[scale_at]);
        const Place* places =
            sorted_places(static_cast<const int64_t*>(operands[index_at]), count, rows, c.scratch);
        T* parameter = static_cast<T*>(results[has_master ? 1 + rule.states : 0]);
        T* state0 = rule.states > 0 ? static_cast<T*>(results[1]) : nullptr;
        T* state1 = rule.states > 1 ? static_cast<T*>(results[2]) : nullptr;
        for_each_row(places, count, [&](int64_t row, int64_t first, int64_t last) {
          row_sums.run(operands[1], places, first, last, [&](int64_t column, int64_t n, T* sum) {
            const int64_t begin = row * width + column;
            update(rule, scalars, n, parameter + begin, sum, state0 ? state0 + begin : nullptr,
                   state1 ? state1 + begin : nullptr);
            if (round)
              round(parameter + begin, 1, static_cast<std::byte*>(results[0]) + begin * kept_item,
                    n);
          });
        });
      },
      static_cast<size_t>(count) * sizeof(Place));
}

}  // namespace

/// The parameter or its master, and the states, are all float32 or all float64; gradients may be of
/// 16 bits.
std::unique_ptr<Kernel> prepare_update_rows(const KernelRequest& request) {
  const auto master = static_cast<size_t>(request.op.operand_index("master"));
  const DType dtype = request.operands[request.operands[master].present ? master : 0].dtype;
  for (size_t i = 2; i <= master; ++i)
    if (request.operands[i].present && request.operands[i].dtype != dtype) return nullptr;
  if (dtype == DType::kF32) return prepare<float>(request);
  if (dtype == DType::kF64) return prepare<double>(request);
  return nullptr;
}

std::unique_ptr<Kernel> prepare_merge_rows(const KernelRequest& request) {
  const int64_t count = request.operands[1].shape[0], width = request.operands[1].shape[1];
  const DType dtype = request.operands[1].dtype;
  if (dtype != DType::kF32 && dtype != DType::kF64) return nullptr;
  return make_kernel(
      [=](const RunContext& c, void* const* operands, void* const* results) {
        const auto run = [&](auto tag) {
          using T = typename decltype(tag)::type;
          const T* in = static_cast<const T*>(operands[1]);
          T* out = static_cast<T*>(results[0]);
          const Place* places =
              sorted_places(static_cast<const int64_t*>(operands[0]), count, INT64_MAX, c.scratch);
          for_each_row(places, count, [&](int64_t, int64_t first, int64_t last) {
            T* target = out + places[first].at * width;
            std::memcpy(target, in + places[first].at * width,
                        static_cast<size_t>(width) * sizeof(T));
            for (int64_t i = first + 1; i < last; ++i) {
              const T* g = in + places[i].at * width;
              for (int64_t k = 0; k < width; ++k) target[k] += g[k];
              std::memset(out + places[i].at * width, 0, static_cast<size_t>(width) * sizeof(T));
            }
          });
        };
        dtype == DType::kF32 ? run(TypeTag<float>{}) : run(TypeTag<double>{});
      },
      static_cast<size_t>(count) * sizeof(Place));
}

}  // namespace paddle::cpu
