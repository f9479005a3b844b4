#include "quant_common/fake_quant.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "ops/core/call.h"
#include "ops/core/operators.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/quantization.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "runtime/execute.h"

namespace paddle::quant {
namespace {

constexpr const char* kLow = ".input_low";
constexpr const char* kHigh = ".input_high";
constexpr const char* kObserved = ".observed_steps";
constexpr const char* kInputScale = ".input_log_scale";
constexpr const char* kWeightScale = ".weight_log_scale";
constexpr const char* kSuffixes[] = {kLow, kHigh, kObserved, kInputScale, kWeightScale};

/// How a tensor is rounded: integers between `lowest` and `highest`, less the zero point.
struct Grid {
  Tensor scale;  ///< with gradients where scales are learned; broadcasts to the tensor
  Tensor zero;   ///< 0-D float32, or undefined: 0
  int lowest, highest;
  DType storage;
  bool constant = false;  ///< for prediction: nothing has gradients
};

Tensor number_of(double value) { return Tensor(Array::scalar(static_cast<float>(value))); }

Tensor zero_of(const Grid& grid) { return grid.zero.defined() ? grid.zero : number_of(0); }

/// x on the grid, as integers and back.
Tensor rounded(const Tensor& x, const Grid& grid) {
  const Tensor scale = grid.constant ? grid.scale : ops::detach(grid.scale), zero = zero_of(grid);
  return ops::dequantize(ops::quantize(x, scale, zero, grid.storage), scale, zero);
}

/// The smallest and the largest number of the grid.
std::pair<Tensor, Tensor> limits(const Grid& grid) {
  const Tensor scale = ops::detach(grid.scale);
  const auto at = [&](int integer) {
    return grid.zero.defined() ? (static_cast<double>(integer) - grid.zero) * scale
                               : scale * static_cast<double>(integer);
  };
  return {at(grid.lowest), at(grid.highest)};
}

/// `value`, which is x on the grid, with gradients: those of x within the limits, and those of the
/// scale, (value - x) / scale within the limits and value / scale outside.
Tensor straight_through(const Tensor& x, const Tensor& value, const Grid& grid, bool learned) {
  const Tensor fixed = ops::detach(x);
  const auto [low, high] = limits(grid);
  const Tensor inside = ops::cast(
      ops::logical_and(ops::greater_equal(fixed, low), ops::less_equal(fixed, high)), DType::kF32);
  // The terms with gradients are zero, so the value keeps its bits.
  Tensor out = ops::detach(value) + inside * (x - fixed);
  if (learned) {
    const Tensor scale = ops::detach(grid.scale);
    out = out + ops::detach((value - inside * fixed) / scale) * (grid.scale - scale);
  }
  return out;
}

/// A learned logarithm whose gradient is multiplied by `factor`.
Tensor with_gradient(const Tensor& x, double factor) {
  return x + (factor - 1) * (x - ops::detach(x));
}

const AttrValue* attribute(const OpCall& call, const char* name) {
  const int i = call.op.attr_index(name);
  return i < 0 ? nullptr : &call.attrs[static_cast<size_t>(i)];
}

bool is_true(const OpCall& call, const char* name) {
  const AttrValue* value = attribute(call, name);
  return value && value->as_bool();
}

/// Whether paddle-quant quantizes such a layer.
bool is_supported(const OpCall& call) {
  const std::string_view op = call.op.name();
  const TensorType& weight = call.operands[1].type();
  if (!weight.ranked || !is_float(weight.dtype) || weight.dtype == DType::kF64) return false;
  if (op == "matmul" && (weight.shape.size() != 2 || is_true(call, "transpose_x"))) return false;
  const AttrValue* format = attribute(call, "data_format");
  return !format || !format->as_string().ends_with('C');
}

}  // namespace

class FakeQuantization::Quantizer final : public ForwardingInterpreter {
 public:
  Quantizer(const FakeQuantization& owner, LayerValues values, FakeQuantMode mode)
      : config_(owner.config_), met_(owner.met_), values_(std::move(values)), mode_(mode) {}

