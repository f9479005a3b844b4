#pragma once
// Reductions over any axes of a contiguous tensor. The order of additions depends on the shape
// only: not on the number of threads, and not on whether elements are read from memory or computed
// by a fusion group (fusion/reductions.h).

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/common/convert.h"
#include "kernels/reduce/reduce_simd.h"
#include "ops/core/kernel.h"

namespace paddle::cpu {

enum class ReduceForm : uint8_t { kPlain, kMean, kLogSumExp };

/// The schedule of a reduction: which elements form which result, and in which pieces they are
/// folded. Adjacent kept axes are merged, and so are adjacent reduced ones. The innermost axis is
/// either a run that is reduced, or results that are accumulated side by side, in strips. If there
/// are few results, the reduced elements are split into chunks, whose accumulators are combined in
/// scratch.
class ReduceSchedule {
 public:
  /// Maximum width of a strip: its accumulators stay in cache, and memory is read in long pieces.
  static constexpr int64_t kStrip = 4096;

  /// `axes` count from 0; empty means all.
  ReduceSchedule(const Dims& shape, const std::vector<int64_t>& axes);

  /// A unit of work: rows [begin, end) of the elements at `base` are folded into the accumulators
  /// of `width` results from `first` on. A row is `width` adjacent elements, or a run of `inner`
  /// elements; for a split run it is one element.
  struct Task {
    int64_t chunk, first, width, base, begin, end;
  };
  Task task(int64_t index) const;
  int64_t task_count() const { return outer * strips * chunks; }
  /// Whether each result is that of one run, and the runs lie one after the other.
  bool has_contiguous_runs() const { return !inner_kept && repeats == 1 && chunks == 1; }
  /// Offset of row `row` of a task from its base.
  int64_t row_offset(int64_t row) const;
  /// Accumulators that a run uses; at least 1, which holds the result.
  int64_t lanes(const ReduceLoops& loops) const {
    return std::clamp<int64_t>(inner, 1, loops.run_lanes);
  }

  struct Axis {
    int64_t size, stride;
  };
  std::vector<Axis> kept, reduced;  ///< without the innermost axis, outermost first
  bool inner_kept = false;          ///< otherwise runs are reduced
  bool split_run = false;           ///< chunks split the only run of each result
  int64_t inner = 1;                ///< size of the innermost axis
  int64_t outer = 1, repeats = 1;   ///< products of the sizes in `kept` and `reduced`
  int64_t results = 1, count = 1;   ///< number of results, and of elements per result
  int64_t strips = 1, chunks = 1;
};

/// How elements become a result.
class Reducer {
 public:
  Reducer(DType x, Reduction reduction, ReduceForm form, DType result_type);

  /// Stores n accumulators as the results from `first` on; it may modify them.
  void finish(std::byte* accumulators, int64_t first, int64_t n, int64_t count,
              std::byte* out) const;

  DType compute;  ///< the type in which elements are folded
  ReduceLoops loops;

 private:
  ReduceForm form_;
  ConvertFn store_;
  int64_t result_item_;
};

/// A reduction operation: over which axes (empty: all) and how.
struct ReduceCall {
  std::vector<int64_t> axes;
  Reduction reduction = Reduction::kSum;
  ReduceForm form = ReduceForm::kPlain;
};
/// None for operations that the kernel `reduce` does not implement.
std::optional<ReduceCall> reduce_call(const Op& op, const Attrs& attrs, size_t rank);

/// The result is contiguous; kept axes of size 1 make no difference.
std::unique_ptr<Kernel> reduce(const Layout& x, const ReduceCall& call, DType result_type);

}  // namespace paddle::cpu
