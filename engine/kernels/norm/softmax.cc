// softmax, log_softmax, and cross entropy of logits with its gradient, along any axis.

#include <cmath>

#include "kernels/common/rows.h"
#include "kernels/reduce/reduce_simd.h"
#include "ops/generated/loss.h"
#include "ops/generated/nn.h"

namespace paddle::cpu {
namespace {

/// `y` may be `x`. An infinite maximum yields NaN, as the formula does.
template <class C>
void softmax_row(const C* x, C* y, int64_t n, bool log) {
  const RowLoops<C>& rows = row_loops<C>();
  const C highest = rows.max(x, n);
  if (log) {
    const double sum = rows.sum_exp(x, n, highest);
    // Two subtractions: adding the maximum and the logarithm first would round away digits of the
    // result for large logits.
    rows.subtract_both(x, y, n, highest, static_cast<C>(std::log(sum)));
  } else {
    const double sum = rows.exp_and_sum(x, y, n, highest);
    rows.scale(y, y, n, static_cast<C>(1 / sum));
  }
}

template <class C, class T>
std::unique_ptr<Kernel> softmax_kernel(const Rows& rows, DType from, bool log) {
  // Rows in the compute type go straight from the operand to the result.
  const bool direct = std::is_same_v<C, T> && from == dtype_of<C>() && rows.inner == 1;
  const ConvertFn load = convert_fn(from, dtype_of<C>());
  const ConvertFn store = convert_fn(dtype_of<C>(), dtype_of<T>());
  const int64_t item = item_size(from);
  const size_t each = direct ? 0 : row_buffer_bytes(rows.length, 2 * sizeof(C));
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        const std::byte* const x = static_cast<const std::byte*>(operands[0]);
        T* const out = static_cast<T*>(results[0]);
        for_each_row(context, rows.count(), rows.length * 8, each,
                     [&](int64_t row, std::byte* buffer) {
                       const int64_t start = rows.start(row);
                       if (direct) {
                         softmax_row(reinterpret_cast<const C*>(x + start * item),
                                     reinterpret_cast<C*>(out + start), rows.length, log);
                         return;
                       }
                       C* const values = reinterpret_cast<C*>(buffer);
                       load(x + start * item, rows.inner, values, rows.length);
                       softmax_row(values, values, rows.length, log);
                       T* const packed = reinterpret_cast<T*>(values + rows.length);
                       store(values, 1, packed, rows.length);
                       scatter_row(packed, out + start, rows.inner, rows.length);
                     });
      },
      row_scratch(rows.count(), each));
}

/// Labels of any integer type, read as int64.
class Labels {
 public:
  Labels(DType dtype, int64_t ignore_index)
      : read_(convert_fn(dtype, DType::kI64)), item_(item_size(dtype)), ignore_(ignore_index) {}
  int64_t at(const void* labels, int64_t i) const {
    int64_t value;
    read_(static_cast<const std::byte*>(labels) + i * item_, 1, &value, 1);
    return value;
  }
  bool ignores(int64_t label) const { return label == ignore_; }

 private:
  ConvertFn read_;
  int64_t item_, ignore_;
};

[[noreturn]] void reject_label(std::string_view op, int64_t label, int64_t classes) {
  fail(ErrorCode::kData, op, ": label ", label, " is outside of [0, ", classes, ")");
}

}  // namespace

std::unique_ptr<Kernel> prepare_softmax(const KernelRequest& request) {
  const Layout& x = request.operands[0];
  const Rows rows = Rows::of(x.shape, SoftmaxAttrs(request.attrs).axis);
  const bool log = request.op.name() == "log_softmax";
  return visit_float(request.results[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
    return softmax_kernel<C, T>(rows, x.dtype, log);
  });
}

