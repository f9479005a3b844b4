// How a group is divided among threads: its merged axes, what a thread computes at a time, and the
// chunks of sums.

#include <algorithm>

#include "kernels/cuda/group_source.h"

namespace paddle::cuda {
namespace {

constexpr int64_t kWarp = 32;

/// Strides of an operand by axis of `shape`, 0 for broadcast axes.
Dims broadcast_strides(const Layout& layout, const Dims& shape) {
  const size_t missing = shape.size() - layout.shape.size();
  Dims strides(shape.size(), 0);
  for (size_t axis = missing; axis < shape.size(); ++axis)
    if (layout.shape[axis - missing] != 1) strides[axis] = layout.strides[axis - missing];
  return strides;
}

/// Removes axes of size 1 and merges neighbors that all reads treat as one axis.
void merge_group_axes(Group& group) {
  const Dims shape = std::move(group.shape);
  const std::vector<bool> reduced = std::move(group.reduced);
  std::vector<Dims> strides;
  for (GroupRead& read : group.reads) strides.push_back(std::move(read.strides));
  group.shape.clear();
  group.reduced.clear();
  for (GroupRead& read : group.reads) read.strides.clear();
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 1) continue;
    bool joins = !group.shape.empty() && group.reduced.back() == reduced[axis];
    for (size_t r = 0; joins && r < strides.size(); ++r)
      joins = group.reads[r].strides.back() == strides[r][axis] * shape[axis];
    if (joins) {
      group.shape.back() *= shape[axis];
      for (size_t r = 0; r < strides.size(); ++r) group.reads[r].strides.back() = strides[r][axis];
      continue;
    }
    group.shape.push_back(shape[axis]);
    group.reduced.push_back(reduced[axis]);
    for (size_t r = 0; r < strides.size(); ++r) group.reads[r].strides.push_back(strides[r][axis]);
  }
  if (!group.shape.empty()) return;
  group.shape.push_back(1);
  group.reduced.push_back(false);
  for (GroupRead& read : group.reads) read.strides.push_back(0);
}

/// The number of elements that a thread computes at a time.
int choose_width(const FusedRequest& request, const cpu::FusionProgram& program, Group& group) {
  int64_t smallest = 16, bytes = 0;
  bool any = false;
  const auto counts = [&](DType type) {
    smallest = std::min(smallest, item_size(type));
    bytes += item_size(type);
    any = true;
  };
  for (size_t r = 0; r < group.reads.size(); ++r)
    if (group.reads[r].strides.back() == 1) counts(group.read_types[r]);
  for (const auto& [node, result] : program.stores)
    counts(request.results[static_cast<size_t>(result)].dtype);
  if (!any) return 1;
  int64_t width = std::clamp<int64_t>(16 / smallest, 1, 8);
  constexpr int64_t kMaxBytes = 320;  // in registers
  while (width > 1 && width * bytes > kMaxBytes) width /= 2;
  // Packs end with rows.
  const bool rows = group.shape.size() > 1 || group.form != GroupForm::kElements;
  while (width > 1 && rows && group.shape.back() % width != 0) width /= 2;
  return static_cast<int>(width);
}

/// How the elements of results are divided; by sizes only, so that every GPU gives the same bits.
void choose_chunks(Group& group) {
  for (size_t axis = 0; axis < group.shape.size(); ++axis)
    (group.reduced[axis] ? group.count : group.results) *= group.shape[axis];
  constexpr int64_t kMaxChunks = 256;
  if (group.form == GroupForm::kRows) {
    group.row_threads = group.count <= 1024 ? 32 : 256;
    if (group.results < 256 && group.count > 16384)
      group.chunks = std::min(kMaxChunks, (group.count + 8191) / 8192);
    return;
  }
  const int64_t blocks = (group.results + kWarp * group.width - 1) / (kWarp * group.width);
  const int64_t wanted = std::max<int64_t>(1, 256 / std::max<int64_t>(1, blocks));
  group.chunks = std::clamp<int64_t>(std::min(wanted, group.count / 64), 1, kMaxChunks);
}
}  // namespace

