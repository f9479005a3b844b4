// The table of the built-in optimizers, in the order of the reference. Each is defined in the file
// of its name.

#include "optim/optimizer_kind.h"

namespace paddle::optim {

OptimizerKind sgd_kind();
OptimizerKind momentum_kind();
OptimizerKind adam_kind();
OptimizerKind adamw_kind();
OptimizerKind adagrad_kind();
OptimizerKind rmsprop_kind();
OptimizerKind adamax_kind();
OptimizerKind adadelta_kind();
OptimizerKind asgd_kind();
OptimizerKind nadam_kind();
OptimizerKind radam_kind();
OptimizerKind rprop_kind();
OptimizerKind lamb_kind();
OptimizerKind lars_kind();
OptimizerKind lion_kind();
OptimizerKind adafactor_kind();
OptimizerKind muon_kind();
OptimizerKind schedule_free_adamw_kind();
OptimizerKind lbfgs_kind();
OptimizerKind adan_kind();

Registry<OptimizerKind>& optimizer_kinds() {
  static Registry<OptimizerKind> kinds(
      "optimizer", {sgd_kind(),       momentum_kind(), adam_kind(),
                    adamw_kind(),     adagrad_kind(),  rmsprop_kind(),
                    adamax_kind(),    adadelta_kind(), asgd_kind(),
                    nadam_kind(),     radam_kind(),    rprop_kind(),
                    lamb_kind(),      lars_kind(),     lion_kind(),
                    adafactor_kind(), muon_kind(),     schedule_free_adamw_kind(),
                    lbfgs_kind(),     adan_kind()});
  return kinds;
}

}  // namespace paddle::optim
