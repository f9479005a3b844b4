#pragma once
// Optimizers as functions over tensors: which state a parameter has, and its new value and state
// from the gradient. Written against Tensor, so that an update runs eagerly and inside a compiled
// training step alike. Parameter groups change rates and decay by name pattern.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace paddle::optim {

/// Settings for parameters whose name matches one of the patterns (`*` and `?`); later groups win.
struct ParameterGroup {
  std::string key = {};  ///< of the config that states it, for messages: "frozen"
  std::vector<std::string> match = {};
  std::optional<double> lr;        ///< replaces the base rate; the schedule's factor still applies
  std::optional<double> lr_scale;  ///< multiplies it
  std::optional<double> weight_decay;
  bool frozen = false;
};

enum class OptimizerKind {
  kSgd,
  kMomentum,
  kAdam,
  kAdamW,
  kAdagrad,
  kRmsProp,
  kAdamax,
  kAdadelta,
  kAsgd,
  kNAdam,
  kRAdam,
  kRprop,
  kLamb,
  kLars,
  kLion,
  kAdafactor,
  kMuon,
  kScheduleFree,
  kLbfgs
};

/// L-BFGS, which takes many steps in one update of the run; see optim/lbfgs.h.
struct LbfgsOptions {
  int64_t iterations = 20;         ///< of an update, at most
  int64_t evaluations = 25;        ///< of the loss in an update, at most
  int64_t history = 20;            ///< steps that it remembers
  double tolerance_grad = 1e-7;    ///< largest element of a gradient at a minimum
  double tolerance_change = 1e-9;  ///< smallest change of the loss, or of an element
  bool line_search = true;         ///< else steps have the length of the rate
};

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kAdam;
  double lr = 1e-3;
  double weight_decay = 0;
  double momentum = 0.9;
  bool nesterov = false;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double initial_accumulator = 0;  ///< Adagrad
  double rho = 0.95;               ///< RMSProp
  bool centered = false;
  double momentum_decay = 0.004;                ///< NAdam
  double lambd = 1e-4, alpha = 0.75, t0 = 1e6;  ///< averaged SGD
  double shrink = 0.5, grow = 1.2;              ///< Rprop: factors of the step sizes
  double min_step = 1e-6, max_step = 50;        ///< Rprop: bounds of the step sizes
  double coefficient = 0.001;                   ///< LARS
  double beta2_decay = -0.8;                    ///< Adafactor: power of the update in 1 - beta2
  double parameter_epsilon = 1e-3;      ///< Adafactor: smallest root mean square of a parameter
  double threshold = 1;                 ///< Adafactor: largest root mean square of an update
  int64_t iterations = 5;               ///< Muon: of Newton and Schulz
  bool match_rms = false;               ///< Muon: updates as large as those of AdamW
  double adamw_lr = 3e-4;               ///< Muon: base rate of the parameters that AdamW updates
  std::vector<std::string> adamw = {};  ///< Muon: patterns of matrices that AdamW updates, too
  LbfgsOptions lbfgs = {};
  int64_t rising = 0;          ///< schedule-free: updates in which the rate grows
  double layer_decay = 1;      ///< factor on the rate from each layer to the one before it
  bool decays_vectors = true;  ///< whether weight decay applies to parameters of rank 0 and 1
  std::vector<ParameterGroup> groups = {};
};

/// A state tensor of one parameter, in the dtype of the parameter or of its master.
struct StateSlot {
  std::string name = {};  ///< "moment1"
  double initial = 0;
  std::optional<Dims> shape = {};  ///< where it is not that of the parameter
  bool is_copy = false;            ///< the initial value is the parameter's
};

/// The state with the weights that evaluation and saved models use, where these are not the trained
/// ones: averages over updates.
inline constexpr const char* kEvaluationSlot = "evaluation_weight";

/// Operands of an update besides the parameter, its gradient and its states.
struct UpdateInputs {
  Tensor lr = {};      ///< the scheduled base rate, 0-D float32 or float64
  Tensor step = {};    ///< 0-D int64, counts updates from 1
  Tensor master = {};  ///< the parameter in float32, where it is kept in 16 bits; else undefined
  Tensor skip = {};    ///< 0-D bool: everything stays as it is; undefined: never
  Tensor scale = {};   ///< 0-D: the gradient is multiplied by it first; undefined: it stays
  std::optional<double> bound = {};  ///< then each element is held within -bound and bound
};

class Optimizer {
 public:
  explicit Optimizer(OptimizerOptions options) : options_(std::move(options)) {}
  const OptimizerOptions& options() const { return options_; }
  /// The states of a parameter of this shape.
  std::vector<StateSlot> slots(const std::string& parameter, const Dims& shape) const;
  bool is_frozen(const std::string& parameter) const;
  /// Whether a row-sparse gradient updates the rows that it holds and no others.
  bool is_lazy() const { return options_.kind < OptimizerKind::kRmsProp; }
  /// Whether an update evaluates the loss several times, so that the session drives it.
  bool is_minimizer() const { return options_.kind == OptimizerKind::kLbfgs; }
  /// Whether an update reads norms of the whole parameter, so that its parts cannot be updated
  /// apart.
  bool needs_whole_parameters() const;
  /// New parameter, then new states, then the new master if there is one.
  Tensors update(const std::string& name, const Tensor& parameter, const Tensor& gradient,
                 const Tensors& states, const UpdateInputs& inputs) const;
  /// The factor on the scheduled rate for this parameter, and its decay.
  double rate_factor(const std::string& parameter) const;
  double weight_decay(const std::string& parameter, int64_t rank) const;
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
