#include "lang/layers/layer_weights.h"

#include <cctype>

#include "base/text.h"

namespace paddle::lang {
namespace {

[[noreturn]] void malformed(const Op& op, std::string_view text) {
  fail(ErrorCode::kInternal, op.name(), ": the schema declares the size '", text, "'");
}

/// Reads the size list of one weight.
class SizeReader {
 public:
  SizeReader(LayerCall& call, const WeightDef& weight, const SizeNames& names)
      : call_(call), text_(weight.sizes), names_(names) {}

  Dims read() {
    Dims out;
    do {
      Dims sizes = operand();
      for (skip_spaces(); at_ < text_.size() && text_[at_] != ','; skip_spaces()) {
        const char sign = text_[at_++];
        const Dims right = operand();
        if (sizes.size() != 1 || right.size() != 1) malformed(call_.op, text_);
        sizes[0] = combined(sizes[0], sign, right[0]);
      }
      out.insert(out.end(), sizes.begin(), sizes.end());
    } while (at_ < text_.size() && text_[at_++] == ',');
    return out;
  }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  std::string word() {
    skip_spaces();
    const size_t start = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    if (at_ == start) malformed(call_.op, text_);
    return std::string(text_.substr(start, at_ - start));
  }

  bool take(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Dims operand() {
    const std::string name = word();
    if (std::isdigit(static_cast<unsigned char>(name[0]))) return {std::stoll(name)};
    if (take('(')) {
      std::string argument = word();
      while (take('|')) {
        const std::string next = word();
        if (!call_.find(argument)) argument = next;
      }
      const int64_t axis = take(',') ? axis_number(word()) : -1;
      if (!take(')')) malformed(call_.op, text_);
      return function(name, argument, axis);
    }
    if (const auto found = names_.find(name); found != names_.end()) return {found->second};
    if (name == "channels") return {channel_count(call_)};
    if (name == "features") return {axis_of("x", -1)};
    return {call_.size(name)};
  }

  /// A number, or an argument that is one.
  int64_t axis_number(const std::string& text) const {
    if (std::isdigit(static_cast<unsigned char>(text[0]))) return std::stoll(text);
    const Value* value = call_.find(text);
    if (value && value->is_integer()) return value->integer();
    fail(ErrorCode::kConfig, call_.op.name(), ": ", text, " must be an integer");
  }

  /// The size of an axis, which may count from the end, or the product of all other sizes.
  int64_t size_of(const std::string& operand, int64_t axis, bool others) {
    const Tensor t = call_.tensor(operand);
    const int64_t at = axis < 0 ? axis + t.ndim() : axis;
    if (at < 0 || at >= t.ndim())
      fail(ErrorCode::kConfig, call_.op.name(), ": ", operand, " ", t.type(), " has no axis ",
           axis);
    if (!others) return call_.known(t.dim(at), str("axis ", axis, " of ", operand));
    int64_t product = 1;
    for (int64_t i = 0; i < t.ndim(); ++i)
      if (i != at)
        product =
            checked_multiply(product, call_.known(t.dim(i), str("axis ", i, " of ", operand)));
    return product;
  }

  Dims function(const std::string& name, const std::string& argument, int64_t axis) {
    if (name == "axis" || name == "others") return {size_of(argument, axis, name == "others")};
    if (name == "last") return {axis_of(argument, -1)};
    if (name == "dim") return {axis_of(argument, axis)};
    if (name == "window") return call_.window(argument, spatial_axes(call_.op));
    if (name == "shape") return call_.sizes(argument);
    malformed(call_.op, text_);
  }

  int64_t axis_of(const std::string& operand, int64_t axis) {
    const Tensor t = call_.tensor(operand);
    const int64_t least = axis < 0 ? 1 : axis + 1;
    if (t.ndim() < least) {
      fail(ErrorCode::kConfig, call_.op.name(), ": ", operand, " must have at least ", least,
           least == 1 ? " axis" : " axes", ", not ", t.type());
    }
    const std::string what =
        axis < 0 ? str("the last axis of ", operand) : str("axis ", axis, " of ", operand);
    return call_.known(t.dim(axis), what);
  }

  int64_t combined(int64_t a, char sign, int64_t b) const {
    if (sign == '*') return checked_multiply(a, b);
    if (sign != '/') malformed(call_.op, text_);
    if (a % b != 0) {
      fail(ErrorCode::kConfig, call_.op.name(), ": ", text_, ": ", a, " is not divisible by ", b);
    }
    return a / b;
  }

  LayerCall& call_;
  const std::string_view text_;
  const SizeNames& names_;
  size_t at_ = 0;
};

}  // namespace

std::string data_format(const LayerCall& call) {
  const Value* value = call.find("data_format");
  const auto* text = value ? value->get<std::string>() : nullptr;
  return text ? *text : "NCHW";
}

size_t spatial_axes(const Op& op) {
  const int index = op.attr_index("data_format");
  ensure(index >= 0, op.name(), ": no data_format");
  const std::string_view words = op.attrs()[static_cast<size_t>(index)].words;
  return words.substr(0, words.find('|')).size() - 2;
}

int64_t channel_count(LayerCall& call) {
  const Tensor x = call.x();
  const std::string format = data_format(call);
  const bool last = format.size() > 1 && format.back() == 'C';
  if (x.ndim() < 2) {
    fail(ErrorCode::kConfig, call.op.name(), ": x must have at least 2 axes, not ", x.type());
  }
  return call.known(x.dim(last ? -1 : 1), "the channel axis of x");
}

Dims weight_shape(LayerCall& call, const WeightDef& weight, const SizeNames& names) {
  return SizeReader(call, weight, names).read();
}

Initializer weight_initializer(const LayerCall& call, const WeightDef& weight) {
  const std::string_view init = weight.init;
  if (init == "zeros") return Initializer::constant(0);
  if (init == "ones") return Initializer::constant(1);
  if (init == "xavier_uniform") return {Initializer::Kind::kXavierUniform, 0, 0, {}};
  // constant(ARGUMENT)
  const size_t open = init.find('(');
  const Value* value = call.find(std::string(init.substr(open + 1, init.size() - open - 2)));
  if (!value || !value->is_number()) {
    fail(ErrorCode::kConfig, call.op.name(), ": the initial value of ", weight.name,
         " must be a number");
  }
  return Initializer::constant(value->number());
}

void make_weights(LayerCall& call) {
  bool first = true, first_given = false;
  for (const WeightDef& weight : call.op.weights()) {
    if (*weight.state) continue;
    const std::string name = weight.name;
    const Value* value = call.find(name);
    const bool given = value && value->is_tensor();
    // `bias: false` leaves out all biases of a layer that has several.
    const Value* biases = name.ends_with("_bias") ? call.find("bias") : nullptr;
    const bool by_default = biases ? truth(*biases) : first || !first_given;
    if (!given && call.wants(name, by_default)) {
      call.make(name, weight_shape(call, weight), weight_initializer(call, weight), name + "_init");
    }
    if (first) first_given = given;
    first = false;
  }
}

}  // namespace paddle::lang