const char* device_type(DType type) {
  switch (type) {
    case DType::kBool:
      return "bool";
    case DType::kI8:
      return "int8_t";
    case DType::kI16:
      return "int16_t";
    case DType::kI32:
      return "int32_t";
    case DType::kI64:
      return "int64_t";
    case DType::kU8:
      return "uint8_t";
    case DType::kU16:
      return "uint16_t";
    case DType::kU32:
      return "uint32_t";
    case DType::kU64:
      return "uint64_t";
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
    case DType::kF32:
      return "float";
    case DType::kF64:
      return "double";
    default:
      return nullptr;
  }
}

const char* group_type(DType type) {
  if (type == DType::kC64) return "c64";
  if (type == DType::kC128) return "c128";
  return device_type(type);
}

const char* accumulator_of(DType type) {
  if (is_complex(type)) return "c128";
  if (!device_type(type)) return nullptr;
  if (type == DType::kF64) return "double";
  if (is_float(type)) return "float";
  return info(type).kind == DTypeKind::kUnsigned ? "uint64_t" : "int64_t";
}

void append_divider(std::vector<uint64_t>& words, int64_t divisor, bool large) {
  const auto d = static_cast<uint64_t>(divisor);
  if (large || divisor >= kSmallIndex) {
    words.push_back(d);
    words.push_back(0);
    return;
  }
  uint64_t shift = 0;
  while ((uint64_t{1} << shift) < d) ++shift;
  const uint64_t multiplier =
      d == 0 ? 0 : ((uint64_t{1} << 32) * ((uint64_t{1} << shift) - d)) / d + 1;
  words.push_back(d | multiplier << 32);
  words.push_back(shift);
}

std::optional<Group> describe_group(const FusedRequest& request, const cpu::FusionProgram& program,
                                    const GroupProduct* product) {
  Group group;
  if (product) group.product = product->operand;
  group.shape = request.shape;
  group.size = element_count(std::span<const int64_t>(request.shape));
  group.reduced.assign(group.shape.size(), false);
  if (!program.reductions.empty()) {
    const std::vector<int64_t>& axes = program.reductions[0].call.axes;
    if (axes.empty()) group.reduced.assign(group.shape.size(), true);
    for (const int64_t axis : axes) group.reduced[static_cast<size_t>(axis)] = true;
  }
  for (const cpu::FusionNode& node : program.nodes) {
    if (node.kind != cpu::FusionNode::Kind::kRead) continue;
    const Layout& operand = request.operands[static_cast<size_t>(node.operand)];
    group.reads.push_back({node.operand, broadcast_strides(operand, request.shape)});
    group.read_types.push_back(operand.dtype);
  }
  for (const auto& store : program.stores) group.stores.push_back(store.result);
  constexpr size_t kMaxPointers = 64, kMaxAxes = 12;
  if (group.reads.size() + group.stores.size() > kMaxPointers) return std::nullopt;
  merge_group_axes(group);
  if (group.shape.size() > kMaxAxes) return std::nullopt;
  if (!program.reductions.empty()) {
    if (std::ranges::none_of(group.reduced, [](bool reduced) { return reduced; })) {
      group.shape.push_back(1);
      group.reduced.push_back(true);
      for (GroupRead& read : group.reads) read.strides.push_back(0);
    }
    group.form = group.reduced.back() ? GroupForm::kRows : GroupForm::kColumns;
  }
  group.width = choose_width(request, program, group);
  // A thread has four neighboring results of a product.
  if (product) group.width = product->columns % 4 == 0 && group.width >= 4 ? 4 : 1;
  for (GroupRead& read : group.reads) {
    read.vector = read.strides.back() == 1;
    for (size_t axis = 0; axis + 1 < read.strides.size(); ++axis)
      read.vector = read.vector && read.strides[axis] % group.width == 0;
  }
  if (!program.reductions.empty()) choose_chunks(group);
  if (product && !program.reductions.empty()) {
    if (group.form != GroupForm::kColumns || group.results != product->columns) return std::nullopt;
    group.chunks = product->chunks;
  }
  if (!write_group(request, program, group, product)) return std::nullopt;
  return group;
}

}  // namespace paddle::cuda
