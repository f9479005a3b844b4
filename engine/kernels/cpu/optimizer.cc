// Optimizer updates: one pass over a parameter, its gradient and its states, all of any float type.
// Scalars of a step are combined in f64 first.

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/optimizer_loops.h"
#include "ops/generated/attrs.h"
#include "ops/kernel.h"

namespace paddle::cpu {
namespace {

constexpr int64_t kBlock = 1024;

double number_at(const void* value, DType dtype) {
  double number;
  convert_fn(dtype, DType::kF64)(value, 1, &number, 1);
  return number;
}

/// `scalars(operands)` gives UpdateScalars<double>. Operands are param, grad, the states, then 0-D
/// numbers; results are the parameter and the states.
template <class C, class F>
std::unique_ptr<Kernel> update(const KernelRequest& request, size_t states,
                               typename UpdateLoops<C>::Fn loop, F scalars) {
  struct Buffered {
    ConvertFn load, store;  // null where the type is C already
    int64_t item;
  };
  // param, grad, states
  std::vector<Buffered> parts;
  for (size_t i = 0; i < 2 + states; ++i) {
    const DType type = request.operands[i].dtype;
    parts.push_back({type == dtype_of<C>() ? nullptr : convert_fn(type, dtype_of<C>()),
                     type == dtype_of<C>() ? nullptr : convert_fn(dtype_of<C>(), type),
                     item_size(type)});
  }
  const bool direct =
      std::all_of(parts.begin(), parts.end(), [](const Buffered& p) { return !p.load; });
  const int64_t size = request.operands[0].size();
  return make_kernel([=, parts = std::move(parts)](const RunContext&, void* const* operands,
                                                   void* const* results) {
    const UpdateScalars<double> wide = scalars(operands);
    const UpdateScalars<C> narrow{static_cast<C>(wide.lr),
                                  static_cast<C>(wide.decay),
                                  static_cast<C>(wide.a),
                                  static_cast<C>(wide.b),
                                  static_cast<C>(wide.epsilon),
                                  static_cast<C>(wide.shrink),
                                  wide.flag};
    parallel_for(size, 16384, [&](int64_t begin, int64_t end) {
      alignas(64) C buffers[5][kBlock];
      const int64_t step = direct ? end - begin : kBlock;
      for (int64_t at = begin; at < end; at += step) {
        const int64_t n = std::min(step, end - at);
        const auto in = [&](size_t i) -> const C* {
          const std::byte* const source =
              static_cast<const std::byte*>(operands[i]) + at * parts[i].item;
          if (!parts[i].load) return reinterpret_cast<const C*>(source);
          parts[i].load(source, 1, buffers[i], n);
          return buffers[i];
        };
        const auto out = [&](size_t part, size_t result) -> C* {
          if (parts[part].store) return buffers[part];
          return reinterpret_cast<C*>(static_cast<std::byte*>(results[result]) +
                                      at * parts[part].item);
        };
        UpdateRun<C> run{};
        run.n = n;
        run.param = in(0);
        run.grad = in(1);
        run.out = out(0, 0);
        for (size_t s = 0; s < states; ++s) {
          run.state[s] = in(2 + s);
          run.new_state[s] = out(2 + s, 1 + s);
        }
        loop(run, narrow);
        for (size_t result = 0; result <= states; ++result) {
          const size_t part = result == 0 ? 0 : 1 + result;
          if (parts[part].store)
            parts[part].store(buffers[part], 1,
                              static_cast<std::byte*>(results[result]) + at * parts[part].item, n);
        }
      }
    });
  });
}

/// In f64 if the parameter is, else in f32.
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
  const DType lr = request.operands[2].dtype;
  return prepare_update(request, 0, &UpdateLoops<float>::sgd, &UpdateLoops<double>::sgd,
                        [=](void* const* operands) {
                          UpdateScalars<double> s{};
                          s.lr = number_at(operands[2], lr);
                          s.decay = attrs.weight_decay;
                          return s;
                        });
}

std::unique_ptr<Kernel> prepare_momentum_update(const KernelRequest& request) {
  const MomentumUpdateAttrs attrs(request.attrs);
  const DType lr = request.operands[3].dtype;
  return prepare_update(request, 1, &UpdateLoops<float>::momentum, &UpdateLoops<double>::momentum,
                        [=](void* const* operands) {
                          UpdateScalars<double> s{};
                          s.lr = number_at(operands[3], lr);
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
  const DType lr_type = request.operands[4].dtype, step_type = request.operands[5].dtype;
  return prepare_update(request, 2, &UpdateLoops<float>::adam, &UpdateLoops<double>::adam,
                        [=](void* const* operands) {
                          const double lr = number_at(operands[4], lr_type),
                                       step = number_at(operands[5], step_type);
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
  const DType lr = request.operands[3].dtype;
  return prepare_update(request, 1, &UpdateLoops<float>::adagrad, &UpdateLoops<double>::adagrad,
                        [=](void* const* operands) {
                          UpdateScalars<double> s{};
                          s.lr = number_at(operands[3], lr);
                          s.decay = attrs.weight_decay;
                          s.epsilon = attrs.epsilon;
                          return s;
                        });
}

std::unique_ptr<Kernel> prepare_rmsprop_update(const KernelRequest& request) {
  const RmspropUpdateAttrs attrs(request.attrs);
  const DType lr = request.operands[5].dtype;
  return prepare_update(request, 3, &UpdateLoops<float>::rmsprop, &UpdateLoops<double>::rmsprop,
                        [=](void* const* operands) {
                          UpdateScalars<double> s{};
                          s.lr = number_at(operands[5], lr);
                          s.decay = attrs.weight_decay;
                          s.a = attrs.momentum;
                          s.b = attrs.rho;
                          s.epsilon = attrs.epsilon;
                          s.flag = attrs.centered;
                          return s;
                        });
}

}  // namespace paddle::cpu
