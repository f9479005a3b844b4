#include "kernels/cuda/edges.h"

#include <algorithm>
#include <optional>

#include "kernels/cuda/errors.h"
#include "kernels/cuda/prepare.h"
#include "kernels/cuda/sorted.h"
#include "kernels/cuda/waiting.h"
#include "ops/generated/graph.h"
#include "ops/generated/transformer.h"
#include "paddle/plugin/device.h"

namespace paddle::cuda {
namespace {

/// As in device/edges.cuh.
struct EdgeArguments {
  const void *x, *y;
  const void *targets, *sources, *weights;
  const void *sorted, *order;
  void *out, *places;
  int64_t batch, rows, others, edges, groups, width;
  int64_t heads, each;
  CUdeviceptr error;
  int64_t target_site, source_site;
};

std::string edge_entry(std::string_view name, const std::string& call) {
  return entry_text(name, "EdgeArguments", call);
}

std::shared_ptr<Program> edge_program(const KernelRequest& request, const std::string& kernels) {
  return start_program(request, program_text({"edges"}, kernels));
}

using Site = std::shared_ptr<ErrorSite>;

Site range_error(std::string_view op, std::string_view name, int64_t count, std::string_view what) {
  return std::make_shared<ErrorSite>(
      DataMessage{str(op, ": ", name, " has "), str(", but there are ", count, " ", what)});
}

/// The messages of a launch; null: it has none for targets, or for sources.
struct EdgeErrors {
  Site targets, sources;
  void set(EdgeArguments& arguments, const RunContext& context) const {
    const auto set_site = [&](const Site& site, int64_t& to) {
      if (!site) return;
      const ErrorTarget target = site->target(context.stream, context.location);
      arguments.error = target.record;
      to = target.site;
    };
    set_site(targets, arguments.target_site);
    set_site(sources, arguments.source_site);
  }
};

/// The sizes of rows [batch..., rows, width].
void set_rows(EdgeArguments& arguments, const Layout& x) {
  arguments.rows = x.shape[x.shape.size() - 2];
  arguments.width = x.shape.back();
  arguments.batch = 1;
  for (size_t axis = 0; axis + 2 < x.shape.size(); ++axis) arguments.batch *= x.shape[axis];
}

/// The kernel that combines sorted edges of rows of type `x`.
Entry combine_entry(const KernelRequest& request, DType x, DType target, DType source,
                    std::string_view reduce) {
  const char* const compute = compute_name(x);
  const char* const type = device_type(x);
  const char* const combine = reduce == "max" ? "FoldMax" : reduce == "min" ? "FoldMin" : "FoldSum";
  const std::string call =
      str("combine_edges<", compute ? compute : type, ", ", type, ", ", device_type(target), ", ",
          device_type(source), ", ", combine, reduce == "mean" ? ", true>" : ", false>");
  return {edge_program(request, edge_entry("combine", call)), "combine"};
}

Entry check_entry(const KernelRequest& request, DType target, DType source) {
  return {edge_program(request, edge_entry("check", str("check_edges<", device_type(target), ", ",
                                                        device_type(source), ">"))),
          "check"};
}

/// A kernel that sorts edges by target, checks them and combines their rows. Without sources the
/// rows are those of the edges.
std::unique_ptr<Kernel> combine_kernel(const KernelRequest& request, const EdgeArguments& base,
                                       std::string_view reduce, const EdgeErrors& errors,
                                       int source_at, int weights_at) {
  const DType x = request.operands[0].dtype, target = request.operands[1].dtype;
  const DType source =
      source_at < 0 ? target : request.operands[static_cast<size_t>(source_at)].dtype;
  if (!is_index(target) || !is_index(source) || (base.rows == 0 && base.edges > 0)) return nullptr;
  const int64_t size = base.batch * base.groups * base.width;
  Scratch scratch;
  std::optional<Sorted> sorted;
  if (base.batch * base.edges > 0) {
    sorted.emplace(request, target, Dims{base.batch, base.edges}, 1, scratch);
    if (!*sorted) return nullptr;
  }
  const Entry check = check_entry(request, target, source);
  const Entry combine = combine_entry(request, x, target, source, reduce);
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        const auto operand = [&](int at) { return at < 0 ? nullptr : operands[at]; };
        EdgeArguments arguments = base;
        arguments.x = operands[0];
        arguments.targets = operands[1];
        arguments.sources = operand(source_at);
        arguments.weights = operand(weights_at);
        arguments.out = results[0];
        errors.set(arguments, context);
        if (sorted) {
          const Sorted::Places places = sorted->run(context, operands[1]);
          arguments.sorted = places.values;
          arguments.order = places.order;
          check.launch(context.stream, element_blocks(base.batch * base.edges), &arguments);
        }
        if (size > 0) combine.launch(context.stream, element_blocks(size), &arguments);
      },
      scratch.bytes(), "cuda:edges");
}

