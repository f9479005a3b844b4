#pragma once
// Walks the nodes of a graph in order and applies each operator's rule to the values of its inputs.
// Under the eager executor that runs the model; under a tracer it imports it. Graphs of control
// flow and the model's own functions are walked the same way, in scopes of their own.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "onnx/graph/node_call.h"

namespace paddle::onnx {

class ProfileInstructions;
class Partitions;

/// What a value follows from, beside values that only a run gives.
enum class Origin : uint8_t {
  kData,      ///< anything
  kTypes,     ///< the types of values
  kConstants  ///< initialisers and attributes
};

/// The names that nodes of a graph see: its own values, then those of the graphs around it.
struct Scope {
  const Scope* outer = nullptr;
  std::unordered_map<std::string, Value> values;
  /// Of values of this scope; kData for those that are not in it. Kept where there are partitions.
  std::unordered_map<std::string, Origin> origins;
  /// Attributes of the function call that this scope belongs to.
  const std::map<std::string, const formats::onnx::Attribute*>* attributes = nullptr;
  const std::map<std::string, int64_t>* opsets = nullptr;

  const Value* find(const std::string& name) const;
  const formats::onnx::Attribute* attribute(const std::string& name) const;
};

class Evaluator {
 public:
  explicit Evaluator(const formats::onnx::Model& model);
  ~Evaluator();
  /// The outputs of the model's graph for these inputs (in the order of the graph's inputs).
  /// `weights` stand for initialisers of their names.
  Values run(const Values& inputs, const std::map<std::string, Value>& weights = {});
  /// The outputs of a graph inside another one.
  Values run(const formats::onnx::Graph& graph, const Values& inputs, const Scope& outer);
  const formats::onnx::Model& model() const { return model_; }
  /// Told of each node with what it took and gave.
  using Observer =
      std::function<void(const formats::onnx::Node&, const Values& inputs, const Values& outputs)>;
  void observe(Observer observer) { observer_ = std::move(observer); }
  /// Which of the nodes that the file has in training mode are in it; by default all.
  using Mode = std::function<bool(const formats::onnx::Node&)>;
  void set_training_mode(Mode mode) { mode_ = std::move(mode); }
  bool is_training(const formats::onnx::Node& node) const { return !mode_ || mode_(node); }
  /// What a rule has prepared from the attributes of a node, made by `make` at its first call.
  template <class T, class Make>
  std::shared_ptr<const T> prepared(const formats::onnx::Node& node, Make&& make) {
    for (const auto& a : node.attributes)  // attributes of a function's node are those of the call
      if (!a.reference.empty()) return std::make_shared<const T>(make());
    std::shared_ptr<const void>& entry = prepared_[&node];
    if (!entry) entry = std::make_shared<const T>(make());
    return std::static_pointer_cast<const T>(entry);
  }
  /// Runs parts of graphs as plans (partitions.h) from now on, where the eager executor is active.
  void use_partitions(std::unique_ptr<Partitions> partitions);
  /// Times nodes and partitions from now on.
  void use_profile(ProfileInstructions* names) { profile_ = names; }
  /// Counts a turn of a loop; kModel if the run has had too many.
  void count_iteration();

 private:
  friend class Partitions;
  using Graph = formats::onnx::Graph;
  using Node = formats::onnx::Node;
  using Function = formats::onnx::Function;

  Values run_in(const Graph& graph, Scope& scope);
  void run_nodes(const std::vector<Node>& nodes, const std::vector<std::string>& kept,
                 Scope& scope);
  Values run_node(const Node& node, const Scope& scope);
  Values run_function(const Function& function, const Node& node, const Values& inputs,
                      const Scope& scope);
  void set(Scope& scope, const std::string& name, Value value);

  /// For each node, the names that no later node reads.
  using LastUses = std::vector<std::vector<std::string>>;
  const LastUses& last_uses_of(const std::vector<Node>& nodes,
                               const std::vector<std::string>& kept);

  const formats::onnx::Model& model_;
  std::map<std::string, const Function*> functions_;
  std::unordered_map<const Node*, LastUses> last_uses_;
  std::unordered_map<const Graph*, std::vector<std::pair<std::string, Value>>> initializers_;
  Observer observer_;
  Mode mode_;
  std::unique_ptr<Partitions> partitions_;
  ProfileInstructions* profile_ = nullptr;
  std::unordered_map<const Node*, std::shared_ptr<const void>> prepared_;
  int depth_ = 0;
  int64_t iterations_ = 0;
};

/// A sparse tensor with all its elements.
Value dense_value(const formats::onnx::SparseData& data);

}  // namespace paddle::onnx
