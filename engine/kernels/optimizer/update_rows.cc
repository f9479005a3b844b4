// Lazy optimizer updates: only the rows of a table that a batch has read. Entries are sorted by
// row, so that each row is updated once, by the sum of its gradients, whatever the number of
// threads.

#include <cmath>
#include <cstring>
#include <utility>

#include "kernels/common/convert.h"
#include "kernels/indexing/sorted_rows.h"
#include "kernels/optimizer/update_operands.h"
#include "kernels/optimizer/update_simd.h"
#include "ops/core/kernel.h"
#include "ops/generated/optimizer.h"

namespace paddle::cpu {
namespace {

constexpr int64_t kPrefetchDistance = 16;  ///< entries whose rows are prefetched ahead

/// An update rule: its loop and the scalars that do not change from step to step.
template <class T>
struct Rule {
  typename UpdateLoops<T>::Fn loop = nullptr;
  size_t states = 0;
  bool adam = false;  ///< the rate depends on the step; `flag` is decoupled decay
  UpdateScalars<double> fixed{};

  static Rule of(const KernelRequest& request) {
    const UpdateLoops<T>& loops = update_loops<T>();
    const std::string_view name = request.op.name();
    Rule r;
    r.fixed.shrink = 1;
    if (name == "sgd_update_rows") {
      r.loop = loops.sgd;
      r.fixed.decay = SgdUpdateRowsAttrs(request.attrs).weight_decay;
    } else if (name == "momentum_update_rows") {
      const MomentumUpdateRowsAttrs a(request.attrs);
      r.loop = loops.momentum;
      r.states = 1;
      r.fixed.a = a.momentum;
      r.fixed.flag = a.nesterov;
      r.fixed.decay = a.weight_decay;
    } else if (name == "adagrad_update_rows") {
      const AdagradUpdateRowsAttrs a(request.attrs);
      r.loop = loops.adagrad;
      r.states = 1;
      r.fixed.epsilon = a.epsilon;
      r.fixed.decay = a.weight_decay;
    } else {
      const AdamUpdateRowsAttrs a(request.attrs);
      r.loop = loops.adam;
      r.states = 2;
      r.adam = true;
      r.fixed.a = a.beta1;
      r.fixed.b = a.beta2;
      r.fixed.epsilon = a.epsilon;
      r.fixed.flag = a.decoupled;
      r.fixed.decay = a.weight_decay;
    }
    r.fixed.bound = gradient_bound(request);
    return r;
  }

  UpdateScalars<T> at(double lr, double step, double scale) const {
    UpdateScalars<double> s = fixed;
    s.lr = lr;
    s.scale = scale;
    if (adam) s.lr *= std::sqrt(1 - std::pow(s.b, step)) / (1 - std::pow(s.a, step));
    if (adam && s.flag) s.shrink = 1 - lr * std::exchange(s.decay, 0);
    return convert_scalars<T>(s);
  }
};

template <class T>
std::unique_ptr<Kernel> prepare(const KernelRequest& request) {
  const auto rule = Rule<T>::of(request);
  const auto at = [&](std::string_view name) {
    return static_cast<size_t>(request.op.operand_index(name));
  };
  const int64_t rows = request.operands[0].shape[0], width = request.operands[0].shape[1];
  const int64_t count = request.operands[1].shape[0];
  const size_t index_at = at("indices");
  const ScalarOperand lr(request, "lr"), step(request, "step"), skip(request, "skip"),
      scale(request, "scale");
  const bool has_master = request.operands[at("master")].present;
  const DType kept_type = request.operands[0].dtype;
  const RowGradientSum<T> row_gradient(request.operands[1]);
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
        // In a plan results share memory with their operands; in eager mode they are new.
        for (size_t i = 0; i < versions.size(); ++i) {
          const void* from = operands[versions[i]];
          if (from != results[i] && bytes[i] > 0) std::memcpy(results[i], from, bytes[i]);
        }
        if (skip.read(operands) != 0) return;
        const auto scalars =
            rule.at(lr.read(operands), step.read(operands, 1), scale.read(operands, 1));
        const std::span<const RowEntry> entries =
            sort_rows(static_cast<const int64_t*>(operands[index_at]), count, rows, c.scratch);
        T* parameter = static_cast<T*>(results[has_master ? 1 + rule.states : 0]);
        T* states[2] = {};
        for (size_t i = 0; i < rule.states; ++i) states[i] = static_cast<T*>(results[1 + i]);
        const auto prefetch = [&](int64_t row) {
          __builtin_prefetch(parameter + row * width, 1);
          for (size_t i = 0; i < rule.states; ++i) __builtin_prefetch(states[i] + row * width, 1);
        };
        for_each_distinct_row(entries, [&](int64_t row, int64_t first, int64_t last) {
          const auto ahead = static_cast<size_t>(first + kPrefetchDistance);
          if (ahead < entries.size()) prefetch(entries[ahead].row);
          row_gradient.run(operands[1], entries, first, last,
                           [&](int64_t column, int64_t n, T* sum) {
                             const int64_t begin = row * width + column;
                             UpdateSpan<T> run{};
                             run.param = run.out = parameter + begin;
                             run.grad = sum;
                             run.n = n;
                             for (size_t i = 0; i < rule.states; ++i)
                               run.state[i] = run.new_state[i] = states[i] + begin;
                             rule.loop(run, scalars);
                             if (round)
                               round(parameter + begin, 1,
                                     static_cast<std::byte*>(results[0]) + begin * kept_item, n);
                           });
        });
      },
      sort_scratch_bytes(count));
}

}  // namespace

/// The parameter or its master weight, and the states, are all float32 or all float64; gradients
/// may have 16 bits.
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
          const auto* indices = static_cast<const int64_t*>(operands[0]);
          for (int64_t i = 0; i < count; ++i)
            if (indices[i] == -1) std::fill_n(out + i * width, width, T{0});
          const std::span<const RowEntry> sorted = sort_rows(indices, count, INT64_MAX, c.scratch);
          const RowEntry* const entries = sorted.data();
          for_each_distinct_row(sorted, [&](int64_t, int64_t first, int64_t last) {
            T* target = out + entries[first].at * width;
            std::memcpy(target, in + entries[first].at * width,
                        static_cast<size_t>(width) * sizeof(T));
            for (int64_t i = first + 1; i < last; ++i) {
              const T* g = in + entries[i].at * width;
              for (int64_t k = 0; k < width; ++k) target[k] += g[k];
              std::memset(out + entries[i].at * width, 0, static_cast<size_t>(width) * sizeof(T));
            }
          });
        };
        dtype == DType::kF32 ? run(TypeTag<float>{}) : run(TypeTag<double>{});
      },
      sort_scratch_bytes(count));
}

}  // namespace paddle::cpu
