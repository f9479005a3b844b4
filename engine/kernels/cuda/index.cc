#include "kernels/cuda/index.h"

#include <algorithm>
#include <array>

#include "kernels/common/rows.h"
#include "kernels/cuda/errors.h"
#include "kernels/cuda/prepare.h"
#include "ops/generated/indexing.h"
#include "ops/generated/reduce.h"
#include "ops/generated/sparse.h"

namespace paddle::cuda {
namespace {

constexpr size_t kIndexAxes = 8;

/// As in device/index.cuh.
struct IndexArguments {
  const void *x, *index, *values;
  void *out, *counts;
  int64_t count, lines, length, inner;
  int64_t size, step;
  int64_t index_step;
  int axes, depth;
  int64_t shape[kIndexAxes], x_stride[kIndexAxes], index_stride[kIndexAxes];
  double alpha;
  int include_self;
  CUdeviceptr error;
  int64_t site[kIndexAxes];
};

std::shared_ptr<Program> index_program(const KernelRequest& request, const std::string& kernels) {
  return start_program(request, number_text(request, "index", kernels));
}

std::string index_text(std::string_view name, const std::string& call) {
  return entry_text(name, "IndexArguments", call);
}

Entry index_entry(const KernelRequest& request, const std::string& call) {
  return {index_program(request, index_text("index", call)), "index"};
}

/// The messages for indices out of range, of one indexed axis after the other.
class IndexErrors {
 public:
  IndexErrors(std::string_view op, std::span<const int64_t> sizes) {
    for (const int64_t size : sizes)
      sites_.push_back(std::make_shared<ErrorSite>(
          DataMessage{str(op, ": index "), str(" is out of range for ", size, " elements")}));
  }
  void set(IndexArguments& arguments, const RunContext& context) const {
    for (size_t i = 0; i < sites_.size(); ++i) {
      const ErrorTarget target = sites_[i]->target(context.stream, context.location);
      arguments.error = target.record;
      arguments.site[i] = target.site;
    }
  }

