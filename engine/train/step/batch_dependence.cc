#include "train/step/batch_dependence.h"

#include <algorithm>

namespace paddle::train {
namespace {

using Kind = Dependence::Kind;

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Values with one element can divide values of any shape.
bool is_scalar(const ir::Value* value) {
  return std::all_of(value->type.shape.begin(), value->type.shape.end(),
                     [](const Dim& d) { return d.same(Dim(1)); });
}

const ir::Value* through_casts(const ir::Value* value) {
  while (value->producer && is_one_of(value->producer->op->name(), {"cast", "assign"}))
    value = value->producer->operands[0];
  return value;
}

bool is_constant(const ir::Value* value, double number) {
  value = through_casts(value);
  return value->constant && value->constant->size() == 1 && value->constant->number() == number;
}

/// The axes that an attribute names, counted from the front; nullopt if there is no such attribute
/// or it is none.
std::optional<std::vector<int64_t>> axes_of(const ir::Operation& operation, std::string_view name,
                                            size_t rank) {
  const int at = operation.op->attr_index(name);
  if (at < 0) return std::nullopt;
  const AttrValue& value = operation.attrs[static_cast<size_t>(at)];
  std::vector<int64_t> axes;
  if (value.is_list()) {
    for (const AttrValue& v : value.as_list()) axes.push_back(v.as_int());
  } else if (value.is_int()) {
    axes.push_back(value.as_int());
  } else {
    return std::nullopt;
  }
  for (int64_t& axis : axes)
    if (axis < 0) axis += static_cast<int64_t>(rank);
  return axes;
}

}  // namespace

BatchDependence::BatchDependence(const ir::Function& function) {
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    const Shape& shape = function.body.arguments[i]->type.shape;
    if (function.inputs[i].kind == ir::PortKind::kValue && !shape.empty() && shape[0].is_symbol())
      batch_.insert(shape[0].text());
  }
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    const ir::Value* value = function.body.arguments[i];
    Dependence d;
    // Fields of the data; numbers of the step, parameters and states are the same for all batches.
    const bool field =
        function.inputs[i].kind == ir::PortKind::kValue && samples_axis(value->type) == 0;
    d.kind = field ? Kind::kSamples : Kind::kFixed;
    d.from_data = field;
    known_[value] = d;
  }
  for (const auto& operation : function.body.operations) {
    number(*operation);
    for (const ir::Value* result : operation->results) {
      const Dependence d = known_[result] = apply(*operation, result);
      if (!operation->op->has(kRunTimeShape)) continue;
      for (const Dim& dim : result->type.shape)
        if (dim.is_symbol() && dim.text().starts_with('$')) run_time_[dim.text()] = d;
    }
  }
}

Dependence BatchDependence::of(const ir::Value* value) const {
  if (value->constant) return {};
  const auto found = known_.find(value);
  return found == known_.end() ? Dependence{} : found->second;
}

const ir::Value* BatchDependence::behind_guard(const ir::Value* divisor) {
  divisor = through_casts(divisor);
  const ir::Operation* where = divisor->producer;
  if (!where || where->op->name() != "where") return divisor;
  const ir::Operation* equal = through_casts(where->operands[0])->producer;
  const ir::Value* sum = through_casts(where->operands[2]);
  if (!equal || equal->op->name() != "equal" || !is_constant(where->operands[1], 1)) return divisor;
  const bool guards =
      (through_casts(equal->operands[0]) == sum && is_constant(equal->operands[1], 0)) ||
      (through_casts(equal->operands[1]) == sum && is_constant(equal->operands[0], 0));
  return guards ? sum : divisor;
}

// --- sizes and equal values ---

bool BatchDependence::counts_samples(const Dim& dim) const {
  std::vector<std::string> names;
  dim.collect_symbols(names);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return batch_.contains(name) || name.starts_with('$');
  });
}

