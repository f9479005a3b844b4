#pragma once
// Reductions at the end of a fusion group: elements are folded while they are in the L1 cache. The
// additions happen in the same order, so with the same bits, as in a separate reduction (reduce.h).
// The executor of the group (interpreter or machine code) computes the elements, and may fold them
// itself.

#include <functional>

#include "base/parallel.h"
#include "kernels/fusion/program.h"
#include "kernels/reduce/reduce.h"

namespace paddle::cpu {

class FusionReductions {
 public:
  /// For a group over elements of `shape`, of which up to `block` (a multiple of 64) are computed
  /// at a time.
  FusionReductions(const Dims& shape, const FusionProgram& program, int64_t block);

  /// Groups of at most this many elements are cheap either way.
  static constexpr int64_t kSmallGroup = 4096;
  /// False if computing the group first and reducing its stored result is faster.
  bool is_profitable() const { return is_profitable_; }
  size_t scratch_bytes() const;
  const ReduceSchedule& schedule() const { return schedule_; }

  /// Consecutive elements in row-major order, starting at `at`: units of rows. A row is `row`
  /// elements, each with its own accumulator (columns) or folded into the lanes of one run. The
  /// rows of a unit share the same 8-byte accumulators; those of the next unit come
  /// unit_accumulators() later.
  struct Tile {
    int64_t at, units, rows, row;
    std::byte* accumulators[kMaxFusionReductions];
    int64_t size() const { return units * rows * row; }
  };
  int64_t unit_accumulators() const {
    return schedule_.inner_kept ? schedule_.inner : std::min(schedule_.inner, kMaxRunLanes);
  }
  /// Folds a tile whose elements are at values[k] for the k-th reduction, in its type.
  void fold(const Tile& tile, const void* const* values) const;

  /// Folds all elements in parallel. Each thread calls `open` for each of its ranges to get its own
  /// callable that computes and folds a Tile.
  template <class Open>
  void run(const RunContext& context, void* const* results, Open open) const {
    parallel_for(schedule_.task_count(), grain_, [&](int64_t begin, int64_t end) {
      auto fold_tile = open();
      fold_range(begin, end, std::ref(fold_tile), context.scratch, results);
    });
    combine(context.scratch, results);
  }

 private:
  struct Fold {
    Reducer reducer;
    int64_t item;   ///< bytes of an element in the folded type
    size_t result;  ///< index of the group's result
  };
  using FoldTile = std::function<void(const Tile&)>;

  bool estimate_profit(const FusionProgram& program) const;
  void fold_range(int64_t begin, int64_t end, const FoldTile& fold_tile, std::byte* scratch,
                  void* const* results) const;
  void fold_task(Tile& tile, const ReduceSchedule::Task& task, const FoldTile& fold_tile) const;
  void combine(std::byte* scratch, void* const* results) const;
  std::byte* partial(std::byte* scratch, size_t k) const {
    return scratch + static_cast<int64_t>(k) * schedule_.chunks * schedule_.results * 8;
  }

  ReduceSchedule schedule_;
  std::vector<Fold> folds_;
  int64_t block_, grain_ = 1;
  /// Adjacent tasks that are folded together; 0 where a task is larger than a block.
  int64_t units_ = 0;
  bool is_profitable_ = true;
};

}  // namespace paddle::cpu
