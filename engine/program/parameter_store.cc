#include "program/parameter_store.h"

#include <utility>

#include "runtime/execute.h"

namespace paddle::program {

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
  constexpr int64_t kLargest = 1 << 20;
  return initializes_random || elements <= kLargest;
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
  if (const Array* exact = master(parameter)) value = exact->cast(value.dtype).contiguous();
}

ParameterStore ParameterStore::in_full_precision() const {
  ParameterStore out = *this;
  for (auto& [name, parameter] : out.parameters)
    if (const Array* exact = master(name)) parameter.value = *exact;
  std::erase_if(out.states, [](const auto& state) { return is_master(state.first); });
  return out;
}

}  // namespace paddle::program
