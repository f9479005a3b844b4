#include "ops/core/call.h"

#include <algorithm>
#include <array>

#include "ops/core/kernel.h"
#include "ops/core/operand_types.h"
#include "ops/core/row_sparse.h"

namespace paddle {
namespace {

thread_local RandomScope* current_random = nullptr;

const Op& cast_op() {
  static const Op& op = get_op("cast");
  return op;
}

Tensor cast_to(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype && !x.type().weak) return x;
  if (x.type().weak && x.is_concrete()) return Tensor(x.array().on_host().cast(dtype));
  return call_single(cast_op(), {x}, Attrs{{AttrValue(dtype)}, {}});
}

DType default_of_weak(DType d) {
  return d == DType::kF64 ? DType::kF32 : d == DType::kC128 ? DType::kC64 : d;
}

/// Casts the promoting operands to their common dtype.
void promote_operands(const Op& op, const OperandMap& map, Tensors& operands) {
  std::optional<DType> common;
  const auto each = [&](auto&& visit) {
    for (size_t d = 0; d < op.operands().size(); ++d)
      if (op.operands()[d].promotes)
        for (size_t i = map.begin(d); i < map.end(d); ++i)
          if (operands[i].defined()) visit(operands[i]);
  };
  each([&](const Tensor& t) {
    if (!t.type().weak) common = common ? promote(*common, t.dtype()) : t.dtype();
  });
  const bool all_weak = !common;
  each([&](const Tensor& t) {
    if (!t.type().weak) return;
    if (all_weak)
      common = common ? promote(*common, default_of_weak(t.dtype())) : default_of_weak(t.dtype());
    else
      common = promote_weak(*common, t.dtype());
  });
  if (!common) return;
  if (op.has(kFloatInputs) && !is_differentiable(*common)) common = DType::kF32;
  if (op.has(kDoubleInputs) && !is_differentiable(*common)) common = DType::kF64;
  each([&](Tensor& t) { t = cast_to(t, *common); });
}

void fill_random_state(const Op& op, const OperandMap& map, Tensors& operands, Attrs& attrs) {
  const int state = op.operand_index("rng");
  const int stream = op.attr_index("stream");
  ensure(state >= 0 && stream >= 0, "random operation without state: ", op.name());
  Tensor& slot = operands[map.begin(static_cast<size_t>(state))];
  if (slot.defined()) return;
  slot = RandomScope::state();
  attrs[static_cast<size_t>(stream)] = RandomScope::next_stream();
}

void check_present(const Op& op, const OperandMap& map, const Tensors& operands) {
  for (size_t d = 0; d < op.operands().size(); ++d) {
    const OperandDef& def = op.operands()[d];
    if (def.optional) continue;
    if (def.kind == OperandKind::kList && map.begin(d) == map.end(d) && !op.has(kControlFlow))
      fail(ErrorCode::kUsage, op.name(), ": '", def.name, "' is an empty list");
    for (size_t i = map.begin(d); i < map.end(d); ++i)
      if (!operands[i].defined())
        fail(ErrorCode::kUsage, op.name(), ": '", def.name, "' is missing");
  }
}

/// Weak scalars that were not promoted by a tensor get the default dtype.
void settle_weak(Tensors& operands) {
  for (Tensor& t : operands)
    if (t.defined() && t.type().weak) t = cast_to(t, default_of_weak(t.dtype()));
}

void link_view(const Op& op, const Attrs& attrs, const Tensor& base, const Tensor& view) {
  const WriteFn write = op.def->write;
  Tensor(view).set_view(
      base, [&op, attrs](const Tensor& b) { return call_single(op, {b}, attrs); },
      [write, attrs](const Tensor& b, const Tensor& v) { return write(b, v, attrs); });
}

}  // namespace

