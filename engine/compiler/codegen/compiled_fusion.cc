#include "compiler/codegen/compiled_fusion.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <optional>

#include "base/hash.h"
#include "base/parallel.h"
#include "base/text.h"
#include "compiler/codegen/compiler.h"
#include "compiler/codegen/schedule.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/fusion/program.h"
#include "kernels/fusion/reductions.h"

namespace paddle::codegen {
namespace {

using cpu::FusionNode;
using cpu::FusionProgram;
using cpu::StridedReader;

constexpr size_t kBufferBytes = 16 * 1024;  // packed operands, in the first-level cache
constexpr size_t kReducedBytes =
    16 * 1024;  // values that are reduced after the code has run, in the same way
constexpr size_t kMaxPointers = 64;
/// Elements that the code reduces at a time, and the shortest rows that it reduces; shorter ones
/// are reduced after it has run.
constexpr int64_t kFoldBlock = 16384, kFoldRow = 64;
/// Below this row length, and number of elements per call, packing operands is cheaper than calls.
constexpr int64_t kShortRow = 32, kShortCall = 512;
/// Groups with less work, in additions, gain nothing from compilation.
constexpr int64_t kSmall = 4096;

const char* type_name(DType type) {
  switch (type) {
    case DType::kBool:
      return "bool";
    case DType::kI8:
      return "i8";
    case DType::kI16:
      return "i16";
    case DType::kI32:
      return "i32";
    case DType::kI64:
      return "i64";
    case DType::kU8:
      return "u8";
    case DType::kU16:
      return "u16";
    case DType::kU32:
      return "u32";
    case DType::kU64:
      return "u64";
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
    case DType::kF32:
      return "f32";
    case DType::kF64:
      return "f64";
    default:
      return nullptr;
  }
}

/// An operand as the code reads it, or the accumulators of reductions.
struct Read {
  static constexpr size_t kNone = ~size_t{0};
  size_t operand = kNone;
  int64_t item = 0;  ///< bytes of an element
  Dims strides;      ///< in elements, by merged axis, outermost first
  int buffer = -1;   ///< brought into order: which part of the buffers
  std::optional<StridedReader> reader;
};

class CompiledGroup final : public Kernel {
 public:
  bool build(const FusedRequest& request, Compiler& compiler, bool any_size);
  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    if (reductions_) return run_reductions(context, operands, results);
    const Written written = written_to(results);
    parallel_for((size_ + unit_ - 1) / unit_, std::max<int64_t>(1, grain_ / unit_),
                 [&](int64_t begin, int64_t end) {
                   run_range(operands, written, begin * unit_, std::min(size_, end * unit_));
                 });
  }
  size_t scratch_bytes() const override { return reductions_ ? reductions_->scratch_bytes() : 0; }
  std::string implementation() const override { return name_; }

 private:
  /// Per store: the memory, the first element, and the accumulators of that element.
  struct Written {
    std::array<std::byte*, kMaxPointers> memory;
    std::array<int64_t, kMaxPointers> first;
    std::array<std::byte*, cpu::kMaxFusionReductions> accumulators;
    int64_t folds_from = 0;
  };
  /// The row that a call of the code starts at, by merged axes.
  struct Place {
    int64_t column, row, outer;
  };

  void add_stores(const FusedRequest& request, const FusionProgram& program);
  void lay_out(const FusedRequest& request);
  bool lay_out_folds(const FusedRequest& request, const cpu::ReduceSchedule& schedule,
                     const std::vector<int64_t>& axes);
  Place place_of(int64_t at) const;
  int64_t offset_of(const Read& read, const Place& place) const;
  void merge_axes(const Dims& shape);
  ScheduledGroup scheduled(const std::string& program) const;
  void choose_blocks(const Schedule& schedule);
  std::string describe(const FusedRequest& request, const FusionProgram& program) const;
  Written written_to(void* const* results) const;
  void run_range(void* const* operands, const Written& written, int64_t begin, int64_t end) const;
  void run_reductions(const RunContext& context, void* const* operands, void* const* results) const;

