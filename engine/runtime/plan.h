#pragma once
// A plan: a function for one binding of its dims. Every value has a buffer and a layout, every
// operation a prepared kernel, and buffers whose lifetimes do not overlap share memory in one
// arena. Running a plan executes its instructions in order.

#include <array>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compiler/pipeline.h"
#include "ir/module.h"
#include "ops/core/kernel.h"
#include "runtime/profile.h"

namespace paddle::runtime {

enum class BufferKind : uint8_t {
  kInput,
  kConstant,
  kArena,
  kStaged,  ///< the copy of an input that comes from the host, on another device
};

struct Buffer {
  BufferKind kind = BufferKind::kArena;
  size_t bytes = 0;
  size_t input = 0;  ///< position among the function's inputs, for kInput and kStaged
  const Array* constant = nullptr;
  /// Memory of a kConstant that has been read on another device.
  mutable std::shared_ptr<Storage> on_device;
  /// Memory of kStaged, which small inputs share: runs use the two in turn, so that the copy for
  /// one run need not wait for the kernels of the one before.
  std::array<std::shared_ptr<Storage>, 2> staged;
  int first = 0, last = 0;  ///< positions of definition and last use
  size_t offset = 0;        ///< in the arena or in staged memory
  std::string label;        ///< the operation or port it was created for, for reports
};

/// The buffer of a value. Values whose size is known only at run time are `dynamic`.
struct ValueBuffer {
  bool planned = false;  ///< false: not built yet
  bool dynamic = false;
  int buffer = -1;
  Layout layout;            ///< offset in elements from the buffer's start
  int64_t tile_stride = 0;  ///< bytes to the same value of the next tile, under batch tiling
};

struct Instruction {
  enum class Kind : uint8_t {
    kKernel,
    kBranch,
    kLoop,
    kTiles,
    kDynamic,
    kCopyIn,    ///< from staging memory of the host to that of kStaged buffers
    kReadBack,  ///< a condition, to host memory
  };
  Kind kind = Kind::kKernel;
  const ir::Operation* operation = nullptr;
  std::unique_ptr<Kernel> kernel;
  std::vector<std::unique_ptr<Kernel>> merged;  ///< kernels whose work `kernel` does
  std::vector<int> operands, results;           ///< value ids, -1 for absent
  std::vector<void*> operand_data, result_data;
  int scratch = -1;  ///< buffer of the kernel's scratch, -1 for none
  std::byte* scratch_data = nullptr;
  int position = 0;
  // On devices with streams:
  bool copies = false;     ///< runs on the stream for copies, not on that for kernels
  std::vector<int> waits;  ///< events that its stream waits for first
  int records = -1;        ///< event that is recorded after it, -1 for none
  int staging = -1;        ///< of kCopyIn: the block that it copies
  int segment = -1;        ///< that it is the first instruction of (runtime/plan_graphs.h)
  // Control flow: blocks run in place, then copies move their results to the outer values.
  std::vector<std::vector<Instruction>> blocks;
  /// Per block: (from value, to value).
  std::vector<std::vector<std::pair<int, int>>> block_copies;
  std::vector<std::pair<int, int>> initial_copies;  ///< loops: of the carried values
  int64_t max_steps = -1;
  int64_t tiles = 1;  ///< runs of the block of kTiles, one per tile of the batch
  int profile = -1;   ///< index in the profile, if there is one
};

constexpr size_t kGuard = 64;  ///< guard bytes on each side of a checked buffer

struct MemoryReport {
  size_t arena = 0;    ///< activations, gradients, temporaries and scratch
  size_t scratch = 0;  ///< the largest of all kernels, in the arena
  size_t inputs = 0;   ///< parameters, states and data
  size_t constants = 0;
  size_t total() const { return arena + inputs + constants; }
};

struct PlanOptions {
  /// Fills buffers with NaN outside their lifetimes and puts guards around buffers and scratch, to
  /// detect reads of dead memory and writes out of bounds. On the CPU only.
  bool check_memory = false;
  /// Instructions are timed if set.
  std::shared_ptr<Profile> profile = {};
  /// Of all kernels of the plan; those inside loops and batch tiles always prepack.
  TargetInfo target = {};
  PrepareOptions prepare = {};
  /// Threads that kernels are prepared for whose rounding depends on their number (trait
  /// kSumsByThread); 0: as many as the others use.
  int summing_threads = 0;
  /// Working set of batch tiling in bytes (runtime/batch_tiling.h); 0: no batch tiling.
  int64_t tile_bytes = 0;
  /// On devices: whether runs queue recorded work.
  compiler::GraphMode graphs = compiler::GraphMode::kAuto;
  /// For the plan's collective operations; null in a run of one rank. Outlives the plan.
  comm::Collectives* collectives = nullptr;
};

/// Checks the memory of a plan while it runs (PlanOptions::check_memory).
class MemoryCheck {
 public:
  MemoryCheck(const std::vector<Buffer>& buffers, int positions);
  void begin(std::byte* arena, size_t bytes);
  /// Writes guards around the buffers that are new at the instruction.
  void before(const Instruction& instruction, std::byte* arena);
  /// kInternal naming the operation and the value if a guard changed; fills what dies here with NaN
  /// if the instruction is the last of its position.
  void after(const Instruction& instruction, std::byte* arena, bool last);

