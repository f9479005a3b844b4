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
  /// Operations that are computed in parts, and where they stand among the positions.
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
  /// True if a group's first step reads all of this argument for each element that it gives, as a
  /// convolution or product does.
  static bool reads_whole(const ir::Operation& first, const ir::Value* argument);
  /// A value that a group computes, and the one that stands for it outside.
  struct GroupResult {
    const ir::Value *inside, *outside;
  };
  bool build_group(const ir::Operation& operation, const std::vector<const ir::Operation*>& steps,
                   const std::vector<GroupResult>& results, int position,
                   std::vector<Instruction>& out);
  void build_branch(const ir::Operation& operation, std::vector<Instruction>& out);
  void build_loop(const ir::Operation& operation, std::vector<Instruction>& out);
  const ir::Value* ends_in(const ir::Operation& operation, const ir::Value& result) const;
  void build_tiles(const TiledRun& run, std::vector<Instruction>& out);
  void build_dynamic(const ir::Operation& operation, std::vector<Instruction>& out);
  int new_buffer(size_t bytes, int first, std::string label);
  void place_new(const ir::Value* value, int first, const std::string& label);
  /// A value that only the plan knows, and its number.
  int add_value(Placement placement, int last_use);
  int temporary(const Layout& layout, int position);
  Layout operand_layout(int id) const;
  int packed(const ir::Value* value, int position, std::vector<Instruction>& out);
  int copied_to_temporary(const ir::Value* value, int position, std::vector<Instruction>& out);
  bool take_in_place(const ir::Operation& operation, size_t operand, size_t result);
  std::optional<size_t> replaced_input(const ir::Port& output) const;
  bool replaces(const ir::Value* value, size_t input) const;
  void place_outputs(int copies, int end);
  void extend_buffers();
  /// The plan's policy; kernels inside loops and batch tiles run often, so they prepack constants.
  ExecutionPolicy policy() const {
    ExecutionPolicy policy = plan_.options_.policy;
    policy.skip_prepack = policy.skip_prepack && !tiling_ && loops_ == 0;
    return policy;
  }
  Placement& at(const ir::Value* value) {
    return plan_.placements_[static_cast<size_t>(value->id)];
  }

  Plan& plan_;
  const ir::Function& function_;
  const std::vector<Layout>& inputs_;
  std::map<const ir::Operation*, std::pair<int, int>> span_;  ///< own position, end of regions
  std::vector<int> last_use_;                                 ///< by value id
  int positions_ = 0;
  std::vector<TiledRun> tilings_;
  const TiledRun* tiling_ = nullptr;         ///< the one whose operations are being built
  int loops_ = 0;                            ///< around what is being built
  std::set<const ir::Value*> tile_outputs_;  ///< values of `tiling_` that are needed whole after it
  std::vector<std::optional<size_t>> replaced_;  ///< by output: the input it is a new version of
};

}  // namespace paddle::runtime