  std::shared_ptr<const Code> code_;
  std::vector<Read> reads_;
  /// The result that each store writes; -1 if only reductions read it.
  std::vector<int> stores_;
  std::vector<int64_t> store_items_;  ///< bytes of an element
  std::vector<size_t> reduced_;       ///< the store that each reduction reads; none if code folds
  std::optional<Read> accumulators_;  ///< of reductions in the code
  std::optional<cpu::FusionReductions> reductions_;
  int64_t reduced_block_ = 0;         ///< elements that are folded at once after the code has run
  std::vector<int64_t> row_strides_;  ///< bytes, of operands and results
  Dims shape_;                        ///< merged axes; the last is a row
  int64_t size_ = 0, row_ = 0, rows_ = 1;
  int64_t block_ = 0;   ///< elements that fit the buffers; 0 without buffers
  int64_t period_ = 0;  ///< buffers of this period are filled once for a range
  int64_t unit_ = 64, grain_ = 1024;
  std::string name_;
};

/// Strides of an operand by axis of `shape`, 0 for broadcast axes.
Dims expanded_strides(const Layout& layout, const Dims& shape) {
  const size_t missing = shape.size() - layout.shape.size();
  Dims strides(shape.size(), 0);
  for (size_t axis = missing; axis < shape.size(); ++axis)
    if (layout.shape[axis - missing] != 1) strides[axis] = layout.strides[axis - missing];
  return strides;
}

Dims contiguous_strides(const Dims& shape) {
  Dims strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

/// Merges axes that are contiguous in every operand.
void CompiledGroup::merge_axes(const Dims& shape) {
  std::vector<Dims> before;
  for (Read& read : reads_) {
    before.push_back(std::move(read.strides));
    read.strides.clear();
  }
  shape_.clear();
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 1) continue;
    bool joins = !shape_.empty();
    for (size_t k = 0; joins && k < reads_.size(); ++k)
      joins = reads_[k].strides.back() == before[k][axis] * shape[axis];
    if (joins) {
      shape_.back() *= shape[axis];
    } else {
      shape_.push_back(shape[axis]);
    }
    for (size_t k = 0; k < reads_.size(); ++k) {
      if (joins) {
        reads_[k].strides.back() = before[k][axis];
      } else {
        reads_[k].strides.push_back(before[k][axis]);
      }
    }
  }
  if (shape_.empty()) {
    shape_ = {1};
    for (Read& read : reads_) read.strides = {1};
  }
  row_ = shape_.back();
  rows_ = shape_.size() > 1 ? shape_[shape_.size() - 2] : 1;
}

void CompiledGroup::lay_out(const FusedRequest& request) {
  const Dims& shape = request.shape;
  const auto bring_into_order = [&](Read& read) {
    read.buffer = 0;
    read.reader.emplace(request.operands[read.operand], shape,
                        request.operands[read.operand].dtype);
  };
  const auto strides_of = [&](const Read& read) {
    if (read.operand == Read::kNone) return read.strides;
    return read.buffer >= 0 ? contiguous_strides(shape)
                            : expanded_strides(request.operands[read.operand], shape);
  };
  // Elements of a row must be contiguous or a single one.
  size_t last = shape.size();
  while (last > 0 && shape[last - 1] == 1) --last;
  const Dims accumulators = reads_.empty() ? Dims() : reads_.back().strides;
  for (Read& read : reads_) {
    if (read.operand == Read::kNone) continue;
    read.strides = strides_of(read);
    if (last > 0 && read.strides[last - 1] != 0 && read.strides[last - 1] != 1)
      bring_into_order(read);
    read.strides = strides_of(read);
  }
  merge_axes(shape);
  if (shape_.size() > 1 && (row_ < kShortRow || (shape_.size() > 2 && row_ * rows_ < kShortCall))) {
    for (Read& read : reads_) {
      if (read.operand == Read::kNone) {
        read.strides = accumulators;
        continue;
      }
      const StridedReader whole(request.operands[read.operand], shape,
                                request.operands[read.operand].dtype);
      if (!whole.is_direct() && !whole.is_constant() && read.buffer < 0) bring_into_order(read);
      read.strides = strides_of(read);
    }
    merge_axes(shape);
  }
}

/// Arranges axes so that the code can reduce: rows with contiguous accumulators, or rows that are
/// reduced to one accumulator lane by lane. False if rows are too short.
bool CompiledGroup::lay_out_folds(const FusedRequest& request, const cpu::ReduceSchedule& schedule,
                                  const std::vector<int64_t>& axes) {
  const std::vector<Read> before = reads_;
  std::vector<bool> reduced(request.shape.size(), axes.empty());
  for (const int64_t axis : axes) reduced[static_cast<size_t>(axis)] = true;
  Read read;
  read.item = schedule.inner_kept ? 8 : std::min(schedule.inner, cpu::kMaxRunLanes) * 8;
  read.strides.resize(request.shape.size(), 0);
  int64_t stride = 1;
  for (size_t axis = request.shape.size(); axis-- > 0;) {
    if (reduced[axis]) continue;
    read.strides[axis] = stride;
    stride *= request.shape[axis];
  }
  reads_.push_back(std::move(read));
  lay_out(request);
  if (row_ >= kFoldRow && (schedule.inner_kept || row_ == schedule.inner || row_ % kFoldRow == 0)) {
    accumulators_ = std::move(reads_.back());
    reads_.pop_back();
    return true;
  }
  reads_ = before;
  return false;
}