namespace {

bool takes_complex(const Op& op) { return op.has(kTakesComplex) || op.has(kControlFlow); }

/// Rejects negative sizes, and known sizes that cannot be counted: next to a size of 0 too, so that
/// kernels may multiply them.
void check_sizes(const Op& op, const TensorType& result) {
  int64_t count = 1;
  for (const Dim& d : result.shape) {
    if (!d.is_constant() || d.value() == 0) continue;
    if (d.value() < 0)
      fail(ErrorCode::kUsage, op.name(), ": the result would have a negative size: ", result);
    if (__builtin_mul_overflow(count, d.value(), &count) || count > int64_t{1} << 56)
      fail(ErrorCode::kUsage, op.name(), ": the result would be too large: ", result);
  }
}

/// Whether `word` is one of "a|b|c".
bool is_one_of(std::string_view word, std::string_view words) {
  while (true) {
    const size_t end = words.find('|');
    if (words.substr(0, end) == word) return true;
    if (end == std::string_view::npos) return false;
    words.remove_prefix(end + 1);
  }
}

std::string wrong_word(const std::string& word, const char* expected) {
  const auto words = split(expected, '|');
  return str("expected one of ", join(words, ", "), ", found '", word, "'",
             did_you_mean(word, words));
}

/// Attributes of several words: bound calls are checked when they are bound, this checks those of
/// C++ and of composed operations.
void check_words(const Op& op, const Attrs& attrs) {
  const std::span<const AttrDef> defs = op.attrs();
  for (size_t i = 0; i < defs.size(); ++i)
    if (defs[i].type == AttrType::kWord && attrs[i].is_string() &&
        !is_one_of(attrs[i].as_string(), defs[i].words))
      fail(ErrorCode::kUsage, op.name(), ": ", defs[i].name, ": ",
           wrong_word(attrs[i].as_string(), defs[i].words));
}

}  // namespace

Inferred infer_results(const Op& op, const Attrs& attrs, const Tensors& operands) {
  check_words(op, attrs);
  check_operand_types(op, attrs, operands);
  InferContext context(op, attrs, operands);
  op.def->infer(context);
  for (const TensorType& t : context.results()) {
    if (is_complex(t.dtype) && !takes_complex(op))
      fail(ErrorCode::kUsage, op.name(), ": the result cannot be ", text(t.dtype));
    check_sizes(op, t);
  }
  return {std::move(context.results()), std::move(context.constraints())};
}

Tensors call(const Op& op, Tensors operands, Attrs attrs) {
  Interpreter& interpreter = current_interpreter();
  if (Tensors results; interpreter.apply_known(op, operands, attrs, results)) return results;
  const OperandMap map(op, attrs);
  ensure(operands.size() == map.flat_count(), op.name(), ": ", operands.size(),
         " operands given, expected ", map.flat_count());
  if (std::any_of(operands.begin(), operands.end(),
                  [](const Tensor& t) { return row_sparse(t) != nullptr; })) {
    if (Tensors passed = row_sparse_call(op, operands, attrs); !passed.empty()) return passed;
    for (Tensor& t : operands) t = densify(t);
  }
  if (op.has(kRandom)) fill_random_state(op, map, operands, attrs);
  check_present(op, map, operands);
  promote_operands(op, map, operands);
  settle_weak(operands);
  if (Tensors results; interpreter.apply_known(op, operands, attrs, results)) return results;
  const Inferred inferred = infer_results(op, attrs, operands);
  Tensors results =
      interpreter.apply({op, operands, attrs, inferred.results, inferred.constraints});
  if (op.def->view && op.def->write && !results.empty() && !results[0].is_same_cell(operands[0]))
    link_view(op, attrs, operands[0], results[0]);
  return results;
}

Tensors call_visible(const Op& op, Tensors operands, Attrs attrs) {
  Tensors results = call(op, std::move(operands), std::move(attrs));
  size_t hidden = 0;
  for (const ResultDef& r : op.results()) hidden += r.hidden;
  if (hidden) results.resize(results.size() - hidden);
  return results;
}

Tensor call_single(const Op& op, Tensors operands, Attrs attrs) {
  Tensors results = call(op, std::move(operands), std::move(attrs));
  ensure(!results.empty(), op.name(), ": no result");
  return results[0];
}

