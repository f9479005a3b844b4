// Rows of tables by index, and the gradients of tables.

#include <algorithm>

#include "kernels/cuda/errors.h"
#include "kernels/cuda/prepare.h"
#include "kernels/cuda/tables.h"
#include "ops/generated/nn.h"
#include "paddle/plugin/device.h"

namespace paddle::cuda {
namespace {

/// As in device/gather.cuh.
struct GatherArguments {
  const void *indices, *table;
  void* out;
  void* used;
  int64_t count, rows, width, padding;
  CUdeviceptr error;
  int64_t site;
};

std::shared_ptr<ErrorSite> row_error(int64_t rows) {
  return std::make_shared<ErrorSite>(
      DataMessage{"embedding: index ", str(" is outside of the table's ", rows, " rows")});
}

void set_row_error(GatherArguments& arguments, const RunContext& context, ErrorSite& error) {
  const ErrorTarget target = error.target(context.stream, context.location);
  arguments.error = target.record;
  arguments.site = target.site;
}

int64_t padding_row(std::optional<int64_t> index, int64_t rows) {
  if (!index) return INT64_MIN;
  return *index < 0 ? *index + rows : *index;
}

std::shared_ptr<Program> gather_program(const KernelRequest& request, const std::string& kernels) {
  return start_program(request, program_text({"gather"}, kernels));
}

std::string gather_entry(std::string_view name, const std::string& call) {
  return entry_text(name, "GatherArguments", call);
}

}  // namespace

std::unique_ptr<Kernel> prepare_embedding(const KernelRequest& request) {
  const Layout &indices = request.operands[0], &table = request.operands[1];
  const char* const item = unsigned_type(table.dtype);
  if (!is_index(indices.dtype) || !item || !indices.is_contiguous() || !table.is_contiguous())
    return nullptr;
  GatherArguments base{};
  base.count = indices.size();
  base.rows = table.shape[0];
  base.width = table.shape[1];
  base.padding = padding_row(EmbeddingAttrs(request.attrs).padding_idx, base.rows);
  if (base.count * base.width == 0) return nothing_to_do();
  if (base.rows == 0) return nullptr;
  const Entry entry(
      gather_program(request, gather_entry("gather", str("gather_rows<", device_type(indices.dtype),
                                                         ", ", item, ">"))),
      "gather");
  const auto error = row_error(base.rows);
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        GatherArguments arguments = base;
        arguments.indices = operands[0];
        arguments.table = operands[1];
        arguments.out = results[0];
        set_row_error(arguments, context, *error);
        entry.launch(context.stream, element_blocks(base.count * base.width), &arguments);
      },
      0, "cuda:gather");
}

std::unique_ptr<Kernel> prepare_embedding_grad(const KernelRequest& request) {
  const Layout &indices = request.operands[0], &grad = request.operands[1],
               &result = request.results[0];
  const char* const compute = compute_name(grad.dtype);
  if (!is_index(indices.dtype) || !compute || !indices.is_contiguous() || !grad.is_contiguous() ||
      result.dtype != grad.dtype)
    return nullptr;
  GatherArguments base{};
  base.count = indices.size();
  base.rows = result.shape[0];
  base.width = result.shape[1];
  base.padding = padding_row(EmbeddingGradAttrs(request.attrs).padding_idx, base.rows);
  if (result.size() == 0) return nothing_to_do();
  const char* const index = device_type(indices.dtype);
  const auto program =
      gather_program(request, gather_entry("mark", str("mark_rows<", index, ">")) +
                                  gather_entry("sum", str("sum_rows<", compute, ", ", index, ", ",
                                                          device_type(grad.dtype), ">")));
  const Entry mark(program, "mark"), sum(program, "sum");
  const auto error = row_error(base.rows);
  const Device device = request.target.device;
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        GatherArguments arguments = base;
        arguments.indices = operands[0];
        arguments.table = operands[1];
        arguments.out = results[0];
        arguments.used = context.scratch;
        set_row_error(arguments, context, *error);
        check_device(device, device_api(device).fill(context.stream, context.scratch, 0,
                                                     static_cast<size_t>(base.rows)));
        if (base.count > 0) mark.launch(context.stream, element_blocks(base.count), &arguments);
        sum.launch(context.stream, std::min<int64_t>(base.rows, int64_t{1} << 20), &arguments);
      },
      static_cast<size_t>(base.rows), "cuda:gather");
}

}  // namespace paddle::cuda
