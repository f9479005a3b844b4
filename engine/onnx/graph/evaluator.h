#pragma once
// Evaluates the nodes of a graph in order by their operator rules. The active interpreter decides
// what that means: the eager executor runs the model, a tracer imports it. Subgraphs of control
// flow and model-local functions are evaluated in nested scopes.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "onnx/graph/node_call.h"

namespace paddle::onnx {

class ProfileInstructions;
class Partitions;

/// The origin of a value.
enum class Origin : uint8_t {
  kData,      ///< input data
  kTypes,     ///< dtypes and shapes of inputs
  kConstants  ///< initializers and attributes
};

/// Names visible to the nodes of a graph: its own values, then those of enclosing graphs.
struct Scope {
  const Scope* outer = nullptr;
  std::unordered_map<std::string, Value> values;
  /// Origins of values in this scope (kData if absent); only maintained with partitions.
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
  /// Runs the model's graph on `inputs` in the graph's order. `weights` override initializers by
  /// name.
  Values run(const Values& inputs, const std::map<std::string, Value>& weights = {});
  /// Runs a subgraph.
  Values run(const formats::onnx::Graph& graph, const Values& inputs, const Scope& outer);
  const formats::onnx::Model& model() const { return model_; }
  /// Called after each node with its inputs and outputs.
  using Observer =
      std::function<void(const formats::onnx::Node&, const Values& inputs, const Values& outputs)>;
  void observe(Observer observer) { observer_ = std::move(observer); }
  /// Selects which nodes run in training mode among those the file marks so; all by default.
  using Mode = std::function<bool(const formats::onnx::Node&)>;
  void set_training_mode(Mode mode) { mode_ = std::move(mode); }
  bool is_training(const formats::onnx::Node& node) const { return !mode_ || mode_(node); }
  /// State that a rule derives from a node's attributes, built by `make` on the first call and
  /// cached.
  template <class T, class Make>
  std::shared_ptr<const T> prepared(const formats::onnx::Node& node, Make&& make) {
    for (const auto& a : node.attributes)  // a function's node takes attributes from the call
      if (!a.reference.empty()) return std::make_shared<const T>(make());
    std::shared_ptr<const void>& entry = prepared_[&node];
    if (!entry) entry = std::make_shared<const T>(make());
    return std::static_pointer_cast<const T>(entry);
  }
  /// From now on runs parts of graphs as plans (partitions.h) under the eager executor.
  void use_partitions(std::unique_ptr<Partitions> partitions);
  /// From now on profiles nodes and partitions.
  void use_profile(ProfileInstructions* names) { profile_ = names; }
  /// Counts a loop iteration; kModel beyond the limit of a run.
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

/// Expands a sparse tensor.
Value dense_value(const formats::onnx::SparseData& data);

}  // namespace paddle::onnx
