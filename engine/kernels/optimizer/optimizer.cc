// Optimizer updates: one pass over a parameter, its gradient, its states and its master weight, of
// any float type. Scalars of a step are combined in f64 first.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "base/parallel.h"
#include "kernels/common/convert.h"
#include "kernels/optimizer/update_operands.h"
#include "kernels/optimizer/update_simd.h"
#include "ops/core/kernel.h"
#include "ops/generated/optimizer.h"

namespace paddle::cpu {
namespace {

constexpr int64_t kBlock = 1024;

/// An array that an update reads or writes in blocks of the compute type.
struct UpdateArray {
  int operand = -1, result = -1;              ///< -1: not read, not written
  ConvertFn load = nullptr, store = nullptr;  ///< null if the type is the compute type
  int64_t item = 0;

  static UpdateArray of(const KernelRequest& request, int operand, int result, DType compute) {
    const Layout& layout = operand >= 0 ? request.operands[static_cast<size_t>(operand)]
                                        : request.results[static_cast<size_t>(result)];
    UpdateArray part{operand, result, nullptr, nullptr, item_size(layout.dtype)};
    if (layout.dtype != compute) {
      part.load = convert_fn(layout.dtype, compute);
      part.store = convert_fn(compute, layout.dtype);
    }
    return part;
  }
};

/// A skipped update (non-finite gradients): results are copies of their operands, unless they share
/// memory.
class SkippedUpdate {
 public:
  explicit SkippedUpdate(const KernelRequest& request) {
    const auto master = static_cast<size_t>(request.op.operand_index("master"));
    for (size_t operand = 0; operand <= master; ++operand) {
      const Layout& layout = request.operands[operand];
      if (operand != 1 && layout.present)  // 1 is the gradient
        copies_.push_back({operand, static_cast<size_t>(layout.size() * item_size(layout.dtype))});
    }
  }
  void run(void* const* operands, void* const* results) const {
    for (size_t i = 0; i < copies_.size(); ++i)
      if (operands[copies_[i].operand] != results[i])
        std::memcpy(results[i], operands[copies_[i].operand], copies_[i].bytes);
  }

