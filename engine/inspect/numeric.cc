#include "inspect/numeric.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "autograd/autograd.h"
#include "inspect/compare.h"
#include "inspect/op_call.h"
#include "ops/core/operators.h"
#include "ops/generated/complex.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::inspect {
namespace {

constexpr double kStep = 1e-5;
constexpr double kTolerance = 2e-6;  ///< of first derivatives, relative to the largest one or 1
constexpr int64_t kMaxVaried = 24;   ///< of an input that are varied

/// Fixed numbers in [-1, 1] as weights of a sum. They are computed from the tensor's elements,
/// since its size may be known only after running.
Tensor weights_like(const Tensor& x, uint64_t stream) {
  const Tensor place = ops::cumsum(ones_like(x)) * 1.3 + static_cast<double>(stream % 100);
  return ops::reshape(ops::cos(place), x.shape());
}

/// Real and imaginary parts of a complex tensor, any other itself.
Tensor as_real(const Tensor& t) { return is_complex(t.dtype()) ? ops::as_real(t) : t; }

/// Numbers that vary on their own: the parts of complex ones.
int64_t part_count(const Array& a) { return a.size() * (is_complex(a.dtype) ? 2 : 1); }

/// Sum of all floating tensors times their weights; undefined if there is none.
Tensor weighted_sum(const Tensors& tensors, uint64_t stream) {
  Tensor total;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined() || !is_differentiable(tensors[i].dtype())) continue;
    const Tensor t = as_real(tensors[i]);
    Tensor s = ops::sum(t * weights_like(t, stream + i));
    if (s.dtype() != DType::kF64) s = ops::cast(s, DType::kF64);
    total = total.defined() ? total + s : s;
  }
  return total;
}

class GradientCheck {
 public:
  GradientCheck(const NamedCall& call, const std::vector<Mode>& modes, Device device)
      : call_(call), modes_(modes), device_(device) {
    for (size_t i = 0; i < call.inputs().size(); ++i)
      if ((call.inputs()[i].dtype == DType::kF64 || call.inputs()[i].dtype == DType::kC128) &&
          call.varies(i))
        varied_.push_back(i);
  }

  /// False for a call for the fuzzer only, in float32 or of integers.
  bool has_inputs() const { return !varied_.empty(); }

  std::string run(int order) const {
    double tolerance = kTolerance;
    for (int k = 1; k <= order; ++k, tolerance *= 10) {
      const std::string bad =
          compare([this, k](const Tensors& x) { return derivative(x, k - 1); }, tolerance);
      if (!bad.empty()) return str("order ", k, ": ", bad);
    }
    return "";
  }

 private:
  /// A number from the operation's results.
  Tensor value(const Tensors& x) const { return weighted_sum(call_(x), 100); }
  /// `value`, or a number from the gradients of the derivative of the order below; undefined if
  /// none depends on the inputs.
  Tensor derivative(const Tensors& x, int order) const {
    if (order == 0) return value(x);
    const Tensor v = derivative(x, order - 1);
    Tensors wanted;
    for (const size_t i : varied_) wanted.push_back(x[i]);
    return v.defined()
               ? weighted_sum(autograd::grad({v}, wanted), 100 + 100 * static_cast<uint64_t>(order))
               : Tensor();
  }

  double number(const std::function<Tensor(const Tensors&)>& f,
                const std::vector<Array>& inputs) const {
    const auto out = inspect::run(
        Mode::kEager, [&](const Tensors& x) { return Tensors{f(x)}; }, inputs);
    return out[0] ? out[0]->number() : 0;
  }

