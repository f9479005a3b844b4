#include "paddle_program/training_program.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace paddle::paddle_program {
namespace {

using formats::PaddleOperation;
using formats::PaddleProgram;
using Names = std::set<std::string>;

/// The type without the underscore of an operation in place.
std::string_view type_of(const PaddleOperation& operation) {
  std::string_view type = operation.type;
  if (type.ends_with('_')) type.remove_suffix(1);
  return type;
}

bool is_update(const PaddleOperation& operation) {
  static const std::set<std::string_view> kTypes = {"adadelta",     "adagrad",
                                                    "adam",         "adamax",
                                                    "adamw",        "asgd",
                                                    "dgc_momentum", "dpsgd",
                                                    "ftrl",         "decayed_adagrad",
                                                    "lamb",         "lars_momentum",
                                                    "merged_adam",  "merged_momentum",
                                                    "momentum",     "nadam",
                                                    "radam",        "rmsprop",
                                                    "rprop",        "sgd",
                                                    "fused_adam",   "distributed_fused_lamb"};
  return kTypes.contains(type_of(operation));
}

/// Whether the operation computes gradients or updates: by its role where the program has roles
/// (protobuf), else by its type.
bool is_training(const PaddleOperation& operation) {
  constexpr int64_t kLoss = 256;  // of OpRole; 0 is the forward pass
  if (const auto role = operation.attributes.find("op_role");
      role != operation.attributes.end() && !role->second.integers.empty() &&
      (role->second.integers[0] & ~kLoss) != 0)
    return true;
  const std::string_view type = type_of(operation);
  return is_update(operation) || type.ends_with("_grad") || type == "check_finite_and_unscale" ||
         type == "update_loss_scaling";
}

/// Constants, and what takes no more than the shape of its operand: the first gradient is one.
bool is_constant(const PaddleOperation& operation) {
  static const std::set<std::string_view> kTypes = {"full", "full_int_array", "full_like",
                                                    "fill_constant", "fill_any_like"};
  return kTypes.contains(type_of(operation));
}

class Pruner {
 public:
  explicit Pruner(PaddleProgram& program)
      : program_(program), operations_(program.blocks[0].operations) {}

  void run() {
    removed_.resize(operations_.size());
    remove_after_gradients();
    remove_before_updates();
    const bool fetches =
        std::ranges::any_of(operations_, [](const auto& o) { return o.type == "fetch"; });
    std::vector<PaddleOperation> outputs;
    if (!fetches) outputs = output_operations();
    std::vector<PaddleOperation> kept;
    for (size_t i = 0; i < operations_.size(); ++i)
      if (!removed_[i]) kept.push_back(std::move(operations_[i]));
    std::ranges::move(outputs, std::back_inserter(kept));
    operations_ = std::move(kept);
    forget_parameters();
    if (!program_.is_pir) add_inputs();
    for (auto& block : program_.blocks)
      for (PaddleOperation& operation : block.operations)
        if (const auto found = operation.attributes.find("is_test");
            found != operation.attributes.end())
          found->second.integers = {1};
  }

 private:
  /// Names that the operations of a block read, those of inner blocks included.
  const Names& block_reads(size_t block) {
    const auto [known, is_new] = block_reads_.try_emplace(block);
    if (!is_new) return known->second;  // empty within itself
    Names out;
    if (block < program_.blocks.size())
      for (const PaddleOperation& operation : program_.blocks[block].operations)
        out.merge(reads(operation));
    return block_reads_[block] = std::move(out);
  }
  Names reads(const PaddleOperation& operation) {
    Names out;
    for (const auto& [slot, values] : operation.inputs) out.insert(values.begin(), values.end());
    for (const size_t block : operation.blocks) {
      const Names& inner = block_reads(block);
      out.insert(inner.begin(), inner.end());
    }
    out.erase("");
    return out;
  }
  static Names writes(const PaddleOperation& operation) {
    Names out;
    for (const auto& [slot, values] : operation.outputs) out.insert(values.begin(), values.end());
    out.erase("");
    return out;
  }
  static bool have_common(const Names& a, const Names& b) {
    return std::ranges::any_of(a, [&](const std::string& name) { return b.contains(name); });
  }

