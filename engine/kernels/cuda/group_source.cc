#include "kernels/cuda/group_source.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "base/text.h"
#include "kernels/cuda/program.h"
#include "kernels/cuda/scalar_names.h"

namespace paddle::cuda {
namespace {

using cpu::FusionNode;
using cpu::FusionProgram;
using cpu::FusionReduction;

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

class Writer {
 public:
  Writer(const FusedRequest& request, const FusionProgram& program, Group& group,
         const GroupProduct* product)
      : request_(request), program_(program), group_(group), product_(product) {}

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
    if (product_)
      text = str(device_text("matmul"), text, "typedef ", product_->compute, " Product;\n");
    write_arguments(text);
    write_accumulators(text);
    text += body;
    if (product_)
      write_product_kernels(text);
    else if (program_.reductions.empty())
      write_element_kernels(text);
    else
      write_fold_kernels(text);
    const bool special = std::ranges::any_of(program_.nodes, [](const FusionNode& node) {
      return node.kind == FusionNode::Kind::kApply && is_special_function(node.step.name);
    });
    const bool complex = std::ranges::any_of(group_.read_types, is_complex) ||
                         std::ranges::any_of(request_.results, [](const Layout& result) {
                           return is_complex(result.dtype);
                         });
    group_.text =
        complex   ? program_text({"math", "scalar", "complex", "group"}, text)
        : special ? program_text({"math", "scalar", "special_functions", "special", "group"}, text)
                  : program_text({"math", "scalar", "group"}, text);
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
    return group_type(request_.results[static_cast<size_t>(result)].dtype);
  }

  void write_arguments(std::string& text) const {
    text += "struct Arguments {\n";
    for (size_t r = 0; r < group_.reads.size(); ++r)
      text += str("  const ", group_type(group_.read_types[r]), "* read", r, ";\n");
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
        str("template <int kWidth>\nPADDLE_DEVICE void elements(const Arguments& arguments, Index "
            "first, Accumulators* sums",
            product_ ? ", const Product* product" : "", ") {\n");
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
      if (read.operand == group_.product) {
        values[r] = "product[k]";
        continue;
      }
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
      const char* const type = group_type(node.type);
      if (!type) return false;
      text += str("    const ", type, " v", i, " = ");
      switch (node.kind) {
        case FusionNode::Kind::kRead:
          if (!group_type(group_.read_types[read])) return false;
          text += str("convert<", type, ">(", values[read++], ")");
          break;
        case FusionNode::Kind::kConvert:
          text += str("convert<", type, ">(v", node.inputs[0], ")");
          break;
        case FusionNode::Kind::kApply:
          if (!is_scalar_function(node.step.name)) return false;
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
  void write_partial_folds(std::string& text, std::string_view sums,
                           std::string_view arguments = "arguments") const {
    for (size_t k = 0; k < program_.reductions.size(); ++k)
      text += str("    ", sums, ".sum", k, " = ", fold_name(program_.reductions[k].call.reduction),
                  "()(", sums, ".sum", k, ", ", arguments, ".partial", k, "[at]);\n");
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

  /// A block computes a tile of the product, then the other members for it.
  void write_product_kernels(std::string& text) const {
    if (!program_.reductions.empty()) write_finish(text);
    text += str(R"(
struct ProductArguments {
  MatmulArguments product;
  Arguments group;
};
template <int kWidth>
PADDLE_DEVICE void finish_tile(const ProductArguments& arguments) {
  const MatmulArguments& product = arguments.product;
  const Arguments& group = arguments.group;
  MatmulTile tile;
  Product values[4][4];
  if (!sum_tile<)",
                product_->types, R"(>(product, tile, values)) return;
  Accumulators sums[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (tile.row + i >= product.m) continue;
    const Index first = (Index)((tile.batch * product.m + tile.row + i) * product.n + tile.column);
    if constexpr (kWidth == 4) {
      if (tile.column < product.n) elements<4>(group, first, sums, values[i]);
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j)
        if (tile.column + j < product.n) elements<1>(group, first + j, sums + j, values[i] + j);
    }
  }
)");
    if (!program_.reductions.empty()) write_product_folds(text);
    text += "}\nPADDLE_KERNEL(group_1, ProductArguments) { finish_tile<1>(arguments); }\n";
    if (group_.width > 1)
      text += "PADDLE_KERNEL(group_wide, ProductArguments) { finish_tile<4>(arguments); }\n";
  }

  /// The columns of a tile, then those of all tiles by the last block that has them.
  void write_product_folds(std::string& text) const {
    const auto fold_all = [&](std::string_view function, auto value_of) {
      for (size_t k = 0; k < program_.reductions.size(); ++k)
        text += str("  folded.sum", k, " = ", function, "(", value_of(k), ", ",
                    fold_name(program_.reductions[k].call.reduction), "());\n");
    };
    text += R"(  const int64_t column_tiles = (product.n + kTileColumns - 1) / kTileColumns;
  const int64_t column_tile = (int64_t)blockIdx.x % column_tiles;
  const int64_t chunk = tile.batch * (gridDim.x / column_tiles) + blockIdx.x / column_tiles;
  const int64_t column = column_tile * kTileColumns + threadIdx.x % kTileColumns;
  Accumulators folded;
)";
    fold_all("fold_tile", [](size_t k) {
      return str("sums[0].sum", k, ", sums[1].sum", k, ", sums[2].sum", k, ", sums[3].sum", k);
    });
    text += R"(  if (threadIdx.x < kTileColumns && column < product.n)
    store_folded(group, (Index)column, (Index)chunk, folded);
)";
    if (group_.chunks == 1) return;
    text += R"(  if (!is_last_block(group.counters + column_tile, (uint32_t)group.chunks)) return;
  folded = Accumulators();
  for (int64_t other = threadIdx.x / kTileColumns; other < group.chunks && column < product.n;
       other += kBlockThreads / kTileColumns) {
    const int64_t at = other * group.results + column;
)";
    write_partial_folds(text, "folded", "group");
    text += "  }\n";
    fold_all("fold_parts", [](size_t k) { return str("folded.sum", k); });
    text += R"(  if (threadIdx.x < kTileColumns && column < product.n)
    store_result(group, (Index)column, folded);
)";
  }

  const FusedRequest& request_;
  const FusionProgram& program_;
  Group& group_;
  const GroupProduct* product_;
  std::vector<std::string> accumulators_;
};

}  // namespace

bool write_group(const FusedRequest& request, const FusionProgram& program, Group& group,
                 const GroupProduct* product) {
  return Writer(request, program, group, product).write();
}

}  // namespace paddle::cuda