 private:
  std::vector<std::shared_ptr<ErrorSite>> sites_;
};

/// A kernel that reads x and indices and writes one result.
std::unique_ptr<Kernel> gather_kernel(const Entry& entry, const IndexArguments& base,
                                      IndexErrors errors) {
  return make_kernel(
      [=, errors = std::move(errors)](const RunContext& context, void* const* operands,
                                      void* const* results) {
        IndexArguments arguments = base;
        arguments.x = operands[0];
        arguments.index = operands[1];
        arguments.out = results[0];
        errors.set(arguments, context);
        entry.launch(context.stream, element_blocks(base.count), &arguments);
      },
      0, "cuda:index");
}

/// Strides of an index along one axis of x; `without` leaves the indexed axis out.
std::optional<IndexArguments> along_axis(const Layout& x, const Layout& index, int64_t given,
                                         bool without) {
  const size_t rank = x.shape.size();
  IndexArguments out{};
  out.size = out.step = out.index_step = out.length = out.lines = 1;
  if (rank == 0) return out;
  const size_t axis = static_cast<size_t>(given < 0 ? given + static_cast<int64_t>(rank) : given);
  const Dims x_strides = contiguous_strides(x.shape);
  const Dims index_strides = contiguous_strides(index.shape);
  out.size = x.shape[axis];
  out.step = x_strides[axis];
  out.index_step = index_strides[axis];
  out.length = index.shape[axis];
  for (size_t i = 0; i < rank; ++i) {
    if (i == axis && without) continue;
    if (out.axes == static_cast<int>(kIndexAxes)) return std::nullopt;
    const auto at = static_cast<size_t>(out.axes++);
    out.shape[at] = index.shape[i];
    out.x_stride[at] = i == axis ? 0 : x_strides[i];
    out.index_stride[at] = index_strides[i];
    if (i != axis) out.lines *= index.shape[i];
  }
  return out;
}

size_t bytes_of(const Layout& layout) {
  return static_cast<size_t>(layout.size() * item_size(layout.dtype));
}

}  // namespace

std::unique_ptr<Kernel> prepare_gather_along(const KernelRequest& request) {
  const Layout &x = request.operands[0], &index = request.operands[1];
  const char* const item = unsigned_type(x.dtype);
  if (!item || !are_contiguous(request) || !is_index(index.dtype)) return nullptr;
  auto base = along_axis(x, index, GatherAlongAttrs(request.attrs).axis, false);
  if (!base || x.size() == 0) return nullptr;
  base->count = request.results[0].size();
  if (base->count == 0) return nothing_to_do();
  return gather_kernel(
      index_entry(request, str("gather_along<", device_type(index.dtype), ", ", item, ">")), *base,
      IndexErrors(request.op.name(), std::array{base->size}));
}

std::unique_ptr<Kernel> prepare_index_select(const KernelRequest& request) {
  const Layout &x = request.operands[0], &index = request.operands[1];
  const char* const item = unsigned_type(x.dtype);
  if (!item || !are_contiguous(request) || !is_index(index.dtype) || x.shape.empty())
    return nullptr;
  if (index.size() == 0) return nothing_to_do();
  if (x.size() == 0) return nullptr;  // all indices are errors
  const cpu::Rows rows = cpu::Rows::of(x.shape, IndexSelectAttrs(request.attrs).axis);
  IndexArguments base{};
  base.count = request.results[0].size();
  base.length = index.size();
  base.size = rows.length;
  base.inner = rows.inner;
  if (base.count == 0) return nothing_to_do();
  return gather_kernel(
      index_entry(request, str("select_slices<", device_type(index.dtype), ", ", item, ">")), base,
      IndexErrors(request.op.name(), std::array{base.size}));
}

namespace {

/// Coordinates along the last axis of an index; none where there are too many.
std::optional<IndexArguments> coordinates_of(const Layout& x, const Layout& index) {
  IndexArguments out{};
  const auto depth = static_cast<size_t>(index.shape.back());
  if (depth > kIndexAxes || x.size() == 0) return std::nullopt;
  out.depth = static_cast<int>(depth);
  const Dims sizes(x.shape.begin(), x.shape.begin() + static_cast<ptrdiff_t>(depth));
  const Dims strides = contiguous_strides(sizes);
  for (size_t i = 0; i < depth; ++i) {
    out.shape[i] = sizes[i];
    out.x_stride[i] = strides[i];
  }
  out.inner = 1;
  for (size_t i = depth; i < x.shape.size(); ++i) out.inner *= x.shape[i];
  out.length = element_count(std::span<const int64_t>(index.shape).first(index.shape.size() - 1));
  return out;
}

IndexErrors coordinate_errors(const KernelRequest& request, const IndexArguments& base) {
  return {request.op.name(), std::span<const int64_t>(base.shape, static_cast<size_t>(base.depth))};
}

}  // namespace

std::unique_ptr<Kernel> prepare_gather_nd(const KernelRequest& request) {
  const Layout &x = request.operands[0], &index = request.operands[1];
  const char* const item = unsigned_type(x.dtype);
  if (!item || !are_contiguous(request) || !is_index(index.dtype) || index.shape.empty())
    return nullptr;
  auto base = coordinates_of(x, index);
  if (!base) return nullptr;
  base->count = request.results[0].size();
  if (base->count == 0) return nothing_to_do();
  return gather_kernel(
      index_entry(request, str("gather_coordinates<", device_type(index.dtype), ", ", item, ">")),
      *base, coordinate_errors(request, *base));
}

std::unique_ptr<Kernel> prepare_scatter_along(const KernelRequest& request) {
  const ScatterAlongAttrs attrs(request.attrs);
  const Layout &x = request.operands[0], &index = request.operands[1];
  if (!are_numbers(request) || !is_index(index.dtype) || x.dtype == DType::kBool) return nullptr;
  auto base = along_axis(x, index, attrs.axis, true);
  if (!base || x.size() == 0) return nullptr;
  base->include_self = attrs.include_self ? 1 : 0;
  base->count = x.size();
  const bool is_mean = attrs.reduce == "mean", counts = is_mean || !attrs.include_self;
  const char* const combine = attrs.reduce == "assign" ? "CombineAssign"
                              : attrs.reduce == "mul"  ? "CombineMul"
                              : attrs.reduce == "amin" ? "CombineMin"
                              : attrs.reduce == "amax" ? "CombineMax"
                                                       : "CombineAdd";
  const char* const type = group_type(x.dtype);
  const auto program = index_program(
      request, index_text("scatter", str("scatter_along<", device_type(index.dtype), ", ", type,
                                         ", ", combine, ", ", counts ? "true" : "false", ">")) +
                   (counts ? index_text("begin", "begin_counts") +
                                 index_text("divide", str("divide_by_counts<", type, ">"))
                           : ""));
  const Entry scatter(program, "scatter"), begin(program, "begin"), divide(program, "divide");
  const IndexErrors errors(request.op.name(), std::array{base->size});
  return make_kernel(
      [=, base = *base, device = request.target.device, bytes = bytes_of(x),
       indexed = index.size()](const RunContext& context, void* const* operands,
                               void* const* results) {
        copy_on_device(device, context.stream, results[0], operands[0], bytes);
        if (indexed == 0) return;
        IndexArguments arguments = base;
        arguments.index = operands[1];
        arguments.values = operands[2];
        arguments.out = results[0];
        arguments.counts = context.scratch;
        errors.set(arguments, context);
        if (counts) begin.launch(context.stream, element_blocks(base.count), &arguments);
        scatter.launch(context.stream, element_blocks(base.lines), &arguments);
        if (is_mean) divide.launch(context.stream, element_blocks(base.count), &arguments);
      },
      counts ? static_cast<size_t>(x.size()) * sizeof(int32_t) : 0, "cuda:scatter");
}

std::unique_ptr<Kernel> prepare_index_add(const KernelRequest& request) {
  const IndexAddAttrs attrs(request.attrs);
  const Layout &x = request.operands[0], &index = request.operands[1];
  if (!are_numbers(request) || !is_index(index.dtype) || x.dtype == DType::kBool ||
      x.shape.empty() || x.size() == 0)
    return nullptr;
  const cpu::Rows rows = cpu::Rows::of(x.shape, attrs.axis);
  IndexArguments base{};
  base.length = index.size();
  base.size = rows.length;
  base.inner = rows.inner;
  base.lines = rows.outer * rows.inner;
  base.alpha = attrs.alpha;
  const char* const compute = is_complex(x.dtype) ? group_type(x.dtype) : compute_name(x.dtype);
  const Entry entry =
      index_entry(request, str("add_slices<", device_type(index.dtype), ", ", group_type(x.dtype),
                               ", ", compute ? compute : "uint64_t", ">"));
  const IndexErrors errors(request.op.name(), std::array{base.size});
  return make_kernel(
      [=, device = request.target.device, bytes = bytes_of(x)](
          const RunContext& context, void* const* operands, void* const* results) {
        copy_on_device(device, context.stream, results[0], operands[0], bytes);
        if (base.length == 0) return;
        IndexArguments arguments = base;
        arguments.index = operands[1];
        arguments.values = operands[2];
        arguments.out = results[0];
        errors.set(arguments, context);
        entry.launch(context.stream, element_blocks(base.lines), &arguments);
      },
      0, "cuda:scatter");
}

std::unique_ptr<Kernel> prepare_scatter_nd(const KernelRequest& request) {
  const Layout &x = request.operands[0], &index = request.operands[1];
  if (!are_numbers(request) || !is_index(index.dtype) || x.dtype == DType::kBool ||
      index.shape.empty())
    return nullptr;
  const auto base = coordinates_of(x, index);
  if (!base) return nullptr;
  const bool adds = request.op.name() == "scatter_nd_add";
  const Entry entry = index_entry(
      request, str("scatter_coordinates<", device_type(index.dtype), ", ", group_type(x.dtype),
                   ", ", adds ? "CombineAdd" : "CombineAssign", ">"));
  const IndexErrors errors = coordinate_errors(request, *base);
  return make_kernel(
      [=, base = *base, device = request.target.device, bytes = bytes_of(x)](
          const RunContext& context, void* const* operands, void* const* results) {
        copy_on_device(device, context.stream, results[0], operands[0], bytes);
        if (base.length == 0) return;
        IndexArguments arguments = base;
        arguments.index = operands[1];
        arguments.values = operands[2];
        arguments.out = results[0];
        errors.set(arguments, context);
        entry.launch(context.stream, element_blocks(base.inner), &arguments);
      },
      0, "cuda:scatter");
}

std::unique_ptr<Kernel> prepare_one_hot(const KernelRequest& request) {
  const Layout &index = request.operands[0], &result = request.results[0];
  if (!are_plain(request) || !is_index(index.dtype) || result.dtype != DType::kF32) return nullptr;
  IndexArguments base{};
  base.count = result.size();
  base.size = result.shape.back();
  if (base.count == 0) return nullptr;
  const Entry entry = index_entry(request, str("one_hot<", device_type(index.dtype), ">"));
  const auto error = std::make_shared<ErrorSite>(
      DataMessage{"one_hot: index ", str(" is outside of [0, ", base.size, ")")});
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        IndexArguments arguments = base;
        arguments.index = operands[0];
        arguments.out = results[0];
        const ErrorTarget target = error->target(context.stream, context.location);
        arguments.error = target.record;
        arguments.site[0] = target.site;
        entry.launch(context.stream, element_blocks(base.count), &arguments);
      },
      0, "cuda:index");
}

