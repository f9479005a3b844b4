#pragma once
// The values that live from step to step: parameters, model states and the optimizer's states.

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "tensor/tensor.h"

namespace paddle::program {

struct Parameter {
  Array value;
  std::string initializer;  ///< as the model language writes it
};

/// Parameters and states by logical path. States of the model carry their path; the optimizer's are
/// "optimizer/<parameter>/<slot>" ("optimizer:<name>/…" of one with a name), accumulated gradients
/// "gradient/<parameter>", the number of reads of each row of a table "touched_rows/<parameter>",
/// the loss scale and its counters "amp/<name>", values to log "train/<name>". A parameter may be
/// kept in 16 bits in addition to its float32 master weight, the state "master/<parameter>": files
/// then hold the master, and the parameter is its rounded copy.
struct ParameterStore {
  uint64_t seed = 0;
  std::map<std::string, Parameter> parameters;
  std::map<std::string, Array> states;
  /// How states get their first values, as the model language writes it; "" or absent: otherwise.
  std::map<std::string, std::string> state_initializers;
  /// Initial values of the states that live for one sequence (`scope="sequence"`), by path. Files
  /// of weights hold these; a checkpoint has the current values next to them.
  std::map<std::string, Array> sequence_starts;
  /// Initial values that replace initializers, for example the weights of a file.
  std::function<std::optional<Array>(const std::string& name, const Dims& shape, DType dtype)>
      preset;
  /// False for a dry run: random and large initial values stay zero, which takes no memory.
  bool initializes_random = true;
  /// Whether initial values of this many elements are computed.
  bool initializes(int64_t elements) const;

  /// The value of the parameter or state of this name, which must exist.
  Array& array(const std::string& name);
  const Array& array(const std::string& name) const;
  int64_t parameter_count() const;  ///< elements of all parameters
  /// Keeps the parameter in `low` from now on, with a float32 master.
  void keep_in_16_bits(const std::string& parameter, DType low);
  /// The master weight; null if the parameter is kept in full precision.
  const Array* master(const std::string& parameter) const;
  Array* master(const std::string& parameter);
  /// Updates the 16-bit copy from the master.
  void round_from_master(const std::string& parameter);
  /// Sets the states of the current sequence to their initial values.
  void reset_sequences();
  /// The current values of these states; arrays are copied.
  std::map<std::string, Array> sequence_states() const;
  void restore_sequences(const std::map<std::string, Array>& saved);
  /// The same values in memory of the host; arrays that are there already are shared.
  ParameterStore on_host() const;
  /// The same values with all parameters in full precision; arrays are shared.
  ParameterStore in_full_precision() const;
  /// Parameters and states of one model among several, by their paths in that model; arrays are
  /// shared. The whole store if the name is empty.
  ParameterStore of_model(const std::string& name) const;
  /// Takes over the values of what `of_model` gave.
  void put_model(const std::string& name, const ParameterStore& model);
};

/// While it lives, states of sequences start from their initial values; then the current sequence
/// continues where it was.
class NewSequence {
 public:
  explicit NewSequence(ParameterStore& store) : store_(store), saved_(store.sequence_states()) {
    store_.reset_sequences();
  }
  ~NewSequence() { store_.restore_sequences(saved_); }
  NewSequence(const NewSequence&) = delete;
  NewSequence& operator=(const NewSequence&) = delete;

 private:
  ParameterStore& store_;
  std::map<std::string, Array> saved_;
};

inline bool is_master(const std::string& name) { return name.starts_with("master/"); }
/// Notes of steps for logs. No step reads them, so a checkpoint may lack them.
inline bool is_note(const std::string& name) { return name.starts_with("train/"); }
/// Sums over micro-batches: zero between updates, and not part of checkpoints.
inline bool is_accumulated(const std::string& name) {
  return name.starts_with("gradient/") || name.starts_with("touched_rows/");
}
/// A checkpoint's name for the current value of a sequence state.
inline constexpr std::string_view kSequencePrefix = "sequence/";
inline bool is_model_state(const std::string& name) {
  return !name.starts_with(kSequencePrefix) && !name.starts_with("optimizer/") &&
         !name.starts_with("optimizer:") && !name.starts_with("amp/") && !is_note(name) &&
         !is_accumulated(name) && !is_master(name);
}

}  // namespace paddle::program
