// What is done to the results of convolutions and products on integers, up to the next quantize,
// becomes part of them.

#include "compiler/passes/integers.h"
#include "ops/call.h"

namespace paddle::passes::integers {
namespace {

using ir::Operation;
using ir::Value;
namespace q = quantized;

class Absorber final : public Walk {
 public:
  using Walk::Walk;

 private:
  /// Lets a convolution or product on integers take along what is done to its result.
  void visit(Place place) override {
    if (!is_quantized_product(*(*place)->op)) return;
    place_ = place;
    forget_reads(**place);
    while (take_next()) {
    }
    note_reads(**place);
  }

  Operation& product() { return **place_; }

  bool take_next() {
    Operation& o = product();
    Value* const made = o.results[0];
    Operation* const next = only_reader(made);
    if (!next || has_run_time_size(made->type)) return false;
    if (!o.operands[q::kScale]) return take_scale(*next);
    if (o.operands[q::kOutScale]) return take_residual(*next);
    const bool unbound = attribute(o, "low").is_none() && attribute(o, "high").is_none();
    if (next->op == &known().add && unbound && !o.operands[q::kStepScale] &&
        !o.operands[q::kResidual])
      return take_bias(*next) || take_float_residual(*next);
    if (unbound && next->op == &known().relu) {
      set_attribute(o, "low", 0.0);
      return take(*next);
    }
    if (unbound && next->op == &known().clip) return take_bounds(o, *next);
    if (next->op == &known().quantize && !o.operands[q::kResidual]) return take_quantize(*next);
    return false;
  }

  bool take_bounds(Operation& o, const Operation& next) {
    const AttrValue &low = attribute(next, "min"), &high = attribute(next, "max");
    const auto number = [](const AttrValue& v) {
      return v.is_none() ? v : AttrValue(v.as_double());
    };
    if (low.is_none() && high.is_none()) return false;
    if (!low.is_none() && !high.is_none() && low.as_double() > high.as_double()) return false;
    set_attribute(o, "low", number(low));
    set_attribute(o, "high", number(high));
    return take(next);
  }

  bool take_quantize(const Operation& next) {
    const Value &scale = *next.operands[1], &zero = *next.operands[2];
    if (!is_positive(&scale) || !is_known_number(&zero) || !is_byte(next.results[0]->type.dtype))
      return false;
    Operation& o = product();
    o.operands[q::kOutScale] = next.operands[1];
    o.operands[q::kOutZero] = next.operands[2];
    set_attribute(o, "dtype", next.results[0]->type.dtype);
    return take(next);
  }

  /// Sums that were cast to float32 and scaled.
  bool take_scale(const Operation& cast) {
    if (cast.op != &known().cast || cast.results[0]->type.dtype != DType::kF32) return false;
    const Operation* const times = only_reader(cast.results[0]);
    if (!times || times->op != &known().multiply ||
        !same_shape(times->results[0]->type.shape, cast.results[0]->type.shape))
      return false;
    const size_t other = times->operands[0] == cast.results[0] ? 1 : 0;
    Value* const scale = per_channel(times->operands[other], *times);
    if (!scale) return false;
    Operation& o = product();
    o.operands[q::kScale] = scale;
    set_attribute(o, "dtype", DType::kF32);
    return take(cast) && take(*times);
  }

  /// A value that is one number or one per channel of the product's result, as that; or null. Made
  /// at `reader`, which reads it.
  Value* per_channel(Value* v, const Operation& reader) {
    const Operation& o = product();
    const Shape& result = o.results[0]->type.shape;
    const int rank = static_cast<int>(result.size());
    if (v->type.dtype != DType::kF32 || v->type.shape.size() > result.size()) return nullptr;
    const bool last =
        o.op != &known().conv || attribute(o, "data_format").as_string().ends_with('C');
    const int channel = last ? rank - 1 : 1, axis = varying_axis(v, rank);
    if (axis != -1 && axis != channel) return nullptr;
    const Dim channels = result[static_cast<size_t>(channel)];
    const Shape wanted = axis == -1 ? Shape() : Shape{channels};
    if (same_shape(v->type.shape, wanted)) return v;
    if (!channels.is_constant()) return nullptr;
    if (v->constant) {
      Array all = flat(*v->constant);
      if (axis == -1) {
        all.shape = {};
        all.strides = {};
      }
      return function_.add_constant(all);
    }
    Value* const reshaped = function_.new_value({DType::kF32, wanted});
    Attrs attrs = default_attrs(known().reshape);
    attrs[static_cast<size_t>(known().reshape.attr_index("shape"))] = AttrValue(wanted);
    insert(place_of(reader), reader, known().reshape, {v}, std::move(attrs), reshaped);
    return reshaped;
  }