  Tensors apply(const OpCall& call) override {
    if (depth_ == 0 && call.op.name() == "batch_norm") return batch_norm(call);
    if (depth_ > 0 || !is_layer_op(call.op) || !is_supported(call)) return next().apply(call);
    const std::string weight = values_.parameter_name(call.operands[1]);
    if (weight.empty()) return next().apply(call);
    Layer layer{layer_name(weight), std::string(call.op.name()), config_.format};
    layer.channels_first =
        has_channels_first(layer.op) || (layer.op == "matmul" && is_true(call, "transpose_y"));
    const bool has_input = has_quantized_input(layer.op);
    if (const int n = uses_[layer.name]++; n > 0) layer.name += str("_", n);
    if (!settle_format(layer, call.operands[1])) return next().apply(call);
    const ScopedInterpreter below(next());
    Tensors operands = call.operands;
    const bool learned = config_.training->learned_scales;
    Tensor enabled;  // undefined: yes
    if (layer.format.activations == ActivationMode::kStatic && has_input) {
      const Tensor observed = observed_steps(layer);
      if (mode_ == FakeQuantMode::kPrediction) {
        if (observed.array().number() < static_cast<double>(config_.training->observe))
          return next().apply(call);
      } else {
        enabled =
            ops::greater_equal(ops::detach(observed), Tensor::number(config_.training->observe));
      }
    }
    if (has_input && layer.format.activations != ActivationMode::kNone)
      operands[0] = quantized_input(layer, operands[0], operands[1], enabled, learned);
    operands[1] = quantized_weight(layer, operands[1], enabled, learned, {});
    Tensors results = next().apply({call.op, operands, call.attrs, call.results, call.constraints});
    if (mode_ != FakeQuantMode::kTraining && (layer.op == "conv2d" || layer.op == "conv3d")) {
      operands[1] = call.operands[1];
      convolutions_.push_back({layer, &call.op, call.attrs, operands, results[0], enabled});
    }
    return results;
  }

  // Layers of control flow stay float.
  Tensors branch(const Tensor& condition, const TensorFn& then_fn,
                 const TensorFn& else_fn) override {
    const Inside inside(depth_);
    return ForwardingInterpreter::branch(condition, then_fn, else_fn);
  }
  Tensors loop(const TensorFn& condition, const TensorFn& body, const Tensors& carried,
               int64_t max_steps) override {
    const Inside inside(depth_);
    return ForwardingInterpreter::loop(condition, body, carried, max_steps);
  }

 private:
  struct Inside {
    explicit Inside(int& depth) : depth_(depth) { ++depth_; }
    ~Inside() { --depth_; }
    int& depth_;
  };
  struct Layer {
    std::string name, op;
    LayerFormat format;
    bool channels_first = false;
  };
  /// A convolution that has run; its input is on its grid, its weight is the parameter.
  struct Convolution {
    Layer layer;
    const Op* op;
    Attrs attrs;
    Tensors operands;
    Tensor result, enabled;
  };
  /// A factor on each output channel of a weight, that its scales take over.
  struct ChannelFactor {
    Tensor sign, size;
  };

  /// Runs code on constants at once where the model is traced for prediction.
  template <class Code>
  auto computed(Code&& code) {
    if (mode_ != FakeQuantMode::kPrediction) return code();
    runtime::EagerExecutor eager;
    const InterpreterScope scope(eager);
    return code();
  }