 private:
  void expect_guard(const std::byte* at, size_t bytes, const Instruction& instruction,
                    const std::string& where) const;
  const std::vector<Buffer>& buffers_;
  std::vector<std::vector<int>> dying_;  ///< buffers by position of their last use
  std::vector<bool> armed_;              ///< by buffer
};

class PlanStreams;
class PlanGraphs;
struct GraphReport;

class Plan {
 public:
  /// Throws kData if inputs do not match the declared types or violate a constraint, kDevice if the
  /// plan needs more memory than its target states.
  Plan(const ir::Function& function, const std::vector<Layout>& inputs, PlanOptions options);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  /// Bytes that `run` needs in the arena.
  size_t arena_bytes() const { return arena_bytes_; }
  MemoryReport memory() const;
  /// Sets the arena's address; required before the first `run` and whenever the arena moved.
  void set_arena(std::byte* base);
  std::byte* arena() const { return arena_; }
  /// Runs on these input pointers: addresses of the plan's device for parameters and states, which
  /// are written in place where they are updated; for values addresses of the host, or of the
  /// device where `on_device` says so (empty: nowhere), which are read in place. On devices with
  /// streams the work is only queued.
  void run(const std::vector<void*>& inputs, const std::vector<uint8_t>& on_device = {});
  /// How much of the plan is recorded; all zero where nothing is.
  GraphReport graph_report() const;
  /// Output i of kind kValue, valid until the next run.
  Array output(size_t i) const;
  /// True if the address of output i can change from run to run.
  bool output_moves(size_t i) const;
  const std::vector<Instruction>& instructions() const { return instructions_; }
  /// Floating-point operations of one run (branches and loop bodies counted once).
  double flops() const;
  std::optional<int64_t> symbol(const std::string& name) const;
  /// The largest buffers of the arena, for reports.
  std::vector<std::pair<std::string, size_t>> largest(size_t count) const;

 private:
  friend class PlanBuilder;
  void run_block(std::vector<Instruction>& block);
  void run_instructions(std::vector<Instruction>& block, const Instruction*& current);
  void run_instruction(Instruction& instruction, RunContext& context, bool last);
  /// Queues the segment of recorded work that begins at instruction `first` of the block, after
  /// recording it if that is due; false if it is to run one by one.
  bool run_segment(std::vector<Instruction>& block, size_t first, const Instruction*& current);
  /// Whether a value of the host is read in place, not copied to the device.
  bool is_in_place(size_t input) const { return input < on_device_.size() && on_device_[input]; }
  void run_dynamic(Instruction& instruction);
  void run_tiles(Instruction& instruction);
  void run_loop(Instruction& instruction);
  void copy_value(int from, int to);
  /// Copies a contiguous array to an address on the plan's device.
  void copy_to(void* address, const Array& array);
  void* address(int value) const;
  std::shared_ptr<Storage> constant_on_device(const Buffer& buffer) const;
  Array array_of(int value) const;
  bool truth(int value);
  /// Fills in the addresses of all values, or of those in input and staging memory only.
  void resolve(std::vector<Instruction>& block, bool inputs_only);
  void execute(Instruction& instruction, const RunContext& context);
  /// Replaces neighbors whose kernels can be merged (plan_merge.cc).
  void merge_kernels();
  /// Whether an operation writes memory that another one reads or writes.
  bool share_memory(const Instruction& a, const Instruction& b) const;
  PlanInfo describe_memory() const;
  /// An instruction with the types of its operands and results, and its place in the model.
  std::string trace_line(const Instruction& instruction) const;
  void describe(std::vector<Instruction>& block);
  double flops_of(const Instruction& instruction) const;
  void store_dynamic(int value, Array array);

  const ir::Function& function_;
  PlanOptions options_;
  std::vector<const ir::Value*> values_;
  std::vector<ValueBuffer>
      value_buffers_;  ///< by value id; temporaries follow the function's values
  std::vector<Buffer> buffers_;
  std::vector<Instruction> instructions_;
  std::map<std::string, int64_t> symbols_;
  std::map<std::string, int64_t> run_time_symbols_;
  std::vector<Array> dynamic_;  ///< by value id
  std::vector<void*> inputs_;
  std::vector<uint8_t> on_device_;  ///< by input: a value that lies on the device already
  std::vector<int> outputs_;        ///< value of each output, by id
  std::vector<std::pair<int, size_t>> write_back_;  ///< (value, input) copied at the end
  std::unique_ptr<MemoryCheck> check_;
  std::byte* arena_ = nullptr;
  size_t arena_bytes_ = 0, scratch_bytes_ = 0;
  std::unique_ptr<PlanStreams> streams_;  ///< null on the CPU
  std::unique_ptr<PlanGraphs> graphs_;    ///< null where nothing is recorded
  size_t turn_ = 0;                       ///< which memory of staged buffers this run uses
};

/// Chooses offsets for arena buffers so that buffers alive at the same time do not overlap.
/// Returns the arena's size. Offsets are multiples of `alignment`, a power of two, after `guard`
/// unused bytes on each side of a buffer.
size_t assign_offsets(std::vector<Buffer>& buffers, size_t guard = 0, size_t alignment = 64);

}  // namespace paddle::runtime