  bool take_bias(const Operation& sum) {
    Operation& o = product();
    if (o.operands[q::kBias]) return false;
    const size_t other = sum.operands[0] == o.results[0] ? 1 : 0;
    Value* const given = sum.operands[other];
    if (given == o.results[0] || !same_shape(sum.results[0]->type.shape, o.results[0]->type.shape))
      return false;
    const Operation* const from = made_by(given, known().dequantize);
    if (from && from->operands[0]->constant) {
      if (from->operands[0]->type.shape.size() != 1) return false;
      o.operands[q::kBias] = bias_of(function_, o, given);
    } else {
      Value* const bias = per_channel(given, sum);
      if (!bias || bias->type.shape.empty()) return false;
      o.operands[q::kBias] = bias;
    }
    return take(sum);
  }

  /// Numbers of the result's shape, which the kernel adds in their place.
  bool take_float_residual(const Operation& sum) {
    Operation& o = product();
    const size_t other = sum.operands[0] == o.results[0] ? 1 : 0;
    Value* const given = sum.operands[other];
    if (given == o.results[0] || !same_type(given->type, o.results[0]->type) || given->constant)
      return false;
    const Operation* const after = only_reader(sum.results[0]);
    if (after && after->op == &known().quantize) return false;  // one pass over all of it
    o.operands[q::kResidual] = given;
    return take(sum);
  }

  /// quantize → dequantize → add of other integers → bounds → quantize: the integers that the
  /// product gives are only a step on the way. Products of two values do without: no fast code
  /// adds integers with a zero point to them.
  bool take_residual(const Operation& numbers) {
    Operation& o = product();
    if (o.op == &known().product || o.operands[q::kStepScale] || o.operands[q::kResidual] ||
        !attribute(o, "low").is_none() || !attribute(o, "high").is_none() ||
        !from_bytes(numbers.results[0]) ||
        !same_number(numbers.operands[1], o.operands[q::kOutScale]) ||
        !same_number(numbers.operands[2], o.operands[q::kOutZero]))
      return false;
    const Operation* const sum = only_reader(numbers.results[0]);
    if (!sum || sum->op != &known().add) return false;
    const Value* const other = sum->operands[sum->operands[0] == numbers.results[0] ? 1 : 0];
    const Operation* const residual = from_bytes(other);
    if (!residual || residual == &numbers || !is_positive(residual->operands[1]) ||
        !is_known_number(residual->operands[2]) ||
        !same_shape(residual->operands[0]->type.shape, o.results[0]->type.shape))
      return false;
    const Operation* last = only_reader(sum->results[0]);
    const Operation* bounds = nullptr;
    if (last && last->op == &known().relu) {
      bounds = last;
      last = only_reader(bounds->results[0]);
    }
    if (!last || last->op != &known().quantize || !is_positive(last->operands[1]) ||
        !is_known_number(last->operands[2]) || !is_byte(last->results[0]->type.dtype))
      return false;
    o.operands[q::kStepScale] = o.operands[q::kOutScale];
    o.operands[q::kStepZero] = o.operands[q::kOutZero];
    set_attribute(o, "step_dtype", o.results[0]->type.dtype);
    o.operands[q::kResidual] = residual->operands[0];
    o.operands[q::kResidualScale] = residual->operands[1];
    o.operands[q::kResidualZero] = residual->operands[2];
    o.operands[q::kOutScale] = last->operands[1];
    o.operands[q::kOutZero] = last->operands[2];
    set_attribute(o, "dtype", last->results[0]->type.dtype);
    take(numbers);
    take(*sum);
    if (bounds) {
      set_attribute(o, "low", 0.0);
      take(*bounds);
    }
    return take(*last);
  }

  /// Of an operation that comes after the product.
  Place place_of(const Operation& o) {
    Place at = place_;
    while (at->get() != &o) ++at;
    return at;
  }

  /// The product gives the operation's result itself; the operation, which read the product's,
  /// goes.
  bool take(const Operation& next) {
    Operation& o = product();
    Value* const result = next.results[0];
    const Place at = place_of(next);
    // The kernel may read what is made between the two.
    function_.body.operations.splice(at, function_.body.operations, place_);
    result->producer = &o;
    result->index = 0;
    o.results[0] = result;
    erase(at);
    return true;
  }

  Place place_;
};

}  // namespace

void absorb_followers(ir::Function& function) { Absorber(function).run(); }

}  // namespace paddle::passes::integers
