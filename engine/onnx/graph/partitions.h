#pragma once
// Graphs that cannot be traced as a whole, in parts. Under the eager executor, a run of nodes whose
// sizes follow from the types of what they read becomes a function of its own, which is planned and
// run like any other; the nodes between (sizes that come from values, sequences, strings, loops
// whose turns a value counts) run one by one. Graphs inside nodes have partitions too, so that the
// body of a loop is compiled once and run each turn.

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/tracer.h"
#include "onnx/graph/evaluator.h"
#include "onnx/graph/session.h"

namespace paddle::onnx {

class Partitions {
 public:
  /// `options.mode` kPartitions compiles at first sight; otherwise a site must come again first.
  Partitions(Evaluator& evaluator, const SessionOptions& options);
  ~Partitions();
  Partitions(const Partitions&) = delete;
  Partitions& operator=(const Partitions&) = delete;

  /// Runs the partition that begins at node `first` of `nodes`, if there is one for the values in
  /// `scope`: sets what later nodes read, and drops what they do not. Returns the node after it, or
  /// `first`. Values guards in a graph inside a node are copies; those of the model's graph are
  /// valid until the next run. `last_uses`: for each node, the names that no later node reads.
  size_t run(const std::vector<formats::onnx::Node>& nodes, size_t first,
             const std::vector<std::vector<std::string>>& last_uses, Scope& scope);
  /// The internal errors that kept partitions from being compiled, once each.
  const std::vector<std::string>& failures() const { return failures_; }
  /// Adds the floating-point operations of partitions that run to `flops`; null: counts none.
  void count_flops(double* flops) { flops_ = flops; }
  /// Marks what a node has guards from what it read.
  static void mark_outputs(const formats::onnx::Node& node, Scope& scope);

 private:
  struct Guard;
  struct Partition;
  struct Site;
  using Nodes = std::vector<formats::onnx::Node>;
  using LastUses = std::vector<std::vector<std::string>>;

  /// Keeps the error for `failures`, or throws it where internal errors are fatal.
  void note_internal(const Error& error);
  Site& site_at(const Nodes& nodes, size_t first, const Scope& scope);
  bool matches(const Site& site, const Partition& partition, const Scope& scope) const;
  std::unique_ptr<Partition> make(const Site& site, const Nodes& nodes, size_t first,
                                  const LastUses& last_uses, const Scope& scope);
  /// Traces nodes from `first` on, to `end` or as far as it goes; the node after the last traced.
  size_t trace(const Nodes& nodes, size_t first, size_t end, const LastUses& last_uses,
               ir::Tracer& tracer, Scope& scope);
  void execute(Partition& partition, size_t first, const LastUses& last_uses, Scope& scope);

  Evaluator& evaluator_;
  SessionOptions options_;
  size_t min_nodes_;  ///< nodes that are worth a plan
  std::vector<std::string> failures_;
  double* flops_ = nullptr;
  int function_count_ = 0;  ///< functions, which their names count
  std::unordered_map<const void*, std::vector<std::unique_ptr<Site>>> sites_;
};

}  // namespace paddle::onnx