/// A kernel of rows at indices, operand 1, in range of base.groups.
std::unique_ptr<Kernel> take_kernel(const KernelRequest& request, const EdgeArguments& base,
                                    const Site& error) {
  const Layout &x = request.operands[0], &index = request.operands[1];
  const char* const item = unsigned_type(x.dtype);
  const int64_t size = request.results[0].size();
  if (!item || !are_contiguous(request) || !is_index(index.dtype)) return nullptr;
  if (x.size() == 0 && index.size() > 0) return nullptr;
  if (size == 0) return nothing_to_do();
  const Entry entry(
      edge_program(request, edge_entry("take", str("take_rows<", device_type(index.dtype), ", ",
                                                   item, ">"))),
      "take");
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        EdgeArguments arguments = base;
        arguments.x = operands[0];
        arguments.sources = operands[1];
        arguments.out = results[0];
        EdgeErrors{nullptr, error}.set(arguments, context);
        entry.launch(context.stream, element_blocks(size), &arguments);
      },
      0, "cuda:edges");
}

}  // namespace

std::unique_ptr<Kernel> prepare_graph_gather(const KernelRequest& request) {
  EdgeArguments base{};
  set_rows(base, request.operands[0]);
  base.edges = request.operands[1].shape.back();
  base.groups = base.rows;
  base.each = 1;
  return take_kernel(request, base, range_error("graph_gather", "index", base.rows, "nodes"));
}

std::unique_ptr<Kernel> prepare_graph_reduce(const KernelRequest& request) {
  const GraphReduceAttrs attrs(request.attrs);
  const auto present = [&](size_t i) {
    return request.operands.size() > i && request.operands[i].present;
  };
  if (!are_plain(request) || !compute_name(request.operands[0].dtype)) return nullptr;
  EdgeArguments base{};
  set_rows(base, request.operands[0]);
  base.edges = request.operands[1].shape.back();
  const Layout& out = request.results[0];
  base.groups = out.shape[out.shape.size() - 2];
  base.heads = present(3) ? request.operands[3].shape.back() : 1;
  if (base.heads == 0) return nullptr;
  base.each = std::max<int64_t>(1, base.width / base.heads);
  const EdgeErrors errors{range_error("graph_reduce", "targets", base.groups, "nodes"),
                          range_error("graph_reduce", "sources", base.rows, "nodes")};
  return combine_kernel(request, base, present(3) ? "sum" : attrs.reduce, errors,
                        present(2) ? 2 : -1, present(3) ? 3 : -1);
}