  /// After a convolution on integers, a batch norm with fixed statistics becomes a part of it: of
  /// the scales of its weight, whose integers stay, and of its bias. In training, statistics are
  /// those of batches until `freeze_norms` steps have passed.
  Tensors batch_norm(const OpCall& call) {
    const BatchNormAttrs attrs(call.attrs);
    if (mode_ == FakeQuantMode::kTraining) {
      const auto freeze = config_.training->freeze_norms;
      const bool of_batch = attrs.training && !attrs.use_global_stats.value_or(false);
      return freeze && of_batch ? frozen_after(call, *freeze) : next().apply(call);
    }
    const auto found = std::find_if(
        convolutions_.begin(), convolutions_.end(),
        [&](const Convolution& conv) { return conv.result.is_same_cell(call.operands[0]); });
    const std::string path = norm_path(call);
    if (found == convolutions_.end() || path.empty()) return next().apply(call);
    const ScopedInterpreter below(next());
    const auto value = [&](size_t operand, const std::string& name) -> Tensor {
      const Tensor& given = call.operands[operand];
      if (!given.defined() || mode_ != FakeQuantMode::kPrediction) return given;
      const auto array = values_.array(name, concrete(given.shape()), given.dtype());
      if (!array)
        fail(ErrorCode::kModel, "quant.train: the batch norm '", path, "' has no value of ", name);
      return Tensor(*array);
    };
    const Tensor mean = value(1, path + ".running_mean"),
                 variance = value(2, path + ".running_var"), gamma = value(3, path + ".weight"),
                 beta = value(4, path + ".bias");
    Tensor own_bias = found->operands[2];
    if (own_bias.defined() && mode_ == FakeQuantMode::kPrediction) {
      const auto array = values_.array(values_.parameter_name(own_bias), concrete(own_bias.shape()),
                                       own_bias.dtype());
      ensure(array.has_value(), "fake quantization: a bias has no value");
      own_bias = Tensor(*array);
    }
    Tensor factor, bias;
    std::tie(factor, bias) = computed([&] {
      const Tensor rate = 1.0 / ops::sqrt(variance + attrs.epsilon);
      const Tensor f = gamma.defined() ? gamma * rate : rate;
      const Tensor shifted = own_bias.defined() ? own_bias - mean : -mean;
      return std::pair(f, beta.defined() ? shifted * f + beta : shifted * f);
    });
    const ChannelFactor channels = computed([&] {
      const Tensor one = number_of(1);
      return ChannelFactor{ops::where(ops::less_than(factor, number_of(0)), -one, one),
                           ops::abs(factor)};
    });
    Tensors operands = found->operands;
    operands[1] =
        quantized_weight(found->layer, operands[1], {}, config_.training->learned_scales, channels);
    operands[2] = bias.dtype() == operands[1].dtype() ? bias : ops::cast(bias, operands[1].dtype());
    const Inferred inferred = infer_results(*found->op, found->attrs, operands);
    Tensor out = next().apply(
        {*found->op, operands, found->attrs, inferred.results, inferred.constraints})[0];
    Tensors results = next().apply(call);
    if (out.dtype() != results[0].dtype()) out = ops::cast(out, results[0].dtype());
    // Before ranges are known, the convolution is one of floats.
    results[0] = found->enabled.defined() ? ops::where(found->enabled, out, results[0]) : out;
    return results;
  }

  /// A norm in training that takes its running statistics, and leaves them, after some steps.
  Tensors frozen_after(const OpCall& call, int64_t steps) {
    std::string path = norm_path(call);
    if (path.empty()) path = str("batch_norm_", norms_);
    ++norms_;
    const ScopedInterpreter below(next());
    const Tensor count = ops::detach(value_of(path + kObserved, false, {}, DType::kI64));
    values_.store.update(path + kObserved, count + Tensor::number(int64_t{1}));
    const Tensor frozen = ops::greater_equal(count, Tensor::number(steps));
    Tensors results = next().apply(call);
    Attrs attrs = call.attrs;
    attrs.values.at(static_cast<size_t>(call.op.attr_index("use_global_stats"))) = AttrValue(true);
    const Tensors fixed =
        next().apply({call.op, call.operands, attrs, call.results, call.constraints});
    results[0] = ops::where(frozen, fixed[0], results[0]);
    for (const size_t i : {size_t{1}, size_t{2}})
      results[i] = ops::where(frozen, ops::detach(call.operands[i]), results[i]);
    return results;
  }

