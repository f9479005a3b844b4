#include "kernels/cuda/group_source.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <set>

#include "base/text.h"
#include "kernels/cuda/program.h"

namespace paddle::cuda {
namespace {

using cpu::FusionNode;
using cpu::FusionProgram;
using cpu::FusionReduction;

constexpr int64_t kWarp = 32;

/// The functions in device/scalar.cuh.
const std::set<std::string_view>& scalar_functions() {
  static const std::set<std::string_view> names = {"abs",
                                                   "acos",
                                                   "acosh",
                                                   "add",
                                                   "asin",
                                                   "asinh",
                                                   "atan",
                                                   "atan2",
                                                   "atanh",
                                                   "bitwise_and",
                                                   "bitwise_left_shift",
                                                   "bitwise_not",
                                                   "bitwise_or",
                                                   "bitwise_right_shift",
                                                   "bitwise_xor",
                                                   "cbrt",
                                                   "ceil",
                                                   "celu",
                                                   "clip",
                                                   "copysign",
                                                   "cos",
                                                   "cosh",
                                                   "digamma",
                                                   "divide",
                                                   "elu",
                                                   "equal",
                                                   "erf",
                                                   "erfc",
                                                   "erfinv",
                                                   "exp",
                                                   "exp2",
                                                   "expm1",
                                                   "floor",
                                                   "floor_divide",
                                                   "fmax",
                                                   "fmin",
                                                   "fmod",
                                                   "frac",
                                                   "gcd",
                                                   "gelu",
                                                   "gelu_tanh",
                                                   "greater_equal",
                                                   "greater_than",
                                                   "hardshrink",
                                                   "hardsigmoid",
                                                   "hardswish",
                                                   "hardtanh",
                                                   "heaviside",
                                                   "hypot",
                                                   "i0",
                                                   "i0e",
                                                   "i1",
                                                   "i1e",
                                                   "isfinite",
                                                   "isinf",
                                                   "isnan",
                                                   "isneginf",
                                                   "isposinf",
                                                   "lcm",
                                                   "ldexp",
                                                   "leaky_relu",
                                                   "lerp",
                                                   "less_equal",
                                                   "less_than",
                                                   "lgamma",
                                                   "log",
                                                   "log10",
                                                   "log1p",
                                                   "log2",
                                                   "log_sigmoid",
                                                   "logaddexp",
                                                   "logical_and",
                                                   "logical_not",
                                                   "logical_or",
                                                   "logical_right_shift",
                                                   "logical_xor",
                                                   "maximum",
                                                   "minimum",
                                                   "mish",
                                                   "multiply",
                                                   "multiply_add",
                                                   "neg",
                                                   "nextafter",
                                                   "polygamma",
                                                   "not_equal",
                                                   "pow",
                                                   "reciprocal",
                                                   "relu",
                                                   "relu6",
                                                   "remainder",
                                                   "round",
                                                   "round_digits",
                                                   "rsqrt",
                                                   "scale",
                                                   "selu",
                                                   "sigmoid",
                                                   "sign",
                                                   "signbit",
                                                   "silu",
                                                   "sin",
                                                   "sinh",
                                                   "softplus",
                                                   "softshrink",
                                                   "softsign",
                                                   "sqrt",
                                                   "square",
                                                   "stanh",
                                                   "subtract",
                                                   "tan",
                                                   "tanh",
                                                   "tanhshrink",
                                                   "trigamma",
                                                   "thresholded_relu",
                                                   "trunc",
                                                   "truncated_quotient",
                                                   "where"};
  return names;
}

/// Those of device/special.cuh, which programs without them leave out.
bool is_special(std::string_view name) {
  static const std::set<std::string_view> names = {
      "digamma", "erfinv", "i0", "i0e", "i1", "i1e", "lgamma", "polygamma", "trigamma"};
  return names.contains(name);
}

const char* fold_name(cpu::Reduction reduction) {
  switch (reduction) {
    case cpu::Reduction::kSum:
      return "FoldSum";
    case cpu::Reduction::kProd:
      return "FoldProd";
    case cpu::Reduction::kMax:
      return "FoldMax";
    case cpu::Reduction::kMin:
      return "FoldMin";
    case cpu::Reduction::kAll:
      return "FoldAll";
    case cpu::Reduction::kAny:
      return "FoldAny";
  }
  return nullptr;
}

/// The value that changes no other under the reduction.
std::string neutral(cpu::Reduction reduction, std::string_view type) {
  const bool is_float = type == "float" || type == "double";
  switch (reduction) {
    case cpu::Reduction::kSum:
    case cpu::Reduction::kAny:
      return str("(", type, ")0");
    case cpu::Reduction::kProd:
    case cpu::Reduction::kAll:
      return str("(", type, ")1");
    case cpu::Reduction::kMax:
      if (is_float) return str("(", type, ")as_double(0xfff0000000000000ull)");
      return type == "int64_t" ? "(int64_t)0x8000000000000000ull" : "(uint64_t)0";
    case cpu::Reduction::kMin:
      if (is_float) return str("(", type, ")as_double(0x7ff0000000000000ull)");
      return type == "int64_t" ? "(int64_t)0x7fffffffffffffffull" : "~(uint64_t)0";
  }
  return {};
}

/// A parameter with all of its bits.
std::string literal(double number) {
  char text[48];
  if (std::isfinite(number)) {
    std::snprintf(text, sizeof text, "%a", number);
  } else {
    uint64_t bits = 0;
    std::memcpy(&bits, &number, sizeof bits);
    std::snprintf(text, sizeof text, "as_double(0x%llxull)", static_cast<unsigned long long>(bits));
  }
  return text;
}

Dims contiguous_strides_of(const Dims& shape) {
  Dims strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

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

class Writer {
 public:
  Writer(const FusedRequest& request, const FusionProgram& program, Group& group)
      : request_(request), program_(program), group_(group) {}

  /// False for types and functions that device code lacks.
  bool write() {
    for (const FusionReduction& r : program_.reductions) {
      const char* const type = accumulator_of(r.operand);
      if (!type) return false;
      accumulators_.emplace_back(type);
    }
    std::string body;
    if (!write_nodes(body)) return false;
    std::string text = str("\ntypedef ", large() ? "uint64_t" : "uint32_t", " Index;\n");
    write_arguments(text);
    write_accumulators(text);
    text += body;
    if (program_.reductions.empty())
      write_element_kernels(text);
    else
      write_fold_kernels(text);
    const bool special = std::ranges::any_of(program_.nodes, [](const FusionNode& node) {
      return node.kind == FusionNode::Kind::kApply && is_special(node.step.name);
    });
    group_.text = special ? program_text({"scalar", "special_functions", "special", "group"}, text)
                          : program_text({"scalar", "group"}, text);
    return true;
  }

 private:
  bool large() const { return group_.size >= kSmallIndex; }
  size_t rank() const { return group_.shape.size(); }
  bool is_dense(const GroupRead& read) const {
    const Dims dense = contiguous_strides_of(group_.shape);
    for (size_t axis = 0; axis < rank(); ++axis)
      if (group_.shape[axis] > 1 && read.strides[axis] != dense[axis]) return false;
    return group_.shape.back() > 1 || rank() == 1;
  }
  static bool is_same(const GroupRead& read) {
    return std::ranges::all_of(read.strides, [](int64_t stride) { return stride == 0; });
  }
  const char* store_type(int result) const {
    return device_type(request_.results[static_cast<size_t>(result)].dtype);
  }

  void write_arguments(std::string& text) const {
    text += "struct Arguments {\n";
    for (size_t r = 0; r < group_.reads.size(); ++r)
      text += str("  const ", device_type(group_.read_types[r]), "* read", r, ";\n");
    for (size_t s = 0; s < program_.stores.size(); ++s)
      text += str("  ", store_type(program_.stores[s].result), "* store", s, ";\n");
    for (size_t k = 0; k < program_.reductions.size(); ++k)
      text += str("  ", store_type(program_.reductions[k].result), "* result", k, ";\n");
    for (size_t k = 0; k < program_.reductions.size(); ++k)
      text += str("  ", accumulators_[k], "* partial", k, ";\n");
    if (!program_.reductions.empty()) text += "  uint32_t* counters;\n";
    text += str("  int64_t size, results, count, chunk, chunks;\n  Divider dims[", rank(),
                "];\n  int64_t element_strides[", rank(), "];\n");
    for (size_t r = 0; r < group_.reads.size(); ++r)
      text += str("  int64_t strides", r, "[", rank(), "];\n");
    text += "};\n";
  }

  void write_accumulators(std::string& text) const {
    text += "struct Accumulators {\n";
    for (size_t k = 0; k < accumulators_.size(); ++k)
      text += str("  ", accumulators_[k], " sum", k, " = ",
                  neutral(program_.reductions[k].call.reduction, accumulators_[k]), ";\n");
    text += "};\n";
    text += str("constexpr bool kColumns = ", group_.form == GroupForm::kColumns ? "true" : "false",
                ";\n");
  }

  /// `elements`: reads, then each node for each of kWidth elements, then stores and folds.
  bool write_nodes(std::string& text) const {
    text +=
        "template <int kWidth>\nPADDLE_DEVICE void elements(const Arguments& arguments, Index "
        "first, Accumulators* sums) {\n";
    const bool decomposes = std::ranges::any_of(
        group_.reads, [&](const GroupRead& read) { return !is_dense(read) && !is_same(read); });
    if (decomposes) {
      text += "  Index rest = first;\n";
      for (size_t axis = rank(); axis-- > 0;) {
        if (axis == 0) {
          text += "  const Index index0 = rest;\n";
          break;
        }
        text += str("  const Index next", axis, " = quotient(rest, arguments.dims[", axis,
                    "]);\n  const Index index", axis, " = rest - next", axis,
                    " * size_of(arguments.dims[", axis, "], rest);\n  rest = next", axis, ";\n");
      }
    }
    std::vector<std::string> values(group_.reads.size());
    for (size_t r = 0; r < group_.reads.size(); ++r) {
      const GroupRead& read = group_.reads[r];
      const std::string pointer = str("arguments.read", r);
      if (is_same(read)) {
        text += str("  const auto same", r, " = ", pointer, "[0];\n");
        values[r] = str("same", r);
        continue;
      }
      std::string offset = "first";
      if (!is_dense(read)) {
        offset = str("offset", r);
        text += str("  const int64_t ", offset, " = ");
        bool any = false;
        for (size_t axis = 0; axis < rank(); ++axis) {
          if (read.strides[axis] == 0) continue;
          text += str(any ? " + " : "", "(int64_t)index", axis, " * arguments.strides", r, "[",
                      axis, "]");
          any = true;
        }
        text += ";\n";
      }
      if (read.vector || is_dense(read)) {
        text +=
            str("  const auto pack", r, " = load_pack<kWidth>(", pointer, " + ", offset, ");\n");
        values[r] = str("pack", r, ".values[k]");
      } else if (read.strides.back() == 0) {
        text += str("  const auto same", r, " = ", pointer, "[", offset, "];\n");
        values[r] = str("same", r);
      } else {
        values[r] = str(pointer, "[", offset, " + k * arguments.strides", r, "[", rank() - 1, "]]");
      }
    }
    for (size_t s = 0; s < program_.stores.size(); ++s) {
      const char* const type = store_type(program_.stores[s].result);
      if (!type) return false;
      text += str("  Pack<", type, ", kWidth> stored", s, ";\n");
    }
    text += "#pragma unroll\n  for (int k = 0; k < kWidth; ++k) {\n";
    size_t read = 0;
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      const FusionNode& node = program_.nodes[i];
      const char* const type = device_type(node.type);
      if (!type) return false;
      text += str("    const ", type, " v", i, " = ");
      switch (node.kind) {
        case FusionNode::Kind::kRead:
          if (!device_type(group_.read_types[read])) return false;
          text += str("convert<", type, ">(", values[read++], ")");
          break;
        case FusionNode::Kind::kConvert:
          text += str("convert<", type, ">(v", node.inputs[0], ")");
          break;
        case FusionNode::Kind::kApply:
          if (!scalar_functions().contains(node.step.name)) return false;
          text += str("fn::", node.step.name, "(");
          for (size_t k = 0; k < node.inputs.size(); ++k)
            text += str(k > 0 ? ", " : "", "v", node.inputs[k]);
          for (const double parameter : node.step.params) text += ", " + literal(parameter);
          text += ")";
          break;
      }
      text += ";\n";
    }
    for (size_t s = 0; s < program_.stores.size(); ++s)
      text += str("    stored", s, ".values[k] = convert<", store_type(program_.stores[s].result),
                  ">(v", program_.stores[s].node, ");\n");
    for (size_t k = 0; k < program_.reductions.size(); ++k) {
      const FusionReduction& r = program_.reductions[k];
      if (!store_type(r.result)) return false;
      const std::string sum = str("sums[kColumns ? k : 0].sum", k);
      text += str("    ", sum, " = ", fold_name(r.call.reduction), "()(", sum, ", convert<",
                  accumulators_[k], ">(v", r.node, "));\n");
    }
    text += "  }\n";
    for (size_t s = 0; s < program_.stores.size(); ++s)
      text += str("  store_pack<kWidth>(arguments.store", s, " + first, stored", s, ");\n");
    text += "}\n";
    return true;
  }

  void write_element_kernels(std::string& text) const {
    text += R"(
template <int kWidth>
PADDLE_DEVICE void all_elements(const Arguments& arguments) {
  const Index size = (Index)arguments.size;
  const Index step = (Index)gridDim.x * kBlockThreads * kWidth;
  Index first = ((Index)blockIdx.x * kBlockThreads + threadIdx.x) * kWidth;
  for (; first < size; first += step) {
    if (first + kWidth <= size) {
      elements<kWidth>(arguments, first, nullptr);
    } else {
      for (Index i = first; i < size; ++i) elements<1>(arguments, i, nullptr);
    }
  }
}
PADDLE_KERNEL(group_1, Arguments) { all_elements<1>(arguments); }
)";
    if (group_.width > 1)
      text += str("PADDLE_KERNEL(group_wide, Arguments) { all_elements<", group_.width,
                  ">(arguments); }\n");
  }

