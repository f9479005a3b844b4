#include "train/job/averages.h"

#include <string_view>
#include <utility>

#include "optim/optimizer.h"

namespace paddle::train {

std::string evaluation_state(const std::string& name) {
  return str("optimizer/", name, "/", optim::kEvaluationSlot);
}

std::map<std::string, std::string> averages_of(const program::ParameterStore& store) {
  const std::string suffix = str("/", optim::kEvaluationSlot);
  std::map<std::string, std::string> out;
  for (const auto& [state, average] : store.states) {
    if (!state.ends_with(suffix) || program::is_model_state(state)) continue;
    const size_t begin = state.find('/') + 1;
    const std::string name = state.substr(begin, state.size() - suffix.size() - begin);
    const bool is_statistic = program::is_model_state(name) && store.states.count(name);
    if (is_statistic || store.parameters.count(name)) out[name] = state;
  }
  return out;
}

void swap_averages(program::ParameterStore& store) {
  for (const auto& [name, state] : averages_of(store)) {
    if (const auto statistic = store.states.find(name); statistic != store.states.end()) {
      std::swap(statistic->second, store.states.at(state));
      continue;
    }
    Array* exact = store.master(name);
    std::swap(exact ? *exact : store.parameters.at(name).value, store.states.at(state));
    if (exact) store.round_from_master(name);
  }
}

}  // namespace paddle::train