std::unique_ptr<Kernel> prepare_graph_dot(const KernelRequest& request) {
  const Layout &x = request.operands[0], &y = request.operands[1], &out = request.results[0];
  const DType source = request.operands[2].dtype, target = request.operands[3].dtype;
  const char* const compute = compute_name(x.dtype);
  if (!are_plain(request) || !compute || y.dtype != x.dtype || out.dtype != x.dtype ||
      !is_index(source) || !is_index(target))
    return nullptr;
  EdgeArguments base{};
  set_rows(base, x);
  base.others = y.shape[y.shape.size() - 2];
  base.edges = out.shape[out.shape.size() - 2];
  base.heads = out.shape.back();
  if (out.size() == 0) return nothing_to_do();
  if (base.rows == 0 || base.others == 0) return nullptr;
  base.each = base.width / base.heads;
  const EdgeErrors errors{range_error("graph_dot", "targets", base.others, "nodes"),
                          range_error("graph_dot", "sources", base.rows, "nodes")};
  const Entry entry(
      edge_program(
          request,
          edge_entry("products", str("edge_products<", compute, ", ", device_type(x.dtype), ", ",
                                     device_type(source), ", ", device_type(target), ">"))),
      "products");
  return make_kernel(
      [=, size = out.size()](const RunContext& context, void* const* operands,
                             void* const* results) {
        EdgeArguments arguments = base;
        arguments.x = operands[0];
        arguments.y = operands[1];
        arguments.sources = operands[2];
        arguments.targets = operands[3];
        arguments.out = results[0];
        errors.set(arguments, context);
        entry.launch(context.stream, element_blocks(size), &arguments);
      },
      0, "cuda:edges");
}

namespace {

/// Rows [rows, …] with an id each, int64.
EdgeArguments segments_of(const Layout& data) {
  EdgeArguments base{};
  base.batch = base.heads = base.each = base.width = 1;
  base.rows = base.edges = data.shape[0];
  for (size_t axis = 1; axis < data.shape.size(); ++axis) base.width *= data.shape[axis];
  return base;
}

std::string_view reduction_of(const KernelRequest& request) {
  return request.attrs[static_cast<size_t>(request.op.attr_index("reduce"))].as_string();
}

}  // namespace

std::unique_ptr<Kernel> prepare_segment_reduce(const KernelRequest& request) {
  if (!are_plain(request)) return nullptr;
  EdgeArguments base = segments_of(request.operands[0]);
  base.groups = request.results[0].shape[0];
  const EdgeErrors errors{
      std::make_shared<ErrorSite>(DataMessage{"segment_reduce: the id ",
                                              str(" is out of range for ", base.groups, " rows")}),
      nullptr};
  return combine_kernel(request, base, reduction_of(request), errors, -1, -1);
}

std::unique_ptr<Kernel> prepare_segment_pool(const KernelRequest& request) {
  constexpr int64_t kMaxSegments = int64_t{1} << 31;
  const Layout &data = request.operands[0], &ids = request.operands[1];
  if (!are_plain(request) || ids.dtype != DType::kI64) return nullptr;
  const EdgeArguments base = segments_of(data);
  Scratch scratch;
  std::optional<Sorted> sorted;
  if (base.edges > 0) {
    sorted.emplace(request, ids.dtype, Dims{base.edges}, 0, scratch);
    if (!*sorted) return nullptr;
  }
  const Entry combine =
      combine_entry(request, data.dtype, ids.dtype, ids.dtype, reduction_of(request));
  return waiting_kernel(
      [=, device = request.target.device, shape = data.shape](const RunContext& context,
                                                              void* const* operands, void* const*) {
        EdgeArguments arguments = base;
        arguments.x = operands[0];
        if (sorted) {
          const Sorted::Places places = sorted->run(context, operands[1]);
          arguments.sorted = places.values;
          arguments.order = places.order;
          const auto* const values = static_cast<const int64_t*>(places.values);
          int64_t least = 0, most = 0;
          read_back(context, device, &least, values, sizeof least);
          read_back(context, device, &most, values + base.edges - 1, sizeof most);
          if (least < 0 || most >= kMaxSegments)
            fail(ErrorCode::kData, "segment_pool: the id ", least < 0 ? least : most,
                 " is out of range");
          arguments.groups = most + 1;
        }
        Dims result = shape;
        result[0] = arguments.groups;
        arguments.out = context.allocator->allocate(0, result);
        const int64_t size = arguments.groups * base.width;
        if (size > 0) combine.launch(context.stream, element_blocks(size), &arguments);
      },
      scratch.bytes(), "cuda:edges");
}

