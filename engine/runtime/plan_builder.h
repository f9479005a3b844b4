#pragma once
// Builds a Plan: binds dims, places values, prepares kernels, and finds lifetimes.

#include "runtime/batch_tiling.h"
#include "runtime/plan.h"

namespace paddle::runtime {

class PlanBuilder {
 public:
  PlanBuilder(Plan& plan, const std::vector<Layout>& inputs);
  void build();

 private:
  /// A batch tiling and the positions that it spans.
  struct TiledRun {
    BatchTiling tiling;
    int begin = 0, end = 0;
  };

  void bind_inputs();
  void check_constraints() const;
  std::optional<Layout> static_layout(const TensorType& type) const;
  void find_tilings();
  void number(const ir::Region& region);
  void end_tiling(TiledRun& run);
  void count_use(const ir::Value* value, int position);
  void build_region(const ir::Region& region, std::vector<Instruction>& out);
  void build_operation(const ir::Operation& operation, std::vector<Instruction>& out);
  void build_kernel(const ir::Operation& operation, std::vector<Instruction>& out);
  void build_fused(const ir::Operation& operation, std::vector<Instruction>& out);
  void build_claimed(const ir::Operation& operation, std::vector<Instruction>& out);
  /// False if the compiler of the region gives no kernel.
  bool build_claimed_kernel(const ir::Operation& operation, std::vector<Instruction>& out);
  /// True if a group reads all of this argument for each element of its results: a convolution or
  /// matrix product that is its first step does, and a group with another such operation.
  static bool reads_whole(const std::vector<const ir::Operation*>& steps,
                          const ir::Value* argument);
  /// A value inside a group and the corresponding result of the group.
  struct FusedResult {
    const ir::Value *inside, *outside;
  };
  bool build_fused_kernel(const ir::Operation& operation,
                          const std::vector<const ir::Operation*>& steps,
                          const std::vector<FusedResult>& results, int position,
                          std::vector<Instruction>& out);
  void build_branch(const ir::Operation& operation, std::vector<Instruction>& out);
  void build_loop(const ir::Operation& operation, std::vector<Instruction>& out);
  const ir::Value* reusable_operand(const ir::Operation& operation, const ir::Value& result) const;
  void build_tiles(const TiledRun& run, std::vector<Instruction>& out);
  void build_dynamic(const ir::Operation& operation, std::vector<Instruction>& out);
  int new_buffer(size_t bytes, int first, std::string label);
  void place_new(const ir::Value* value, int first, const std::string& label);
  /// Adds a value that exists only in the plan; returns its id.
  int add_value(ValueBuffer buffer, int last_use);
  int temporary(const Layout& layout, int position);
  Layout operand_layout(int id) const;
  /// A buffer for the scratch of the instruction's kernel.
  void set_scratch(Instruction& instruction);
  /// Copies to the device of inputs that come from the host.
  void build_copies_in(std::vector<Instruction>& out);
  /// A copy of a condition to the host, after which control flow reads it.
  void read_back(int value, int position, std::vector<Instruction>& out);
  /// Makes each kernel wait for the copies of what it reads, unless an earlier one did.
  void set_waits();
  int packed(const ir::Value* value, int position, std::vector<Instruction>& out);
  int copied_to_temporary(const ir::Value* value, int position, std::vector<Instruction>& out);
  bool reuse_operand_buffer(const ir::Operation& operation, size_t operand, size_t result);
  std::optional<size_t> replaced_input(const ir::Port& output) const;
  bool replaces(const ir::Value* value, size_t input) const;
  void place_outputs(int copies, int end);
  void extend_buffers();
  /// Those of the plan; kernels inside loops and batch tiles run often, so they prepack constants.
  PrepareOptions prepare_options() const {
    PrepareOptions options = plan_.options_.prepare;
    options.skip_prepack = options.skip_prepack && !tiling_ && loops_ == 0;
    return options;
  }
  ValueBuffer& at(const ir::Value* value) {
    return plan_.value_buffers_[static_cast<size_t>(value->id)];
  }

  Plan& plan_;
  const ir::Function& function_;
  const std::vector<Layout>& inputs_;
  std::map<const ir::Operation*, std::pair<int, int>> span_;  ///< own position, end of regions
  std::vector<int> last_use_;                                 ///< by value id
  int positions_ = 0;
  std::vector<TiledRun> tilings_;
  const TiledRun* tiling_ = nullptr;         ///< the one whose operations are being built
  int loops_ = 0;                            ///< loops around the operation being built
  std::set<const ir::Value*> tile_outputs_;  ///< values of `tiling_` that must be complete after it
  std::map<int, int> copied_;  ///< by buffer of an input from the host: the event after its copy
  std::vector<std::optional<size_t>> replaced_;  ///< by output: the input that it updates
};

}  // namespace paddle::runtime