/// Proportional to the samples: 0 for none of them, and for two twice as much as for one.
bool BatchDependence::is_linear(const Dim& dim) const {
  const auto at = [&](int64_t samples) {
    return dim.evaluate([&](const std::string& name) {
      return std::optional<int64_t>(counts_samples(Dim::symbol(name)) ? samples : 5);
    });
  };
  const auto none = at(0), one = at(1), two = at(2), many = at(12);
  return none && one && two && many && *none == 0 && *two == 2 * *one && *many == 12 * *one;
}

int BatchDependence::samples_axis(const TensorType& type) const {
  int found = -1;
  for (size_t i = 0; i < type.shape.size(); ++i) {
    if (!counts_samples(type.shape[i])) continue;
    if (found != -1) return -2;
    found = static_cast<int>(i);
  }
  return found;
}

size_t BatchDependence::number_of(const ir::Value* value) const {
  const auto found = numbers_.find(value);
  // Numbers of computed values begin after those of all ids.
  return found == numbers_.end() ? static_cast<size_t>(value->id) : found->second;
}

void BatchDependence::number(const Operation& operation) {
  constexpr size_t kComputed = size_t{1} << 32;
  std::string key(operation.op->name());
  for (const ir::Value* v : operation.operands) {
    key += '%';
    if (v && v->constant && v->constant->size() == 1)
      key += v->type.text() + "=" + format_double(v->constant->number());
    else
      key += v ? std::to_string(number_of(v)) : "_";
  }
  for (const AttrValue& v : operation.attrs.values) key += "|" + v.text();
  const bool own =
      !operation.regions.empty() || operation.op->has(kRandom) || operation.op->has(kRunTimeShape);
  if (own) key += "@" + std::to_string(operation.sequence);
  for (size_t i = 0; i < operation.results.size(); ++i)
    numbers_[operation.results[i]] =
        keys_.try_emplace(key + "." + std::to_string(i), kComputed + keys_.size()).first->second;
}

bool BatchDependence::same_divisor(const Dependence& a, const Dependence& b) const {
  if (a.per_sample != b.per_sample || !a.divisor != !b.divisor) return false;
  return !a.divisor || number_of(a.divisor) == number_of(b.divisor);
}

/// Whether samples meet the same samples where x and y are broadcast.
bool BatchDependence::aligned(const Dependence& a, const ir::Value* x, const Dependence& b,
                              const ir::Value* y) const {
  return x->type.shape.size() - a.axis == y->type.shape.size() - b.axis && a.outer.same(b.outer) &&
         x->type.shape[a.axis].equals(y->type.shape[b.axis]).value_or(true) &&
         (!a.mask ? !b.mask : b.mask && number_of(a.mask) == number_of(b.mask));
}

// --- operations ---

Dependence BatchDependence::whole(const Operation& operation) const {
  Dependence out;
  out.kind = Kind::kWhole;
  out.origin = &operation;
  for (const ir::Value* v : operation.operands) {
    if (!v) continue;
    const Dependence d = of(v);
    if (d.kind != Kind::kWhole) continue;
    out.origin = d.origin;
    break;
  }
  return out;
}

/// `like` for a result of which one axis counts samples.
Dependence BatchDependence::samples_of(const Operation& operation, const ir::Value* result,
                                       const Dependence& like) const {
  const int axis = samples_axis(result->type);
  if (axis < 0) return whole(operation);
  Dependence out = like;
  out.kind = Kind::kSamples;
  out.axis = static_cast<size_t>(axis);
  return out;
}

