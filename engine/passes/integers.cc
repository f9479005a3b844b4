// Integers that stand for numbers: what only moves values moves integers, and convolutions and
// products of dequantized integers become ones on the integers, which take along what is done to
// their results. Each step keeps the numbers, but for the order of a few roundings.

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "ir/replay.h"
#include "ops/call.h"
#include "ops/quantized.h"
#include "passes/passes.h"

namespace paddle::passes {
namespace {

using ir::Function;
using ir::Operation;
using ir::Value;
namespace q = quantized;

constexpr int64_t kMaxUnpacked = int64_t{1} << 26;  ///< elements of a constant brought to numbers

struct Ops {
  const Op &quantize = get_op("quantize"), &dequantize = get_op("dequantize"),
           &conv = get_op("quantized_conv2d"), &linear = get_op("quantized_linear"),
           &plain_conv = get_op("conv2d"), &plain_linear = get_op("linear"),
           &matmul = get_op("matmul"), &transpose = get_op("transpose"),
           &max_pool = get_op("max_pool2d"), &concat = get_op("concat"),
           &index_select = get_op("index_select"), &embedding = get_op("embedding"),
           &add = get_op("add"), &multiply = get_op("multiply"), &relu = get_op("relu"),
           &clip = get_op("clip"), &cast = get_op("cast"), &reshape = get_op("reshape");
};
const Ops& known() {
  static const Ops kOps;
  return kOps;
}

bool is_byte(DType dtype) { return dtype == DType::kU8 || dtype == DType::kI8; }
bool is_quantized_product(const Op& op) { return &op == &known().conv || &op == &known().linear; }
bool is_one_number(const Value* v) { return v && v->type.shape.empty(); }
bool is_known_number(const Value* v) { return is_one_number(v) && v->constant; }

const AttrValue& attribute(const Operation& o, const char* name) {
  return o.attrs[static_cast<size_t>(o.op->attr_index(name))];
}
void set_attribute(Operation& o, const char* name, AttrValue value) {
  o.attrs[static_cast<size_t>(o.op->attr_index(name))] = std::move(value);
}

bool same_dims(const Shape& a, const Shape& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(),
                    [](const Dim& x, const Dim& y) { return x.text() == y.text(); });
}

bool same_number(const Value* a, const Value* b) {
  return a == b || (is_known_number(a) && is_known_number(b) &&
                    a->constant->number() == b->constant->number());
}

bool is_positive(const Value* v) {
  return is_known_number(v) && v->constant->number() > 0 && std::isfinite(v->constant->number());
}

class Integers {
 public:
  Integers(Function& function, const TakesIntegers& takes, const Evaluate& evaluate)
      : function_(function), takes_(takes), evaluate_(evaluate) {}

  void run() {
    each(&Integers::sink);
    each(&Integers::form);
    each(&Integers::absorb);
  }

 private:
  using Place = std::list<std::unique_ptr<Operation>>::iterator;

  /// Calls the step for every operation of the body, in order, with fresh uses.
  void each(void (Integers::*step)(Place)) {
    readers_.clear();
    for (auto& o : function_.body.operations) note_reads(*o, *o);
    for (const Value* v : function_.body.results) readers_[v].push_back(nullptr);
    for (auto it = function_.body.operations.begin(); it != function_.body.operations.end();) {
      next_ = std::next(it);
      (this->*step)(it);
      it = next_;
    }
    remove_dead_code(function_);
  }

  void note_reads(Operation& outermost, const Operation& reader) {
    for (const Value* v : reader.operands)
      if (v) readers_[v].push_back(&outermost);
    for (const auto& region : reader.regions) {
      for (const auto& inner : region->operations) note_reads(outermost, *inner);
      for (const Value* v : region->results) readers_[v].push_back(&outermost);
    }
  }

  /// The one operation that reads the value, without regions of its own; null otherwise.
  Operation* only_reader(const Value* v) const {
    const auto it = readers_.find(v);
    if (it == readers_.end() || it->second.size() != 1 || !it->second[0]) return nullptr;
    return it->second[0]->regions.empty() ? it->second[0] : nullptr;
  }

