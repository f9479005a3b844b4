#pragma once
// The pass pipeline of the compiled mode: which passes run, in which order, under which options.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/registry.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/schedule/recompute.h"
#include "ops/core/target.h"

namespace paddle::compiler {

/// Whether runs on a device queue recorded work (runtime/plan_graphs.h): kAuto where the device
/// can.
enum class GraphMode : uint8_t { kAuto, kOn, kOff };
/// "auto", "on" or "off"; kUsage for another word.
GraphMode parse_graph_mode(std::string_view word);

/// Which optimizations run. Each can be disabled, to compare.
struct CompileOptions {
  bool fusion = true;        ///< fusion groups, and all that layout and rewrites enable
  bool layout = true;        ///< channels last, decompositions for fusion, epilogues, int8
  bool rewrites = true;      ///< rewrite rules
  bool batch_tiling = true;  ///< large activations are computed for a few samples at a time
  GraphMode graphs = GraphMode::kAuto;
  /// The function runs there.
  TargetInfo target = {};
  /// How its kernels are prepared; not a property of the function.
  PrepareOptions prepare = {.allow_winograd = true};
  /// Only transformations that keep the results of op-by-op execution bit for bit: no layouts, no
  /// rewrite rules, no batch tiling, no Winograd, and no fusion group that keeps a value in
  /// float32 between 16-bit operations.
  bool exact = false;
  std::vector<passes::Rule> rules = {};  ///< tried before the standard rules
  /// Values of the forward pass that are computed again; for training steps.
  std::optional<passes::RecomputeOptions> recompute = {};
  /// The added passes that run, by name; not set: all of them.
  std::optional<std::vector<std::string>> added = {};
  /// The compiler of regions (region_compilers.h) that runs, by name; "": none. Not set: all.
  std::optional<std::string> compiler = {};
  /// Passes that do not run, by name (`leave_out`).
  std::vector<std::string> left_out = {};
};

/// The purpose of a pass; stages run in this order. Between import and canonicalization a
/// training step on several ranks is partitioned (partition/partition.h).
enum class Stage : uint8_t {
  kImport,        ///< operations that the target knows
  kCanonicalize,  ///< one form for what means the same, nothing that is unused or constant
  kQuantize,      ///< integer operations
  kLayout,        ///< rewrite rules, and the order of axes in memory
  kLower,         ///< parts that fuse
  kFuse,          ///< operations that one kernel computes
  kSchedule,      ///< the order of operations
};
std::string text(Stage stage);

/// A pass, by the name that `--passes` and `--dump-ir` use.
struct Pass {
  Stage stage;
  std::string name;
  std::function<void(ir::Function&)> run;
};
/// A pass that is added to a running program, such as one of a plug-in.
struct AddedPass {
  std::string name;
  Stage stage = Stage::kCanonicalize;
  /// The pass of this name that it follows in its stage; "" or a pass that does not run: the end of
  /// the stage.
  std::string after = {};
  /// Results stay those of op-by-op execution bit for bit, so that it runs with `exact`, too.
  bool keeps_bits = false;
  /// It also runs for functions that update parameters.
  bool for_training = true;
  /// Transforms the function. The result is verified; kInternal, naming the pass, if it is invalid.
  std::function<void(ir::Function&, const CompileOptions& options)> run = {};
};
/// Passes besides the built-in ones, for all functions that are compiled from now on.
Registry<AddedPass>& added_passes();

/// The passes for these options, in order. Kernels must be registered when they run (runtime's
/// `register_backends`), since passes ask the backends what they can fuse.
std::vector<Pass> pass_pipeline(const CompileOptions& options, const passes::Evaluate& evaluate);
/// Leaves an optimization out, to compare or to go around a defect: "fusion", "layout", "rewrites",
/// "batch_tiling", "codegen", "winograd", or a pass by its name. kUsage for another word, and for
/// passes that no function runs without.
void leave_out(CompileOptions& options, const std::string& name);
/// The passes for functions that are saved: those that help on every machine. What a machine can
/// fuse, lay out or compute in integers is decided where the function runs.
std::vector<Pass> saving_pipeline(const passes::Evaluate& evaluate);
/// Names of the passes that run by default.
std::vector<std::string> pass_names();

/// An added pass failed, or gave a text that cannot take the function's place.
class PassError final : public Error {
 public:
  explicit PassError(const Error& cause, std::string result = "")
      : Error(cause), text(std::move(result)) {}
  std::string text;  ///< what it gave
};

/// Sees the stages of a compilation.
struct Observer {
  /// Called with the traced function ("trace") and after each pass, with the pass's name.
  std::function<void(const ir::Function& function, const std::string& stage)> stage;
  /// Called with the text that a pass gave before the pipeline fails with PassError.
  std::function<void(const std::string& pass, const std::string& text)> invalid = {};
};
/// Runs the pipeline. kInternal, naming the pass, if one fails.
void run_pipeline(ir::Function& function, const std::vector<Pass>& pipeline,
                  const Observer& observe = {});

}  // namespace paddle::compiler