Dependence BatchDependence::apply(const Operation& operation, const ir::Value* result) const {
  bool from_data = !operation.op->has(kRandom) && operation.regions.empty();
  bool fixed = true;
  for (const ir::Value* v : operation.operands) {
    if (!v) continue;
    const Dependence d = of(v);
    // Constants and sizes stand with the data, parameters do not.
    from_data = from_data && (v->constant || d.from_data);
    fixed = fixed && d.kind == Kind::kFixed && !d.divided();
  }
  const std::string_view name = operation.op->name();
  Dependence out;
  if (!operation.regions.empty()) {
    bool reads_samples = false;
    ir::for_each_read(operation,
                      [&](const ir::Value* v) { reads_samples |= of(v).kind != Kind::kFixed; });
    if (reads_samples) out = whole(operation);
  } else if (name == "dim_value") {
    out = size_of(operation, from_data);
  } else if (fixed) {
    // Made for a batch: equal along the samples, independent of each other, or by their place.
    if (samples_axis(result->type) != -1)
      out = is_one_of(name, {"full", "expand"}) || operation.op->has(kRandom)
                ? samples_of(operation, result, {})
                : whole(operation);
  } else if (operation.op->has(kElementwise) || name == "assign" || name == "cast") {
    out = elementwise(operation, result);
  } else if (is_one_of(name, {"matmul", "linear"})) {
    out = contraction(operation, result);
  } else if (operation.op->has(kReduction) || is_one_of(name, {"sum", "mean"})) {
    out = reduction(operation, result);
  } else if (is_one_of(name, {"reshape", "flatten", "squeeze", "unsqueeze"})) {
    out = reshaped(operation, result);
  } else if (is_one_of(name, {"expert_order", "expert_rows", "expert_sum", "grouped_matmul"})) {
    out = sorted_rows(operation, result);
  } else {
    out = other(operation, result);
  }
  out.from_data = from_data;
  return out;
}

Dependence BatchDependence::size_of(const Operation& operation, bool& from_data) const {
  const Dim& dim = operation.attrs[0].as_dim();
  if (!counts_samples(dim)) return {};
  bool known = is_linear(dim);
  std::vector<std::string> names;
  dim.collect_symbols(names);
  for (const std::string& name : names) {
    if (!name.starts_with('$')) continue;
    const auto made = run_time_.find(name);
    from_data = from_data && made != run_time_.end() && made->second.from_data;
    known = known && made != run_time_.end() && made->second.kind == Kind::kSamples;
  }
  Dependence out;
  out.kind = Kind::kSum;
  return known ? out : whole(operation);
}

Dependence BatchDependence::elementwise(const Operation& operation, const ir::Value* result) const {
  const std::string_view name = operation.op->name();
  if (name == "multiply") return product(operation, result);
  if (name == "divide") return quotient(operation, result);
  const bool rounds = name == "cast" && !is_float(result->type.dtype);
  if (!rounds && (is_one_of(name, {"add", "subtract", "neg", "assign", "cast"})))
    return sum_of_terms(operation, result, 0);
  if (name == "where") {
    const Dependence condition = of(operation.operands[0]);
    if (condition.kind == Kind::kFixed) return sum_of_terms(operation, result, 1);
  }
  // Any function of single elements: samples stay apart, sums do not stay sums.
  const ir::Value* first = nullptr;
  for (const ir::Value* v : operation.operands) {
    if (!v) continue;
    const Dependence d = of(v);
    if (d.divided() || d.kind == Kind::kSum || d.kind == Kind::kWhole) return whole(operation);
    if (d.kind != Kind::kSamples) continue;
    if (first && !aligned(of(first), first, d, v)) return whole(operation);
    first = v;
  }
  return samples_of(operation, result, of(first));
}

/// Of a linear function of its operands, from `first` on.
Dependence BatchDependence::sum_of_terms(const Operation& operation, const ir::Value* result,
                                         size_t first) const {
  const ir::Value* term = nullptr;
  Dependence out;
  bool fixed = false;
  for (size_t i = first; i < operation.operands.size(); ++i) {
    const ir::Value* v = operation.operands[i];
    if (!v) continue;
    const Dependence d = of(v);
    if (d.kind == Kind::kWhole) return whole(operation);
    if (d.kind == Kind::kFixed && !d.divided()) {
      fixed = fixed || !is_constant(v, 0);
      continue;
    }
    if (!term) {
      term = v;
      out = d;
      continue;
    }
    if (d.kind != out.kind || !same_divisor(d, out)) return whole(operation);
    if (d.kind == Kind::kSamples && !aligned(out, term, d, v)) return whole(operation);
    out.plus_fixed = out.plus_fixed || d.plus_fixed;
  }
  if (out.kind == Kind::kSamples)
    return out.divided() && fixed ? whole(operation) : samples_of(operation, result, out);
  if (fixed && out.kind == Kind::kFixed) return whole(operation);
  out.plus_fixed = out.plus_fixed || fixed;
  return out;
}