  static Operation* made_by(const Value* v, const Op& op) {
    return v && v->producer && v->producer->op == &op ? v->producer : nullptr;
  }

  /// The operation that gives `v` from bytes and one scale and zero point, or null.
  static Operation* from_bytes(const Value* v) {
    Operation* const o = made_by(v, known().dequantize);
    const bool plain = o && is_byte(o->operands[0]->type.dtype) && is_one_number(o->operands[1]) &&
                       is_one_number(o->operands[2]);
    return plain ? o : nullptr;
  }

  Array evaluated(const Op& op, const Attrs& attrs, const std::vector<const Array*>& operands,
                  const TensorType& result) const {
    return evaluate_(op, attrs, operands, {result})[0];
  }

  /// A new operation that gives existing values, with the place in the text of `like`.
  void insert(Place before, const Operation& like, const Op& op, std::vector<Value*> operands,
              Attrs attrs, Value* result) {
    auto operation = std::make_unique<Operation>();
    operation->op = &op;
    operation->operands = std::move(operands);
    operation->attrs = std::move(attrs);
    operation->results = {result};
    operation->place = like.place;
    operation->sequence = like.sequence;
    result->producer = operation.get();
    result->index = 0;
    for (const Value* v : operation->operands) readers_[v].push_back(operation.get());
    function_.body.operations.insert(before, std::move(operation));
  }

  // ---- movement

  /// Puts a dequantize after the operation at `place`, which moves elements alone, instead of
  /// before it; drops a quantize that undoes a dequantize.
  void sink(Place place) {
    Operation& o = **place;
    if (o.op == &known().quantize) return undo(place);
    if (!o.regions.empty() || o.results.empty() || !moves_elements(o)) return;
    const bool joins = o.op == &known().concat;
    const size_t table = o.op == &known().embedding ? 1 : 0;
    Operation* const first = from_bytes_per_axis(o, table);
    if (!first) return;
    const auto likewise = [&](const Value* v) {
      Operation* const other = from_bytes(v);
      return other && other->operands[0]->type.dtype == first->operands[0]->type.dtype &&
             same_number(other->operands[1], first->operands[1]) &&
             same_number(other->operands[2], first->operands[2]);
    };
    if (joins && !std::all_of(o.operands.begin(), o.operands.end(), likewise)) return;
    std::vector<Value*> scales = {first->operands[1], first->operands[2]};
    if (!is_one_number(scales[0]) || !is_one_number(scales[1])) {
      // A matrix of weights with a scale per column, turned: the scales are turned with it.
      for (Value*& v : scales)
        if (!is_one_number(v)) v = turned(o, v);
    }
    Value* const numbers = o.results[0];
    Value* integers = nullptr;
    TensorType type = numbers->type;
    type.dtype = first->operands[0]->type.dtype;
    if (o.operands.size() == 1 && o.results.size() == 1 && first->operands[0]->constant &&
        is_constant(type.shape)) {
      integers = function_.add_constant(
          evaluated(*o.op, o.attrs, {&*first->operands[0]->constant}, type).contiguous());
      insert(place, o, known().dequantize, {integers, scales[0], scales[1]}, {}, numbers);
      function_.body.operations.erase(place);
      return;
    }
    integers = function_.new_value(type);
    integers->producer = &o;
    for (size_t i = 0; i < o.operands.size(); ++i)
      if (joins || i == table) {
        o.operands[i] = o.operands[i]->producer->operands[0];
        readers_[o.operands[i]].push_back(&o);
      }
    o.results[0] = integers;
    insert(next_, o, known().dequantize, {integers, scales[0], scales[1]}, {}, numbers);
  }

  static bool moves_elements(const Operation& o) {
    const Ops& k = known();
    if (o.op == &k.concat || o.op == &k.index_select || o.op == &k.max_pool) return true;
    if (o.op == &k.embedding) return attribute(o, "padding_idx").is_none();
    return o.op->def->view && o.operands.size() == 1;
  }

