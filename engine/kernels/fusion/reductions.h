#pragma once
// The reductions that a group ends with: what the group computes is folded before it leaves the
// first-level cache. The order of the additions, and so the bits, are those of the reductions alone
// (reduce.h). Whoever runs groups says how elements are computed, and may fold them itself.

#include <functional>

#include "base/parallel.h"
#include "kernels/fusion/program.h"
#include "kernels/reduce/reduce.h"

namespace paddle::cpu {

class FusionReductions {
 public:
  /// Of a group of elements of `shape`, of which up to `block` are computed at a time (a multiple
  /// of 64).
  FusionReductions(const Dims& shape, const FusionProgram& program, int64_t block);

  /// Few elements cost little either way.
  static constexpr int64_t kSmallGroup = 4096;
  /// False if the group is better computed first and read again.
  bool is_profitable() const { return is_profitable_; }
  size_t scratch_bytes() const;
  const ReduceSchedule& schedule() const { return schedule_; }

  /// Elements that follow each other from `at` on in row-major order: units of rows. A row is
  /// `row` elements, which have an accumulator each (columns) or meet in the lanes of one run. The
  /// rows of a unit meet in the same accumulators of 8 bytes; those of the next unit follow after
  /// unit_accumulators().
  struct Tile {
    int64_t at, units, rows, row;
    std::byte* accumulators[kMaxFusionReductions];
    int64_t size() const { return units * rows * row; }
  };
  int64_t unit_accumulators() const {
    return schedule_.inner_kept ? schedule_.inner : std::min(schedule_.inner, kMaxRunLanes);
  }
  /// Folds a piece whose elements lie at values[k] for the k-th reduction, in its type.
  void fold(const Tile& tile, const void* const* values) const;

  /// Folds all elements, from several threads. `open` is called by each for each of its ranges,
  /// for a callable that folds a Tile and that nobody else uses meanwhile.
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
    int64_t item;   ///< bytes of an element as it is folded
    size_t result;  ///< of the group
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
  /// Tasks that lie side by side and are folded at once; 0 where a task is more than a block.
  int64_t units_ = 0;
  bool is_profitable_ = true;
};

}  // namespace paddle::cpu