std::unique_ptr<Kernel> prepare_expert_order(const KernelRequest& request) {
  const Layout& index = request.operands[0];
  EdgeArguments base{};
  base.batch = 1;
  base.edges = index.size();
  base.groups = ExpertOrderAttrs(request.attrs).count;
  if (!is_plain(index) || !is_index(index.dtype) || base.edges == 0 || base.groups == 0)
    return nullptr;
  Scratch scratch;
  const Sorted sorted(request, index.dtype, Dims{base.edges}, 0, scratch);
  if (!sorted) return nullptr;
  const Entry check = check_entry(request, index.dtype, index.dtype);
  const Entry count(edge_program(request, edge_entry("count", str("count_edges<",
                                                                  device_type(index.dtype), ">"))),
                    "count");
  const EdgeErrors errors{range_error("expert_order", "index", base.groups, "experts"), nullptr};
  return make_kernel(
      [=, device = request.target.device](const RunContext& context, void* const* operands,
                                          void* const* results) {
        EdgeArguments arguments = base;
        arguments.targets = operands[0];
        arguments.out = results[1];
        errors.set(arguments, context);
        const Sorted::Places places = sorted.run(context, operands[0]);
        arguments.sorted = places.values;
        check.launch(context.stream, element_blocks(base.edges), &arguments);
        copy_on_device(device, context.stream, results[0], places.order,
                       static_cast<size_t>(base.edges) * sizeof(int64_t));
        count.launch(context.stream, element_blocks(base.groups), &arguments);
      },
      scratch.bytes(), "cuda:edges");
}

std::unique_ptr<Kernel> prepare_expert_rows(const KernelRequest& request) {
  const Layout& x = request.operands[0];
  EdgeArguments base{};
  base.batch = 1;
  base.rows = x.shape[0];
  base.width = x.shape[1];
  base.edges = base.groups = request.operands[1].size();
  base.each = ExpertRowsAttrs(request.attrs).k;
  return take_kernel(request, base, range_error("expert_rows", "order", base.groups, "pairs"));
}

std::unique_ptr<Kernel> prepare_expert_sum(const KernelRequest& request) {
  const Layout &y = request.operands[0], &out = request.results[0];
  const char* const compute = compute_name(y.dtype);
  const bool weighted = request.operands.size() > 2 && request.operands[2].present;
  if (!are_plain(request) || !compute || out.size() == 0 || y.size() == 0) return nullptr;
  EdgeArguments base{};
  base.edges = y.shape[0];
  base.width = y.shape[1];
  base.groups = out.shape[0];
  base.each = base.edges / base.groups;
  const auto program = edge_program(
      request,
      edge_entry("invert", "invert_order") +
          edge_entry("sum", str("sum_choices<", compute, ", ", device_type(y.dtype), ">")));
  const Entry invert(program, "invert"), sum(program, "sum");
  const EdgeErrors errors{
      std::make_shared<ErrorSite>(DataMessage{"expert_sum: order has pair ", " twice"}),
      range_error("expert_sum", "order", base.edges, "pairs")};
  const size_t bytes = static_cast<size_t>(base.edges) * sizeof(int64_t);
  return make_kernel(
      [=, device = request.target.device, size = out.size()](
          const RunContext& context, void* const* operands, void* const* results) {
        EdgeArguments arguments = base;
        arguments.x = operands[0];
        arguments.order = operands[1];
        arguments.weights = weighted ? operands[2] : nullptr;
        arguments.places = context.scratch;
        arguments.out = results[0];
        errors.set(arguments, context);
        check_device(device, device_api(device).fill(context.stream, context.scratch, 0xff, bytes));
        invert.launch(context.stream, element_blocks(base.edges), &arguments);
        sum.launch(context.stream, element_blocks(size), &arguments);
      },
      bytes, "cuda:edges");
}

}  // namespace paddle::cuda