  /// Compares the derivative of `f` by autograd, in each mode, with central differences.
  std::string compare(const std::function<Tensor(const Tensors&)>& f, double tolerance) const {
    const TensorFn gradients = [&](const Tensors& x) {
      Tensors wanted;
      for (const size_t i : varied_) wanted.push_back(x[i]);
      const Tensor v = f(x);
      return v.defined() ? autograd::grad({v}, wanted) : Tensors(wanted.size());
    };
    std::vector<std::vector<std::optional<Array>>> found;
    for (const Mode mode : modes_)
      found.push_back(inspect::run(mode, gradients, call_.inputs(), device_));
    for (size_t k = 0; k < varied_.size(); ++k) {
      std::vector<Array> inputs = call_.inputs();
      Array& x = inputs[varied_[k]];
      x = own_copy(x);
      const int64_t count = part_count(x), stride = std::max<int64_t>(1, count / kMaxVaried);
      const bool complex = is_complex(x.dtype);
      for (int64_t e = 0; e < count; e += stride) {
        const double expected = slope_at(f, inputs, x, e);
        for (size_t m = 0; m < modes_.size(); ++m) {
          const auto& g = found[m][k];
          if (g && g->shape != x.shape)
            return str(text(modes_[m]), ": the gradient of ", call_.input_name(varied_[k]),
                       " has shape ", g->shape, ", expected ", x.shape);
          double got = 0;
          if (g && complex) {
            const std::complex<double> z = g->complex_number(e / 2);
            got = e % 2 == 0 ? z.real() : z.imag();
          } else if (g) {
            got = g->number(e);
          }
          const double allowed = tolerance * std::max({1.0, std::abs(got), std::abs(expected)});
          if (std::abs(got - expected) <= allowed) continue;
          const std::string bad = str("gradient of ", call_.input_name(varied_[k]), " at element ",
                                      e, ": ", got, ", finite differences give ", expected);
          note_mismatch({bad, str(got), str(expected), allowed});
          return str(text(modes_[m]), ": ", bad);
        }
      }
    }
    return "";
  }

  /// Fourth-order central difference.
  double slope_at(const std::function<Tensor(const Tensors&)>& f, const std::vector<Array>& inputs,
                  Array& x, int64_t element) const {
    double& slot = x.data<double>()[element];
    const double at = slot, h = kStep * 20 * std::max(1.0, std::abs(at));
    const auto difference = [&](double step) {
      slot = at + step;
      const double up = number(f, inputs);
      slot = at - step;
      const double down = number(f, inputs);
      slot = at;
      return (up - down) / (2 * step);
    };
    return (4 * difference(h / 2) - difference(h)) / 3;
  }

  const NamedCall& call_;
  const std::vector<Mode>& modes_;
  Device device_;
  std::vector<size_t> varied_;  ///< the float64 and complex128 inputs
};

/// None for a sample without inputs whose gradient can be checked.
std::optional<std::string> check_sample(const Op& op, const std::string& sample, int order,
                                        const std::vector<Mode>& modes, Device device) {
  try {
    std::vector<std::string> words;
    for (const std::string& word : split(sample, ' '))
      if (!word.empty()) words.push_back(word);
    const NamedCall call = parse_call(op, words);
    const GradientCheck check(call, modes, device);
    return check.has_inputs() ? std::optional(check.run(order)) : std::nullopt;
  } catch (const Error& e) {
    return e.what();
  }
}

}  // namespace

std::vector<std::string> samples_of(const Op& op) {
  if (op.def->samples) {
    const std::string_view lines = op.def->samples;
    return lines.empty() ? std::vector<std::string>() : split(lines, '\n');
  }
  std::string sample;
  for (const OperandDef& o : op.operands()) {
    if (o.optional || o.hidden) continue;
    sample += o.kind == OperandKind::kList ? str(o.name, "=[f64[2,3],f64[2,3]] ")
                                           : str(o.name, "=f64[2,3] ");
  }
  return {sample};
}

std::string check_gradient(const Op& op, int order, const std::vector<Mode>& modes, Device device) {
  bool is_checked = false;
  std::string left_out;
  for (const std::string& sample : samples_of(op)) {
    const std::optional<std::string> bad = check_sample(op, sample, order, modes, device);
    if (bad && !bad->empty()) return str(*bad, "  [", sample, "]");
    if (bad)
      is_checked = true;
    else
      left_out = sample;
  }
  // Samples of an operation are either for this check or for the fuzzer only.
  if (is_checked && !left_out.empty())
    return str("the sample has no float64 or complex128 tensor  [", left_out, "]");
  return "";
}

}  // namespace paddle::inspect