ScheduledGroup CompiledGroup::scheduled(const std::string& program) const {
  ScheduledGroup out;
  out.reduces = reductions_.has_value();
  std::string text = program + str(shape_);
  for (const Read& read : reads_) {
    text += str(" ", read.strides, read.buffer >= 0 ? " packed" : "");
    out.packs |= read.buffer >= 0;
  }
  out.key = hex(fnv1a(text));
  return out;
}

/// The block size for the packing buffers; a multiple of the period if operands repeat.
void CompiledGroup::choose_blocks(const Schedule& schedule) {
  int64_t bytes = 0;
  for (Read& read : reads_)
    if (read.buffer >= 0) bytes += read.item;
  if (bytes > 0) {
    block_ = std::clamp<int64_t>(static_cast<int64_t>(kBufferBytes) / bytes / 64 * 64, 64, 4096);
    if (schedule.tile > 0 && !reductions_)
      block_ = std::clamp<int64_t>(schedule.tile / 64 * 64, 64, block_);
    if (shape_.size() == 1 && !reductions_)
      for (const Read& read : reads_)
        if (period_ == 0 && read.buffer >= 0 && read.reader->period() <= block_)
          period_ = read.reader->period();
    if (period_ > 0) block_ = block_ / period_ * period_;
    int64_t at = 0;
    for (Read& read : reads_)
      if (read.buffer >= 0) {
        read.buffer = static_cast<int>(at);
        at += (block_ * read.item + 63) / 64 * 64;
      }
  }
  unit_ = period_ > 0 ? block_ : shape_.size() > 1 && row_ <= 4096 ? row_ : 64;
}

std::string CompiledGroup::describe(const FusedRequest& request,
                                    const FusionProgram& program) const {
  std::string text;
  size_t read = 0;
  for (const FusionNode& node : program.nodes) {
    const char* const type = type_name(node.type);
    if (!type) return {};
    switch (node.kind) {
      case FusionNode::Kind::kRead: {
        const Read& r = reads_[read++];
        const char* const memory = type_name(request.operands[r.operand].dtype);
        if (!memory) return {};
        const bool vector = r.strides.back() != 0;
        const bool row = r.strides.size() > 1 && r.strides[r.strides.size() - 2] != 0;
        text += str("read ", memory, " ", type, vector ? " vector" : row ? " row" : " scalar");
        break;
      }
      case FusionNode::Kind::kConvert:
        text += str("convert ", type, " ", node.inputs[0]);
        break;
      case FusionNode::Kind::kApply:
        if (node.step.name.empty()) return {};
        text += str("apply ", node.step.name, " ", type, " ", node.inputs.size());
        for (const int input : node.inputs) text += str(" ", input);
        text += str(" ", node.step.params.size());
        for (const double parameter : node.step.params) {
          char number[40];
          std::snprintf(number, sizeof number, " %a", parameter);
          text += number;
        }
        break;
    }
    text += '\n';
  }
  for (const auto& [node, result] : program.stores) {
    const char* const type = type_name(request.results[static_cast<size_t>(result)].dtype);
    if (!type) return {};
    text += str("store ", node, " ", type, "\n");
  }
  size_t store = program.stores.size();  // the next one that only reductions read
  for (size_t k = 0; k < reduced_.size(); ++k) {
    if (reduced_[k] != store) continue;
    text += str("store ", program.reductions[k].node, " ", type_name(program.reductions[k].operand),
                "\n");
    ++store;
  }
  if (accumulators_) {
    for (const cpu::FusionReduction& r : program.reductions) {
      const char* const kinds[] = {"sum", "prod", "max", "min"};
      text += str("fold ", kinds[static_cast<size_t>(r.call.reduction)], " ", r.node,
                  reductions_->schedule().inner_kept ? " elements" : " lanes", "\n");
    }
  }
  return text;
}