 private:
  struct Copy {
    size_t operand, bytes;
  };
  std::vector<Copy> copies_;  // in the order of the results
};

/// `scalars(operands)` returns all UpdateScalars<double> except those of the gradient. Operands are
/// param, grad, the states, the master weight, then 0-D scalars; results are the parameter, the
/// states and the master weight.
template <class C, class F>
std::unique_ptr<Kernel> update(const KernelRequest& request, size_t states,
                               typename UpdateLoops<C>::Fn loop, F scalars) {
  const auto n = static_cast<int>(states);
  const bool has_master = request.operands[2 + states].present;
  const UpdateArray param = has_master ? UpdateArray::of(request, 2 + n, 1 + n, dtype_of<C>())
                                       : UpdateArray::of(request, 0, 0, dtype_of<C>());
  const UpdateArray grad = UpdateArray::of(request, 1, -1, dtype_of<C>());
  std::vector<UpdateArray> moments;
  for (int s = 0; s < n; ++s)
    moments.push_back(UpdateArray::of(request, 2 + s, 1 + s, dtype_of<C>()));
  const ConvertFn round =
      has_master ? convert_fn(dtype_of<C>(), request.results[0].dtype) : nullptr;
  const int64_t rounded_item = item_size(request.results[0].dtype);
  bool direct = !param.load && !grad.load && !round;
  for (const UpdateArray& m : moments) direct = direct && !m.load;
  const int64_t size = request.operands[0].size();
  const ScalarOperand skip(request, "skip"), scale(request, "scale");
  const double bound = gradient_bound(request);
  const SkippedUpdate skipped(request);
  return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
    if (skip.read(operands) != 0) return skipped.run(operands, results);
    UpdateScalars<double> scalars_f64 = scalars(operands);
    scalars_f64.scale = scale.read(operands, 1);
    scalars_f64.bound = bound;
    const auto scalars_c = convert_scalars<C>(scalars_f64);
    parallel_for(size, 16384, [&](int64_t begin, int64_t end) {
      alignas(64) C buffers[5][kBlock];
      const int64_t step = direct ? end - begin : kBlock;
      for (int64_t at = begin; at < end; at += step) {
        const int64_t count = std::min(step, end - at);
        const auto address = [&](void* const* arrays, int index, const UpdateArray& part) {
          return static_cast<std::byte*>(arrays[index]) + at * part.item;
        };
        const auto in = [&](const UpdateArray& part, C* buffer) -> const C* {
          const std::byte* const source = address(operands, part.operand, part);
          if (!part.load) return reinterpret_cast<const C*>(source);
          part.load(source, 1, buffer, count);
          return buffer;
        };
        const auto out = [&](const UpdateArray& part, C* buffer) -> C* {
          return part.store ? buffer : reinterpret_cast<C*>(address(results, part.result, part));
        };
        UpdateSpan<C> run{};
        run.n = count;
        run.param = in(param, buffers[0]);
        run.grad = in(grad, buffers[1]);
        run.out = out(param, buffers[0]);
        for (size_t s = 0; s < states; ++s) {
          run.state[s] = in(moments[s], buffers[2 + s]);
          run.new_state[s] = out(moments[s], buffers[2 + s]);
        }
        loop(run, scalars_c);
        const auto finish = [&](const UpdateArray& part, const C* values) {
          if (part.store) part.store(values, 1, address(results, part.result, part), count);
        };
        finish(param, run.out);
        for (size_t s = 0; s < states; ++s) finish(moments[s], run.new_state[s]);
        if (round)
          round(run.out, 1, static_cast<std::byte*>(results[0]) + at * rounded_item, count);
      }
    });
  });
}

/// In f64 if the parameter is f64, otherwise in f32.
template <class F>
std::unique_ptr<Kernel> prepare_update(const KernelRequest& request, size_t states,
                                       UpdateLoops<float>::Fn UpdateLoops<float>::*f32,
                                       UpdateLoops<double>::Fn UpdateLoops<double>::*f64,
                                       F scalars) {
  if (request.operands[0].dtype == DType::kF64)
    return update<double>(request, states, update_loops<double>().*f64, scalars);
  return update<float>(request, states, update_loops<float>().*f32, scalars);
}

}  // namespace

std::unique_ptr<Kernel> prepare_sgd_update(const KernelRequest& request) {
  const SgdUpdateAttrs attrs(request.attrs);
  const ScalarOperand lr(request, "lr");
  return prepare_update(request, 0, &UpdateLoops<float>::sgd, &UpdateLoops<double>::sgd,
                        [=](void* const* operands) {
                          UpdateScalars<double> s{};
                          s.lr = lr.read(operands);
                          s.decay = attrs.weight_decay;
                          return s;
                        });
}

std::unique_ptr<Kernel> prepare_momentum_update(const KernelRequest& request) {
  const MomentumUpdateAttrs attrs(request.attrs);
  const ScalarOperand lr(request, "lr");
  return prepare_update(request, 1, &UpdateLoops<float>::momentum, &UpdateLoops<double>::momentum,
                        [=](void* const* operands) {
                          UpdateScalars<double> s{};
                          s.lr = lr.read(operands);
                          s.decay = attrs.weight_decay;
                          s.a = attrs.momentum;
                          s.flag = attrs.nesterov;
                          return s;
                        });
}

