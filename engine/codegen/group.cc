#include "codegen/group.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <optional>

#include "base/parallel.h"
#include "base/text.h"
#include "codegen/compiler.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/group_program.h"

namespace paddle::codegen {
namespace {

using cpu::GroupNode;
using cpu::GroupProgram;
using cpu::StridedReader;

constexpr size_t kBufferBytes = 16 * 1024;  // operands brought into order, in the first-level cache
constexpr size_t kMaxPointers = 64;
/// Rows shorter than this, and calls for fewer elements than that, cost more than operands brought
/// into order do.
constexpr int64_t kShortRow = 32, kShortCall = 512;
/// Additions that are over before it matters how they are done.
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

/// An operand as the code reads it.
struct Read {
  size_t operand = 0;
  int64_t item = 0;  ///< bytes of an element
  Dims strides;      ///< in elements, by merged axis, outermost first
  int buffer = -1;   ///< brought into order: which part of the buffers
  std::optional<StridedReader> reader;
};

class CompiledGroup final : public Kernel {
 public:
  bool build(const FusedRequest& request, Compiler& compiler, bool any_size);
  void run(const RunContext&, void* const* operands, void* const* results) const override {
    parallel_for((size_ + unit_ - 1) / unit_, std::max<int64_t>(1, grain_ / unit_),
                 [&](int64_t begin, int64_t end) {
                   run_range(operands, results, begin * unit_, std::min(size_, end * unit_));
                 });
  }
  std::string implementation() const override { return name_; }

 private:
  void lay_out(const FusedRequest& request);
  void merge_axes(const Dims& shape);
  void choose_blocks();
  std::string describe(const FusedRequest& request, const GroupProgram& program) const;
  void run_range(void* const* operands, void* const* results, int64_t begin, int64_t end) const;

