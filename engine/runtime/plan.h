#pragma once
// A plan: a function made concrete for one binding of its dims. Every value has a buffer and a
// layout, every operation a prepared kernel, and the buffers share one arena by their lifetimes.
// Running a plan is a walk over its instructions.

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/module.h"
#include "ops/kernel.h"
#include "runtime/profile.h"

namespace paddle::runtime {

enum class BufferKind : uint8_t { kInput, kConstant, kArena };

struct Buffer {
  BufferKind kind = BufferKind::kArena;
  size_t bytes = 0;
  size_t input = 0;  ///< position among the function's inputs, for kInput
  const Array* constant = nullptr;
  int first = 0, last = 0;  ///< positions of definition and last use
  size_t offset = 0;        ///< in the arena
  std::string label;        ///< operation or port that made it, for reports
};

/// Where a value lies. Values with sizes known only at run time are `dynamic`.
struct Placement {
  bool planned = false;  ///< false: dynamic, or not seen
  bool dynamic = false;
  int buffer = -1;
  Layout layout;            ///< offset in elements from the buffer's start
  int64_t tile_stride = 0;  ///< bytes to the same value of the next tile, under batch tiling
};

struct Instruction {
  enum class Kind : uint8_t { kKernel, kBranch, kLoop, kTiles, kDynamic };
  Kind kind = Kind::kKernel;
  const ir::Operation* operation = nullptr;
  std::unique_ptr<Kernel> kernel;
  std::vector<int> operands, results;  ///< value ids, -1 for absent
  std::vector<void*> operand_data, result_data;
  int position = 0;
  // Control flow: bodies run in place; copies join their values with the outer ones.
  std::vector<std::vector<Instruction>> blocks;
  std::vector<std::vector<std::pair<int, int>>> joins;  ///< per block: (from value, to value)
  std::vector<std::pair<int, int>> entry;               ///< loops: initial copies
  int64_t max_steps = -1;
  int64_t tiles = 1;  ///< runs of the block of kTiles, one per tile of the batch
  int profile = -1;   ///< number in the profile, if one is kept
};

constexpr size_t kGuard = 64;  ///< bytes on each side of a buffer that is watched

struct MemoryReport {
  size_t arena = 0;    ///< activations, gradients and temporaries
  size_t scratch = 0;  ///< largest kernel's work space
  size_t inputs = 0;   ///< parameters, states and data
  size_t constants = 0;
  size_t total() const { return arena + scratch + inputs + constants; }
};

struct PlanOptions {
  /// Fill buffers with NaN bytes before and after their lives, and put guards around buffers and
  /// scratch that no kernel may change: to find reads of dead memory and writes beyond a result.
  bool check_memory = false;
  /// Times instructions when set; must outlive the plan.
  std::shared_ptr<Profile> profile = {};
  /// Groups are compiled to machine code, where there is a compiler.
  bool codegen = true;
  /// For all kernels of the plan; kernels inside loops and batch tiles always prepack.
  ExecutionPolicy policy = {};
  /// Working set of batch tiling in bytes (runtime/batch_tiling.h); 0: no batch tiling.
  int64_t tile_bytes = 0;
};

/// Watches the memory of a plan while it runs (PlanOptions::check_memory).
class MemoryCheck {
 public:
  MemoryCheck(const std::vector<Buffer>& buffers, int positions);
  void begin(std::byte* arena, size_t bytes);
  /// Puts guards around what the instruction defines, and behind the scratch that it asked for.
  void before(const Instruction& instruction, std::byte* arena, std::span<std::byte> scratch);
  /// kInternal naming the operation and the value if a guard changed; fills what dies here with NaN
  /// if the instruction is the last of its position.
  void after(const Instruction& instruction, std::byte* arena, bool last);

 private:
  void expect_guard(const std::byte* at, size_t bytes, const Instruction& instruction,
                    const std::string& where) const;
  const std::vector<Buffer>& buffers_;
  std::vector<std::vector<int>> dying_;  ///< buffers by position of their end
  std::vector<bool> armed_;              ///< by buffer
  std::span<std::byte> beyond_;          ///< scratch that the instruction may not use
};

class Plan {
 public:
  /// Throws kData if inputs do not fit the function's declared types or constraints.
  Plan(const ir::Function& function, const std::vector<Layout>& inputs, PlanOptions options);

  /// Bytes that `run` needs in the arena (scratch included).
  size_t arena_bytes() const { return arena_bytes_ + scratch_bytes_ + (check_ ? kGuard : 0); }
  MemoryReport memory() const;
  /// Fixes the arena; must be called before `run` and after the arena moved.
  void set_arena(std::byte* base);
  std::byte* arena() const { return arena_; }
  /// Runs on these input pointers. Parameters and states with a new version are written in place.
  void run(const std::vector<void*>& inputs);
  /// Output i of kind kValue, valid until the next run.
  Array output(size_t i) const;
  /// True if output i may lie elsewhere after each run.
  bool output_moves(size_t i) const;
  const std::vector<Instruction>& instructions() const { return instructions_; }
  /// Floating-point operations of one run (branches and loop bodies counted once).
  double flops() const;
  std::optional<int64_t> symbol(const std::string& name) const;
  /// Peak buffers for reports: the largest that are alive at the worst moment.
  std::vector<std::pair<std::string, size_t>> largest(size_t count) const;

 private:
  friend class PlanBuilder;
  void run_block(std::vector<Instruction>& block);
  void run_instructions(std::vector<Instruction>& block, const Instruction*& current);
  void run_dynamic(Instruction& instruction);
  void run_tiles(Instruction& instruction);
  void copy_value(int from, int to);
  void* address(int value) const;
  Array array_of(int value) const;
  bool truth(int value) const;
  void resolve(std::vector<Instruction>& block, bool inputs_only);
  void execute(Instruction& instruction, const RunContext& context);
  void describe(std::vector<Instruction>& block);
  double flops_of(const Instruction& instruction) const;
  void store_dynamic(int value, Array array);

  const ir::Function& function_;
  PlanOptions options_;
  std::vector<const ir::Value*> values_;
  std::vector<Placement> placements_;  ///< by value id; temporaries stand behind the function's
  std::vector<Buffer> buffers_;
  std::vector<Instruction> instructions_;
  std::map<std::string, int64_t> symbols_;
  std::map<std::string, int64_t> run_time_symbols_;
  std::vector<Array> dynamic_;  ///< by value id
  std::vector<void*> inputs_;
  std::vector<int> outputs_;                        ///< value of each output, by id
  std::vector<std::pair<int, size_t>> write_back_;  ///< (value, input) copied at the end
  std::unique_ptr<MemoryCheck> check_;
  std::byte* arena_ = nullptr;
  size_t arena_bytes_ = 0, scratch_bytes_ = 0;
};

/// Chooses offsets for arena buffers so that buffers alive at the same time do not overlap.
/// Returns the arena's size. Around each buffer lie `guard` bytes of nobody's.
size_t assign_offsets(std::vector<Buffer>& buffers, size_t guard = 0);

}  // namespace paddle::runtime