  /// The path of a norm, by that of its scale or shift; "" if it has neither.
  std::string norm_path(const OpCall& call) const {
    for (const auto& [operand, suffix] :
         {std::pair<size_t, std::string>{3, ".weight"}, {size_t{4}, ".bias"}}) {
      if (!call.operands[operand].defined()) continue;
      const std::string name = values_.parameter_name(call.operands[operand]);
      if (name.ends_with(suffix)) return name.substr(0, name.size() - suffix.size());
    }
    return "";
  }

  /// Applies the exceptions of `layers:`; false if the layer stays float.
  bool settle_format(Layer& layer, const Tensor& weight) {
    if (std::find(met_->layers.begin(), met_->layers.end(), layer.name) == met_->layers.end())
      met_->layers.push_back(layer.name);
    // Tables take integers only where a smaller file is the purpose.
    bool keep = layer.op == "embedding" && layer.format.activations != ActivationMode::kNone;
    for (size_t i = 0; i < config_.layers.size(); ++i) {
      const LayerRule& rule = config_.layers[i];
      if (!rule.matches(layer.name, layer.op)) continue;
      met_->rules[i] = true;
      if (rule.weights) layer.format.weights = *rule.weights;
      keep = keep || rule.keep_float;
    }
    fit_groups(layer.format.weights,
               layer.channels_first ? 0 : weight.shape().front().constant().value_or(0));
    return !keep;
  }

  /// A state or parameter of one number; a constant where the model is traced for prediction.
  Tensor value_of(const std::string& path, bool is_parameter, const Dims& shape, DType dtype) {
    const auto zero = lang::Initializer::constant(0);
    if (mode_ == FakeQuantMode::kPrediction) {
      const auto found = values_.array(path, shape, dtype);
      return Tensor(found ? *found : Array::zeros(dtype, shape));
    }
    return is_parameter ? values_.store.parameter(path, shape, dtype, zero)
                        : values_.store.state(path, shape, dtype, zero, lang::StateScope::kModel);
  }
  Tensor observed_steps(const Layer& layer) {
    return value_of(layer.name + kObserved, false, {}, DType::kI64);
  }

  Tensor quantized_input(const Layer& layer, const Tensor& input, const Tensor& weight,
                         const Tensor& enabled, bool learned) {
    const Tensor x = input.dtype() == DType::kF32 ? input : ops::cast(input, DType::kF32);
    Tensor out;
    if (layer.format.activations == ActivationMode::kDynamic) {
      const Tensors q = ops::quantize_dynamic(ops::detach(x));
      out = ops::dequantize(q[0], q[1], q[2]);
      if (mode_ != FakeQuantMode::kPrediction) out = ops::detach(out) + (x - ops::detach(x));
    } else {
      const Grid grid = input_grid(layer, x, weight, learned);
      out = rounded(x, grid);
      if (mode_ != FakeQuantMode::kPrediction)
        out = ops::where(enabled, straight_through(x, out, grid, learned), x);
    }
    return out.dtype() == input.dtype() ? out : ops::cast(out, input.dtype());
  }