  /// Like `from_bytes`, but for a transpose also with a known scale per place of an axis.
  static Operation* from_bytes_per_axis(const Operation& o, size_t operand) {
    Operation* const from = made_by(o.operands[operand], known().dequantize);
    if (!from || !is_byte(from->operands[0]->type.dtype)) return nullptr;
    if (from_bytes(o.operands[operand])) return from;
    const auto turns = [&](const Value* v) {
      return is_one_number(v) ||
             (v->constant && v->type.shape.size() == o.results[0]->type.shape.size());
    };
    return o.op == &known().transpose && turns(from->operands[1]) && turns(from->operands[2])
               ? from
               : nullptr;
  }

  Value* turned(const Operation& transpose, const Value* v) {
    TensorType type = v->type;
    type.shape = infer(*transpose.op, transpose.attrs, {Tensor(*v->constant)}).results[0].shape;
    return function_.add_constant(
        evaluated(*transpose.op, transpose.attrs, {&*v->constant}, type).contiguous());
  }

  void undo(Place place) {
    const Operation& o = **place;
    const Operation* const from = from_bytes(o.operands[0]);
    if (!from || from->operands[0]->type.dtype != o.results[0]->type.dtype ||
        !same_number(from->operands[1], o.operands[1]) ||
        !same_number(from->operands[2], o.operands[2]) || !is_positive(o.operands[1]))
      return;
    replace(o.results[0], from->operands[0]);
  }

  /// All that reads `from` reads `to`.
  void replace(Value* from, Value* to) {
    std::vector<Operation*> readers = std::move(readers_[from]);
    readers_.erase(from);
    const std::function<void(Operation&)> change = [&](Operation& o) {
      std::replace(o.operands.begin(), o.operands.end(), from, to);
      for (const auto& region : o.regions) {
        for (const auto& inner : region->operations) change(*inner);
        std::replace(region->results.begin(), region->results.end(), from, to);
      }
    };
    for (Operation* reader : readers) {
      if (reader) change(*reader);
      readers_[to].push_back(reader);
    }
    std::replace(function_.body.results.begin(), function_.body.results.end(), from, to);
  }

  // ---- convolutions and products

  /// Weights as int8 with zero point 0, and their scale: one or per out channel.
  struct Weights {
    Array integers, scale;
  };

  /// The axis of `rank` along which `v` has several numbers; -1 for one number, -2 for more axes.
  static int varying_axis(const Value* v, int rank) {
    const Shape& shape = v->type.shape;
    int axis = -1;
    for (size_t i = 0; i < shape.size(); ++i)
      if (!shape[i].equals(1).value_or(false)) {
        if (axis != -1) return -2;
        axis = static_cast<int>(i) + rank - static_cast<int>(shape.size());
      }
    return axis;
  }

  /// From a dequantize of constants whose out channels are the axis `channel`.
  static std::optional<Weights> weights_of(const Value* v, int channel) {
    const Operation* const from = made_by(v, known().dequantize);
    if (!from) return std::nullopt;
    const Value &x = *from->operands[0], &scale = *from->operands[1], &zero = *from->operands[2];
    if (!x.constant || !scale.constant || !zero.constant || !is_byte(x.type.dtype) ||
        x.constant->size() == 0)
      return std::nullopt;
    const int rank = static_cast<int>(x.type.shape.size());
    const int scale_axis = varying_axis(&scale, rank), zero_axis = varying_axis(&zero, rank);
    const auto fits = [&](int axis) { return axis == -1 || axis == channel; };
    if (channel >= rank || !fits(scale_axis) || !fits(zero_axis)) return std::nullopt;
    auto integers = q::centred_weights(*x.constant, *zero.constant, channel);
    if (!integers) return std::nullopt;
    Weights w;
    w.integers = std::move(*integers);
    const int64_t channels = w.integers.shape[static_cast<size_t>(channel)];
    const Array scales = scale.constant->contiguous();
    const int64_t count = scale_axis == -1 ? 1 : channels;
    w.scale = Array::empty(DType::kF32, count == 1 ? Dims{} : Dims{count});
    std::copy_n(scales.data<float>(), count, w.scale.data<float>());
    return w;
  }

