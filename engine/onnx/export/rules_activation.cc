// Activation functions. Operators that a later opset brought are written out before it.

#include <cmath>
#include <numbers>

#include "onnx/export/graph_writer.h"

namespace paddle::onnx {
namespace {

using Writer = GraphWriter;

DType dtype_of(Writer& w) { return w.result_type().dtype; }
std::string number(Writer& w, double value) { return w.scalar(value, dtype_of(w)); }
std::string number(Writer& w, const char* attribute) {
  return number(w, w.attr(attribute).as_double());
}

void sigmoid(Writer& w) { w.emit("Sigmoid", {w.in("x")}); }
void relu(Writer& w) {
  if (is_float(dtype_of(w))) return w.emit("Relu", {w.in("x")});
  w.emit("Max", {w.in("x"), number(w, 0.0)});
}

void gelu(Writer& w) {
  const bool approximate = w.attr("approximate").as_bool();
  const std::string x = w.in("x");
  if (w.opset() >= 20)
    return w.emit("Gelu", {x}, {string_attribute("approximate", approximate ? "tanh" : "none")});
  std::string inner;
  if (approximate) {
    const std::string cube = w.add("Mul", {w.add("Mul", {x, x}), x});
    const std::string sum = w.add("Add", {x, w.add("Mul", {cube, number(w, 0.044715)})});
    inner = w.add("Tanh", {w.add("Mul", {sum, number(w, std::sqrt(2 / std::numbers::pi))})});
  } else {
    // The form that runtimes recognize and fuse.
    inner = w.add("Erf", {w.add("Div", {x, number(w, std::numbers::sqrt2)})});
  }
  const std::string product = w.add("Mul", {x, w.add("Add", {inner, number(w, 1.0)})});
  w.emit("Mul", {product, number(w, 0.5)});
}

void silu(Writer& w) { w.emit("Mul", {w.in("x"), w.add("Sigmoid", {w.in("x")})}); }

void softplus(Writer& w) {
  const std::string x = w.in("x");
  const double beta = w.attr("beta").as_double();
  const std::string scaled = beta == 1 ? x : w.add("Mul", {x, number(w, beta)});
  const std::string soft = w.add("Softplus", {scaled});
  const std::string curve = beta == 1 ? soft : w.add("Div", {soft, number(w, beta)});
  w.emit("Where", {w.add("Greater", {scaled, number(w, "threshold")}), x, curve});
}

void leaky_relu(Writer& w) {
  w.emit("LeakyRelu", {w.in("x")},
         {float_attribute("alpha", w.attr("negative_slope").as_double())});
}
void elu(Writer& w) {
  w.emit("Elu", {w.in("x")}, {float_attribute("alpha", w.attr("alpha").as_double())});
}
void celu(Writer& w) {
  // max(0, x) + min(0, alpha (exp(x / alpha) - 1)); the operator takes float32 only.
  if (dtype_of(w) == DType::kF32)
    return w.emit("Celu", {w.in("x")}, {float_attribute("alpha", w.attr("alpha").as_double())});
  const std::string x = w.in("x"), alpha = number(w, "alpha"), zero = number(w, 0.0);
  const std::string curve = w.add(
      "Mul", {alpha, w.add("Sub", {w.add("Exp", {w.add("Div", {x, alpha})}), number(w, 1.0)})});
  w.emit("Add", {w.add("Max", {zero, x}), w.add("Min", {zero, curve})});
}
void selu(Writer& w) {
  w.emit("Selu", {w.in("x")},
         {float_attribute("alpha", w.attr("alpha").as_double()),
          float_attribute("gamma", w.attr("scale").as_double())});
}

void hardtanh(Writer& w) { w.emit("Clip", {w.in("x"), number(w, "min"), number(w, "max")}); }
void relu6(Writer& w) { w.emit("Clip", {w.in("x"), number(w, 0.0), number(w, 6.0)}); }
void hardsigmoid(Writer& w) {
  w.emit("HardSigmoid", {w.in("x")},
         {float_attribute("alpha", w.attr("slope").as_double()),
          float_attribute("beta", w.attr("offset").as_double())});
}
void hardswish(Writer& w) {
  if (w.opset() >= 14) return w.emit("HardSwish", {w.in("x")});
  const std::string gate = w.add("HardSigmoid", {w.in("x")},
                                 {float_attribute("alpha", 1.0 / 6), float_attribute("beta", 0.5)});
  w.emit("Mul", {w.in("x"), gate});
}
void hardshrink(Writer& w) {
  const std::string outside = w.add("Greater", {w.add("Abs", {w.in("x")}), number(w, "threshold")});
  w.emit("Where", {outside, w.in("x"), number(w, 0.0)});
}
void softshrink(Writer& w) {
  const double t = w.attr("threshold").as_double();
  // The operator takes no bfloat16.
  const DType dtype = w.type("x").dtype, computed = dtype == DType::kBF16 ? DType::kF32 : dtype;
  const std::string out = w.add("Shrink", {w.cast(w.in("x"), dtype, computed)},
                                {float_attribute("lambd", t), float_attribute("bias", t)});
  w.result(0, w.cast(out, computed, dtype));
}
void tanhshrink(Writer& w) { w.emit("Sub", {w.in("x"), w.add("Tanh", {w.in("x")})}); }
void softsign(Writer& w) { w.emit("Softsign", {w.in("x")}); }
void log_sigmoid(Writer& w) { w.emit("Neg", {w.add("Softplus", {w.add("Neg", {w.in("x")})})}); }
void mish(Writer& w) {
  if (w.opset() >= 18) return w.emit("Mish", {w.in("x")});
  w.emit("Mul", {w.in("x"), w.add("Tanh", {w.add("Softplus", {w.in("x")})})});
}
void thresholded_relu(Writer& w) {
  w.emit("Where",
         {w.add("Greater", {w.in("x"), number(w, "threshold")}), w.in("x"), number(w, "value")});
}
void stanh(Writer& w) {
  const std::string inner = w.add("Tanh", {w.add("Mul", {w.in("x"), number(w, "scale_a")})});
  w.emit("Mul", {inner, number(w, "scale_b")});
}

void softmax_of(Writer& w, const char* type) {
  const std::string x = w.cast(w.in("x"), w.type("x").dtype, dtype_of(w));
  if (w.type("x").shape.empty()) {
    // A single number: its share is 1.
    const std::string zero = w.add("Sub", {x, x});
    const bool logarithm = std::string_view(type) == "LogSoftmax";
    return w.result(0, logarithm ? zero : w.add("Add", {zero, number(w, 1.0)}));
  }
  w.emit(type, {x}, {int_attribute("axis", w.attr("axis").as_int())});
}
void softmax(Writer& w) { softmax_of(w, "Softmax"); }
void log_softmax(Writer& w) { softmax_of(w, "LogSoftmax"); }

}  // namespace

std::vector<ExportRuleEntry> activation_export_rules() {
  return {{"sigmoid", sigmoid},
          {"relu", relu},
          {"gelu", gelu},
          {"silu", silu},
          {"softplus", softplus},
          {"leaky_relu", leaky_relu},
          {"elu", elu},
          {"celu", celu},
          {"selu", selu},
          {"hardtanh", hardtanh},
          {"relu6", relu6},
          {"hardsigmoid", hardsigmoid},
          {"hardswish", hardswish},
          {"hardshrink", hardshrink},
          {"softshrink", softshrink},
          {"tanhshrink", tanhshrink},
          {"softsign", softsign},
          {"log_sigmoid", log_sigmoid},
          {"mish", mish},
          {"thresholded_relu", thresholded_relu},
          {"stanh", stanh},
          {"softmax", softmax},
          {"log_softmax", log_softmax}};
}

}  // namespace paddle::onnx
