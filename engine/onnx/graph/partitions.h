#pragma once
// Partial compilation of graphs that cannot be traced as a whole. Under the eager executor, a run
// of nodes whose shapes follow from the types of their inputs becomes a partition: a function that
// is compiled and planned like any other. The nodes in between (data-dependent sizes, sequences,
// strings, loops with data-dependent trip counts) run one by one. Subgraphs are partitioned as
// well, so a loop body is compiled once and run in each iteration.

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
  /// With Mode::kPartitions a site is compiled at its first visit, otherwise when it recurs.
  Partitions(Evaluator& evaluator, const SessionOptions& options);
  ~Partitions();
  Partitions(const Partitions&) = delete;
  Partitions& operator=(const Partitions&) = delete;

  /// Runs the partition that starts at node `first`, if there is one for the values in `scope`:
  /// sets the values that later nodes read, and erases the others. Returns the index of the node
  /// after it, or `first`. Outputs in subgraphs are copies; those of the main graph are valid until
  /// the next run. `last_uses`: for each node, the names that no later node reads.
  size_t run(const std::vector<formats::onnx::Node>& nodes, size_t first,
             const std::vector<std::vector<std::string>>& last_uses, Scope& scope);
  /// Distinct internal errors that prevented compilation.
  const std::vector<std::string>& failures() const { return failures_; }
  /// Adds the FLOPs of executed partitions to `flops`; null stops counting.
  void count_flops(double* flops) { flops_ = flops; }
  /// Derives the origins of a node's outputs from those of its inputs.
  static void mark_outputs(const formats::onnx::Node& node, Scope& scope);

 private:
  struct Guard;
  struct Partition;
  struct Site;
  using Nodes = std::vector<formats::onnx::Node>;
  using LastUses = std::vector<std::vector<std::string>>;

  /// Records the error for `failures`, or rethrows it where internal errors are fatal.
  void note_internal(const Error& error);
  Site& site_at(const Nodes& nodes, size_t first, const Scope& scope);
  bool matches(const Site& site, const Partition& partition, const Scope& scope) const;
  std::unique_ptr<Partition> make(const Site& site, const Nodes& nodes, size_t first,
                                  const LastUses& last_uses, const Scope& scope);
  /// Traces nodes [first, end) as far as possible; returns the index after the last traced node.
  size_t trace(const Nodes& nodes, size_t first, size_t end, const LastUses& last_uses,
               ir::Tracer& tracer, Scope& scope);
  void execute(Partition& partition, size_t first, const LastUses& last_uses, Scope& scope);

  Evaluator& evaluator_;
  SessionOptions options_;
  size_t min_nodes_;  ///< smallest partition that is worth a plan
  std::vector<std::string> failures_;
  double* flops_ = nullptr;
  int function_count_ = 0;  ///< numbers the names of functions
  std::unordered_map<const void*, std::vector<std::unique_ptr<Site>>> sites_;
};

}  // namespace paddle::onnx