  static Array transposed(const Array& matrix) {
    Array turned = Array::empty(DType::kI8, {matrix.shape[1], matrix.shape[0]});
    const int8_t* const from = matrix.data<int8_t>();
    int8_t* const to = turned.data<int8_t>();
    for (int64_t r = 0; r < matrix.shape[0]; ++r)
      for (int64_t c = 0; c < matrix.shape[1]; ++c)
        to[c * matrix.shape[0] + r] = from[r * matrix.shape[1] + c];
    return turned;
  }

  /// Makes a convolution or product of dequantized integers one on the integers.
  void form(Place place) {
    Operation& o = **place;
    const bool conv = o.op == &known().plain_conv, layer = o.op == &known().plain_linear;
    const bool product = o.op == &known().matmul;
    if (!(conv || layer || product) || o.results[0]->type.dtype != DType::kF32 ||
        has_run_time_size(o.results[0]->type))
      return;
    const Operation* const input = from_bytes(o.operands[0]);
    if (!input || has_run_time_size(input->operands[0]->type)) return;
    const bool turned = product && attribute(o, "transpose_y").as_bool();
    if (product && (attribute(o, "transpose_x").as_bool() || o.operands[0]->type.shape.size() < 2 ||
                    o.operands[1]->type.shape.size() != 2))
      return;
    auto weights = weights_of(o.operands[1], conv || turned ? 0 : 1);
    if (!weights) return;
    if (turned) weights->integers = transposed(weights->integers);
    if (!takes_(input->operands[0]->type.dtype, weights->integers)) return;
    Value* const given_bias = product ? nullptr : o.operands[2];
    if (given_bias && given_bias->type.shape.size() != 1) return;

    std::vector<Value*> operands(q::kOperandCount, nullptr);
    operands[q::kX] = input->operands[0];
    operands[q::kWeight] = function_.add_constant(weights->integers);
    operands[q::kXZero] = input->operands[2];
    operands[q::kScale] = scaled(place, input->operands[1], weights->scale);
    const Attrs before = o.attrs;
    const Op& plain = *o.op;
    o.op = conv ? &known().conv : &known().linear;
    o.attrs = default_attrs(*o.op);
    if (conv)
      for (const char* name : {"stride", "padding", "dilation", "groups", "data_format"})
        set_attribute(o, name, before[static_cast<size_t>(plain.attr_index(name))]);
    set_attribute(o, "dtype", DType::kF32);
    o.operands = std::move(operands);
    if (given_bias) o.operands[q::kBias] = bias_of(o, given_bias);
  }

  /// The product of the input's scale and the weights'.
  Value* scaled(Place before, Value* input_scale, const Array& weight_scale) {
    if (input_scale->constant) {
      Array both = Array::empty(DType::kF32, weight_scale.shape);
      const auto first = static_cast<float>(input_scale->constant->number());
      for (int64_t i = 0; i < both.size(); ++i)
        both.data<float>()[i] = first * weight_scale.data<float>()[i];
      return function_.add_constant(both);
    }
    Value* const constant = function_.add_constant(weight_scale);
    Value* const result = function_.new_value(constant->type);
    insert(before, **before, known().multiply, {constant, input_scale}, {}, result);
    return result;
  }

  /// A bias [channels]: the integers behind it where they count in steps of the operation's scale.
  Value* bias_of(const Operation& o, Value* bias) {
    const Operation* const from = made_by(bias, known().dequantize);
    const Value* const scale = o.operands[q::kScale];
    if (!from || !from->operands[0]->constant || from->operands[0]->type.dtype != DType::kI32 ||
        !from->operands[1]->constant || !from->operands[2]->constant || !scale->constant)
      return bias;
    const int64_t channels = from->operands[0]->constant->size();
    const auto at = [&](const Value* v, int64_t c) {
      return v->constant->number(v->constant->size() == 1 ? 0 : c);
    };
    for (int64_t c = 0; c < channels; ++c) {
      const double own = at(from->operands[1], c), wanted = at(scale, c);
      if (at(from->operands[2], c) != 0 || !(std::abs(own - wanted) <= 1e-6 * wanted)) return bias;
    }
    return from->operands[0]->type.shape.size() == 1
               ? from->operands[0]
               : function_.add_constant(reshaped(*from->operands[0]->constant));
  }

