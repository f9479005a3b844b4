#include "kernels/fusion/reductions.h"

#include <cstring>

namespace paddle::cpu {
namespace {

/// Accumulators of one task, and of several tasks that are folded together.
constexpr int64_t kAccumulators = ReduceSchedule::kStrip, kMaxBatchedAccumulators = 1024;
/// Shorter consecutive stretches cost more to start than to compute; the second limit is for groups
/// that store their elements anyway.
constexpr int64_t kMinStretch = 256, kMinStretchWithStores = 2048;
/// With more columns the accumulators and the stores compete for memory bandwidth.
constexpr int64_t kMaxColumnsWithStores = 1024;
/// A step of at least this cost takes longer than reading its stored result again.
constexpr int kExpensiveStepCost = 8;

}  // namespace

FusionReductions::FusionReductions(const Dims& shape, const FusionProgram& program, int64_t block)
    : schedule_(shape, program.reductions[0].call.axes), block_(block) {
  for (const FusionReduction& r : program.reductions) {
    folds_.push_back({{r.operand, r.call.reduction, r.call.form, r.result_type},
                      item_size(r.operand),
                      static_cast<size_t>(r.result)});
    ensure(folds_.back().reducer.compute == r.operand, "type mismatch in a fused reduction");
  }
  const int64_t size = schedule_.count * schedule_.results;
  if (size == 0) return;
  const bool is_batchable =
      schedule_.chunks == 1 && schedule_.strips == 1 && schedule_.kept.size() <= 1 &&
      (schedule_.inner_kept ? schedule_.reduced.size() <= 1 : schedule_.reduced.empty());
  const int64_t unit = schedule_.repeats * schedule_.inner;
  if (is_batchable && unit <= block_)
    units_ = std::max<int64_t>(
        1, std::min(block_ / unit, kMaxBatchedAccumulators / unit_accumulators()));
  grain_ = std::max<int64_t>(
      {1, units_,
       65536 / std::max(1, program.cost) / std::max<int64_t>(1, size / schedule_.task_count())});
  is_profitable_ = estimate_profit(program);
}

bool FusionReductions::estimate_profit(const FusionProgram& program) const {
  const int64_t size = schedule_.count * schedule_.results;
  if (size <= kSmallGroup) return true;
  const bool written = !program.stores.empty();
  const bool calls =
      std::any_of(program.nodes.begin(), program.nodes.end(),
                  [](const FusionNode& node) { return node.step.cost >= kExpensiveStepCost; });
  if (written && (calls || (schedule_.inner_kept && schedule_.inner > kMaxColumnsWithStores)))
    return false;
  // Consecutive rows are computed together, unless they are pieces of longer ones.
  int64_t stretch = size / schedule_.task_count();
  if (schedule_.inner_kept ? schedule_.strips > 1 : !schedule_.split_run && schedule_.repeats > 1)
    stretch = schedule_.inner / schedule_.strips;
  else if (schedule_.inner_kept && schedule_.reduced.size() > 1)
    stretch = std::min(stretch, schedule_.inner * schedule_.reduced.back().size);
  return units_ > 0 || stretch >= (written ? kMinStretchWithStores : kMinStretch);
}

size_t FusionReductions::scratch_bytes() const {
  if (schedule_.chunks == 1) return 0;
  return folds_.size() * static_cast<size_t>(schedule_.chunks * schedule_.results) * 8;
}

void FusionReductions::fold(const Tile& tile, const void* const* values) const {
  for (size_t k = 0; k < folds_.size(); ++k) {
    const ReduceLoops& loops = folds_[k].reducer.loops;
    const auto loop = schedule_.inner_kept ? loops.rows : loops.run;
    const int64_t next = unit_accumulators() * 8;
    const std::byte* from = static_cast<const std::byte*>(values[k]);
    for (int64_t u = 0; u < tile.units; ++u)
      for (int64_t r = 0; r < tile.rows; ++r, from += tile.row * folds_[k].item)
        loop(tile.accumulators[k] + u * next, from, tile.row);
  }
}

void FusionReductions::fold_range(int64_t begin, int64_t end, const FoldTile& fold_tile,
                                  std::byte* scratch, void* const* results) const {
  alignas(64) std::byte local[kMaxFusionReductions][kAccumulators * 8];
  for (int64_t index = begin; index < end;) {
    const ReduceSchedule::Task task = schedule_.task(index);
    const int64_t units = std::clamp<int64_t>(units_, 1, end - index);
    const int64_t width = schedule_.inner_kept ? units * task.width : units;
    const int64_t lanes = std::max<int64_t>(1, unit_accumulators());
    Tile tile{};
    for (size_t k = 0; k < folds_.size(); ++k) {
      tile.accumulators[k] = local[k];
      folds_[k].reducer.loops.clear(local[k], schedule_.inner_kept ? width : units * lanes);
    }
    if (units_ > 0) {
      tile.at = index * schedule_.repeats * schedule_.inner;
      tile.units = units;
      tile.rows = schedule_.repeats;
      tile.row = schedule_.inner;
      fold_tile(tile);
    } else {
      fold_task(tile, task, fold_tile);
    }
    for (size_t k = 0; k < folds_.size(); ++k) {
      const Reducer& reducer = folds_[k].reducer;
      for (int64_t u = 0; !schedule_.inner_kept && u < units; ++u) {
        reducer.loops.fold(local[k] + u * lanes * 8, schedule_.lanes(reducer.loops));
        std::memmove(local[k] + u * 8, local[k] + u * lanes * 8, 8);
      }
      if (schedule_.chunks == 1)
        reducer.finish(local[k], task.first, width, schedule_.count,
                       static_cast<std::byte*>(results[folds_[k].result]));
      else
        std::memcpy(partial(scratch, k) + (task.chunk * schedule_.results + task.first) * 8,
                    local[k], static_cast<size_t>(width) * 8);
    }
    index += units;
  }
}

void FusionReductions::fold_task(Tile& tile, const ReduceSchedule::Task& task,
                                 const FoldTile& fold_tile) const {
  tile.units = 1;
  const auto fold_row = [&](int64_t at, int64_t size) {
    std::byte* first[kMaxFusionReductions];
    std::copy(std::begin(tile.accumulators), std::end(tile.accumulators), first);
    tile.rows = 1;
    for (int64_t done = 0; done < size; done += block_) {
      tile.at = at + done;
      tile.row = std::min(block_, size - done);
      for (size_t k = 0; k < folds_.size(); ++k)
        tile.accumulators[k] = first[k] + (schedule_.inner_kept ? done * 8 : 0);
      fold_tile(tile);
    }
    std::copy(std::begin(first), std::end(first), tile.accumulators);
  };
  if (schedule_.split_run) return fold_row(task.base + task.begin, task.end - task.begin);
  const int64_t row = schedule_.inner_kept ? task.width : schedule_.inner;
  if (row == 0) return;
  // As many consecutive rows as fit in a block.
  const bool row_fits = schedule_.inner_kept && schedule_.strips == 1 && !schedule_.reduced.empty();
  const int64_t consecutive = row_fits ? schedule_.reduced.back().size : 1;
  for (int64_t r = task.begin; r < task.end; r += tile.rows) {
    tile.at = task.base + schedule_.row_offset(r);
    if (row > block_) {
      fold_row(tile.at, row);
      continue;
    }
    tile.row = row;
    tile.rows = std::min({block_ / row, task.end - r, consecutive - r % consecutive});
    fold_tile(tile);
  }
}

void FusionReductions::combine(std::byte* scratch, void* const* results) const {
  if (schedule_.chunks == 1) return;
  for (size_t k = 0; k < folds_.size(); ++k) {
    const Reducer& reducer = folds_[k].reducer;
    std::byte* const accumulators = partial(scratch, k);
    for (int64_t chunk = 1; chunk < schedule_.chunks; ++chunk)
      reducer.loops.combine(accumulators, accumulators + chunk * schedule_.results * 8,
                            schedule_.results);
    reducer.finish(accumulators, 0, schedule_.results, schedule_.count,
                   static_cast<std::byte*>(results[folds_[k].result]));
  }
}

}  // namespace paddle::cpu