std::unique_ptr<Kernel> prepare_sparse_linear_index(const KernelRequest& request) {
  const auto& sizes = SparseLinearIndexAttrs(request.attrs).shape;
  if (!are_plain(request) || sizes.size() > kIndexAxes) return nullptr;
  IndexArguments base{};
  base.count = request.results[0].size();
  std::vector<std::shared_ptr<ErrorSite>> errors;
  Dims shape;
  for (const Dim& size : sizes) {
    shape.push_back(size.value());
    base.shape[base.axes] = shape.back();
    errors.push_back(std::make_shared<ErrorSite>(
        DataMessage{"the sparse index ",
                    str(" is out of range for axis ", base.axes++, " of size ", shape.back())}));
  }
  element_count(std::span<const int64_t>(shape));  // rejects what 64 bits cannot count
  if (base.count == 0) return nothing_to_do();
  const Entry entry = index_entry(request, "linear_index");
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        IndexArguments arguments = base;
        arguments.index = operands[0];
        arguments.out = results[0];
        for (size_t i = 0; i < errors.size(); ++i) {
          const ErrorTarget target = errors[i]->target(context.stream, context.location);
          arguments.error = target.record;
          arguments.site[i] = target.site;
        }
        entry.launch(context.stream, element_blocks(base.count), &arguments);
      },
      0, "cuda:index");
}