  static Array reshaped(const Array& a) {
    Array flat = a.contiguous();
    flat.shape = {a.size()};
    flat.strides = {1};
    return flat;
  }

  // ---- what follows

  /// Lets a convolution or product on integers take along what is done to its result.
  void absorb(Place place) {
    if (!is_quantized_product(*(*place)->op)) return;
    place_ = place;
    forget(**place);
    while (take_next()) {
    }
    note_reads(**place, **place);
  }

  /// The operation reads nothing any more.
  void forget(const Operation& o) {
    for (const Value* v : o.operands)
      if (v) std::erase(readers_[v], &o);
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
        !same_dims(times->results[0]->type.shape, cast.results[0]->type.shape))
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
    const bool last = o.op == &known().linear || attribute(o, "data_format").as_string() == "NHWC";
    const int channel = last ? rank - 1 : 1, axis = varying_axis(v, rank);
    if (axis != -1 && axis != channel) return nullptr;
    const Dim channels = result[static_cast<size_t>(channel)];
    const Shape wanted = axis == -1 ? Shape() : Shape{channels};
    if (same_dims(v->type.shape, wanted)) return v;
    if (!channels.is_constant()) return nullptr;
    if (v->constant) {
      Array flat = reshaped(*v->constant);
      if (axis == -1) {
        flat.shape = {};
        flat.strides = {};
      }
      return function_.add_constant(flat);
    }
    Value* const flat = function_.new_value({DType::kF32, wanted});
    Attrs attrs = default_attrs(known().reshape);
    attrs[static_cast<size_t>(known().reshape.attr_index("shape"))] = AttrValue(wanted);
    insert(place_of(reader), reader, known().reshape, {v}, std::move(attrs), flat);
    return flat;
  }