Dependence BatchDependence::product(const Operation& operation, const ir::Value* result) const {
  const ir::Value *x = operation.operands[0], *y = operation.operands[1];
  Dependence a = of(x), b = of(y);
  if (a.kind == Kind::kWhole || b.kind == Kind::kWhole) return whole(operation);
  if (a.divided() && b.divided()) return whole(operation);
  if (b.kind != Kind::kFixed && a.kind == Kind::kFixed) {
    std::swap(x, y);
    std::swap(a, b);
  }
  Dependence out = a;
  if (!a.divided()) {
    out.divisor = b.divisor;
    out.per_sample = b.per_sample;
  }
  if (b.kind == Kind::kFixed) {
    if (a.plus_fixed && b.divided()) return whole(operation);
    return a.kind == Kind::kSamples ? samples_of(operation, result, out) : out;
  }
  const bool both = a.kind == Kind::kSamples && b.kind == Kind::kSamples;
  if (!both || !aligned(a, x, b, y)) return whole(operation);
  return samples_of(operation, result, out);
}

Dependence BatchDependence::quotient(const Operation& operation, const ir::Value* result) const {
  const ir::Value *x = operation.operands[0], *y = operation.operands[1];
  const Dependence a = of(x), b = of(y);
  if (a.kind == Kind::kWhole) return whole(operation);
  if (!b.divided() && b.kind == Kind::kFixed)
    return a.kind == Kind::kSamples ? samples_of(operation, result, a) : a;
  if (!b.divided() && b.kind == Kind::kSamples && (a.kind == Kind::kFixed || a.kind == b.kind)) {
    if (a.kind == Kind::kSamples && !aligned(a, x, b, y)) return whole(operation);
    Dependence out = a.kind == Kind::kSamples ? a : b;
    out.divisor = a.divisor;
    out.per_sample = a.per_sample;
    return samples_of(operation, result, out);
  }
  // By a number of the whole batch, which no parameter changes.
  if (a.divided() || a.plus_fixed || !b.from_data || !is_scalar(y)) return whole(operation);
  Dependence out = a;
  const ir::Operation* maker = through_casts(y)->producer;
  if (maker && maker->op->name() == "dim_value" && b.kind == Kind::kSum)
    out.per_sample = !maker->attrs[0].as_dim().text().starts_with('$');
  if (!out.per_sample) {
    out.divisor = behind_guard(y);
    out.guarded = out.divisor != through_casts(y);
  }
  return a.kind == Kind::kSamples ? samples_of(operation, result, out) : out;
}

/// Products of matrices: sums over the samples where both operands have them along the axis that is
/// summed.
Dependence BatchDependence::contraction(const Operation& operation, const ir::Value* result) const {
  const Dependence by_element = [&] {
    const ir::Value *x = operation.operands[0], *y = operation.operands[1];
    const Dependence a = of(x), b = of(y);
    const bool open = a.kind == Kind::kWhole || b.kind == Kind::kWhole ||
                      (a.divided() && b.divided()) || a.plus_fixed || b.plus_fixed;
    if (open) return whole(operation);
    Dependence out = a.kind == Kind::kFixed ? b : a;
    if (!out.divided()) {
      out.divisor = a.kind == Kind::kFixed ? a.divisor : b.divisor;
      out.per_sample = a.kind == Kind::kFixed ? a.per_sample : b.per_sample;
    }
    if (a.kind == Kind::kFixed || b.kind == Kind::kFixed) return out;
    if (a.kind != Kind::kSamples || b.kind != Kind::kSamples) return whole(operation);
    return a.outer.same(b.outer) && !a.mask == !b.mask &&
                   (!a.mask || number_of(a.mask) == number_of(b.mask))
               ? out
               : whole(operation);
  }();
  if (by_element.kind == Kind::kWhole) return by_element;
  // A bias adds a term that is fixed.
  const bool bias = operation.operands.size() > 2 && operation.operands[2];
  if (bias && (by_element.divided() || by_element.kind == Kind::kSum ||
               of(operation.operands[2]).kind != Kind::kFixed))
    return whole(operation);
  if (by_element.kind != Kind::kSamples) return by_element;
  if (samples_axis(result->type) >= 0) return samples_of(operation, result, by_element);
  // Summed over: the axis must be that of the samples in both.
  const bool both = of(operation.operands[0]).kind == Kind::kSamples &&
                    of(operation.operands[1]).kind == Kind::kSamples;
  if (samples_axis(result->type) != -1 || !both || bias) return whole(operation);
  Dependence out = by_element;
  out.kind = Kind::kSum;
  return out;
}

