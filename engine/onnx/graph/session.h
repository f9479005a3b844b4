#pragma once
// An ONNX model ready to run. Its graph is traced into a function of ours, which is usable and
// run like any other; with symbolic sizes where that is possible, else for each set of input shapes
// that comes. What cannot be traced as a whole (a value decides a shape, sequences, strings) is run
// by the eager executor, with sections of it as plans (sections.h).

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "ir/module.h"
#include "onnx/graph/checked_executor.h"
#include "onnx/graph/evaluator.h"
#include "onnx/graph/open_model.h"
#include "runtime/compile.h"
#include "runtime/executable.h"

namespace paddle::onnx {

enum class Mode : uint8_t {
  kAutomatic,   ///< traced if possible, else in sections
  kPartitions,  ///< in sections (sections.h), from the first run on
  kEager        ///< node by node
};

struct SessionOptions {
  Mode mode = Mode::kAutomatic;
  std::shared_ptr<runtime::Profile> profile = {};  ///< times the instructions of plans when set
  runtime::CompileOptions compile = {};
  passes::Observer observe = {};     ///< told of functions after each pass when set
  std::set<std::string> given = {};  ///< inputs that have values, as open_model takes them
};

/// A traced function after the passes, ready to run.
inline std::unique_ptr<runtime::Executable> make_executable(std::shared_ptr<ir::Function> function,
                                                            const SessionOptions& options) {
  return runtime::optimized(std::move(function), options.compile,
                            {.plan = {.profile = options.profile}}, options.observe);
}

class Session {
 public:
  /// Reads the file and refuses operators that are not known. kModel.
  explicit Session(const std::string& path, SessionOptions options = {});

  const OpenModel& opened() const { return opened_; }
  const formats::onnx::Model& model() const { return *opened_.model; }
  const std::vector<formats::onnx::ValueInfo>& inputs() const { return opened_.inputs; }
  const std::vector<formats::onnx::ValueInfo>& outputs() const { return model().graph.outputs; }
  /// One value per input, in order; an absent one is none. The values of outputs are valid until
  /// the next call.
  Values run(const Values& inputs);
  /// Elements of all initialisers.
  int64_t parameter_count() const;
  /// Why the last inputs did not run as one plan, and why parts of the graph run node by node: one
  /// sentence each. Empty if all ran as one plan, or was not asked to.
  std::vector<std::string> fallbacks() const;
  /// Floating-point operations for these inputs, counted in a run of them if they do not run as one
  /// plan.
  double flops(const Values& inputs);
  void set_seed(uint64_t seed) { seed_ = seed; }

  /// Whether these inputs run as one plan, which is made if need be; see `fallbacks` if they do
  /// not.
  bool runs_as_plan(const Values& inputs) { return plan_for(inputs) != nullptr; }

  /// The graph as a function for inputs of these types. DataDependentError if that cannot be.
  std::shared_ptr<ir::Function> trace(const std::vector<TensorType>& types) const;

 private:
  struct Compiled {
    std::vector<TensorType> types;
    std::unique_ptr<runtime::Executable> executable;  ///< null: cannot be traced for these types
    std::string failure;                              ///< why not
  };
  Compiled* find_compiled(const Values& inputs);
  /// The same, but one that takes inputs of these shapes; its arrays are then in `bound_inputs_`.
  Compiled* plan_for(const Values& inputs);
  /// The model as one function of these types, if it can be traced as a whole.
  Compiled try_compile(const std::vector<TensorType>& types) const;
  /// Null, and the reason in `fallback_`, for what could not be traced.
  Compiled* usable(Compiled& compiled);
  /// The plan for the inputs' own shapes, which is made now.
  Compiled* compile_for_shapes(const Values& inputs);
  std::vector<Array> arrays_for(const ir::Function& function, const Values& inputs) const;
  void check_inputs(const Values& inputs) const;
  Values run_eagerly(const Values& inputs, double* flops = nullptr);

  OpenModel opened_;
  std::unique_ptr<Evaluator> evaluator_;
  SessionOptions options_;
  ProfileInstructions profile_;
  Partitions* partitions_ = nullptr;  ///< the evaluator's; null in Mode::kEager
  std::string fallback_;              ///< why the last inputs did not run as one plan
  bool symbolic_tried_ = false;
  uint64_t seed_ = 0, step_ = 0;
  std::vector<Array> bound_inputs_;  ///< of the last call: outputs may be views of its inputs
  std::unique_ptr<Compiled> symbolic_;
  std::list<Compiled> by_shape_;  ///< most recently used first
};

}  // namespace paddle::onnx