/// Values that are reduced after the code has run are read from the result, if they are one, else
/// from a buffer in the first-level cache.
void CompiledGroup::add_stores(const FusedRequest& request, const FusionProgram& program) {
  for (const auto& [node, result] : program.stores) {
    stores_.push_back(result);
    store_items_.push_back(item_size(request.results[static_cast<size_t>(result)].dtype));
  }
  if (program.reductions.empty()) return;
  if (accumulators_) {
    reductions_.emplace(request.shape, program, kFoldBlock);
    return;
  }
  int64_t bytes = 0;
  for (size_t k = 0; k < program.reductions.size(); ++k) {
    const cpu::FusionReduction& r = program.reductions[k];
    const auto is_read = [&](const cpu::FusionStore& store) {
      return store.node == r.node &&
             request.results[static_cast<size_t>(store.result)].dtype == r.operand;
    };
    const auto store = std::find_if(program.stores.begin(), program.stores.end(), is_read);
    const auto earlier = std::find_if(
        program.reductions.begin(), program.reductions.begin() + static_cast<ptrdiff_t>(k),
        [&](const cpu::FusionReduction& other) { return other.node == r.node; });
    if (store != program.stores.end()) {
      reduced_.push_back(static_cast<size_t>(store - program.stores.begin()));
    } else if (earlier != program.reductions.begin() + static_cast<ptrdiff_t>(k)) {
      reduced_.push_back(reduced_[static_cast<size_t>(earlier - program.reductions.begin())]);
    } else {
      reduced_.push_back(stores_.size());
      stores_.push_back(-1);
      store_items_.push_back(item_size(r.operand));
      bytes += store_items_.back();
    }
  }
  reduced_block_ = std::min<int64_t>(
      2048, static_cast<int64_t>(kReducedBytes) / std::max<int64_t>(1, bytes) / 64 * 64);
  reductions_.emplace(request.shape, program, reduced_block_);
}

bool CompiledGroup::build(const FusedRequest& request, Compiler& compiler, bool any_size) {
  const int vector_bytes = cpu::vector_bytes();
  if (vector_bytes < 32 || request.results.empty()) return false;
  size_ = element_count(std::span<const int64_t>(request.shape));
  if (size_ == 0) return false;
  const auto program = cpu::build_fusion_program(request);
  if (!program) return false;
  if (!any_size && size_ * program->cost < kSmall) return false;
  for (const FusionNode& node : program->nodes)
    if (node.kind == FusionNode::Kind::kRead) {
      Read& read = reads_.emplace_back();
      read.operand = static_cast<size_t>(node.operand);
      read.item = item_size(request.operands[read.operand].dtype);
    }
  if (reads_.size() + request.results.size() > kMaxPointers) return false;
  bool laid_out = false;
  if (!program->reductions.empty()) {
    const std::vector<int64_t>& axes = program->reductions[0].call.axes;
    laid_out = lay_out_folds(request, cpu::ReduceSchedule(request.shape, axes), axes);
  }
  if (!laid_out) lay_out(request);
  add_stores(request, *program);
  if (reductions_ && !reductions_->is_profitable()) return false;
  std::string text = describe(request, *program);
  if (text.empty()) return false;
  const Schedule schedule = schedule_of(request, scheduled(text));
  choose_blocks(schedule);
  if (schedule.unroll > 1) text += str("unroll ", schedule.unroll, "\n");
  code_ = compiler.compile(text, vector_bytes);
  if (!code_) return false;
  for (const Read& read : reads_)
    row_strides_.push_back((read.strides.size() > 1 ? read.strides[read.strides.size() - 2] : 0) *
                           read.item);
  for (const int64_t item : store_items_) row_strides_.push_back(row_ * item);
  for (size_t k = 0; k < reads_.size(); ++k)
    if (reads_[k].buffer >= 0) row_strides_[k] = row_ * reads_[k].item;
  if (accumulators_) {
    const Dims& strides = accumulators_->strides;
    row_strides_.resize(
        row_strides_.size() + program->reductions.size(),
        (strides.size() > 1 ? strides[strides.size() - 2] : 0) * accumulators_->item);
  }
  grain_ = schedule.grain > 0 ? schedule.grain
                              : std::max<int64_t>(1024, 65536 / std::max(1, program->cost));
  name_ = vector_bytes == 64 ? "codegen:avx512" : "codegen:avx2";
  return true;
}

CompiledGroup::Written CompiledGroup::written_to(void* const* results) const {
  Written written;
  for (size_t s = 0; s < stores_.size(); ++s) {
    if (stores_[s] >= 0) written.memory[s] = static_cast<std::byte*>(results[stores_[s]]);
    written.first[s] = 0;
  }
  return written;
}

