#pragma once
// An update rule: which states a parameter has, and its new value and states from the gradient.
// Written against Tensor, so that an update runs eagerly and inside a compiled training step alike.
// optim/optimizer_kind.h registers rules by name.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace paddle::optim {

/// A state tensor of one parameter, in the dtype of the parameter or of its master.
struct StateSlot {
  std::string name = {};  ///< "moment1"
  double initial = 0;
  std::optional<Dims> shape = {};  ///< where it is not that of the parameter
  bool is_copy = false;            ///< the initial value is the parameter's
};

/// Slots of these names that begin with zeros and have the shape of the parameter.
std::vector<StateSlot> zero_slots(std::initializer_list<const char*> names);

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

/// All that a rule reads for the update of one parameter. `lr` is the rate of this parameter.
struct UpdateOperands : UpdateInputs {
  std::string name = {};
  Tensor parameter = {};
  Tensor gradient = {};  ///< dense or row-sparse
  Tensors states = {};   ///< in the order of `slots`
  double weight_decay = 0;
  double base_lr = 0;  ///< of the optimizer, without schedule and groups
};

/// A rule of which each element depends on itself only, for tables that update rows in place. The
/// arithmetic is that of the operation `<kind>_update`.
struct RowRule {
  enum class Kind { kSgd, kMomentum, kAdagrad, kAdam } kind = Kind::kSgd;
  double a = 0, b = 0;  ///< momentum, or betas
  double epsilon = 0;
  bool flag = false;  ///< Nesterov's momentum, or decoupled weight decay
};

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  /// The states of a parameter of this shape, which may have no axes. Their names are in
  /// checkpoints.
  virtual std::vector<StateSlot> slots(const std::string& parameter, const Dims& shape,
                                       double base_lr) const = 0;
  /// New parameter, then new states, then the new master if there is one.
  virtual Tensors update(const UpdateOperands& operands) const = 0;
  /// The same update as a rule for rows; nothing where there is none.
  virtual std::optional<RowRule> row_rule() const { return std::nullopt; }
};

/// One vector in pieces: contiguous arrays of the host, float32 or float64, one for each parameter.
using Pieces = std::vector<Array>;
/// Computes the loss at the values that the parameters have, and their gradients.
using Objective = std::function<double()>;

/// A rule that evaluates the loss several times in one update, which the training session drives on
/// the host.
class Minimizer : public UpdateRule {
 public:
  struct Memory {
    std::vector<Pieces> states;  ///< for each slot, a piece per parameter
    Array numbers;               ///< float64[number_count()]: what is kept besides vectors
  };
  virtual int64_t number_count() const = 0;
  /// Changes parameters, gradients and memory in place. Returns the loss at the start.
  virtual double minimize(double rate, const Pieces& parameters, const Pieces& gradients,
                          Memory& memory, const Objective& objective) const = 0;
  Tensors update(const UpdateOperands& operands) const final;
};

}  // namespace paddle::optim
