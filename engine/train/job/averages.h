#pragma once
// Evaluation and saved models use averages of the weights where the optimizer keeps some: moving
// averages (train.ema) and those of schedule-free AdamW. The averages are states of the optimizer;
// exchanging them with the parameters makes every part of the program use them. Running statistics
// of norms that go with averaged weights are kept and exchanged in the same way.

#include <map>
#include <string>

#include "program/parameter_store.h"

namespace paddle::train {

/// The state with the running statistics, for averaged weights, that the model state `name` holds
/// for the trained ones.
std::string evaluation_state(const std::string& name);
/// The states that hold averages, by parameter, and running statistics for them, by model state.
std::map<std::string, std::string> averages_of(const program::ParameterStore& store);
/// Exchanges parameters and running statistics with their averages; nothing happens without
/// averages. Doing it twice restores every bit.
void swap_averages(program::ParameterStore& store);

/// Averages are in the place of the parameters while it lives.
class AveragesInUse {
 public:
  explicit AveragesInUse(program::ParameterStore& store) : store_(store) { swap_averages(store_); }
  ~AveragesInUse() { swap_averages(store_); }
  AveragesInUse(const AveragesInUse&) = delete;
  AveragesInUse& operator=(const AveragesInUse&) = delete;

 private:
  program::ParameterStore& store_;
};

}  // namespace paddle::train
