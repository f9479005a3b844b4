#pragma once
// A session runs steps on batches of host arrays: compiled (traced once per function, planned once
// per binding of dims) or eagerly. It owns no data and no schedule; the trainer drives it.

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "compiler/pipeline.h"
#include "ir/module.h"
#include "partition/partition.h"
#include "partition/schedule.h"
#include "program/field_use.h"
#include "program/parameter_binding.h"
#include "program/tensor_part.h"
#include "runtime/compile.h"
#include "runtime/executable.h"
#include "train/session/batch_sizes.h"
#include "train/session/loss_form.h"
#include "train/session/nonfinite.h"
#include "train/step/step.h"
#include "train/tables/tables.h"

namespace paddle::partition {
class StageCut;
}

namespace paddle::train {

/// A field of the data as the step sees it.
struct FieldType {
  std::string name;
  TensorType type;  ///< the batch's dim first
};

struct SessionOptions {
  bool eager = false;
  bool use_float64 = false;  ///< float64 throughout
  compiler::CompileOptions compile;
  uint64_t seed = 0;
  int64_t accumulate = 1;
  size_t max_plans = 8;
  /// Steps run on one thread while other programs use the cores so much that this is faster; sums
  /// may be rounded otherwise.
  bool adapt_threads = false;
  bool check_memory = false;
  std::shared_ptr<runtime::Profile> profile;  ///< times the compiled step's instructions when set
  /// Shapes of the fields of a first batch, for a model that asks for the values of dims.
  std::vector<Dims> shapes;
  /// Called with (function, pass) before the first ("trace") and after each pass.
  compiler::Observer observe;
  /// With more than one rank, functions are traced for constant dims and partitioned: each rank
  /// runs its part, and the session's interface stays that of the whole batch and whole parameters.
  partition::Mesh mesh;
  std::vector<partition::PlaceRule> place;
  std::vector<partition::OperationRule> rules;
  /// Of the axis `pipeline` of the mesh; the number of micro-batches is `accumulate`.
  partition::Schedule schedule = partition::Schedule::kOneForwardOneBackward;
  int chunks = 1;  ///< stages of a rank
  /// Values of the forward pass that are computed again; with `recompute_budget`, as few of them as
  /// let a training step stay below that number of bytes.
  std::optional<passes::RecomputeOptions> recompute;
  uint64_t recompute_budget = 0;
  bool sequence = false;  ///< the axis `tensor` splits the sequence where it splits nothing else
  int sharding = 0;       ///< stage: 1 optimizer states, 2 sums of gradients too, 3 parameters too
  int64_t bucket_bytes = 4 << 20;  ///< of gradients that ranks sum together
  /// Whether full buckets are summed in a thread of their own; nothing: where that leaves time.
  std::optional<bool> overlap;
  std::shared_ptr<comm::Communicator> communicator;  ///< null: one rank
};

/// Scalars that are the same for all micro-batches of a step.
struct StepScalars {
  int64_t step = 1;                        ///< counts from 1
  std::span<const double> learning_rates;  ///< of each optimizer; empty in an evaluation
};

/// A step that a device may still compute.
struct StartedStep {
  double loss = 0;             ///< of what was not left to the device
  std::vector<double> losses;  ///< by optimizer, if these have names
  /// The outputs of a step that is queued: the loss, and those by optimizer; else null.
  std::shared_ptr<runtime::OutputCopies> queued;
};

/// Rows of a batch, [begin, end).
struct RowRange {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
};

/// Rows [begin, end) of a batch's arrays, sharing their memory.
inline std::vector<Array> rows_of(const std::vector<Array>& batch, int64_t begin, int64_t end) {
  std::vector<Array> out = batch;
  for (Array& a : out) {
    a.offset += begin * a.strides[0];
    a.shape[0] = end - begin;
  }
  return out;
}

struct EvaluationResult {
  double loss = 0;  ///< of the whole batch
  std::vector<std::vector<Array>> metric_operands;
  /// For each metric, the rows of the batch that its operands are about and that this rank counts;
  /// empty if another one does.
  std::vector<RowRange> metric_rows;
};

/// A result of an operation of a step, or a field of its batch.
struct ReplayedValue {
  std::string operation, location;
  TensorType type;
  Array whole;
};

class Session {
 public:
  Session(std::shared_ptr<const Step> step, std::vector<FieldType> fields,
          program::ParameterStore& store, SessionOptions options);
  ~Session();

