#include "train/ports.h"

#include <utility>

#include "autograd/autograd.h"
#include "ops/operators.h"

namespace paddle::train {

int64_t Store::parameter_count() const {
  int64_t count = 0;
  for (const auto& [name, p] : parameters) count += p.value.size();
  return count;
}

void Store::lower(const std::string& parameter, DType low) {
  Array& value = parameters.at(parameter).value;
  states["master/" + parameter] = value;
  value =
      initializes(value.size()) ? value.cast(low).contiguous() : Array::reserve(low, value.shape);
}

bool Store::initializes(int64_t elements) const {
  constexpr int64_t kLargest = 1 << 20;
  return draws || elements <= kLargest;
}

const Array* Store::master(const std::string& parameter) const {
  const auto it = states.find("master/" + parameter);
  return it == states.end() ? nullptr : &it->second;
}

Array* Store::master(const std::string& parameter) {
  return const_cast<Array*>(std::as_const(*this).master(parameter));
}

void Store::round(const std::string& parameter) {
  Array& value = parameters.at(parameter).value;
  if (const Array* exact = master(parameter)) value = exact->cast(value.dtype).contiguous();
}

Store Store::full() const {
  Store out = *this;
  for (auto& [name, parameter] : out.parameters)
    if (const Array* exact = master(name)) parameter.value = *exact;
  std::erase_if(out.states, [](const auto& state) { return is_master(state.first); });
  return out;
}

DType Ports::kept_type(const std::string& path, DType declared) const {
  return store_.master(path) ? store_.parameters.at(path).value.dtype : widened(declared);
}

Array Ports::first_value(const std::string& path, const Dims& shape, DType dtype,
                         const model::Initialiser& init) const {
  if (store_.given)
    if (auto value = store_.given(path, shape, dtype)) return *value;
  if (!store_.initializes(element_count(std::span<const int64_t>(shape))))
    return Array::reserve(dtype, shape);
  const bool left_out = !store_.draws && init.is_random();
  return model::initial_value(left_out ? model::Initialiser::constant(0) : init, path, shape, dtype,
                              store_.seed);
}

Tensor Ports::parameter(const std::string& path, const Dims& shape, DType dtype,
                        const model::Initialiser& init) {
  auto [it, inserted] = parameters_.try_emplace(path);
  if (inserted) {
    const DType wanted = kept_type(path, dtype);
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

Ports::Slot& Ports::open_state(const std::string& name, const Dims& shape, DType dtype,
                               const std::function<Array()>& make) {
  auto [it, inserted] = states_.try_emplace(name);
  if (inserted) {
    auto stored = store_.states.find(name);
    if (stored == store_.states.end()) stored = store_.states.emplace(name, make()).first;
    const Array& value = stored->second;
    if (value.shape != shape || value.dtype != dtype)
      fail(ErrorCode::kModel, "state '", name, "' is ", text(value.dtype), str(value.shape),
           ", the model needs ", text(dtype), str(shape));
    it->second.value = open(ir::PortKind::kState, name, value);
  }
  return it->second;
}

Tensor Ports::state(const std::string& path, const Dims& shape, DType dtype,
                    const model::Initialiser& init, model::StateScope) {
  const DType wanted = widened(dtype);
  return open_state(path, shape, wanted, [&] { return first_value(path, shape, wanted, init); })
      .value;
}

void Ports::update(const std::string& path, const Tensor& value) {
  Slot& slot = states_.at(path);
  // What mixed precision computed in 16 bits.
  const DType kept = slot.value.dtype();
  slot.value = value.dtype() == kept ? value : ops::cast(value, kept);
  slot.changed = true;
}

int64_t Ports::static_value(const Dim& dim) {
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

Tensor Ports::slot(const std::string& name, const Dims& shape, DType dtype, double initial) {
  return open_state(
             name, shape, dtype,
             [&] { return first_value(name, shape, dtype, model::Initialiser::constant(initial)); })
      .value;
}

void Ports::set_slot(const std::string& name, const Tensor& value) { update(name, value); }

void Ports::set_parameter(const std::string& path, const Tensor& value) {
  Slot& slot = parameters_.at(path);
  slot.value = value;
  slot.changed = true;
}

Tensor Ports::existing(const std::string& path) {
  auto [it, inserted] = parameters_.try_emplace(path);
  if (inserted) {
    it->second.value = open(ir::PortKind::kParameter, path, store_.parameters.at(path).value);
    used_.push_back(path);
  }
  return it->second.value;
}

Tensor Ports::master(const std::string& path) {
  const Array* exact = store_.master(path);
  return exact ? slot("master/" + path, exact->shape, exact->dtype, 0) : Tensor();
}

void Ports::set_master(const std::string& path, const Tensor& value) {
  set_slot("master/" + path, value);
}

void Ports::note_kept(const Tensor& tensor) {
  for (const auto& [name, slot] : parameters_)
    if (tensor.is_same_cell(slot.value)) kept.insert(name);
}

void Ports::finish() {
  for (auto& [name, slot] : parameters_)
    if (slot.changed) close(ir::PortKind::kParameter, name, slot.value);
  for (auto& [name, slot] : states_)
    if (slot.changed) close(ir::PortKind::kState, name, slot.value);
}

Tensor TracePorts::open(ir::PortKind kind, const std::string& name, const Array& value) {
  return tracer_.input({kind, name}, {value.dtype, to_shape(value.shape)});
}

void TracePorts::close(ir::PortKind kind, const std::string& name, const Tensor& value) {
  tracer_.output({kind, name}, value);
}

Tensor EagerPorts::open(ir::PortKind kind, const std::string&, const Array& value) {
  const Tensor tensor(value);
  return kind == ir::PortKind::kParameter ? autograd::variable(tensor) : tensor;
}

void EagerPorts::close(ir::PortKind kind, const std::string& name, const Tensor& value) {
  Array& target =
      kind == ir::PortKind::kParameter ? store_.parameters.at(name).value : store_.states.at(name);
  target = value.array().contiguous();
}

}  // namespace paddle::train