  /// The row-major number of an element, from the numbers of its result and of it in the result.
  void write_element_of(std::string& text) const {
    text +=
        "PADDLE_DEVICE Index element_of(const Arguments& arguments, Index result, Index item) {\n"
        "  Index element = 0;\n";
    for (const bool reduced : {false, true}) {
      const char* const number = reduced ? "item" : "result";
      std::vector<size_t> axes;
      for (size_t axis = 0; axis < rank(); ++axis)
        if (group_.reduced[axis] == reduced) axes.push_back(axis);
      while (!axes.empty()) {
        const size_t axis = axes.back();
        axes.pop_back();
        if (axes.empty()) {
          text +=
              str("  element += ", number, " * (Index)arguments.element_strides[", axis, "];\n");
          break;
        }
        text += str("  { const Index next = quotient(", number, ", arguments.dims[", axis,
                    "]);\n    element += (", number, " - next * size_of(arguments.dims[", axis,
                    "], next)) * (Index)arguments.element_strides[", axis, "];\n    ", number,
                    " = next; }\n");
      }
    }
    text += "  return element;\n}\n";
  }

  /// Stores the fold of a result, or of a chunk of it.
  void write_finish(std::string& text) const {
    text +=
        "PADDLE_DEVICE void store_result(const Arguments& arguments, Index result, const "
        "Accumulators& sums) {\n";
    for (size_t k = 0; k < program_.reductions.size(); ++k) {
      const FusionReduction& r = program_.reductions[k];
      const bool mean = r.call.form == cpu::ReduceForm::kMean;
      const std::string value =
          mean ? str("(sums.sum", k, " / (", accumulators_[k], ")arguments.count)")
               : str("sums.sum", k);
      text += str("  arguments.result", k, "[result] = convert<", store_type(r.result), ">(", value,
                  ");\n");
    }
    text +=
        "}\nPADDLE_DEVICE void store_folded(const Arguments& arguments, Index result, Index chunk, "
        "const Accumulators& sums) {\n";
    if (group_.chunks == 1) {
      text += "  store_result(arguments, result, sums);\n";
    } else {
      text += "  const int64_t at = (int64_t)chunk * arguments.results + result;\n";
      for (size_t k = 0; k < program_.reductions.size(); ++k)
        text += str("  arguments.partial", k, "[at] = sums.sum", k, ";\n");
    }
    text += "}\n";
  }