  /// Symbolic types of the fields from the models' inputs and the samples' shapes (-1: varies).
  static std::vector<FieldType> field_types(const std::vector<program::NamedModel>& models,
                                            const std::vector<FieldType>& samples,
                                            bool use_float64);

  /// Makes all parameters and states, and traces the training function.
  void prepare();
  /// Sets the states that start as copies of their parameters: to be called when these have their
  /// initial values, before the first step.
  void start_copies();
  /// One update from micro-batches (arrays in the order of the fields), each with its weight:
  /// its share in the batch, or 1 where the loss is a sum. Gives the loss of the batch.
  double train(std::span<const std::vector<Array>> micro_batches, std::span<const double> weights,
               const StepScalars& numbers);
  /// The same, without waiting for a device with streams, where the step is one function; else it
  /// computes the step. The device continues with the next step while the host reads the loss.
  StartedStep start(std::span<const std::vector<Array>> micro_batches,
                    std::span<const double> weights, const StepScalars& numbers);
  /// Waits for a started step and completes its losses. Errors of kernels are in the record of the
  /// device, which `check_device_errors` reads.
  static void finish(StartedStep& step);
  /// Waits for the device and throws the first error of a kernel since the last call, such as an
  /// index out of range, with its place in the model.
  void check_device_errors() const;
  /// Announces the next step, whose keys of tables then travel with the gradients of this one. All
  /// ranks announce the same steps.
  void announce(std::span<const std::vector<Array>> micro_batches);
  /// The losses of the last step by optimizer; empty unless these have names.
  std::span<const double> losses() const { return losses_; }
  /// Computes a step on a batch, in one part and operation by operation, and passes its fields and
  /// then all results to `visit`, on rank 0. Parameters and states stay as they are.
  void replay(const std::vector<Array>& batch, const StepScalars& numbers,
              const std::function<void(const ReplayedValue&)>& visit);
  /// Computes a step on a batch, in one part and operation by operation, up to the first NaN, and
  /// gives the operation that NaN or infinity comes from; nullopt if there are none. Infinities
  /// that no later operation turns into NaN and that do not reach a result of the step are none:
  /// masks have them. On one rank.
  std::optional<NonFiniteOrigin> find_nonfinite(const std::vector<Array>& batch,
                                                const StepScalars& numbers);
  /// Loss and metric operands of a batch; the arrays are valid until the next call. Each rank of
  /// the axis `data` has the operands of its own rows, where they have rows.
  EvaluationResult evaluate(const std::vector<Array>& batch);
  /// The scores that `predict:` of kind sequence reads, of a batch; valid until the next call. Each
  /// rank computes the whole batch that it is given.
  const Array& predict(const std::vector<Array>& batch);
  /// Gradients of the loss that an evaluation computes, for outputs of the exported model by name;
  /// none for an output that the loss does not depend on. The arrays are valid until the next call.
  /// Only on one rank, compiled. kConfig for a step that computes its updates itself.
  std::map<std::string, Array> output_gradients(const std::vector<Array>& batch);