std::unique_ptr<Kernel> prepare_softmax_cross_entropy(const KernelRequest& request) {
  const SoftmaxCrossEntropyAttrs attrs(request.attrs);
  const Layout& logits = request.operands[0];
  const Rows rows = Rows::of(logits.shape, attrs.axis);
  const Labels labels(request.operands[1].dtype, attrs.ignore_index);
  const DType loss_type = request.results[0].dtype, sum_type = request.results[1].dtype;
  return visit_float(logits.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const bool direct = std::is_same_v<C, T> && rows.inner == 1;
    const size_t each = direct ? 0 : row_buffer_bytes(rows.length, sizeof(C));
    const ConvertFn load = convert_fn(dtype_of<T>(), dtype_of<C>());
    const ConvertFn store_loss = convert_fn(DType::kF64, loss_type);
    const ConvertFn store_sum = convert_fn(DType::kF64, sum_type);
    return make_kernel(
        [=](const RunContext& context, void* const* operands, void* const* results) {
          const T* const x = static_cast<const T*>(operands[0]);
          for_each_row(
              context, rows.count(), rows.length * 8, each, [&](int64_t row, std::byte* buffer) {
                const C* values = reinterpret_cast<const C*>(x + rows.start(row));
                if (!direct) {
                  load(x + rows.start(row), rows.inner, buffer, rows.length);
                  values = reinterpret_cast<const C*>(buffer);
                }
                const RowLoops<C>& loops = row_loops<C>();
                const C highest = loops.max(values, rows.length);
                const double log_sum = static_cast<double>(highest) +
                                       std::log(loops.sum_exp(values, rows.length, highest));
                const int64_t label = labels.at(operands[1], row);
                double loss = 0;
                if (!labels.ignores(label)) {
                  if (label < 0 || label >= rows.length)
                    reject_label("cross_entropy", label, rows.length);
                  loss = log_sum - static_cast<double>(values[label]);
                }
                store_loss(&loss, 1,
                           static_cast<std::byte*>(results[0]) + row * item_size(loss_type), 1);
                store_sum(&log_sum, 1,
                          static_cast<std::byte*>(results[1]) + row * item_size(sum_type), 1);
              });
        },
        row_scratch(rows.count(), each));
  });
}

std::unique_ptr<Kernel> prepare_softmax_cross_entropy_grad(const KernelRequest& request) {
  const SoftmaxCrossEntropyGradAttrs attrs(request.attrs);
  const Layout& logits = request.operands[1];
  const Rows rows = Rows::of(logits.shape, attrs.axis);
  const Labels labels(request.operands[2].dtype, attrs.ignore_index);
  const DType grad_type = request.operands[0].dtype, sum_type = request.operands[3].dtype;
  if (request.results[0].dtype != logits.dtype) return nullptr;
  return visit_float(logits.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const bool direct = std::is_same_v<C, T> && rows.inner == 1;
    const size_t each = direct ? 0 : row_buffer_bytes(rows.length, 2 * sizeof(C));
    const ConvertFn load = convert_fn(dtype_of<T>(), dtype_of<C>());
    const ConvertFn store = convert_fn(dtype_of<C>(), dtype_of<T>());
    const ConvertFn load_grad = convert_fn(grad_type, DType::kF64);
    const ConvertFn load_sum = convert_fn(sum_type, DType::kF64);
    return make_kernel(
        [=](const RunContext& context, void* const* operands, void* const* results) {
          const T* const x = static_cast<const T*>(operands[1]);
          T* const out = static_cast<T*>(results[0]);
          for_each_row(
              context, rows.count(), rows.length * 8, each, [&](int64_t row, std::byte* buffer) {
                double grad, log_sum;
                load_grad(static_cast<const std::byte*>(operands[0]) + row * item_size(grad_type),
                          1, &grad, 1);
                load_sum(static_cast<const std::byte*>(operands[3]) + row * item_size(sum_type), 1,
                         &log_sum, 1);
                const int64_t start = rows.start(row), label = labels.at(operands[2], row);
                C* const values =
                    direct ? reinterpret_cast<C*>(out + start) : reinterpret_cast<C*>(buffer);
                if (labels.ignores(label)) {
                  std::fill_n(values, rows.length, C(0));
                } else {
                  if (label < 0 || label >= rows.length)
                    reject_label("cross_entropy", label, rows.length);
                  const C* source = reinterpret_cast<const C*>(x + start);
                  if (!direct) {
                    load(x + start, rows.inner, values, rows.length);
                    source = values;
                  }
                  const RowLoops<C>& loops = row_loops<C>();
                  loops.exp_and_sum(source, values, rows.length, static_cast<C>(log_sum));
                  values[label] -= C(1);
                  loops.scale(values, values, rows.length, static_cast<C>(grad));
                }
                if (direct) return;
                T* const packed = reinterpret_cast<T*>(values + rows.length);
                store(values, 1, packed, rows.length);
                scatter_row(packed, out + start, rows.inner, rows.length);
              });
        },
        row_scratch(rows.count(), each));
  });
}

}  // namespace paddle::cpu