bool is_decomposed(const OpCall& call, const TargetInfo& target) {
  // A view is tried first.
  if (!call.op.def->decompose || (call.op.def->provider && call.op.def->view)) return false;
  std::vector<DType> operands;
  for (const Tensor& t : call.operands)
    if (t.defined()) operands.push_back(t.dtype());
  return !has_kernel(call.op, target, operands);
}

Tensors decompose(const OpCall& c) {
  ensure(c.op.def->decompose != nullptr, c.op.name(), ": no kernel and no decomposition");
  CallContext context(c.op, c.attrs, c.operands, c.results);
  Tensors results = c.op.def->decompose(context);
  ensure(results.size() == c.results.size(), c.op.name(), ": the decomposition gives ",
         results.size(), " results, inference ", c.results.size());
  return results;
}

// --- binding ---

Attrs default_attrs(const Op& op) {
  Attrs attrs;
  attrs.values = op.defaults;
  return attrs;
}

AttrValue convert_attr(const AttrDef& def, const AttrValue& value, const std::string& where) {
  try {
    if (value.is_none()) {
      if (!def.optional && !(def.type == AttrType::kAny))
        fail(ErrorCode::kUsage, "none is not allowed");
      return value;
    }
    switch (def.type) {
      case AttrType::kBool:
        return value.as_bool();
      case AttrType::kInt:
        return value.as_int();
      case AttrType::kDim:
        return value.as_dim();
      case AttrType::kFloat:
        return value.as_double();
      case AttrType::kString:
        return value.as_string();
      case AttrType::kWord: {
        const std::string& word = value.as_string();
        if (!is_one_of(word, def.words)) fail(ErrorCode::kUsage, wrong_word(word, def.words));
        return value;
      }
      case AttrType::kDType:
        if (value.is_string()) {
          if (const auto dtype = parse_dtype(value.as_string())) return *dtype;
          const auto names = dtype_names();
          fail(ErrorCode::kUsage, "'", value.as_string(), "' is not a dtype",
               did_you_mean(value.as_string(), names));
        }
        return value.as_dtype();
      case AttrType::kInts:
        return value.as_ints();
      case AttrType::kDims:
        return value.as_dims();
      case AttrType::kFloats:
        return value.as_doubles();
      case AttrType::kStrings:
        return value.as_strings();
      case AttrType::kNumber:
        if (value.is_bool() || value.is_int() || value.is_float() || value.is_complex())
          return value;
        fail(ErrorCode::kUsage, "expected a number, found ", value);
      case AttrType::kAny:
        return value;
    }
  } catch (const Error& e) {
    fail(ErrorCode::kUsage, where, def.name, ": ", e.message());
  }
  return value;
}

namespace {

AttrValue value_of(const Tensor& t, const std::string& where) {
  if (!t.is_concrete())
    fail(ErrorCode::kUsage, where, "a tensor is given whose value is not known while tracing");
  if (t.ndim() > 1 || t.array().size() > 1000000)
    fail(ErrorCode::kUsage, where, "expected a number or a list, found ", t.type());
  const Array a = t.array().on_host();
  const auto element = [&](int64_t i) {
    if (is_bool(a.dtype)) return AttrValue(a.integer(i) != 0);
    if (is_complex(a.dtype)) return AttrValue(a.complex_number(i));
    return is_float(a.dtype) ? AttrValue(a.number(i)) : AttrValue(a.integer(i));
  };
  if (a.ndim() == 0) return element(0);
  AttrValue::List items;
  for (int64_t i = 0; i < a.size(); ++i) items.push_back(element(i));
  return items;
}

Tensor number_operand(const AttrValue& v, const std::string& where) {
  if (v.is_bool()) return Tensor::boolean(v.as_bool());
  if (v.is_int() && v.as_dim().is_constant()) return Tensor::number(v.as_int());
  if (v.is_float()) return Tensor::number(v.as_double());
  if (v.is_complex()) return Tensor::number(v.as_complex());
  fail(ErrorCode::kUsage, where, "expected a tensor, found ", v);
}

}  // namespace