  /// Folds a chunk's values into `sums`.
  void write_partial_folds(std::string& text, std::string_view sums) const {
    for (size_t k = 0; k < program_.reductions.size(); ++k)
      text += str("    ", sums, ".sum", k, " = ", fold_name(program_.reductions[k].call.reduction),
                  "()(", sums, ".sum", k, ", arguments.partial", k, "[at]);\n");
  }

  void write_fold_kernels(std::string& text) const {
    write_element_of(text);
    write_finish(text);
    text += str("constexpr int kRowThreads = ", group_.row_threads, ";\n");
    if (group_.form == GroupForm::kRows) {
      text += R"(
/// Folds one value of each of kRowThreads neighboring threads.
template <class T, class Fold>
PADDLE_DEVICE T fold_row(T value, Fold fold) {
  __shared__ T values[kBlockThreads];
  const int thread = (int)threadIdx.x, lane = thread % kRowThreads;
  values[thread] = value;
  __syncthreads();
  for (int width = kRowThreads / 2; width > 0; width /= 2) {
    if (lane < width) values[thread] = fold(values[thread], values[thread + width]);
    __syncthreads();
  }
  const T out = values[thread - lane];
  __syncthreads();
  return out;
}
template <int kWidth>
PADDLE_DEVICE void fold_rows(const Arguments& arguments) {
  const int lane = (int)threadIdx.x % kRowThreads;
  const Index result =
      (Index)blockIdx.x * (kBlockThreads / kRowThreads) + threadIdx.x / kRowThreads;
  const Index begin = (Index)blockIdx.y * (Index)arguments.chunk;
  const Index limit = begin + (Index)arguments.chunk;
  const Index end = limit < (Index)arguments.count ? limit : (Index)arguments.count;
  Accumulators sums;
  if (result < (Index)arguments.results)
    for (Index item = begin + lane * kWidth; item < end; item += kRowThreads * kWidth)
      elements<kWidth>(arguments, element_of(arguments, result, item), &sums);
)";
      for (size_t k = 0; k < program_.reductions.size(); ++k)
        text += str("  sums.sum", k, " = fold_row(sums.sum", k, ", ",
                    fold_name(program_.reductions[k].call.reduction), "());\n");
      text += R"(  if (lane == 0 && result < (Index)arguments.results)
    store_folded(arguments, result, (Index)blockIdx.y, sums);
)";
      if (group_.chunks > 1) {
        // A block has one result then; its last block folds the chunks.
        text += R"(  if (!is_last_block(arguments.counters + blockIdx.x, gridDim.y)) return;
  sums = Accumulators();
  for (int chunk = (int)threadIdx.x; chunk < (int)arguments.chunks; chunk += kBlockThreads) {
    const int64_t at = (int64_t)chunk * arguments.results + result;
)";
        write_partial_folds(text, "sums");
        text += "  }\n";
        for (size_t k = 0; k < program_.reductions.size(); ++k)
          text += str("  sums.sum", k, " = fold_row(sums.sum", k, ", ",
                      fold_name(program_.reductions[k].call.reduction), "());\n");
        text += "  if (threadIdx.x == 0) store_result(arguments, result, sums);\n";
      }
      text += "}\n";
    } else {
      text += R"(
/// Folds one value of each of the threads of a column.
template <class T, class Fold>
PADDLE_DEVICE T fold_column(T value, Fold fold) {
  __shared__ T values[kBlockThreads];
  const int thread = (int)threadIdx.x;
  values[thread] = value;
  __syncthreads();
  T out = values[thread % 32];
  for (int i = thread % 32 + 32; i < kBlockThreads; i += 32) out = fold(out, values[i]);
  __syncthreads();
  return out;
}
template <int kWidth>
PADDLE_DEVICE void fold_rows(const Arguments& arguments) {
  const Index result = ((Index)blockIdx.x * 32 + threadIdx.x % 32) * kWidth;
  const Index begin = (Index)blockIdx.y * (Index)arguments.chunk;
  const Index limit = begin + (Index)arguments.chunk;
  const Index end = limit < (Index)arguments.count ? limit : (Index)arguments.count;
  Accumulators sums[kWidth];
  if (result < (Index)arguments.results)
    for (Index item = begin + threadIdx.x / 32; item < end; item += kBlockThreads / 32)
      elements<kWidth>(arguments, element_of(arguments, result, item), sums);
#pragma unroll
  for (int k = 0; k < kWidth; ++k) {
)";
      for (size_t k = 0; k < program_.reductions.size(); ++k)
        text += str("    sums[k].sum", k, " = fold_column(sums[k].sum", k, ", ",
                    fold_name(program_.reductions[k].call.reduction), "());\n");
      text += R"(    if (threadIdx.x < 32 && result < (Index)arguments.results)
      store_folded(arguments, result + k, (Index)blockIdx.y, sums[k]);
  }
)";
      if (group_.chunks > 1) {
        text += R"(  if (!is_last_block(arguments.counters + blockIdx.x, gridDim.y)) return;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) {
    sums[k] = Accumulators();
    if (result < (Index)arguments.results)
      for (int chunk = (int)threadIdx.x / 32; chunk < (int)arguments.chunks; chunk += kBlockThreads / 32) {
        const int64_t at = (int64_t)chunk * arguments.results + result + k;
)";
        write_partial_folds(text, "sums[k]");
        text += "      }\n";
        for (size_t k = 0; k < program_.reductions.size(); ++k)
          text += str("    sums[k].sum", k, " = fold_column(sums[k].sum", k, ", ",
                      fold_name(program_.reductions[k].call.reduction), "());\n");
        text += R"(    if (threadIdx.x < 32 && result < (Index)arguments.results)
      store_result(arguments, result + k, sums[k]);
  }
)";
      }
      text += "}\n";
    }
    text += "PADDLE_KERNEL(group_1, Arguments) { fold_rows<1>(arguments); }\n";
    if (group_.width > 1)
      text += str("PADDLE_KERNEL(group_wide, Arguments) { fold_rows<", group_.width,
                  ">(arguments); }\n");
  }

  const FusedRequest& request_;
  const FusionProgram& program_;
  Group& group_;
  std::vector<std::string> accumulators_;
};

/// The number of elements that a thread computes at a time.
int choose_width(const FusedRequest& request, const FusionProgram& program, Group& group) {
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

const char* accumulator_of(DType type) {
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

std::optional<Group> describe_group(const FusedRequest& request, const FusionProgram& program) {
  Group group;
  group.shape = request.shape;
  group.size = element_count(std::span<const int64_t>(request.shape));
  group.reduced.assign(group.shape.size(), false);
  if (!program.reductions.empty()) {
    const std::vector<int64_t>& axes = program.reductions[0].call.axes;
    if (axes.empty()) group.reduced.assign(group.shape.size(), true);
    for (const int64_t axis : axes) group.reduced[static_cast<size_t>(axis)] = true;
  }
  for (const FusionNode& node : program.nodes) {
    if (node.kind != FusionNode::Kind::kRead) continue;
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
  for (GroupRead& read : group.reads) {
    read.vector = read.strides.back() == 1;
    for (size_t axis = 0; axis + 1 < read.strides.size(); ++axis)
      read.vector = read.vector && read.strides[axis] % group.width == 0;
  }
  if (!program.reductions.empty()) choose_chunks(group);
  if (!Writer(request, program, group).write()) return std::nullopt;
  return group;
}

}  // namespace paddle::cuda
