#include "train/averages.h"

#include <string_view>
#include <utility>

#include "optim/optimizer.h"

namespace paddle::train {

void swap_averages(program::ParameterStore& store) {
  const std::string suffix = str("/", optim::kEvaluationSlot);
  for (auto& [state, average] : store.states) {
    if (!state.ends_with(suffix) || program::is_model_state(state)) continue;
    const size_t begin = state.find('/') + 1;
    const std::string name = state.substr(begin, state.size() - suffix.size() - begin);
    const auto parameter = store.parameters.find(name);
    if (parameter == store.parameters.end()) continue;
    Array* exact = store.master(name);
    std::swap(exact ? *exact : parameter->second.value, average);
    if (exact) store.round_from_master(name);
  }
}

}  // namespace paddle::train
