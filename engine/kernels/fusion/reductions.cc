#include "kernels/fusion/reductions.h"

#include <cstring>

namespace paddle::cpu {
namespace {

/// Accumulators of a reduction: of a task, and of several that are folded at once.
constexpr int64_t kAccumulators = ReduceFrame::kStrip, kAtOnce = 1024;
/// Fewer elements that lie side by side cost more to start than to compute; the second number is
/// for elements that are written anyway.
constexpr int64_t kFewAtOnce = 256, kFewWritten = 2048;
/// More accumulators beside results that are written keep memory waiting.
constexpr int64_t kManyColumns = 1024;
/// A step of this cost takes longer than to read its result again.
constexpr int kCallCost = 8;

}  // namespace

GroupReductions::GroupReductions(const Dims& shape, const GroupProgram& program, int64_t block)
    : frame_(shape, program.reductions[0].call.axes), block_(block) {
  for (const GroupReduction& r : program.reductions) {
    folds_.push_back({{r.operand, r.call.reduction, r.call.form, r.result_type},
                      item_size(r.operand),
                      static_cast<size_t>(r.result)});
    ensure(folds_.back().reducer.compute == r.operand, "a group's reduction of another type");
  }
  const int64_t size = frame_.count * frame_.results;
  if (size == 0) return;
  const bool side_by_side =
      frame_.chunks == 1 && frame_.strips == 1 && frame_.kept.size() <= 1 &&
      (frame_.inner_kept ? frame_.reduced.size() <= 1 : frame_.reduced.empty());
  const int64_t unit = frame_.repeats * frame_.inner;
  if (side_by_side && unit <= block_)
    units_ = std::max<int64_t>(1, std::min(block_ / unit, kAtOnce / unit_accumulators()));
  grain_ = std::max<int64_t>(
      {1, units_,
       65536 / std::max(1, program.cost) / std::max<int64_t>(1, size / frame_.task_count())});
  pays_ = pays_for(program);
}

bool GroupReductions::pays_for(const GroupProgram& program) const {
  const int64_t size = frame_.count * frame_.results;
  if (size <= kFewInAll) return true;
  const bool written = !program.stores.empty();
  const bool calls = std::any_of(program.nodes.begin(), program.nodes.end(),
                                 [](const GroupNode& node) { return node.step.cost >= kCallCost; });
  if (written && (calls || (frame_.inner_kept && frame_.inner > kManyColumns))) return false;
  // Rows that follow each other are computed at once, unless they are parts of longer ones.
  int64_t stretch = size / frame_.task_count();
  if (frame_.inner_kept ? frame_.strips > 1 : !frame_.split_run && frame_.repeats > 1)
    stretch = frame_.inner / frame_.strips;
  else if (frame_.inner_kept && frame_.reduced.size() > 1)
    stretch = std::min(stretch, frame_.inner * frame_.reduced.back().size);
  return units_ > 0 || stretch >= (written ? kFewWritten : kFewAtOnce);
}

size_t GroupReductions::scratch_bytes() const {
  if (frame_.chunks == 1) return 0;
  return folds_.size() * static_cast<size_t>(frame_.chunks * frame_.results) * 8;
}

void GroupReductions::fold(const Piece& piece, const void* const* values) const {
  for (size_t k = 0; k < folds_.size(); ++k) {
    const ReduceLoops& loops = folds_[k].reducer.loops;
    const auto loop = frame_.inner_kept ? loops.rows : loops.run;
    const int64_t next = unit_accumulators() * 8;
    const std::byte* from = static_cast<const std::byte*>(values[k]);
    for (int64_t u = 0; u < piece.units; ++u)
      for (int64_t r = 0; r < piece.rows; ++r, from += piece.row * folds_[k].item)
        loop(piece.accumulators[k] + u * next, from, piece.row);
  }
}

void GroupReductions::fold_range(int64_t begin, int64_t end, const FoldPiece& fold_piece,
                                 std::byte* scratch, void* const* results) const {
  alignas(64) std::byte local[kMaxGroupReductions][kAccumulators * 8];
  for (int64_t index = begin; index < end;) {
    const ReduceFrame::Task task = frame_.task(index);
    const int64_t units = std::clamp<int64_t>(units_, 1, end - index);
    const int64_t width = frame_.inner_kept ? units * task.width : units;
    const int64_t lanes = std::max<int64_t>(1, unit_accumulators());
    Piece piece{};
    for (size_t k = 0; k < folds_.size(); ++k) {
      piece.accumulators[k] = local[k];
      folds_[k].reducer.loops.clear(local[k], frame_.inner_kept ? width : units * lanes);
    }
    if (units_ > 0) {
      piece.at = index * frame_.repeats * frame_.inner;
      piece.units = units;
      piece.rows = frame_.repeats;
      piece.row = frame_.inner;
      fold_piece(piece);
    } else {
      fold_task(piece, task, fold_piece);
    }
    for (size_t k = 0; k < folds_.size(); ++k) {
      const Reducer& reducer = folds_[k].reducer;
      for (int64_t u = 0; !frame_.inner_kept && u < units; ++u) {
        reducer.loops.fold(local[k] + u * lanes * 8, frame_.lanes(reducer.loops));
        std::memmove(local[k] + u * 8, local[k] + u * lanes * 8, 8);
      }
      if (frame_.chunks == 1)
        reducer.finish(local[k], task.first, width, frame_.count,
                       static_cast<std::byte*>(results[folds_[k].result]));
      else
        std::memcpy(partial(scratch, k) + (task.chunk * frame_.results + task.first) * 8, local[k],
                    static_cast<size_t>(width) * 8);
    }
    index += units;
  }
}

void GroupReductions::fold_task(Piece& piece, const ReduceFrame::Task& task,
                                const FoldPiece& fold_piece) const {
  piece.units = 1;
  const auto fold_row = [&](int64_t at, int64_t size) {
    std::byte* first[kMaxGroupReductions];
    std::copy(std::begin(piece.accumulators), std::end(piece.accumulators), first);
    piece.rows = 1;
    for (int64_t done = 0; done < size; done += block_) {
      piece.at = at + done;
      piece.row = std::min(block_, size - done);
      for (size_t k = 0; k < folds_.size(); ++k)
        piece.accumulators[k] = first[k] + (frame_.inner_kept ? done * 8 : 0);
      fold_piece(piece);
    }
    std::copy(std::begin(first), std::end(first), piece.accumulators);
  };
  if (frame_.split_run) return fold_row(task.base + task.begin, task.end - task.begin);
  const int64_t row = frame_.inner_kept ? task.width : frame_.inner;
  if (row == 0) return;
  // As many rows as follow each other and fit.
  const bool whole = frame_.inner_kept && frame_.strips == 1 && !frame_.reduced.empty();
  const int64_t together = whole ? frame_.reduced.back().size : 1;
  for (int64_t r = task.begin; r < task.end; r += piece.rows) {
    piece.at = task.base + frame_.row_offset(r);
    if (row > block_) {
      fold_row(piece.at, row);
      continue;
    }
    piece.row = row;
    piece.rows = std::min({block_ / row, task.end - r, together - r % together});
    fold_piece(piece);
  }
}

void GroupReductions::combine(std::byte* scratch, void* const* results) const {
  if (frame_.chunks == 1) return;
  for (size_t k = 0; k < folds_.size(); ++k) {
    const Reducer& reducer = folds_[k].reducer;
    std::byte* const accumulators = partial(scratch, k);
    for (int64_t chunk = 1; chunk < frame_.chunks; ++chunk)
      reducer.loops.combine(accumulators, accumulators + chunk * frame_.results * 8,
                            frame_.results);
    reducer.finish(accumulators, 0, frame_.results, frame_.count,
                   static_cast<std::byte*>(results[folds_[k].result]));
  }
}

}  // namespace paddle::cpu
