#pragma once
// An optimizer: an update rule (optim/update_rule.h) with base rate and weight decay, which
// parameter groups change by name pattern, and the clipping of gradients.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "optim/optimizer_kind.h"
#include "tensor/tensor.h"

namespace paddle::optim {

/// Settings for parameters whose name matches one of the patterns (`*` and `?`); later groups win.
struct ParameterGroup {
  std::string key = {};  ///< of the config that states it, for messages: "frozen"
  std::vector<std::string> match = {};
  std::optional<double> lr;        ///< replaces the base rate; the schedule's factor still applies
  std::optional<double> lr_scale;  ///< multiplies it
  std::optional<double> weight_decay, l1_decay;
  bool frozen = false;
};

struct OptimizerOptions {
  OptimizerRule rule = {};  ///< make_rule or read_rule has it; none: Adam with its defaults
  double lr = 1e-3;
  double weight_decay = 0;
  double l1_decay = 0;         ///< an L1 penalty, whose gradient is added to the bounded one
  double layer_decay = 1;      ///< factor on the rate from each layer to the one before it
  bool decays_vectors = true;  ///< whether decays apply to parameters of rank 0 and 1
  std::vector<ParameterGroup> groups = {};
};

class Optimizer {
 public:
  explicit Optimizer(OptimizerOptions options);
  const OptimizerOptions& options() const { return options_; }
  const std::string& name() const { return options_.rule.kind->name; }
  /// The states of a parameter of this shape.
  std::vector<StateSlot> slots(const std::string& parameter, const Dims& shape) const;
  bool is_frozen(const std::string& parameter) const;
  bool supports_sparse_update() const { return options_.rule.kind->supports_sparse_update; }
  bool needs_whole_parameters() const { return options_.rule.kind->needs_whole_parameters; }
  /// Whether a state holds the weights to evaluate and save: kEvaluationSlot.
  bool has_evaluation_weights() const;
  /// The rule, if an update evaluates the loss several times, so that the session drives it; else
  /// null.
  const Minimizer* minimizer() const;
  /// New parameter, then new states, then the new master if there is one.
  Tensors update(const std::string& name, const Tensor& parameter, const Tensor& gradient,
                 const Tensors& states, const UpdateInputs& inputs) const;
  /// The factor on the scheduled rate for this parameter, and its decays.
  double rate_factor(const std::string& parameter) const;
  double weight_decay(const std::string& parameter, int64_t rank) const;
  double l1_decay(const std::string& parameter, int64_t rank) const;
  /// Warnings about groups that are probably mistakes, a line each: patterns
  /// that match nothing, and that nothing is left to train.
  std::vector<std::string> warnings(const std::vector<std::string>& parameters) const;

 private:
  OptimizerOptions options_;
};

/// The layer that a parameter belongs to: its path up to the first number ("blocks.3"), or else its
/// first part ("stem").
std::string layer_of(const std::string& parameter);
/// layer_decay to the power of the number of layers after that of each parameter, for parameters
/// in the order of their use.
std::map<std::string, double> layer_factors(const std::vector<std::string>& parameters,
                                            double layer_decay);

/// How gradients are bounded before the update; at most one is set.
struct ClipOptions {
  std::optional<double> value = {};        ///< each element to [-value, value]
  std::optional<double> norm = {};         ///< each gradient to this norm
  std::optional<double> global_norm = {};  ///< all together to this norm
};
/// The sum of squares of each gradient, which clipping by norms reads: 0-D float64, which is
/// finite where all its elements are; undefined for undefined ones. Empty unless the options ask
/// for norms.
Tensors sums_of_squares(const Tensors& gradients, const ClipOptions& options);
/// The factor that clipping by norms and `unscale` (0-D; undefined: 1) ask for, per gradient, as
/// UpdateInputs::scale takes it; norms are those of gradients times `unscale`. Nothing is undefined
/// but where there is nothing to do.
Tensors gradient_scales(const Tensors& gradients, const Tensors& squares,
                        const ClipOptions& options, const Tensor& unscale);

}  // namespace paddle::optim