  /// Removes gradients, updates, and what is computed from them.
  void remove_after_gradients() {
    Names gone;
    for (size_t i = 0; i < operations_.size(); ++i) {
      removed_[i] = is_training(operations_[i]) || have_common(reads(operations_[i]), gone);
      for (const std::string& name : writes(operations_[i]))
        if (removed_[i])
          gone.insert(name);
        else
          gone.erase(name);
    }
  }

  /// Removes what only updates read, such as weight decay and states of the optimizer, and
  /// constants that the forward pass does not read. Gradients read values of the forward pass.
  void remove_before_updates() {
    Names read, read_by_updates;
    for (size_t i = operations_.size(); i-- > 0;) {
      const PaddleOperation& operation = operations_[i];
      const Names written = writes(operation);
      const bool is_read = operation.type == "fetch" || have_common(written, read);
      if (!is_read && (is_constant(operation) || have_common(written, read_by_updates)))
        removed_[i] = true;
      if (!removed_[i])
        read.merge(reads(operation));
      else if (!is_constant(operation) && !type_of(operation).ends_with("_grad"))
        read_by_updates.merge(reads(operation));
    }
  }

  /// Fetches the results that nothing reads.
  std::vector<PaddleOperation> output_operations() {
    Names read;
    for (size_t i = 0; i < operations_.size(); ++i)
      if (!removed_[i]) read.merge(reads(operations_[i]));
    std::vector<PaddleOperation> out;
    for (size_t i = 0; i < operations_.size(); ++i) {
      const PaddleOperation& operation = operations_[i];
      const bool is_input = operation.type == "data" || operation.type == "feed";
      if (removed_[i] || is_input || have_common(writes(operation), read)) continue;
      const std::string result = first_result(operation);
      if (result.empty()) continue;
      PaddleOperation& fetch = out.emplace_back();
      fetch.type = "fetch";
      fetch.inputs = {{"X", {result}}};
      fetch.outputs = {{"Out", {}}};
    }
    return out;
  }

  /// The main result: the slot `Out`, else the first one.
  static std::string first_result(const PaddleOperation& operation) {
    std::string first;
    for (const auto& [slot, values] : operation.outputs) {
      if (values.empty() || values[0].empty()) continue;
      if (slot == "Out") return values[0];
      if (first.empty()) first = values[0];
    }
    return first;
  }

  /// Values of the optimizer are not among the parameters that a file must have.
  void forget_parameters() {
    block_reads_.clear();
    Names read;
    for (size_t block = 0; block < program_.blocks.size(); ++block) {
      const Names& inner = block_reads(block);
      read.insert(inner.begin(), inner.end());
    }
    for (auto& [name, variable] : program_.variables)
      variable.is_parameter = variable.is_parameter && read.contains(name);
  }

  /// Programs in protobuf feed nothing: inputs are the variables that are read and not computed.
  void add_inputs() {
    if (std::ranges::any_of(operations_, [](const auto& o) { return o.type == "feed"; })) return;
    std::vector<PaddleOperation> inputs;
    Names known;
    for (const auto& [name, variable] : program_.variables)
      if (variable.is_parameter) known.insert(name);
    for (const PaddleOperation& operation : operations_) {
      for (const auto& [slot, values] : operation.inputs)
        for (const std::string& name : values) {
          if (name.empty() || !known.insert(name).second) continue;
          PaddleOperation& feed = inputs.emplace_back();
          feed.type = "feed";
          feed.outputs = {{"Out", {name}}};
        }
      known.merge(writes(operation));
    }
    operations_.insert(operations_.begin(), std::make_move_iterator(inputs.begin()),
                       std::make_move_iterator(inputs.end()));
  }

  PaddleProgram& program_;
  std::vector<PaddleOperation>& operations_;  ///< of the main block
  std::vector<bool> removed_;
  std::map<size_t, Names> block_reads_;
};

}  // namespace

void keep_forward(PaddleProgram& program) {
  if (!program.blocks.empty() && std::ranges::any_of(program.blocks[0].operations, is_update))
    Pruner(program).run();
}

}  // namespace paddle::paddle_program