Dependence BatchDependence::reduction(const Operation& operation, const ir::Value* result) const {
  const std::string_view name = operation.op->name();
  const ir::Value* x = operation.operands[0];
  const Dependence d = of(x);
  const bool adds = name == "sum" || name == "mean";
  if (d.kind == Kind::kWhole) return whole(operation);
  if (d.kind == Kind::kSum || d.kind == Kind::kFixed) return adds ? d : whole(operation);
  for (size_t i = 1; i < operation.operands.size(); ++i)
    if (operation.operands[i]) return whole(operation);
  const auto axes = axes_of(operation, "axis", x->type.shape.size());
  const bool over_samples =
      !axes || std::find(axes->begin(), axes->end(), static_cast<int64_t>(d.axis)) != axes->end();
  if (!over_samples)
    return adds || !d.divided() ? samples_of(operation, result, d) : whole(operation);
  if (!adds || (name == "mean" && (d.divided() || d.mask))) return whole(operation);
  Dependence out = d;
  out.kind = Kind::kSum;
  out.per_sample = out.per_sample || name == "mean";
  return out;
}

/// The elements in order, in other axes.
Dependence BatchDependence::reshaped(const Operation& operation, const ir::Value* result) const {
  const ir::Value* x = operation.operands[0];
  Dependence out = of(x);
  if (out.kind != Kind::kSamples) return out;
  const int axis = samples_axis(result->type);
  if (axis < 0) return whole(operation);
  const auto before = [](const ir::Value* v, size_t end) {
    return element_count(std::span<const Dim>(v->type.shape).first(end));
  };
  const Dim outer = before(x, out.axis) * out.outer;
  const Dim kept = before(result, static_cast<size_t>(axis));
  if (kept.same(outer))
    out.outer = 1;
  else if (kept.same(Dim(1)))
    out.outer = outer;
  else
    return whole(operation);
  return samples_of(operation, result, out);
}

/// Whether an operation whose operand `x` has its samples along `axis` may join samples.
bool BatchDependence::mixes_samples(const Operation& operation, const ir::Value* x, size_t axis) {
  const std::string_view name = operation.op->name();
  if (is_one_of(name, {"transpose", "swapaxes", "moveaxis"})) return false;
  if (is_one_of(name, {"gather_nd", "scatter", "scatter_nd", "scatter_nd_add", "index_put", "take",
                       "embedding_grad", "strided_slice_scatter"}))
    return true;
  bool named = is_one_of(name, {"embedding", "one_hot", "layer_norm", "rms_norm"});
  for (const char* attr : {"axis", "axes", "axis1", "axis2"}) {
    const int at = operation.op->attr_index(attr);
    if (at < 0) continue;
    named = true;
    const auto axes = axes_of(operation, attr, x->type.shape.size());
    if (!axes) return true;  // of the flattened tensor
    for (const int64_t other : *axes) {
      if (other != static_cast<int64_t>(axis)) continue;
      // A slice of all samples is all of them.
      const int strides = operation.op->attr_index("strides");
      const bool slice =
          name == "strided_slice" && strides >= 0 &&
          operation.attrs[static_cast<size_t>(strides)].text().find('-') == std::string::npos;
      if (!slice) return true;
    }
  }
  // Operations on images, sequences and the like take the samples along the first axis.
  const int time_major = operation.op->attr_index("time_major");
  const bool second = time_major >= 0 && operation.attrs[static_cast<size_t>(time_major)].as_bool();
  return !named && axis != (second ? 1 : 0);
}

