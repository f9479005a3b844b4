#pragma once
// How each value of a traced function depends on the samples of its batch: the abstract values that
// loss_form.h is read from.

#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include "ir/module.h"

namespace paddle::train {

/// How a value depends on the samples, up to a divisor that is computed from the data only.
struct Dependence {
  enum class Kind {
    kFixed,    ///< the same for every batch
    kSamples,  ///< one axis counts samples, and each of its slices depends on one sample
    kSum,      ///< a sum over samples of values that depend on one sample each
    kWhole,    ///< any other function of the batch
  };
  Kind kind = Kind::kFixed;
  size_t axis = 0;  ///< of kSamples
  /// The axis counts [outer, samples, inner] where axes were merged: elements of one sample are
  /// found at the same places of values of equal `outer` and size.
  Dim outer = 1;
  /// Of kSamples: the rows are those where this is true, or are in the order that this gives.
  const ir::Value* mask = nullptr;
  bool from_data = true;               ///< depends on no parameter, state or random number
  bool plus_fixed = false;             ///< of kSum: plus a value that is the same for every batch
  const ir::Value* divisor = nullptr;  ///< what all is divided by
  bool guarded =
      false;  ///< what is divided by `divisor` is divided by another number where it is 0
  bool per_sample = false;                ///< divided by the number of samples (and no `divisor`)
  const ir::Operation* origin = nullptr;  ///< of kWhole: the operation that made it so

  bool divided() const { return divisor || per_sample; }
};

class BatchDependence {
 public:
  explicit BatchDependence(const ir::Function& function);
  Dependence of(const ir::Value* value) const;
  /// False if the batch is a number in the function's inputs.
  bool has_samples() const { return !batch_.empty(); }
  /// The sum that a divisor is where it is not 0: seen through `where(sum == 0, 1, sum)`.
  static const ir::Value* behind_guard(const ir::Value* divisor);

 private:
  using Operation = ir::Operation;
  bool counts_samples(const Dim& dim) const;
  bool is_linear(const Dim& dim) const;
  /// The only axis that counts samples; -1 if there is none, -2 if there are several.
  int samples_axis(const TensorType& type) const;
  /// Equal values have equal numbers, though they were computed twice.
  size_t number_of(const ir::Value* value) const;
  void number(const Operation& operation);
  bool same_divisor(const Dependence& a, const Dependence& b) const;
  bool aligned(const Dependence& a, const ir::Value* x, const Dependence& b,
               const ir::Value* y) const;

  Dependence whole(const Operation& operation) const;
  Dependence samples_of(const Operation& operation, const ir::Value* result,
                        const Dependence& like) const;
  Dependence apply(const Operation& operation, const ir::Value* result) const;
  Dependence elementwise(const Operation& operation, const ir::Value* result) const;
  Dependence sum_of_terms(const Operation& operation, const ir::Value* result, size_t first) const;
  Dependence product(const Operation& operation, const ir::Value* result) const;
  Dependence quotient(const Operation& operation, const ir::Value* result) const;
  Dependence contraction(const Operation& operation, const ir::Value* result) const;
  Dependence reduction(const Operation& operation, const ir::Value* result) const;
  Dependence reshaped(const Operation& operation, const ir::Value* result) const;
  Dependence sorted_rows(const Operation& operation, const ir::Value* result) const;
  Dependence other(const Operation& operation, const ir::Value* result) const;
  Dependence size_of(const Operation& operation, bool& from_data) const;
  static bool mixes_samples(const Operation& operation, const ir::Value* x, size_t axis);

  std::set<std::string> batch_;                 ///< symbols that count samples
  std::map<std::string, Dependence> run_time_;  ///< by symbol: how many elements a mask leaves
  std::unordered_map<const ir::Value*, Dependence> known_;
  std::unordered_map<const ir::Value*, size_t> numbers_;
  std::map<std::string, size_t> keys_;
};

}  // namespace paddle::train