namespace {

/// Rows along an axis, or the flattened tensor as one row.
IndexArguments rows_of(const Layout& x, const std::optional<int64_t>& axis) {
  const cpu::Rows rows = axis ? cpu::Rows::of(x.shape, *axis) : cpu::Rows::of({x.size()}, 0);
  IndexArguments out{};
  out.lines = rows.count();
  out.length = rows.length;
  out.inner = rows.inner;
  return out;
}

/// A kernel of rows: a block for each where elements are neighbors and many, else a thread.
std::unique_ptr<Kernel> row_kernel(const KernelRequest& request, const IndexArguments& base,
                                   const std::string& types, const char* name) {
  constexpr int64_t kLongRow = 64;
  const bool by_block = base.inner == 1 && base.length >= kLongRow;
  const Entry entry = index_entry(request, types + (by_block ? ", true>" : ", false>"));
  const int64_t blocks = by_block ? task_blocks(base.lines) : element_blocks(base.lines);
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        IndexArguments arguments = base;
        arguments.x = operands[0];
        arguments.out = results[0];
        entry.launch(context.stream, blocks, &arguments);
      },
      0, name);
}

}  // namespace

std::unique_ptr<Kernel> prepare_arg_extremum(const KernelRequest& request) {
  const Layout &x = request.operands[0], &result = request.results[0];
  if (!are_plain(request) || !device_type(result.dtype)) return nullptr;
  if (result.size() == 0) return nothing_to_do();
  if (x.size() == 0) return nullptr;
  return row_kernel(request, rows_of(x, ArgmaxAttrs(request.attrs).axis),
                    str("extremum_places<", device_type(x.dtype), ", ", device_type(result.dtype),
                        ", ", request.op.name() == "argmax" ? "true" : "false"),
                    "cuda:extremum");
}