  /// Which integers of the fields the model and the loss take.
  program::FieldUse field_use();
  /// Properties of operands that the accumulators of the metrics need. `ignored_label`:
  /// labels that the loss does not count. kConfig, with the place, if a metric is not defined.
  std::vector<MetricBinding> bind_metrics(int64_t ignored_label);
  /// The calls of training that normalize by statistics of the batch.
  std::vector<NormCall> norm_calls();
  /// Running statistics that training steps compute from their batches.
  struct RunningStatistics {
    std::set<std::string> states;     ///< means and variances
    std::vector<std::string> others;  ///< places of norms in branches and loops: "model.yaml:6:5"
  };
  RunningStatistics running_statistics();
  /// The mean and the (biased) variance, per channel, of this batch in each norm of the forward
  /// pass in training, by the names of the states with the running ones; in memory of the host. A
  /// norm that is called several times gives several. Parameters and states stay as they are.
  /// `number` counts the batches and chooses random numbers.
  std::vector<std::pair<std::string, Array>> batch_statistics(const std::vector<Array>& batch,
                                                              int64_t number);
  /// A digest of what the forward pass and the loss compute in training, wherever their text is
  /// and whatever is frozen.
  uint32_t forward_digest();
  /// The only number of samples that the model takes, if it states one.
  std::optional<int64_t> stated_batch() const;
  /// A dim for a batch of `samples`: where it depends on what varies from batch to batch,
  /// nothing.
  std::optional<int64_t> size_of(const Dim& dim, int64_t samples,
                                 const std::vector<data::Field>& fields) const;
  /// How the loss is made of terms of its samples. The divisor, if it has one, is what `divisor`
  /// computes; the pointer to it is null.
  LossForm loss_form();
  /// The divisor of this batch, where the form is kWeighted.
  double divisor(const std::vector<Array>& batch);
  /// Whether the loss aligns labels with steps of an output (CTC), by lengths that are computed
  /// from the data only.
  bool aligns_labels();
  /// A row of a batch whose labels cannot be aligned: they need more steps than the output has.
  struct LongLabels {
    int64_t row = 0;
    int64_t labels = 0, repeated = 0;  ///< repeated: equal to the one before, with a blank between
    int64_t steps = 0;                 ///< of the output
  };
  /// Those of this batch, in rising order of rows.
  std::vector<LongLabels> long_labels(const std::vector<Array>& batch);
  /// Plans for a batch of these shapes, so that memory is known before the first step.
  runtime::MemoryReport plan_training(const std::vector<Dims>& shapes);
  runtime::MemoryReport plan_evaluation(const std::vector<Dims>& shapes);
  /// Bytes of the parameters and states that this rank keeps between steps.
  int64_t stored_bytes() const;
  /// Floating-point operations of one training step on a batch of these shapes.
  double training_flops(const std::vector<Dims>& shapes);
  /// The values of the store, of which this rank may only have parts, as whole arrays on rank 0, in
  /// memory of the host.
  /// All ranks must call it; on the others the result is not complete.
  program::ParameterStore whole_store();
  /// The part of a parameter or state that this rank writes into a checkpoint of all ranks: each
  /// element is written by one rank that has it.
  std::optional<program::TensorPart> written_part(const std::string& name);
  /// Takes this rank's parts of the store's values again and frees the whole arrays.
  void take_parts();
  /// Whether this rank reads the rows of a batch that `shard_bounds` gives it on the axis `data`,
  /// and no others. The training function must have been traced.
  bool reads_local_rows_only() const;
  /// From now on the other rows of training batches have no meaning.
  void expect_local_rows() { has_local_rows_only_ = true; }
  /// Where a parameter or state is split; empty: all ranks have the whole.
  partition::Placement placement_of(const std::string& name) const;
  /// Values that some operation of the training step needs whole, although they are split.
  const std::vector<partition::Gathered>& gathered() const { return gathered_; }
  /// The effect of recomputation in one line; "" without it.
  const std::string& recompute_summary() const { return recompute_text_; }
  /// The bytes that this rank sends in a training step, in one line; "" for one rank.
  const std::string& communication_summary() const { return communication_text_; }
  /// How the stages of the pipeline divide the step, a line each; none without a pipeline.
  std::vector<std::string> pipeline_lines() const;
  /// The tables of the models (`sparse_embedding`), which are kept next to the store.
  Tables& tables() { return tables_; }
  const Tables& tables() const { return tables_; }
  const ir::Module& module() const { return module_; }
  int64_t traces() const { return traces_; }
  int64_t plans() const;
  size_t planned_bytes() const;
  const std::vector<FieldType>& fields() const { return fields_; }