std::string parameter_name(const Op& op, const std::string& name) {
  const auto has = [&](const std::string& n) {
    return op.operand_index(n) >= 0 || op.attr_index(n) >= 0;
  };
  if (has(name)) return name;
  for (const auto& [synonym, declared] : generated::synonym_table())
    if (name == synonym && has(declared)) return declared;
  return name;
}

namespace {

/// Parameters of PaddlePaddle's functions that do not affect the values of results: accepted, if
/// they have no effect, by operations without a parameter of that name.
bool has_no_effect(const std::string& name, const Argument& value) {
  const auto names = generated::ignored_parameters();
  const auto* v = std::get_if<AttrValue>(&value);
  if (v && v->is_bool() && name == "inplace") return true;  // the memory plan decides
  return v && (v->is_none() || (v->is_bool() && !v->as_bool())) &&
         std::find(names.begin(), names.end(), name) != names.end();
}

Bound bind_form(const Op& op, std::vector<Argument> positional,
                std::vector<std::pair<std::string, Argument>>&& named) {
  std::vector<std::optional<Argument>> given(op.params().size());
  size_t callable = 0;  // hidden parameters come last and are not counted
  std::vector<std::string> names;
  for (const ParamDef& p : op.params()) {
    const auto i = static_cast<size_t>(p.index);
    const bool hidden = p.is_operand ? op.operands()[i].hidden : op.attrs()[i].hidden;
    names.emplace_back(p.is_operand ? op.operands()[i].name : op.attrs()[i].name);
    if (!hidden) callable = names.size();
  }
  if (positional.size() > callable)
    fail(ErrorCode::kUsage, op.name(), ": ", positional.size(), " arguments given, at most ",
         callable, " expected");
  for (size_t i = 0; i < positional.size(); ++i) given[i] = std::move(positional[i]);
  for (auto& [name, value] : named) {
    const auto it = std::find(names.begin(), names.end(), parameter_name(op, name));
    if (it == names.end() && has_no_effect(name, value)) continue;
    if (it == names.end())
      fail(ErrorCode::kUsage, op.name(), ": unknown argument '", name, "'",
           did_you_mean(name, std::span(names).subspan(0, callable)));
    auto& slot = given[static_cast<size_t>(it - names.begin())];
    if (slot) fail(ErrorCode::kUsage, op.name(), ": '", name, "' is given twice");
    slot = std::move(value);
  }

  Bound bound;
  bound.op = &op;
  bound.attrs = default_attrs(op);
  std::vector<Tensors> per_operand(op.operands().size());
  const std::string prefix = str(op.name(), ": ");
  for (size_t i = 0; i < given.size(); ++i) {
    const ParamDef& p = op.params()[i];
    const auto index = static_cast<size_t>(p.index);
    auto& value = given[i];
    if (!p.is_operand) {
      const AttrDef& def = op.attrs()[index];
      if (!value) {
        if (def.required) fail(ErrorCode::kUsage, prefix, "'", def.name, "' is missing");
        continue;
      }
      const std::string where = str(prefix, def.name, ": ");
      if (const auto* t = std::get_if<Tensor>(&*value)) {
        AttrValue v = value_of(*t, where);
        const bool one = def.type == AttrType::kInt || def.type == AttrType::kFloat ||
                         def.type == AttrType::kNumber || def.type == AttrType::kBool ||
                         def.type == AttrType::kDim;
        if (one && v.is_list() && v.as_list().size() == 1) v = AttrValue(v.as_list()[0]);
        bound.attrs[index] = convert_attr(def, v, prefix);
      } else if (const auto* ts = std::get_if<Tensors>(&*value)) {
        AttrValue::List items;
        for (const Tensor& t : *ts) items.push_back(value_of(t, where));
        bound.attrs[index] = convert_attr(def, items, prefix);
      } else {
        bound.attrs[index] = convert_attr(def, std::get<AttrValue>(*value), prefix);
      }
      continue;
    }
    const OperandDef& def = op.operands()[index];
    const std::string where = str(prefix, def.name, ": ");
    Tensors& slot = per_operand[index];
    if (!value ||
        (std::holds_alternative<AttrValue>(*value) && std::get<AttrValue>(*value).is_none())) {
      if (!def.optional && !def.hidden)
        fail(ErrorCode::kUsage, prefix, "'", def.name, "' is missing");
      if (def.kind == OperandKind::kTensor) slot.push_back(Tensor());
    } else if (def.kind == OperandKind::kList) {
      if (auto* ts = std::get_if<Tensors>(&*value)) {
        slot = std::move(*ts);
      } else if (auto* t = std::get_if<Tensor>(&*value)) {
        slot.push_back(std::move(*t));
      } else {
        const AttrValue& list = std::get<AttrValue>(*value);
        if (!list.is_list()) fail(ErrorCode::kUsage, where, "expected a list of tensors");
        for (const AttrValue& v : list.as_list()) slot.push_back(number_operand(v, where));
      }
    } else {
      if (auto* t = std::get_if<Tensor>(&*value))
        slot.push_back(std::move(*t));
      else if (const auto* v = std::get_if<AttrValue>(&*value))
        slot.push_back(number_operand(*v, where));
      else
        fail(ErrorCode::kUsage, where, "expected one tensor, found a list");
    }
  }
  for (size_t d = 0; d < per_operand.size(); ++d) {
    if (op.operands()[d].kind == OperandKind::kList)
      bound.attrs.list_sizes.push_back(static_cast<int32_t>(per_operand[d].size()));
    for (Tensor& t : per_operand[d]) bound.operands.push_back(std::move(t));
  }
  return bound;
}

bool is_none(const Argument& value) {
  const auto* v = std::get_if<AttrValue>(&value);
  return v && v->is_none();
}

/// The place of a declared parameter that callers may give; none for other names.
std::optional<size_t> declared_place(const Op& op, const std::string& name) {
  for (size_t i = 0; i < op.params().size(); ++i) {
    const ParamDef& p = op.params()[i];
    const auto index = static_cast<size_t>(p.index);
    if (name == (p.is_operand ? op.operands()[index].name : op.attrs()[index].name)) return i;
  }
  return std::nullopt;
}

/// Binds most calls that are right, and does nothing for others: `bind_form` gives the same for
/// the former and says what is wrong with the latter, but eager programs bind at every call.
bool bind_at_once(const Op& op, const std::vector<Argument>& positional,
                  const std::vector<std::pair<std::string, Argument>>& named, Bound& bound) {
  constexpr size_t kMaxParameters = 24;
  std::array<const Argument*, kMaxParameters> given{};
  if (op.params().size() > kMaxParameters || op.operands().size() > kMaxParameters) return false;
  if (positional.size() > op.params().size()) return false;
  for (size_t i = 0; i < positional.size(); ++i) given[i] = &positional[i];
  for (const auto& [name, value] : named) {
    const auto place = declared_place(op, name);
    if (!place || given[*place]) return false;
    given[*place] = &value;
  }
  std::array<const Argument*, kMaxParameters> operands{};
  for (size_t i = 0; i < op.params().size(); ++i) {
    const ParamDef& p = op.params()[i];
    const auto index = static_cast<size_t>(p.index);
    if (p.is_operand) {
      const OperandDef& def = op.operands()[index];
      const bool absent = !given[i] || is_none(*given[i]);
      if (absent ? !(def.optional || def.hidden) : def.hidden) return false;
      operands[index] = absent ? nullptr : given[i];
    } else {
      const AttrDef& def = op.attrs()[index];
      if (given[i] ? def.hidden || !std::holds_alternative<AttrValue>(*given[i]) : def.required)
        return false;
    }
  }
  for (size_t d = 0; d < op.operands().size(); ++d) {
    const Argument* const value = operands[d];
    const bool list = op.operands()[d].kind == OperandKind::kList;
    if (value &&
        (list ? !std::holds_alternative<Tensors>(*value) : std::holds_alternative<Tensors>(*value)))
      return false;
    if (const auto* v = value ? std::get_if<AttrValue>(value) : nullptr)
      if (!(v->is_bool() || v->is_float() || (v->is_int() && v->as_dim().is_constant())))
        return false;
  }
  bound.op = &op;
  bound.attrs = default_attrs(op);
  for (size_t i = 0; i < op.params().size(); ++i) {
    const ParamDef& p = op.params()[i];
    const auto index = static_cast<size_t>(p.index);
    if (p.is_operand || !given[i]) continue;
    bound.attrs[index] =
        convert_attr(op.attrs()[index], std::get<AttrValue>(*given[i]), str(op.name(), ": "));
  }
  bound.operands.reserve(op.operands().size());
  for (size_t d = 0; d < op.operands().size(); ++d) {
    const Argument* const value = operands[d];
    if (op.operands()[d].kind == OperandKind::kList) {
      const Tensors none;
      const Tensors& list = value ? std::get<Tensors>(*value) : none;
      bound.attrs.list_sizes.push_back(static_cast<int32_t>(list.size()));
      bound.operands.insert(bound.operands.end(), list.begin(), list.end());
    } else if (!value) {
      bound.operands.emplace_back();
    } else if (const auto* t = std::get_if<Tensor>(value)) {
      bound.operands.push_back(*t);
    } else {
      bound.operands.push_back(number_operand(std::get<AttrValue>(*value), ""));
    }
  }
  return true;
}

}  // namespace