// With bias corrections c1 = 1 - beta1^t and c2 = 1 - beta2^t, the step lr m / c1 / (sqrt(v / c2) +
// e) is lr sqrt(c2) / c1 * m / (sqrt(v) + e sqrt(c2)).
std::unique_ptr<Kernel> prepare_adam_update(const KernelRequest& request) {
  const AdamUpdateAttrs attrs(request.attrs);
  const ScalarOperand rate(request, "lr"), count(request, "step");
  return prepare_update(request, 2, &UpdateLoops<float>::adam, &UpdateLoops<double>::adam,
                        [=](void* const* operands) {
                          const double lr = rate.read(operands), step = count.read(operands);
                          const double root = std::sqrt(1 - std::pow(attrs.beta2, step));
                          UpdateScalars<double> s{};
                          s.lr = lr * root / (1 - std::pow(attrs.beta1, step));
                          s.epsilon = attrs.epsilon * root;
                          s.a = attrs.beta1;
                          s.b = attrs.beta2;
                          s.decay = attrs.decoupled ? 0 : attrs.weight_decay;
                          s.shrink = attrs.decoupled ? 1 - lr * attrs.weight_decay : 1;
                          return s;
                        });
}

std::unique_ptr<Kernel> prepare_adagrad_update(const KernelRequest& request) {
  const AdagradUpdateAttrs attrs(request.attrs);
  const ScalarOperand lr(request, "lr");
  return prepare_update(request, 1, &UpdateLoops<float>::adagrad, &UpdateLoops<double>::adagrad,
                        [=](void* const* operands) {
                          UpdateScalars<double> s{};
                          s.lr = lr.read(operands);
                          s.decay = attrs.weight_decay;
                          s.epsilon = attrs.epsilon;
                          return s;
                        });
}

std::unique_ptr<Kernel> prepare_rmsprop_update(const KernelRequest& request) {
  const RmspropUpdateAttrs attrs(request.attrs);
  const ScalarOperand lr(request, "lr");
  return prepare_update(request, 3, &UpdateLoops<float>::rmsprop, &UpdateLoops<double>::rmsprop,
                        [=](void* const* operands) {
                          UpdateScalars<double> s{};
                          s.lr = lr.read(operands);
                          s.decay = attrs.weight_decay;
                          s.a = attrs.momentum;
                          s.b = attrs.rho;
                          s.epsilon = attrs.epsilon;
                          s.flag = attrs.centered;
                          return s;
                        });
}

std::unique_ptr<Kernel> prepare_all_finite(const KernelRequest& request) {
  struct Source {
    int64_t size, item;
    ConvertFn load;  // null for f32
  };
  std::vector<Source> sources;
  for (const Layout& x : request.operands)
    sources.push_back({x.size(), item_size(x.dtype),
                       x.dtype == DType::kF32 ? nullptr : convert_fn(x.dtype, DType::kF32)});
  const bool is_f64 = std::any_of(request.operands.begin(), request.operands.end(),
                                  [](const Layout& x) { return x.dtype == DType::kF64; });
  if (is_f64) {  // a finite f64 may be infinite in f32
    for (size_t i = 0; i < sources.size(); ++i)
      sources[i].load = convert_fn(request.operands[i].dtype, DType::kF64);
  }
  return make_kernel([=, sources = std::move(sources)](const RunContext&, void* const* operands,
                                                       void* const* results) {
    std::atomic<bool> all_finite = true;
    for (size_t i = 0; i < sources.size() && all_finite; ++i) {
      const Source& source = sources[i];
      parallel_for(source.size, 32768, [&](int64_t begin, int64_t end) {
        alignas(64) std::byte buffer[kBlock * sizeof(double)];
        for (int64_t at = begin; at < end && all_finite; at += kBlock) {
          const int64_t n = std::min(kBlock, end - at);
          const std::byte* values = static_cast<const std::byte*>(operands[i]) + at * source.item;
          if (source.load) {
            source.load(values, 1, buffer, n);
            values = buffer;
          }
          if (!(is_f64
                    ? update_loops<double>().all_finite(reinterpret_cast<const double*>(values), n)
                    : update_loops<float>().all_finite(reinterpret_cast<const float*>(values), n)))
            all_finite = false;
        }
      });
    }
    *static_cast<bool*>(results[0]) = all_finite;
  });
}

}  // namespace paddle::cpu