std::unique_ptr<Kernel> prepare_running_fold(const KernelRequest& request) {
  const Layout &x = request.operands[0], &result = request.results[0];
  if (!are_numbers(request) || !group_type(result.dtype) || result.dtype == DType::kBool)
    return nullptr;
  if (result.size() == 0) return nothing_to_do();
  const bool sums = request.op.name() == "cumsum";
  const auto axis = sums ? CumsumAttrs(request.attrs).axis : CumprodAttrs(request.attrs).dim;
  return row_kernel(request, rows_of(x, axis),
                    str("running_folds<", group_type(x.dtype), ", ",
                        is_complex(result.dtype) ? "c128"
                        : is_float(result.dtype) ? "double"
                                                 : "uint64_t",
                        ", ", group_type(result.dtype), ", ", sums ? "FoldSum" : "FoldProd"),
                    "cuda:scan");
}

namespace {

/// A kernel of one thread per row.
std::unique_ptr<Kernel> line_kernel(const KernelRequest& request, const IndexArguments& base,
                                    const std::string& call) {
  const Entry entry = index_entry(request, call);
  const bool has_places = request.results.size() > 1;
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        IndexArguments arguments = base;
        arguments.x = operands[0];
        arguments.out = results[0];
        arguments.counts = has_places ? results[1] : nullptr;
        entry.launch(context.stream, element_blocks(base.lines), &arguments);
      },
      0, "cuda:scan");
}

}  // namespace

std::unique_ptr<Kernel> prepare_running_extremum(const KernelRequest& request) {
  const Layout &x = request.operands[0], &places = request.results[1];
  if (!are_plain(request) || !places.present || !is_index(places.dtype)) return nullptr;
  if (x.size() == 0) return nothing_to_do();
  return line_kernel(request, rows_of(x, CummaxAttrs(request.attrs).axis),
                     str("running_extrema<", device_type(x.dtype), ", ", device_type(places.dtype),
                         ", ", request.op.name() == "cummax" ? "true" : "false", ">"));
}

std::unique_ptr<Kernel> prepare_logcumsumexp(const KernelRequest& request) {
  const Layout &x = request.operands[0], &result = request.results[0];
  if (!are_plain(request) || !device_type(result.dtype) || !is_float(result.dtype)) return nullptr;
  if (x.size() == 0) return nothing_to_do();
  return line_kernel(
      request, rows_of(x, LogcumsumexpAttrs(request.attrs).axis),
      str("running_log_sums<", device_type(x.dtype), ", ", device_type(result.dtype), ">"));
}

}  // namespace paddle::cuda