  std::shared_ptr<const Code> code_;
  std::vector<Read> reads_;
  std::vector<int64_t> result_items_;
  std::vector<int64_t> row_strides_;  ///< bytes, of operands and results
  Dims shape_;                        ///< merged axes; the last is a row
  int64_t size_ = 0, row_ = 0, rows_ = 1;
  int64_t block_ = 0;   ///< elements that fit the buffers; 0 without buffers
  int64_t period_ = 0;  ///< buffers of this period are filled once for a range
  int64_t unit_ = 64, grain_ = 1024;
  std::string name_;
};

/// Strides of an operand by axis of `shape`, 0 where it repeats.
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

/// Joins axes where every operand allows it.
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
  const Dims& shape = request.results[0].shape;
  const auto bring_into_order = [&](Read& read) {
    read.buffer = 0;
    read.reader.emplace(request.operands[read.operand], shape,
                        request.operands[read.operand].dtype);
  };
  const auto strides_of = [&](const Read& read) {
    return read.buffer >= 0 ? contiguous_strides(shape)
                            : expanded_strides(request.operands[read.operand], shape);
  };
  // Elements of a row lie side by side, or are one element.
  size_t last = shape.size();
  while (last > 0 && shape[last - 1] == 1) --last;
  for (Read& read : reads_) {
    read.strides = strides_of(read);
    if (last > 0 && read.strides[last - 1] != 0 && read.strides[last - 1] != 1)
      bring_into_order(read);
    read.strides = strides_of(read);
  }
  merge_axes(shape);
  if (shape_.size() > 1 && (row_ < kShortRow || (shape_.size() > 2 && row_ * rows_ < kShortCall))) {
    for (Read& read : reads_) {
      const StridedReader whole(request.operands[read.operand], shape,
                                request.operands[read.operand].dtype);
      if (!whole.is_direct() && !whole.is_constant() && read.buffer < 0) bring_into_order(read);
      read.strides = strides_of(read);
    }
    merge_axes(shape);
  }
}

/// Blocks that fit the buffers; where operands repeat within one, of whole periods.
void CompiledGroup::choose_blocks() {
  int64_t bytes = 0;
  for (Read& read : reads_)
    if (read.buffer >= 0) bytes += read.item;
  if (bytes > 0) {
    block_ = std::clamp<int64_t>(static_cast<int64_t>(kBufferBytes) / bytes / 64 * 64, 64, 4096);
    if (shape_.size() == 1)
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
                                    const GroupProgram& program) const {
  std::string text;
  size_t read = 0;
  for (const GroupNode& node : program.nodes) {
    const char* const type = type_name(node.type);
    if (!type) return {};
    switch (node.kind) {
      case GroupNode::Kind::kRead: {
        const Read& r = reads_[read++];
        const char* const memory = type_name(request.operands[r.operand].dtype);
        if (!memory) return {};
        const bool vector = r.strides.back() != 0;
        const bool row = r.strides.size() > 1 && r.strides[r.strides.size() - 2] != 0;
        text += str("read ", memory, " ", type, vector ? " vector" : row ? " row" : " scalar");
        break;
      }
      case GroupNode::Kind::kConvert:
        text += str("convert ", type, " ", node.inputs[0]);
        break;
      case GroupNode::Kind::kApply:
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
  for (size_t r = 0; r < program.results.size(); ++r)
    text += str("store ", program.results[r], " ", type_name(request.results[r].dtype), "\n");
  return text;
}

bool CompiledGroup::build(const FusedRequest& request, Compiler& compiler, bool any_size) {
  const int vector_bytes = cpu::vector_bytes();
  if (vector_bytes < 32 || request.results.empty()) return false;
  size_ = request.results[0].size();
  if (size_ == 0) return false;
  const auto program = cpu::group_program(request);
  if (!program) return false;
  if (!any_size && size_ * program->cost < kSmall) return false;
  for (const GroupNode& node : program->nodes)
    if (node.kind == GroupNode::Kind::kRead) {
      Read& read = reads_.emplace_back();
      read.operand = static_cast<size_t>(node.operand);
      read.item = item_size(request.operands[read.operand].dtype);
    }
  if (reads_.size() + request.results.size() > kMaxPointers) return false;
  lay_out(request);
  choose_blocks();
  const std::string text = describe(request, *program);
  if (text.empty()) return false;
  code_ = compiler.compile(text, vector_bytes);
  if (!code_) return false;
  for (const Read& read : reads_)
    row_strides_.push_back((read.strides.size() > 1 ? read.strides[read.strides.size() - 2] : 0) *
                           read.item);
  for (const Layout& result : request.results) {
    result_items_.push_back(item_size(result.dtype));
    row_strides_.push_back(row_ * result_items_.back());
  }
  for (size_t k = 0; k < reads_.size(); ++k)
    if (reads_[k].buffer >= 0) row_strides_[k] = row_ * reads_[k].item;
  grain_ = std::max<int64_t>(1024, 65536 / std::max(1, program->cost));
  name_ = vector_bytes == 64 ? "codegen:avx512" : "codegen:avx2";
  return true;
}

void CompiledGroup::run_range(void* const* operands, void* const* results, int64_t begin,
                              int64_t end) const {
  // Each buffer begins at a multiple of 64 bytes.
  alignas(64) std::byte buffers[kBufferBytes + 64 * kMaxPointers];
  void* pointers[kMaxPointers];
  for (int64_t at = begin; at < end;) {
    const int64_t limit = block_ > 0 ? std::min(end, at + block_) : end;
    int64_t rows = 1, n = limit - at, column = at, row = 0, outer = 0;
    if (shape_.size() > 1) {
      column = at % row_;
      row = at / row_ % rows_;
      outer = at / row_ / rows_;
      n = std::min(row_ - column, limit - at);
      if (n == row_) rows = std::min(rows_ - row, (limit - at) / row_);
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
      const size_t rank = shape_.size();
      int64_t offset = column * read.strides[rank - 1];
      if (rank > 1) offset += row * read.strides[rank - 2];
      for (size_t axis = rank, rest = static_cast<size_t>(outer); axis-- > 2;) {
        const auto extent = static_cast<size_t>(shape_[axis - 2]);
        offset += static_cast<int64_t>(rest % extent) * read.strides[axis - 2];
        rest /= extent;
      }
      pointers[k] = base + offset * read.item;
    }
    for (size_t r = 0; r < result_items_.size(); ++r)
      pointers[reads_.size() + r] = static_cast<std::byte*>(results[r]) + at * result_items_[r];
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
  if (!request.compile) return nullptr;
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
