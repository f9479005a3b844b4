#include "program/parameter_store.h"

#include <utility>

#include "runtime/execute.h"

namespace paddle::program {

Array& ParameterStore::array(const std::string& name) {
  const auto parameter = parameters.find(name);
  return parameter != parameters.end() ? parameter->second.value : states.at(name);
}
const Array& ParameterStore::array(const std::string& name) const {
  return const_cast<ParameterStore&>(*this).array(name);
}

int64_t ParameterStore::parameter_count() const {
  int64_t count = 0;
  for (const auto& [name, p] : parameters) count += p.value.size();
  return count;
}

void ParameterStore::keep_in_16_bits(const std::string& parameter, DType low) {
  Array& value = parameters.at(parameter).value;
  states["master/" + parameter] = value;
  value =
      initializes(value.size()) ? value.cast(low).contiguous() : Array::reserve(low, value.shape);
}

void ParameterStore::reset_sequences() { restore_sequences(sequence_starts); }

std::map<std::string, Array> ParameterStore::sequence_states() const {
  std::map<std::string, Array> out;
  for (const auto& [name, start] : sequence_starts) out[name] = runtime::copied(states.at(name));
  return out;
}

void ParameterStore::restore_sequences(const std::map<std::string, Array>& saved) {
  for (const auto& [name, value] : saved) states.at(name) = runtime::copied(value);
}

bool ParameterStore::initializes(int64_t elements) const {
  constexpr int64_t kMax = 1 << 20;
  return initializes_random || elements <= kMax;
}

const Array* ParameterStore::master(const std::string& parameter) const {
  const auto it = states.find("master/" + parameter);
  return it == states.end() ? nullptr : &it->second;
}

Array* ParameterStore::master(const std::string& parameter) {
  return const_cast<Array*>(std::as_const(*this).master(parameter));
}

void ParameterStore::round_from_master(const std::string& parameter) {
  Array& value = parameters.at(parameter).value;
  if (const Array* exact = master(parameter))
    value = exact->on_host().cast(value.dtype).contiguous().to(value.device());
}

ParameterStore ParameterStore::on_host() const {
  ParameterStore out = *this;
  for (auto& [name, parameter] : out.parameters) parameter.value = parameter.value.on_host();
  for (auto& [name, state] : out.states) state = state.on_host();
  return out;
}

ParameterStore ParameterStore::in_full_precision() const {
  ParameterStore out = *this;
  for (auto& [name, parameter] : out.parameters)
    if (const Array* exact = master(name)) parameter.value = *exact;
  std::erase_if(out.states, [](const auto& state) { return is_master(state.first); });
  return out;
}

namespace {

/// The entries whose names begin with `prefix`, under the rest of their names.
template <class T>
std::map<std::string, T> below(const std::map<std::string, T>& all, const std::string& prefix) {
  std::map<std::string, T> out;
  for (auto it = all.lower_bound(prefix); it != all.end() && it->first.starts_with(prefix); ++it)
    out.emplace(it->first.substr(prefix.size()), it->second);
  return out;
}

}  // namespace

ParameterStore ParameterStore::of_model(const std::string& name) const {
  if (name.empty()) return *this;
  ParameterStore out;
  out.seed = seed;
  out.initializes_random = initializes_random;
  out.parameters = below(parameters, name + ".");
  out.states = below(states, name + ".");
  out.state_initializers = below(state_initializers, name + ".");
  out.sequence_starts = below(sequence_starts, name + ".");
  for (auto& [path, value] : below(states, "master/" + name + "."))
    out.states["master/" + path] = value;
  return out;
}

void ParameterStore::put_model(const std::string& name, const ParameterStore& model) {
  const std::string prefix = name.empty() ? "" : name + ".";
  for (const auto& [path, parameter] : model.parameters)
    parameters.at(prefix + path).value = parameter.value;
  for (const auto& [path, value] : model.states)
    states.at(is_master(path) ? "master/" + prefix + path.substr(7) : prefix + path) = value;
  for (const auto& [path, value] : model.sequence_starts) sequence_starts.at(prefix + path) = value;
}

}  // namespace paddle::program