  bool take_bias(const Operation& sum) {
    Operation& o = product();
    if (o.operands[q::kBias]) return false;
    const size_t other = sum.operands[0] == o.results[0] ? 1 : 0;
    Value* const given = sum.operands[other];
    if (given == o.results[0] || !same_dims(sum.results[0]->type.shape, o.results[0]->type.shape))
      return false;
    const Operation* const from = made_by(given, known().dequantize);
    if (from && from->operands[0]->constant) {
      if (from->operands[0]->type.shape.size() != 1) return false;
      o.operands[q::kBias] = bias_of(o, given);
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
  /// product gives are only a step on the way.
  bool take_residual(const Operation& numbers) {
    Operation& o = product();
    if (o.operands[q::kStepScale] || o.operands[q::kResidual] || !attribute(o, "low").is_none() ||
        !attribute(o, "high").is_none() || !from_bytes(numbers.results[0]) ||
        !same_number(numbers.operands[1], o.operands[q::kOutScale]) ||
        !same_number(numbers.operands[2], o.operands[q::kOutZero]))
      return false;
    const Operation* const sum = only_reader(numbers.results[0]);
    if (!sum || sum->op != &known().add) return false;
    const Value* const other = sum->operands[sum->operands[0] == numbers.results[0] ? 1 : 0];
    const Operation* const residual = from_bytes(other);
    if (!residual || residual == &numbers || !is_positive(residual->operands[1]) ||
        !is_known_number(residual->operands[2]) ||
        !same_dims(residual->operands[0]->type.shape, o.results[0]->type.shape))
      return false;
    const Operation* last = only_reader(sum->results[0]);
    const Operation* bounds = nullptr;
    if (last && (last->op == &known().relu || last->op == &known().clip)) {
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
      if (bounds->op == &known().relu)
        set_attribute(o, "low", 0.0);
      else
        take_bounds_of(o, *bounds);
      take(*bounds);
    }
    return take(*last);
  }

  static void take_bounds_of(Operation& o, const Operation& clip) {
    for (const auto& [ours, theirs] : {std::pair{"low", "min"}, std::pair{"high", "max"}}) {
      const AttrValue& bound = attribute(clip, theirs);
      if (!bound.is_none()) set_attribute(o, ours, bound.as_double());
    }
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
    if (next_ == at || next_ == place_) next_ = std::next(at);
    result->producer = &o;
    result->index = 0;
    o.results[0] = result;
    forget(next);
    function_.body.operations.erase(at);
    return true;
  }

  Function& function_;
  const TakesIntegers& takes_;
  const Evaluate& evaluate_;
  std::unordered_map<const Value*, std::vector<Operation*>> readers_;
  Place next_, place_;
};

// ---- what stays

/// Quantised convolutions and products that no kernel takes become what they are made of.
class Decomposer final : public PassingInterpreter {
 public:
  explicit Decomposer(const TakesIntegers& takes) : takes_(takes) {}
  Tensors apply(const OpCall& c) override {
    const BelowScope below(next());
    return is_quantized_product(c.op) && !taken(c) ? decompose(c) : next().apply(c);
  }

 private:
  bool taken(const OpCall& c) const {
    const Tensor& weight = c.operands[q::kWeight];
    if (!takes_ || !weight.is_concrete() || weight.array().size() == 0 ||
        !takes_(c.operands[q::kX].dtype(), weight.array()))
      return false;
    for (const TensorType& t : c.results)
      if (has_run_time_size(t)) return false;
    if (has_run_time_size(c.operands[q::kX].type())) return false;
    const DType result = c.results[0].dtype;
    if (c.operands[q::kOutScale] && !is_byte(result)) return false;
    for (const auto& [scale, zero] :
         {std::pair{q::kStepScale, q::kStepZero}, std::pair{q::kResidualScale, q::kResidualZero},
          std::pair{q::kOutScale, q::kOutZero}}) {
      const Tensor &s = c.operands[scale], &z = c.operands[zero];
      if (s && (!s.is_concrete() || !(s.array().number() > 0) || (z && !z.is_concrete())))
        return false;
    }
    const Tensor &residual = c.operands[q::kResidual], &bias = c.operands[q::kBias];
    if (residual && item_size(residual.dtype()) != item_size(result)) return false;
    return !bias || bias.ndim() == 1;
  }

  const TakesIntegers& takes_;
};

/// Constants that are still needed as numbers, brought there once.
void unpack_constants(ir::Region& region, const Evaluate& evaluate) {
  for (auto it = region.operations.begin(); it != region.operations.end();) {
    Operation& o = **it;
    for (const auto& nested : o.regions) unpack_constants(*nested, evaluate);
    const bool fixed = o.op->has(kUnpacks) && is_constant(o.results[0]->type.shape) &&
                       std::all_of(o.operands.begin(), o.operands.end(),
                                   [](const Value* v) { return v && v->constant; });
    if (!fixed ||
        element_count(std::span<const Dim>(o.results[0]->type.shape)).value() > kMaxUnpacked) {
      ++it;
      continue;
    }
    std::vector<const Array*> operands;
    for (const Value* v : o.operands) operands.push_back(&*v->constant);
    o.results[0]->constant = evaluate(*o.op, o.attrs, operands, {o.results[0]->type})[0];
    o.results[0]->producer = nullptr;
    it = region.operations.erase(it);
  }
}

}  // namespace

void compute_on_integers(Function& function, const TakesIntegers& takes_integers,
                         const Evaluate& evaluate) {
  bool any = false;
  ir::for_each_operation(function.body, [&](const Operation& o) {
    any = any || o.op->has(kUnpacks) || o.op == &known().quantize || is_quantized_product(*o.op);
  });
  if (!any) return;
  if (takes_integers) Integers(function, takes_integers, evaluate).run();
  Decomposer decomposer(takes_integers);
  ir::rewrite(function, decomposer);
  unpack_constants(function.body, evaluate);
}

}  // namespace paddle::passes
