#pragma once
// An executable ONNX model. Its graph is traced and compiled as one function: with symbolic sizes
// if possible, otherwise per set of input shapes. What cannot be traced as a whole (data-dependent
// shapes, sequences, strings) runs eagerly, with its traceable parts compiled as partitions
// (partitions.h).

#include <memory>
#include <string>
#include <vector>

#include "base/recent_list.h"
#include "compiler/pipeline.h"
#include "ir/module.h"
#include "onnx/graph/checked_executor.h"
#include "onnx/graph/evaluator.h"
#include "onnx/graph/open_model.h"
#include "runtime/compile.h"
#include "runtime/executable.h"

namespace paddle::onnx {

enum class Mode : uint8_t {
  kAutomatic,   ///< traced if possible, else partitioned
  kPartitions,  ///< partitioned from the first run on
  kEager        ///< node by node
};

struct SessionOptions {
  Mode mode = Mode::kAutomatic;
  std::shared_ptr<runtime::Profile> profile = {};  ///< profiles the instructions of plans if set
  compiler::CompileOptions compile = {};
  compiler::Observer observe = {};  ///< called after each pass if set
  /// Inputs that the caller provides despite their initializers.
  std::set<std::string> provided_inputs = {};
};

/// Runs the passes on a traced function and prepares it for execution.
inline std::unique_ptr<runtime::Executable> make_executable(std::shared_ptr<ir::Function> function,
                                                            const SessionOptions& options) {
  return runtime::compile(std::move(function), options.compile,
                          {.plan = {.profile = options.profile}, .adapt_threads = true},
                          options.observe);
}

class Session {
 public:
  /// Reads the file; kModel if it has unknown operators.
  explicit Session(const std::string& path, SessionOptions options = {});
  /// A session over the same model for another thread. It shares initializers and what has been
  /// compiled so far; its plans, and their memory, are its own.
  std::unique_ptr<Session> clone() const;

  const OpenModel& opened() const { return opened_; }
  const formats::onnx::Model& model() const { return *opened_.model; }
  const std::vector<formats::onnx::ValueInfo>& inputs() const { return opened_.inputs; }
  const std::vector<formats::onnx::ValueInfo>& outputs() const { return model().graph.outputs; }
  /// One value per input; absent ones are none. Outputs are valid until the next call.
  Values run(const Values& inputs);
  /// Total elements of the floating-point initializers.
  int64_t parameter_count() const;
  /// Why the last inputs did not run as one plan, and why parts of the graph run node by node, one
  /// sentence each. Empty if everything ran as one plan, or was not meant to.
  std::vector<std::string> fallbacks() const;
  /// FLOPs for these inputs; runs them to count unless they run as one plan.
  double flops(const Values& inputs);
  void set_seed(uint64_t seed) { seed_ = seed; }
  /// Makes the next run the one of this number, from 0: random operators draw by it.
  void set_run(uint64_t run) { step_ = run; }

  /// Whether these inputs run as one plan (compiled if necessary); see `fallbacks` if not.
  bool runs_as_plan(const Values& inputs) { return plan_for(inputs) != nullptr; }

  /// Traces the graph for inputs of these types. DataDependentError if it cannot be traced as a
  /// whole.
  std::shared_ptr<ir::Function> trace(const std::vector<TensorType>& types) const;

 private:
  Session(OpenModel opened, SessionOptions options);

  struct Compiled {
    std::vector<TensorType> types;
    std::unique_ptr<runtime::Executable> executable;  ///< null if tracing failed for these types
    std::string failure;                              ///< why
    Compiled clone() const;
  };
  Compiled* find_compiled(const Values& inputs);
  /// The compiled function for these inputs, bound in `bound_inputs_`; null if there is none.
  Compiled* plan_for(const Values& inputs);
  /// Traces and compiles the model for these types; keeps the reason on failure.
  Compiled try_compile(const std::vector<TensorType>& types) const;
  /// Null, with the reason in `fallback_`, if compilation failed.
  Compiled* usable(Compiled& compiled);
  /// Compiles for the exact shapes of the inputs.
  Compiled* compile_for_shapes(const Values& inputs);
  std::vector<Array> arrays_for(const ir::Function& function, const Values& inputs) const;
  void check_inputs(const Values& inputs) const;
  Values run_eagerly(const Values& inputs, double* flops = nullptr);

  OpenModel opened_;
  std::unique_ptr<Evaluator> evaluator_;
  SessionOptions options_;
  ProfileInstructions profile_;
  Partitions* partitions_ = nullptr;  ///< owned by the evaluator; null in Mode::kEager
  std::string fallback_;              ///< why the last inputs did not run as one plan
  bool symbolic_tried_ = false;
  uint64_t seed_ = 0, step_ = 0;
  std::vector<Array> bound_inputs_;  ///< kept alive: outputs may be views of inputs
  std::unique_ptr<Compiled> symbolic_;
  RecentList<Compiled> by_shape_;
};

}  // namespace paddle::onnx
