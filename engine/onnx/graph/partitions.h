#pragma once
// Graphs that cannot be traced as a whole, in parts. Under the eager executor, a run of nodes whose
// sizes follow from the types of what they read becomes a function of its own, which is planned and
// run like any other; the nodes between (sizes that come from values, sequences, strings, loops
// whose turns a value counts) run one by one. Graphs inside nodes have sections too, so that the
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

class Sections {
 public:
  /// `options.mode` kSections compiles at first sight; otherwise a place must come again first.
  Sections(Evaluator& evaluator, const SessionOptions& options);
  ~Sections();
  Sections(const Sections&) = delete;
  Sections& operator=(const Sections&) = delete;

  /// Runs the section that begins at node `first` of `nodes`, if there is one for the values in
  /// `scope`: sets what later nodes read, and drops what they do not. Returns the node after it, or
  /// `first`. Values given in a graph inside a node are copies; those of the model's graph are
  /// valid until the next run. `ends`: for each node, the names that no later node reads.
  size_t run(const std::vector<formats::onnx::Node>& nodes, size_t first,
             const std::vector<std::vector<std::string>>& ends, Scope& scope);
  /// The internal errors that kept sections from being compiled, once each.
  const std::vector<std::string>& failures() const { return failures_; }
  /// Adds the floating-point operations of sections that run to `flops`; null: counts none.
  void count_flops(double* flops) { flops_ = flops; }
  /// Marks what a node has given from what it read.
  static void mark_outputs(const formats::onnx::Node& node, Scope& scope);

 private:
  struct Given;
  struct Section;
  struct Place;
  using Nodes = std::vector<formats::onnx::Node>;
  using Ends = std::vector<std::vector<std::string>>;

  /// Keeps the error for `failures`, or throws it where internal errors are fatal.
  void note_internal(const Error& error);
  Place& place_at(const Nodes& nodes, size_t first, const Scope& scope);
  bool matches(const Place& place, const Section& section, const Scope& scope) const;
  std::unique_ptr<Section> make(const Place& place, const Nodes& nodes, size_t first,
                                const Ends& ends, const Scope& scope);
  /// Traces nodes from `first` on, to `end` or as far as it goes; the node after the last traced.
  size_t trace(const Nodes& nodes, size_t first, size_t end, const Ends& ends, ir::Tracer& tracer,
               Scope& scope);
  void execute(Section& section, size_t first, const Ends& ends, Scope& scope);

  Evaluator& evaluator_;
  SessionOptions options_;
  size_t fewest_;  ///< nodes that are worth a plan
  std::vector<std::string> failures_;
  double* flops_ = nullptr;
  int made_ = 0;  ///< functions, which their names count
  std::unordered_map<const void*, std::vector<std::unique_ptr<Place>>> places_;
};

}  // namespace paddle::onnx