 private:
  struct Compiled;
  struct Pipeline;
  struct StageJob;
  struct LookupPorts;
  struct GradientPort;
  struct NormPorts;
  using StageJobs = std::map<std::pair<partition::JobKind, int>, StageJob>;
  enum class Part {
    kTrain,
    kAccumulate,
    kApply,
    kEvaluate,
    kDivisor,
    kAlignment,
    kForward,
    kStatistics,
    kPredict,
    kGradients
  };
  /// Why the run cannot have tables; "" if it can.
  std::string tables_rejection() const;
  /// Lets models read tables in a part of the step.
  void connect_tables(program::ParameterBinding& ports, const StepInputs& inputs, Part part) const;
  /// How a part reads keys that a table lacks.
  static MissingRow missing_rows(Part part);
  /// Notes the lookups of a function while it is traced, and finds the inputs and outputs for them.
  static void note_lookups(Compiled& c, const program::ParameterBinding& ports);
  static void find_table_ports(Compiled& c);
  void find_norm_ports(Compiled& c) const;
  /// The output of a training function with the gradient for a lookup.
  static std::string gradient_port(const std::string& table, const std::string& field) {
    return "gradient:" + table + ":" + field;
  }
  /// Whether the gradients that this rank computes for a lookup count: its own rows, or all of them
  /// on one of the ranks.
  bool counts_here(const Compiled& c, const LookupPorts& lookup) const;
  /// The keys of a function's lookups in a batch.
  std::vector<TableUse> table_uses(const Compiled& c, const std::vector<Array>& batch) const;
  /// Reads the rows for all micro-batches of a training step.
  void begin_tables(Part part, std::span<const std::vector<Array>> micro_batches);
  /// The same for a function of another part.
  void read_tables(Compiled& c, const std::vector<Array>& batch);
  /// Fills the inputs of a function with the rows of the batch's keys; those of micro-batches are
  /// taken in order.
  void fill_rows(Compiled& c, const std::vector<Array>& batch);
  /// Takes the gradients for the lookups of a training function that has run.
  void take_gradients(const Compiled& c, const std::vector<Array>& outputs);
  void take_gradients(const StepOutputs& outputs, const program::ParameterBinding& ports,
                      size_t first_use);
  /// Updates tables, and hands over the factors of gradients that an update has computed.
  void update_tables(const StepScalars& numbers, const std::map<std::string, double>& scales = {});
  /// The update of parameters from accumulated gradients, then that of the tables.
  void apply_accumulated(const StepScalars& numbers);
  /// Whether the gradients of a step are accumulated before it updates: of several micro-batches,
  /// or because norms need the gradients of tables.
  bool updates_by_parts() const {
    return options_.accumulate > 1 || (step_->reads_norms() && !tables_.empty());
  }
  StepOutputs run_part(Part part, program::ParameterBinding& ports, const StepInputs& inputs) const;
  Compiled& compiled(Part part);
  /// Which parameters and states a step does not change.
  std::function<bool(const std::string&)> frozen() const;
  /// Mixed precision: stores parameters in 16 bits with float32 masters, and sets the loss scale.
  void init_mixed_precision();
  /// The inputs of a part's function, in the order that `compiled` expects, and its random state.
  StepInputs trace_inputs(ir::Tracer& tracer, Part part, bool constant_dims, Tensor& random) const;
  /// Traces a part into `f` and calls `use` while the tracer is still active; `watch`, if there is
  /// one, sees the calls before it. With `constant_dims` the dims are those of the batch at hand.
  using UseTrace = std::function<void(ir::Tracer&, program::TraceBinding&, const StepOutputs&)>;
  void trace_part(ir::Function& f, Part part, const UseTrace& use, Interpreter* watch = nullptr,
                  bool constant_dims = false);
  /// Whether a part computes something from the batch only.
  static bool is_of_data(Part part) { return part == Part::kDivisor || part == Part::kAlignment; }
  /// Whether ranks run parts of a function. What depends only on the batch they all compute whole.
  bool is_partitioned(Part part) const {
    return options_.mesh.size() > 1 && !is_of_data(part) && part != Part::kPredict;
  }
  /// Replaces the function by this rank's part of it.
  void partition(Compiled& c);
  /// Whether the fields of a partitioned function are split by rows, each rank having adjacent
  /// ones.
  bool splits_rows(const Compiled& c) const;
  bool is_pipelined() const { return options_.mesh.axis_size_of("pipeline") > 1; }
  /// Cuts a partitioned function into jobs, or takes this rank's part of an update.
  void cut(Compiled& c, Part part);
  /// Values of a micro-batch on this rank: between jobs, and results by output.
  struct JobValues {
    std::map<int, Array> between, results;
  };
  /// Runs a job, with its messages.
  void run_job(Compiled& c, const partition::Job& job, size_t micro_batch, JobValues& values);
  /// Gives the result of the rank with this stage to all ranks of the axis.
  void share_result(int stage, Array& result);
  /// Adds up the gradients of micro-batches and updates with them, for each update of the step;
  /// returns the loss.
  /// The states of a minimizer, for all parameters that are not frozen.
  void make_minimizer_states();
  /// An update by the optimizer that evaluates the loss several times.
  double minimize(std::span<const std::vector<Array>> micro_batches,
                  std::span<const double> weights, const StepScalars& numbers);
  double train_by_parts(std::span<const std::vector<Array>> micro_batches,
                        std::span<const double> weights, const StepScalars& numbers);
  /// The loss of a micro-batch.
  double run_micro_batch(Part part, const std::vector<Array>& batch, const StepScalars& numbers,
                         double weight, uint64_t counter);
  void record_phase(const StepOutputs& out);
  double train_pipelined(std::span<const std::vector<Array>> micro_batches,
                         std::span<const double> weights, const StepScalars& numbers);
  /// The values of a function without a backward pass, whose inputs are filled, on all ranks of a
  /// pipeline.
  std::vector<Array> run_forward_pipelined(Compiled& c);
  EvaluationResult evaluate_pipelined(Compiled& c);
  struct PipelinePlan {
    runtime::MemoryReport memory;
    double flops = 0;  ///< of this rank
  };
  PipelinePlan plan_pipeline(Part part, const std::vector<Dims>& shapes);
  /// The memory of jobs, whose inputs are complete, with what micro-batches keep between them.
  PipelinePlan plan_jobs(const partition::StageCut& cut, StageJobs& jobs, bool trains) const;
  /// The jobs of this rank's stages. `observes`: they are the ones that will run.
  StageJobs compile_jobs(const partition::StageCut& cut, bool observes) const;
  /// The position on the axis `pipeline` of the rank that owns a parameter or state; 0 for what all
  /// have.
  int pipeline_owner(const std::string& name) const;
  bool is_owned(const std::string& name) const;  ///< by one stage
  bool is_held(const std::string& name) const;   ///< by this rank
  /// Positions on the pipeline axis of the ranks that read a parameter or state in their stages.
  std::set<int> reading_positions(const std::string& name) const;
  int pipeline_position() const;       ///< of this rank on the axis
  int pipeline_rank(int stage) const;  ///< the rank of this rank's pipeline with a stage
  /// The values that the stages of a pipeline compute again; sets the line of `recompute_summary`.
  std::unordered_set<const ir::Value*> dropped_in_pipeline(ir::Function& function,
                                                           const std::map<std::string, int>& leaves,
                                                           int stages);
  /// For each rank of the axis, how many of its layers it computes again to stay within the budget.
  std::vector<int64_t> layers_for_budget(
      const ir::Function& function, const std::map<std::string, int>& leaves, int stages,
      const std::vector<std::vector<std::unordered_set<const ir::Value*>>>& layers);
  /// Bytes of the optimizer states of parameters, of which ranks of `data` may have parts.
  uint64_t optimizer_bytes(const std::function<bool(const std::string&)>& is_here) const;
  /// The choice of recomputation for training functions, made with the first one.
  std::optional<passes::RecomputeOptions> choose_recompute(const ir::Function& function);
  /// The memory of a function with a choice of recomputation.
  runtime::MemoryReport memory_with(const ir::Function& function,
                                    std::optional<passes::RecomputeOptions> recompute);
  /// Fills the inputs of a function that come from outside of the store's parts.
  void fill_inputs(Compiled& c, const std::vector<Array>& batch, const StepScalars& numbers,
                   double weight, uint64_t counter);
  /// Finds out where the inputs of a function come from.
  void connect(Compiled& c, Part part);
  uint64_t random_counter(const StepScalars& numbers, size_t micro_batch) const;
  /// The array of the store that an input takes, or this rank's part of it.
  Array* stored(const ir::Port& port, const partition::Placement& placement);
  /// Gathers a parameter or state that rank 0 lacks there.
  void gather_whole(const std::string& name, program::ParameterStore& out);
  /// An array of the store by port.
  Array& in_store(const ir::Port& port);
  /// A part's function, which is not compiled yet.
  std::unique_ptr<Compiled> traced(Part part, bool constant_dims);
  /// The training step, traced but not compiled, with its inputs for a batch.
  std::unique_ptr<Compiled> traced_with_inputs(const std::vector<Array>& batch,
                                               const StepScalars& numbers);
  std::unique_ptr<Compiled> trace(Part part);
  /// Whether a rank is the one that gives a part to others: of ranks with the same part, the first
  /// one along each other axis. `owner`: see pipeline_owner.
  bool sends_part(int rank, const partition::Placement& placement, int owner) const;
  /// An array that ranks have parts of, on rank 0; the others get nothing. `mine`: null where this
  /// rank sends nothing.
  Array gather_array(const Array& mine, DType dtype, const Dims& shape,
                     const partition::Placement& placement, int owner);
  /// Takes the sizes of dims from a batch of these shapes.
  void bind_sizes(const std::vector<Dims>& shapes);
  /// The same of a batch; at no cost if its shapes are those of the last one.
  void bind_sizes(const std::vector<Array>& batch);
  const std::vector<Array>& run_compiled(Compiled& c, const std::vector<Array>& batch,
                                         const StepScalars& numbers, double weight,
                                         uint64_t counter);
  StepOutputs run_eager(Part part, const std::vector<Array>& batch, const StepScalars& numbers,
                        double weight, uint64_t counter, Interpreter* watch = nullptr);
  runtime::Plan& plan(Part part, const std::vector<Dims>& shapes);
  DType rate_type() const { return options_.use_float64 ? DType::kF64 : DType::kF32; }
  /// Makes `to` this array in the field's dtype, in one piece.
  void put_input(Array& to, const Array& array, size_t field) const;