void CompiledGroup::run_reductions(const RunContext& context, void* const* operands,
                                   void* const* results) const {
  struct Worker {
    const CompiledGroup& group;
    void* const* operands;
    Written written;
    alignas(64) std::byte reduced[kReducedBytes];

    Worker(const CompiledGroup& g, void* const* from, void* const* to)
        : group(g), operands(from), written(g.written_to(to)) {}
    void operator()(const cpu::FusionReductions::Tile& tile) {
      const int64_t at = tile.at, end = at + tile.size();
      std::copy(std::begin(tile.accumulators), std::end(tile.accumulators),
                written.accumulators.begin());
      written.folds_from = at;
      std::byte* next = reduced;
      for (size_t s = 0; s < group.stores_.size(); ++s) {
        if (group.stores_[s] >= 0) continue;
        written.memory[s] = next;
        written.first[s] = at;
        next += group.reduced_block_ * group.store_items_[s];
      }
      group.run_range(operands, written, at, end);
      if (group.accumulators_) return;
      const void* values[cpu::kMaxFusionReductions];
      for (size_t k = 0; k < group.reduced_.size(); ++k) {
        const size_t s = group.reduced_[k];
        values[k] = written.memory[s] + (at - written.first[s]) * group.store_items_[s];
      }
      group.reductions_->fold(tile, values);
    }
  };
  reductions_->run(context, results, [&] { return Worker(*this, operands, results); });
}

CompiledGroup::Place CompiledGroup::place_of(int64_t at) const {
  if (shape_.size() == 1) return {at, 0, 0};
  return {at % row_, at / row_ % rows_, at / row_ / rows_};
}

/// Offset, in elements of the operand, of the first element of a row.
int64_t CompiledGroup::offset_of(const Read& read, const Place& place) const {
  const size_t rank = shape_.size();
  int64_t offset = place.column * read.strides[rank - 1];
  if (rank > 1) offset += place.row * read.strides[rank - 2];
  for (size_t axis = rank, rest = static_cast<size_t>(place.outer); axis-- > 2;) {
    const auto extent = static_cast<size_t>(shape_[axis - 2]);
    offset += static_cast<int64_t>(rest % extent) * read.strides[axis - 2];
    rest /= extent;
  }
  return offset;
}

void CompiledGroup::run_range(void* const* operands, const Written& written, int64_t begin,
                              int64_t end) const {
  // Buffers are aligned to 64 bytes.
  alignas(64) std::byte buffers[kBufferBytes + 64 * kMaxPointers];
  void* pointers[kMaxPointers + cpu::kMaxFusionReductions];
  const int64_t folds_from =
      accumulators_ ? offset_of(*accumulators_, place_of(written.folds_from)) : 0;
  for (int64_t at = begin; at < end;) {
    const int64_t limit = block_ > 0 ? std::min(end, at + block_) : end;
    const Place place = place_of(at);
    int64_t rows = 1, n = limit - at;
    if (shape_.size() > 1) {
      n = std::min(row_ - place.column, limit - at);
      if (n == row_) rows = std::min(rows_ - place.row, (limit - at) / row_);
    }
    for (size_t k = 0; k < reads_.size(); ++k) {
      const Read& read = reads_[k];
      std::byte* const base = static_cast<std::byte*>(operands[read.operand]);
      if (read.buffer >= 0) {
        std::byte* const buffer = buffers + read.buffer;
        pointers[k] = buffer;
        const bool filled = period_ > 0 && at != begin && read.reader->period() == period_;
        if (!filled) pointers[k] = const_cast<void*>(read.reader->read(base, at, rows * n, buffer));
        continue;
      }
      pointers[k] = base + offset_of(read, place) * read.item;
    }
    size_t next = reads_.size();
    for (size_t s = 0; s < store_items_.size(); ++s)
      pointers[next++] = written.memory[s] + (at - written.first[s]) * store_items_[s];
    if (accumulators_) {
      const int64_t bytes = (offset_of(*accumulators_, place) - folds_from) * accumulators_->item;
      for (size_t k = 0; next < row_strides_.size(); ++k)
        pointers[next++] = written.accumulators[k] + bytes;
    }
    code_->run(pointers, row_strides_.data(), rows, n);
    at += rows * n;
  }
}

std::unique_ptr<Kernel> prepare(const FusedRequest& request, Compiler& compiler, bool any_size) {
  auto kernel = std::make_unique<CompiledGroup>();
  if (!kernel->build(request, compiler, any_size)) return nullptr;
  return kernel;
}

}  // namespace

std::unique_ptr<Kernel> prepare_compiled_group(const FusedRequest& request) {
  if (!request.prepare.codegen) return nullptr;
  return prepare(request, Compiler::of_process(), false);
}

std::unique_ptr<Kernel> prepare_compiled_group(const FusedRequest& request, Compiler& compiler) {
  return prepare(request, compiler, true);
}

std::string take_problem() {
  static std::atomic<bool> taken = false;
  std::string problem = Compiler::of_process().problem();
  if (problem.empty() || taken.exchange(true)) return {};
  return problem;
}

}  // namespace paddle::codegen