  Grid input_grid(const Layer& layer, const Tensor& x, const Tensor& weight, bool learned) {
    Tensor low = value_of(layer.name + kLow, false, {}, DType::kF32);
    Tensor high = value_of(layer.name + kHigh, false, {}, DType::kF32);
    if (mode_ == FakeQuantMode::kTraining) std::tie(low, high) = observe(layer, x, low, high);
    Tensor factor;
    if (learned) factor = value_of(layer.name + kInputScale, true, {}, DType::kF32);
    return computed([&] {
      const Tensor bottom = ops::minimum(low, number_of(0)), top = ops::maximum(high, number_of(0));
      const Tensor range = (top - bottom) / 255.0;
      const Tensor scale =
          ops::where(ops::greater_than(range, number_of(1e-30)), range, number_of(1));
      const Tensor zero =
          ops::minimum(ops::maximum(ops::round(-bottom / scale), number_of(0)), number_of(255));
      Grid grid{ops::detach(scale), ops::detach(zero), 0, 255, DType::kU8};
      if (learned)
        grid.scale = grid.scale * ops::exp(with_gradient(factor, gradient_factor(weight, 255)));
      if (mode_ == FakeQuantMode::kPrediction) {
        grid.zero = ops::cast(grid.zero, DType::kU8);
        grid.constant = true;
      }
      return grid;
    });
  }

  /// LSQ's factor on the gradients of scales, 1 / sqrt(elements * levels). For inputs, whose number
  /// of elements differs from batch to batch, those of the weight count.
  static double gradient_factor(const Tensor& weight, int levels) {
    double elements = 1;
    for (const int64_t size : concrete(weight.shape())) elements *= static_cast<double>(size);
    return 1 / std::sqrt(std::max(1.0, elements) * levels);
  }

  /// Averages the ranges of batches; with learned scales only for the first steps.
  std::pair<Tensor, Tensor> observe(const Layer& layer, const Tensor& input, const Tensor& low,
                                    const Tensor& high) {
    const Tensor x = ops::detach(input), steps = ops::detach(observed_steps(layer));
    const Tensor count = ops::cast(steps, DType::kF32);
    // The mean at first, then a moving average.
    Tensor rate = ops::maximum(1.0 / (count + 1.0), number_of(0.01));
    if (config_.training->learned_scales)
      rate = rate * ops::cast(ops::less_than(steps, Tensor::number(config_.training->observe)),
                              DType::kF32);
    const Tensor new_low = ops::detach(low + (ops::min(x) - low) * rate);
    const Tensor new_high = ops::detach(high + (ops::max(x) - high) * rate);
    values_.store.update(layer.name + kLow, new_low);
    values_.store.update(layer.name + kHigh, new_high);
    values_.store.update(layer.name + kObserved, steps + Tensor::number(int64_t{1}));
    return {new_low, new_high};
  }

  /// The weight on its grid; with a factor on its channels if that is defined.
  Tensor quantized_weight(const Layer& layer, const Tensor& weight, const Tensor& enabled,
                          bool learned, const ChannelFactor& factors) {
    const WeightFormat& format = layer.format.weights;
    const Tensor whole = weight.dtype() == DType::kF32 ? weight : ops::cast(weight, DType::kF32);
    // Axes over which weights share a scale: all but the channels, or the features of a group.
    const bool grouped = format.per == Granularity::kGroup;
    Shape layout = whole.shape();
    if (grouped) layout = {Dim(concrete(layout)[0] / format.group), Dim(format.group), layout[1]};
    const Tensor x = grouped ? ops::reshape(whole, layout) : whole;
    std::vector<int64_t> axes;
    const int64_t rank = x.ndim();
    for (int64_t i = 0; i < rank; ++i) {
      const bool shared = format.per == Granularity::kTensor ? true
                          : grouped                          ? i == 1
                          : layer.channels_first             ? i != 0
                                                             : i != rank - 1;
      if (shared) axes.push_back(i);
    }
    const Tensor stored =
        mode_ == FakeQuantMode::kPrediction ? as_constant(layer, weight, layout) : x;
    Tensor factor;
    if (learned) {
      Dims shape = concrete(x.shape());
      for (const int64_t axis : axes) shape[static_cast<size_t>(axis)] = 1;
      factor = value_of(layer.name + kWeightScale, true, shape, DType::kF32);
    }
    Grid grid = computed([&] {
      const Tensor largest = ops::max(ops::abs(ops::detach(stored)), axes, true);
      const Tensor range = largest / static_cast<double>(format.highest());
      const Tensor scale =
          ops::where(ops::greater_than(range, number_of(1e-30)), range, number_of(1));
      Grid out{ops::detach(scale), {}, format.lowest(), format.highest(), DType::kI8};
      if (learned)
        out.scale =
            out.scale * ops::exp(with_gradient(factor, gradient_factor(whole, format.highest())));
      return out;
    });
    const auto [low, high] = computed([&] { return limits(grid); });
    const Tensor held = ops::minimum(
        ops::maximum(mode_ == FakeQuantMode::kPrediction ? x : ops::detach(x), low), high);
    if (mode_ == FakeQuantMode::kPrediction) {
      grid.zero = Tensor(Array::scalar(int8_t{0}));
      grid.constant = true;
    }
    Tensor out;
    if (factors.size.defined()) {
      Shape along(x.shape().size(), Dim(1));
      along[0] = x.shape()[0];
      const Tensor sign = computed([&] { return ops::reshape(factors.sign, along); });
      const Tensor scale = computed([&] { return grid.scale * ops::reshape(factors.size, along); });
      const Tensor zero = zero_of(grid);
      out =
          ops::dequantize(ops::quantize(held * sign, grid.scale, zero, grid.storage), scale, zero);
    } else {
      out = rounded(held, grid);
      if (mode_ != FakeQuantMode::kPrediction) {
        out = straight_through(x, out, grid, learned);
        if (enabled.defined()) out = ops::where(enabled, out, x);
      }
    }
    if (grouped) out = ops::reshape(out, whole.shape());
    return out.dtype() == weight.dtype() ? out : ops::cast(out, weight.dtype());
  }

