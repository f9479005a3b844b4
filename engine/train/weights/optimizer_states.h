#pragma once
// `init.optimizer`: a run that continues one of PaddlePaddle with the states of its optimizer, a
// .pdopt file.

#include <optional>
#include <string>

#include "optim/optimizer.h"
#include "program/parameter_store.h"
#include "train/weights/initial_weights.h"

namespace paddle::train {

/// Where the run that is continued stopped.
struct ContinuedRun {
  int64_t updates = 0;
  std::optional<double> learning_rate = {};  ///< of the next update, if the file has a schedule
  size_t states = 0;                         ///< tensors that were loaded
};

/// Loads the optimizer's states, and master weights, of the parameters of the store from
/// `init.optimizer`. `init.file`, PaddlePaddle's weights, says which variable each parameter is.
/// The number of updates follows from the powers of `beta1` and `beta2` (0 where the optimizer has
/// none), or else from the schedule. kConfig for an optimizer whose states PaddlePaddle does not
/// have, kModel if the file is damaged, or lacks states or has them in other shapes.
ContinuedRun load_optimizer_states(const InitialWeights& init, const optim::Optimizer& optimizer,
                                   double beta1, double beta2, program::ParameterStore& store);

}  // namespace paddle::train