  std::shared_ptr<const Step> step_;
  std::vector<FieldType> fields_;
  program::ParameterStore& store_;
  SessionOptions options_;
  mutable Tables tables_;
  size_t next_use_ = 0;  ///< of tables in a training step: the first one of the next micro-batch
  std::map<std::string, double> table_squares_;  ///< of accumulated gradients, by table
  ir::Module module_;
  /// An update of the step, when its gradients are accumulated.
  struct Phase {
    UpdateKind update;
    std::vector<std::string> parameters = {};  ///< with accumulated gradients
    std::vector<std::string> tables = {};      ///< the same
  };
  std::vector<Phase> phases_;  ///< known with the first function
  size_t phase_ = 0;           ///< the one at hand
  /// Most recently used first: a model that asks for `static(dim)` has one for each value.
  std::map<Part, std::list<std::unique_ptr<Compiled>>> parts_;
  std::vector<Dims> shapes_;              ///< of the fields of the batch at hand
  std::map<std::string, int64_t> sizes_;  ///< of its dims
  int64_t step_number_ = 0;               ///< of the step at hand; 0: every update is due
  std::vector<double> losses_;
  Array prediction_;
  int64_t traces_ = 0;
  partition::Placements placements_;
  std::vector<partition::Gathered> gathered_;
  std::map<std::string, Array> parts_here_;  ///< of split parameters and states
  std::unique_ptr<Pipeline> pipeline_;
  bool recompute_chosen_ = false, has_local_rows_only_ = false;
  std::vector<int64_t> recomputed_layers_;  ///< by rank of the axis `pipeline`, within a budget
  std::string recompute_text_, communication_text_;
};

}  // namespace paddle::train