  /// The weight's array in this shape, in float32.
  Tensor as_constant(const Layer& layer, const Tensor& weight, const Shape& layout) {
    const auto array =
        values_.array(values_.parameter_name(weight), concrete(weight.shape()), weight.dtype());
    ensure(array.has_value(), "fake quantization: " + layer.name + " has no weight");
    return computed(
        [&] { return ops::reshape(Tensor(array->cast(DType::kF32).contiguous()), layout); });
  }

  const QuantConfig& config_;
  std::shared_ptr<Met> met_;
  LayerValues values_;
  FakeQuantMode mode_;
  std::map<std::string, int> uses_;
  std::vector<Convolution> convolutions_;
  int norms_ = 0;
  int depth_ = 0;
};

bool is_quantization_value(const std::string& path) {
  return std::any_of(std::begin(kSuffixes), std::end(kSuffixes),
                     [&](const char* suffix) { return path.ends_with(suffix); });
}

FakeQuantization::FakeQuantization(QuantConfig config)
    : config_(std::move(config)), met_(std::make_shared<Met>()) {
  ensure(config_.training.has_value(), "FakeQuantization: quant.train is not set");
  met_->rules.resize(config_.layers.size());
  if (config_.format.activations == ActivationMode::kToken)
    throw Error(ErrorCode::kConfig,
                "quant.train: scales of single rows cannot be trained; set activations: {when: "
                "dynamic}");
  const auto check = [](const WeightFormat& weights, const SourceLocation& where) {
    if (!weights.symmetric)
      throw Error(ErrorCode::kConfig,
                  "quant.train: weights with zero points cannot be trained; set symmetric: true",
                  where);
  };
  check(config_.format.weights, {});
  for (const LayerRule& rule : config_.layers)
    if (rule.weights) check(*rule.weights, rule.where);
}

std::unique_ptr<Interpreter> FakeQuantization::interpreter(const LayerValues& values,
                                                           FakeQuantMode mode) const {
  return std::make_unique<Quantizer>(*this, values, mode);
}

void FakeQuantization::check_rules() const {
  for (size_t i = 0; i < config_.layers.size(); ++i)
    if (!met_->rules[i]) throw unmatched(config_.layers[i], met_->layers);
}

}  // namespace paddle::quant
