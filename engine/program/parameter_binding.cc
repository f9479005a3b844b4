#include "program/parameter_binding.h"

#include <algorithm>
#include <utility>

#include "autograd/autograd.h"
#include "ops/core/operators.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/shape.h"
#include "runtime/execute.h"

namespace paddle::program {

DType ParameterBinding::stored_dtype(const std::string& path, DType declared) const {
  return store_.master(path) ? store_.parameters.at(path).value.dtype : widened(declared);
}

Array ParameterBinding::first_value(const std::string& path, const Dims& shape, DType dtype,
                                    const lang::Initializer& init) const {
  if (deferred) {
    (*deferred)[path] = [preset = store_.preset, seed = store_.seed, path, shape, dtype, init] {
      if (preset)
        if (auto value = preset(path, shape, dtype)) return *value;
      const bool as_it_is =
          init.kind == lang::Initializer::Kind::kArray && init.array.dtype == dtype;
      return as_it_is ? init.array : lang::initial_value(init, path, shape, dtype, seed);
    };
    return Array::reserve(dtype, shape);
  }
  if (store_.preset)
    if (auto value = store_.preset(path, shape, dtype)) return *value;
  if (!store_.initializes(element_count(std::span<const int64_t>(shape))))
    return Array::reserve(dtype, shape);
  const bool left_out = !store_.initializes_random && init.is_random();
  return lang::initial_value(left_out ? lang::Initializer::constant(0) : init, path, shape, dtype,
                             store_.seed);
}

Tensor ParameterBinding::parameter(const std::string& path, const Dims& shape, DType dtype,
                                   const lang::Initializer& init) {
  auto [it, inserted] = parameters_.try_emplace(path);
  if (inserted) {
    const DType wanted = stored_dtype(path, dtype);
    auto stored = store_.parameters.find(path);
    if (stored == store_.parameters.end())
      stored = store_.parameters
                   .emplace(path, Parameter{first_value(path, shape, wanted, init), init.text()})
                   .first;
    Array& value = stored->second.value;
    if (value.shape != shape || value.dtype != wanted)
      fail(ErrorCode::kModel, "parameter '", path, "' is ", text(value.dtype), str(value.shape),
           ", the model needs ", text(wanted), str(shape));
    it->second.value = open(ir::PortKind::kParameter, path, value);
    used_.push_back(path);
  }
  return it->second.value;
}

ParameterBinding::Slot& ParameterBinding::open_state(const std::string& name, const Dims& shape,
                                                     DType dtype,
                                                     const std::function<Array()>& make) {
  auto [it, inserted] = states_.try_emplace(name);
  if (inserted) {
    auto stored = store_.states.find(name);
    if (stored == store_.states.end()) stored = store_.states.emplace(name, make()).first;
    const Array& value = stored->second;
    if (value.shape != shape || value.dtype != dtype)
      fail(ErrorCode::kModel, "state '", name, "' is ", text(value.dtype), str(value.shape),
           ", the model needs ", text(dtype), str(shape));
    it->second.value = it->second.before = open(ir::PortKind::kState, name, value);
  }
  return it->second;
}

Tensor ParameterBinding::state(const std::string& path, const Dims& shape, DType dtype,
                               const lang::Initializer& init, lang::StateScope scope) {
  const DType wanted = widened(dtype);
  if (scope == lang::StateScope::kSequence && !store_.sequence_starts.contains(path))
    store_.sequence_starts[path] = first_value(path, shape, wanted, init);
  store_.state_initializers.try_emplace(path, init.text());
  return open_state(path, shape, wanted, [&] { return first_value(path, shape, wanted, init); })
      .value;
}

void ParameterBinding::update(const std::string& path, const Tensor& value) {
  Slot& slot = states_.at(path);
  // Mixed precision may have computed it in 16 bits.
  const DType kept = slot.value.dtype();
  slot.value = value.dtype() == kept ? value : ops::cast(value, kept);
  slot.changed = true;
}

int64_t ParameterBinding::static_value(const Dim& dim) {
  if (dim.is_constant()) return dim.value();
  const auto value = dim.evaluate([&](const std::string& name) -> std::optional<int64_t> {
    const auto it = known_dims.find(name);
    if (it == known_dims.end()) return std::nullopt;
    fixed_dims[name] = it->second;
    return it->second;
  });
  if (!value) {
    lacks_dims = true;
    fail(ErrorCode::kUsage, "static: the dim '", dim, "' has no value here");
  }
  return *value;
}

Tensor ParameterBinding::slot(const std::string& name, const Dims& shape, DType dtype,
                              double initial) {
  const auto init = lang::Initializer::constant(initial);
  store_.state_initializers.try_emplace(name, init.text());
  return open_state(name, shape, dtype, [&] { return first_value(name, shape, dtype, init); })
      .value;
}

Tensor ParameterBinding::slot_like(const std::string& name, const std::string& parameter) {
  const Array* exact = store_.master(parameter);
  const Array& value = exact ? *exact : store_.parameters.at(parameter).value;
  return open_state(name, value.shape, value.dtype,
                    [&] {
                      return store_.initializes(value.size())
                                 ? runtime::copied(value)
                                 : Array::reserve(value.dtype, value.shape);
                    })
      .value;
}

void ParameterBinding::set_slot(const std::string& name, const Tensor& value) {
  update(name, value);
}

void ParameterBinding::set_parameter(const std::string& path, const Tensor& value) {
  Slot& slot = parameters_.at(path);
  slot.value = value;
  slot.changed = true;
}

Tensor ParameterBinding::table_rows(const std::string& path, const Tensor& keys, int64_t width,
                                    DType dtype, const lang::Initializer& init,
                                    const Tensor& mask) {
  const DType wanted = widened(dtype);
  if (!tables || !tables->provides(path)) return stored_rows(path, keys, width, wanted);
  tables->open(
      {path, width, wanted, init, keys.dtype() == DType::kU64 ? DType::kU64 : DType::kI64});
  const auto field_of = [&](const Tensor& input, const char* what) {
    const auto field = std::find_if(fields.begin(), fields.end(), [&](const auto& each) {
      return each.second.content() == input.content();
    });
    if (field == fields.end())
      fail(ErrorCode::kConfig, "sparse_embedding: ", what,
           " must be an input of the model that is a field of "
           "the data as it is, not a computed value");
    return field->first;
  };
  TableLookup lookup{path, field_of(keys, "x"), {}, {}};
  if (mask.defined()) lookup.mask = field_of(mask, "mask");
  const auto known = std::find_if(lookups_.begin(), lookups_.end(), [&](const auto& each) {
    return each.table == path && each.field == lookup.field;
  });
  if (known != lookups_.end()) {
    if (known->mask != lookup.mask)
      fail(ErrorCode::kConfig, "sparse_embedding: the field '", lookup.field,
           "' is looked up in the table '", path, "' with another mask elsewhere");
    return known->rows;
  }
  Shape shape = keys.shape();
  shape.push_back(width);
  open_rows(lookup, keys, {wanted, shape});
  return lookups_.emplace_back(std::move(lookup)).rows;
}

/// The lookup as a binary search, with a step for each halving of the keys: operations that every
/// format of models has. A key that the table lacks has a row of zeros.
Tensor ParameterBinding::stored_rows(const std::string& path, const Tensor& keys, int64_t width,
                                     DType dtype) {
  const auto stored = store_.parameters.find(table_keys(path));
  if (stored == store_.parameters.end())
    fail(ErrorCode::kConfig, "sparse_embedding: the rows of '", path,
         "' are those of a run; expected its saved model or a checkpoint");
  const Dims shape = stored->second.value.shape;
  if (shape.size() != 1)
    fail(ErrorCode::kModel, "parameter '", table_keys(path), "' is ", str(shape),
         ", expected one axis");
  Shape out = keys.shape();
  out.push_back(width);
  if (shape[0] == 0) return full_of(out, 0, dtype);
  const lang::Initializer none = lang::Initializer::constant(0);
  const DType key = stored->second.value.dtype;
  if ((key == DType::kU64) != (keys.dtype() == DType::kU64))
    fail(ErrorCode::kConfig, "sparse_embedding: the table '", path, "' has ", text(key),
         " keys, x is ", text(keys.dtype()));
  const Tensor known = parameter(table_keys(path), shape, key, none);
  const Tensor weight = parameter(table_weight(path), {shape[0], width}, dtype, none);
  const Tensor wanted = ops::reshape(ops::cast(keys, key), {Dim(-1)});
  const auto key_at = [&](const Tensor& at) { return ops::index_select(known, at, 0); };
  Tensor at = ops::full_like(wanted, AttrValue(int64_t{0}));
  for (int64_t left = shape[0]; left > 1; left -= left / 2) {
    const Tensor next = at + Tensor::number(left / 2);
    at = ops::where(ops::less_equal(key_at(next), wanted), next, at);
  }
  const Tensor is_known = ops::unsqueeze(ops::equal(key_at(at), wanted), {-1});
  const Tensor rows = ops::embedding(at, weight);
  return ops::reshape(ops::where(is_known, rows, ops::zeros_like(rows)), out);
}

Tensor ParameterBinding::existing(const std::string& path) {
  auto [it, inserted] = parameters_.try_emplace(path);
  if (inserted) {
    it->second.value = open(ir::PortKind::kParameter, path, store_.parameters.at(path).value);
    used_.push_back(path);
  }
  return it->second.value;
}

Tensor ParameterBinding::reread(const std::string& path) {
  Slot& slot = parameters_.at(path);
  return slot.value = ops::assign(slot.value);
}

void ParameterBinding::keep_states_where(const Tensor& skip) {
  for (auto& [name, slot] : states_)
    if (slot.changed && is_model_state(name))
      slot.value = ops::where(skip, slot.before, slot.value);
}

void ParameterBinding::give_up_updates() {
  for (auto& [name, slot] : states_) {
    slot.value = slot.before;
    slot.changed = false;
  }
}

Tensor ParameterBinding::master(const std::string& path) {
  const Array* exact = store_.master(path);
  return exact ? slot("master/" + path, exact->shape, exact->dtype, 0) : Tensor();
}

void ParameterBinding::set_master(const std::string& path, const Tensor& value) {
  set_slot("master/" + path, value);
}

std::string ParameterBinding::name_of(const Tensor& tensor) const {
  for (const auto& [name, slot] : parameters_)
    if (tensor.is_same_cell(slot.value)) return name;
  return "";
}

void ParameterBinding::note_kept(const Tensor& tensor) {
  const std::string name = name_of(tensor);
  if (!name.empty()) kept.insert(name);
}

void ParameterBinding::finish() {
  for (auto& [name, slot] : parameters_)
    if (slot.changed) close(ir::PortKind::kParameter, name, slot.value);
  for (auto& [name, slot] : held_ ? *held_ : states_)
    if (slot.changed) close(ir::PortKind::kState, name, slot.value);
}

Tensor TraceBinding::open(ir::PortKind kind, const std::string& name, const Array& value) {
  return tracer_.input({kind, name}, {value.dtype, to_shape(value.shape)});
}

void TraceBinding::close(ir::PortKind kind, const std::string& name, const Tensor& value) {
  tracer_.output({kind, name}, value);
}

void TraceBinding::open_rows(TableLookup& lookup, const Tensor& keys, const TensorType& rows) {
  lookup.rows = tracer_.input({ir::PortKind::kValue, rows_port(lookup)}, rows);
  if (numbers_rows)
    lookup.numbers =
        tracer_.input({ir::PortKind::kValue, numbers_port(lookup)}, {DType::kI64, keys.shape()});
}

Tensor EagerBinding::open(ir::PortKind kind, const std::string&, const Array& value) {
  const Tensor tensor(value);
  return kind == ir::PortKind::kParameter ? autograd::variable(tensor) : tensor;
}

void EagerBinding::open_rows(TableLookup& lookup, const Tensor& keys, const TensorType&) {
  const Array mask = lookup.mask.empty() ? Array() : fields.at(lookup.mask).array();
  TableRows read = tables->read(lookup.table, keys.array(), mask);
  lookup.rows = autograd::variable(Tensor(std::move(read.rows)));
  lookup.numbers = Tensor(std::move(read.numbers));
}

void EagerBinding::close(ir::PortKind kind, const std::string& name, const Tensor& value) {
  Array& target =
      kind == ir::PortKind::kParameter ? store_.parameters.at(name).value : store_.states.at(name);
  target = runtime::packed(value.array());
}

}  // namespace paddle::program