Bound bind_arguments(const Op& op, std::vector<Argument> positional,
                     std::vector<std::pair<std::string, Argument>> named) {
  const bool overloaded = *op.def->overloads != 0;
  try {
    if (Bound bound; bind_at_once(op, positional, named, bound)) return bound;
  } catch (const Error&) {
    if (!overloaded) throw;  // else the arguments may be those of an overload
  }
  if (!overloaded) return bind_form(op, std::move(positional), std::move(named));
  std::vector<const Op*> forms = {&op};
  for (const std::string& name : split(op.def->overloads, '|')) forms.push_back(&get_op(name));
  const auto takes = [](const Op& form, const std::string& given) {
    const std::string name = parameter_name(form, given);
    return form.operand_index(name) >= 0 || form.attr_index(name) >= 0;
  };
  const auto bind_to = [&](const Op& form) {
    // None for a parameter that another form has asks for nothing.
    auto kept = named;
    std::erase_if(kept, [&](const auto& argument) {
      return is_none(argument.second) && !takes(form, argument.first) &&
             std::any_of(forms.begin(), forms.end(),
                         [&](const Op* other) { return takes(*other, argument.first); });
    });
    return bind_form(form, positional, std::move(kept));
  };
  try {
    return bind_to(op);
  } catch (const Error& first) {
    for (size_t i = 1; i < forms.size(); ++i) {
      try {
        return bind_to(*forms[i]);
      } catch (const Error&) {
        continue;  // the caller wrote the plain form's name: its error says more
      }
    }
    throw;
  }
}

// --- random state ---

RandomScope::RandomScope(Tensor seed_and_step)
    : state_(std::move(seed_and_step)), previous_(current_random) {
  current_random = this;
}

RandomScope::RandomScope(uint64_t seed, uint64_t step)
    : seed_(seed), step_(step), makes_state_(true), previous_(current_random) {
  current_random = this;
}

RandomScope::RandomScope(std::function<Tensor()> make)
    : makes_state_(true), make_(std::move(make)), previous_(current_random) {
  current_random = this;
}

RandomScope::~RandomScope() { current_random = previous_; }

const Tensor& RandomScope::state() {
  if (!current_random) fail(ErrorCode::kUsage, "a random operation needs a seed here");
  RandomScope& scope = *current_random;
  if (!scope.state_.defined()) {
    // Code that is evaluated more than once opens a scope without state.
    if (!scope.makes_state_) fail(ErrorCode::kUsage, "a random operation cannot be called here");
    scope.state_ = scope.make_ ? scope.make_()
                               : Tensor(Array::from<uint64_t>({scope.seed_, scope.step_}, {2}));
  }
  return scope.state_;
}

int64_t RandomScope::next_stream() { return current_random->streams_++; }

}  // namespace paddle