/// Rows that are sorted by expert: each depends on one sample, and meets rows of the same order
/// only, which is noted as their mask.
Dependence BatchDependence::sorted_rows(const Operation& operation, const ir::Value* result) const {
  const std::string_view name = operation.op->name();
  const auto of_samples = [&](size_t i, const ir::Value* mask) {
    const Dependence d = of(operation.operands[i]);
    return d.kind == Kind::kSamples && d.axis == 0 && !d.divided() &&
           (mask ? d.mask && number_of(d.mask) == number_of(mask) : !d.mask);
  };
  const auto sorted = [&](const ir::Value* order) {
    Dependence out = samples_of(operation, result, {});
    out.mask = order;
    return out;
  };
  if (name == "expert_order")
    return of_samples(0, nullptr) && result == operation.results[0] ? sorted(result)
                                                                    : whole(operation);
  if (name == "grouped_matmul") {
    const ir::Value* const order = of(operation.operands[0]).mask;
    const bool fixed = of(operation.operands[1]).kind == Kind::kFixed;
    return order && fixed && of_samples(0, order) ? sorted(order) : whole(operation);
  }
  const ir::Value* const order = operation.operands[1];
  if (!of_samples(1, order)) return whole(operation);
  if (name == "expert_rows") return of_samples(0, nullptr) ? sorted(order) : whole(operation);
  const bool weighted = operation.operands.size() > 2 && operation.operands[2];
  if (!of_samples(0, order) || !weighted || !of_samples(2, nullptr)) return whole(operation);
  return samples_of(operation, result, of(operation.operands[2]));
}

/// Layers, and what moves elements: of operands without a divisor, each result keeps samples apart
/// if it has an axis for them.
Dependence BatchDependence::other(const Operation& operation, const ir::Value* result) const {
  const std::string_view name = operation.op->name();
  const ir::Value* first = nullptr;
  const bool linear = operation.op->has(kLinear) && operation.operands.size() == 1;
  for (size_t i = 0; i < operation.operands.size(); ++i) {
    const ir::Value* v = operation.operands[i];
    if (!v) continue;
    const Dependence d = of(v);
    if (d.kind == Kind::kFixed && !d.divided()) continue;
    if (d.kind == Kind::kWhole || (!linear && (d.divided() || d.kind != Kind::kSamples)))
      return whole(operation);
    if (d.kind != Kind::kSamples) return d;
    if (first) {
      const Dependence known = of(first);
      const bool same_mask =
          !d.mask ? !known.mask : known.mask && number_of(d.mask) == number_of(known.mask);
      if (!d.outer.same(known.outer) || !same_mask) return whole(operation);
    } else if (mixes_samples(operation, v, d.axis) || (name == "embedding" && i > 0)) {
      return whole(operation);
    } else {
      first = v;
    }
  }
  const Dependence like = of(first);
  if (name == "masked_select") {
    const Dependence mask = of(operation.operands[1]);
    if (mask.kind != Kind::kSamples || !aligned(like, first, mask, operation.operands[1]))
      return whole(operation);
    Dependence out = samples_of(operation, result, like);
    out.mask = operation.operands[1];
    return out;
  }
  const int axis = samples_axis(result->type);
  const bool kept =
      axis >= 0 && !operation.op->has(kRunTimeShape) &&
      result->type.shape[static_cast<size_t>(axis)].same(first->type.shape[like.axis]);
  return kept ? samples_of(operation, result, like) : whole(operation);
}

}  // namespace paddle::train
