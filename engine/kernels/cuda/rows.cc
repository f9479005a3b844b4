#include "kernels/cuda/rows.h"

#include <algorithm>

#include "kernels/common/rows.h"
#include "kernels/cuda/errors.h"
#include "kernels/cuda/prepare.h"
#include "ops/generated/loss.h"
#include "ops/generated/nn.h"
#include "paddle/plugin/device.h"

namespace paddle::cuda {
namespace {

/// As in device/rows.cuh.
struct RowArguments {
  const void *a, *b, *c, *d, *e;
  void *out, *out1, *out2;
  void* partial;
  CUdeviceptr counters;
  int64_t rows, length, inner, chunks;
  double number;
  int64_t ignored;
  CUdeviceptr error;
  int64_t site;
};

/// A kernel of device/rows.cuh: `kernels` defines its entries.
std::shared_ptr<Program> row_program(const KernelRequest& request, std::string_view kernels) {
  return start_program(request, program_text({"math", "scalar", "rows"}, kernels));
}

RowArguments arguments_of(int64_t rows, int64_t length, int64_t inner) {
  RowArguments out{};
  out.rows = rows;
  out.length = length;
  out.inner = inner;
  return out;
}

Entry row_entry(const KernelRequest& request, const std::string& call) {
  return {row_program(request, entry_text("rows", "RowArguments", call)), "rows"};
}

/// Whether values of both types are summed in the same one.
bool has_same_sums(DType a, DType b) { return computed_as(a) == computed_as(b); }

const char* type_or(const Layout& layout, const char* otherwise) {
  return layout.present ? device_type(layout.dtype) : otherwise;
}

std::shared_ptr<ErrorSite> label_error(int64_t classes) {
  return std::make_shared<ErrorSite>(
      DataMessage{"cross_entropy: label ", str(" is outside of [0, ", classes, ")")});
}

void set_error(RowArguments& arguments, const RunContext& context, ErrorSite& error) {
  const ErrorTarget target = error.target(context.stream, context.location);
  arguments.error = target.record;
  arguments.site = target.site;
}

}  // namespace

std::unique_ptr<Kernel> prepare_softmax(const KernelRequest& request) {
  const Layout &x = request.operands[0], &result = request.results[0];
  const char* const compute = compute_name(result.dtype);
  if (!compute || !device_type(x.dtype) || !is_plain(x)) return nullptr;
  const cpu::Rows rows = cpu::Rows::of(x.shape, SoftmaxAttrs(request.attrs).axis);
  if (result.size() == 0) return nothing_to_do();
  const bool log = request.op.name() == "log_softmax";
  const Entry entry =
      row_entry(request, str("softmax_rows<", compute, ", ", device_type(x.dtype), ", ",
                             device_type(result.dtype), ", ", log ? "true" : "false", ">"));
  RowArguments base = arguments_of(rows.count(), rows.length, rows.inner);
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        RowArguments arguments = base;
        arguments.a = operands[0];
        arguments.out = results[0];
        entry.launch(context.stream, task_blocks(base.rows), &arguments);
      },
      0, "cuda:rows");
}

std::unique_ptr<Kernel> prepare_softmax_cross_entropy(const KernelRequest& request) {
  const SoftmaxCrossEntropyAttrs attrs(request.attrs);
  const Layout &logits = request.operands[0], &labels = request.operands[1];
  const char* const compute = compute_name(logits.dtype);
  const char* const loss = device_type(request.results[0].dtype);
  const char* const sum = device_type(request.results[1].dtype);
  if (!compute || !is_index(labels.dtype) || !loss || !sum || !is_plain(logits) ||
      !is_plain(labels))
    return nullptr;
  const cpu::Rows rows = cpu::Rows::of(logits.shape, attrs.axis);
  if (rows.count() == 0) return nothing_to_do();
  const Entry entry =
      row_entry(request, str("cross_entropy_rows<", compute, ", ", device_type(logits.dtype), ", ",
                             device_type(labels.dtype), ", ", loss, ", ", sum, ">"));
  RowArguments base = arguments_of(rows.count(), rows.length, rows.inner);
  base.ignored = attrs.ignore_index;
  const auto error = label_error(base.length);
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        RowArguments arguments = base;
        arguments.a = operands[0];
        arguments.b = operands[1];
        arguments.out = results[0];
        arguments.out1 = results[1];
        set_error(arguments, context, *error);
        entry.launch(context.stream, task_blocks(base.rows), &arguments);
      },
      0, "cuda:rows");
}

std::unique_ptr<Kernel> prepare_softmax_cross_entropy_grad(const KernelRequest& request) {
  const SoftmaxCrossEntropyGradAttrs attrs(request.attrs);
  const Layout &grad = request.operands[0], &logits = request.operands[1],
               &labels = request.operands[2], &sums = request.operands[3];
  const char* const compute = compute_name(logits.dtype);
  const char* const to = compute_name(request.results[0].dtype);
  if (!compute || !is_index(labels.dtype) || !device_type(grad.dtype) || !device_type(sums.dtype) ||
      !to || !has_same_sums(logits.dtype, request.results[0].dtype) || !is_plain(grad) ||
      !is_plain(logits) || !is_plain(labels) || !is_plain(sums))
    return nullptr;
  const cpu::Rows rows = cpu::Rows::of(logits.shape, attrs.axis);
  if (request.results[0].size() == 0) return nothing_to_do();
  const Entry entry = row_entry(
      request, str("cross_entropy_grad_rows<", compute, ", ", device_type(logits.dtype), ", ",
                   device_type(request.results[0].dtype), ", ", device_type(labels.dtype), ", ",
                   device_type(grad.dtype), ", ", device_type(sums.dtype), ">"));
  RowArguments base = arguments_of(rows.count(), rows.length, rows.inner);
  base.ignored = attrs.ignore_index;
  const auto error = label_error(base.length);
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        RowArguments arguments = base;
        arguments.a = operands[0];
        arguments.b = operands[1];
        arguments.c = operands[2];
        arguments.d = operands[3];
        arguments.out = results[0];
        set_error(arguments, context, *error);
        entry.launch(context.stream, task_blocks(base.rows), &arguments);
      },
      0, "cuda:rows");
}

namespace {

std::unique_ptr<Kernel> prepare_normalize(const KernelRequest& request, int64_t rows,
                                          double epsilon, bool centered) {
  const Layout& x = request.operands[0];
  const char* const compute = compute_name(x.dtype);
  const char* const out = compute_name(request.results[0].dtype);
  if (!compute || !out || !has_same_sums(x.dtype, request.results[0].dtype) || !is_plain(x))
    return nullptr;
  const bool has_bias = centered && request.operands.size() > 2;
  const char* const weight =
      request.operands.size() > 1 ? type_or(request.operands[1], compute) : compute;
  const char* const bias = has_bias ? type_or(request.operands[2], compute) : compute;
  if (!weight || !bias) return nullptr;
  for (size_t i = 1; i < request.results.size(); ++i)
    if (request.results[i].present && request.results[i].dtype != computed_as(x.dtype))
      return nullptr;
  if (rows == 0 || x.size() == 0) return nothing_to_do();
  const Entry entry =
      row_entry(request, str("normalize_rows<", compute, ", ", device_type(x.dtype), ", ",
                             device_type(request.results[0].dtype), ", ", weight, ", ", bias, ", ",
                             centered ? "true" : "false", ">"));
  RowArguments base = arguments_of(rows, x.size() / rows, 1);
  base.number = epsilon;
  const size_t operand_count = request.operands.size(), result_count = request.results.size();
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        RowArguments arguments = base;
        arguments.a = operands[0];
        if (operand_count > 1) arguments.b = operands[1];
        if (has_bias) arguments.c = operands[2];
        arguments.out = results[0];
        if (result_count > 1) arguments.out1 = results[1];
        if (result_count > 2) arguments.out2 = results[2];
        entry.launch(context.stream, task_blocks(base.rows), &arguments);
      },
      0, "cuda:rows");
}

}  // namespace

std::unique_ptr<Kernel> prepare_layer_norm(const KernelRequest& request) {
  return prepare_normalize(request, request.results[1].size(),
                           LayerNormAttrs(request.attrs).epsilon, true);
}

std::unique_ptr<Kernel> prepare_rms_norm(const KernelRequest& request) {
  const RmsNormAttrs attrs(request.attrs);
  int64_t n = 1;
  for (const int64_t size : attrs.normalized_shape.as_ints()) n *= size;
  return prepare_normalize(request, n == 0 ? 0 : request.operands[0].size() / n, attrs.eps, false);
}

std::unique_ptr<Kernel> prepare_layer_norm_grad(const KernelRequest& request) {
  const Layout &grad = request.operands[0], &x = request.operands[1], &weight = request.operands[4];
  const char* const compute = compute_name(x.dtype);
  if (!compute || !device_type(grad.dtype) || !type_or(weight, compute) || !is_plain(grad) ||
      !is_plain(x))
    return nullptr;
  for (const Layout& result : request.results)
    if (!compute_name(result.dtype) || !has_same_sums(x.dtype, result.dtype)) return nullptr;
  for (const size_t i : {2, 3})
    if (request.operands[i].dtype != computed_as(x.dtype)) return nullptr;
  const int64_t rows = request.operands[2].size();
  if (rows == 0 || x.size() == 0) return nullptr;
  const std::string types = str(compute, ", ", device_type(x.dtype), ", ", device_type(grad.dtype));
  const auto to = [&](size_t result) { return device_type(request.results[result].dtype); };
  const auto program = row_program(
      request,
      str("PADDLE_KERNEL(rows, RowArguments) { normalize_grad_rows<", types, ", ",
          type_or(weight, compute), ", ", to(0),
          ">(arguments); }\nPADDLE_KERNEL(columns, RowArguments) { normalize_grad_columns<", types,
          ", ", to(1), ", ", to(2), ">(arguments); }\n"));
  RowArguments base = arguments_of(rows, x.size() / rows, 1);
  const int64_t column_blocks = (base.length + 31) / 32;
  base.chunks = column_blocks > kStreamCounters ? 1 : std::clamp<int64_t>(rows / 64, 1, 64);
  const Entry entry(program, "rows"), columns(program, "columns");
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        RowArguments arguments = base;
        arguments.a = operands[0];
        arguments.b = operands[1];
        arguments.c = operands[2];
        arguments.d = operands[3];
        arguments.e = operands[4];
        arguments.out = results[0];
        arguments.out1 = results[1];
        arguments.out2 = results[2];
        arguments.partial = context.scratch;
        entry.launch(context.stream, task_blocks(base.rows), &arguments);
        arguments.counters = context.stream->counters;
        columns.launch(context.stream, column_blocks, base.chunks, &arguments);
      },
      static_cast<size_t>(base.chunks * 2 * base.length) * sizeof(double), "cuda:rows");
}

std::unique_ptr<Kernel> prepare_sum_of_squares(const KernelRequest& request) {
  const Layout& x = request.operands[0];
  if (request.operands[1].present || !compute_name(x.dtype) || !is_plain(x)) return nullptr;
  const Entry entry = row_entry(request, str("sum_squares<", device_type(x.dtype), ">"));
  RowArguments base{};
  constexpr int64_t kMinChunk = 4096, kMaxChunks = 4096;
  base.rows = x.size();
  base.length = std::max(kMinChunk, (x.size() + kMaxChunks - 1) / kMaxChunks);
  base.chunks = std::max<int64_t>(1, (x.size() + base.length - 1) / base.length);
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        RowArguments arguments = base;
        arguments.a = operands[0];
        arguments.out = results[0];
        arguments.partial = context.scratch;
        arguments.counters = context.stream->counters;
        entry.launch(context.stream, base.chunks, &arguments);
      },
      static_cast<size_t>(base.chunks) * sizeof(double), "cuda:rows");
}

namespace {

constexpr size_t kFiniteTensors = 64;

/// As in device/rows.cuh.
struct FiniteArguments {
  const void* x[kFiniteTensors];
  int64_t size[kFiniteTensors];
  void* out;
};

}  // namespace

std::unique_ptr<Kernel> prepare_all_finite(const KernelRequest& request) {
  /// Tensors of one type, by operand.
  struct Part {
    Entry entry;
    std::vector<size_t> operands;
    FiniteArguments arguments{};
    int64_t largest = 0;
  };
  std::vector<Part> parts;
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
    Entry entry;
    bool full = true;
    for (size_t i = 0; i < request.operands.size(); ++i) {
      const Layout& x = request.operands[i];
      if (!compute_name(x.dtype) || !is_plain(x)) return nullptr;
      if (x.dtype != type || x.size() == 0) continue;
      if (full) {
        entry = {
            start_program(
                request, program_text({"math", "scalar", "rows"},
                                      entry_text("find", "FiniteArguments",
                                                 str("find_not_finite<", device_type(type), ">")))),
            "find"};
        parts.push_back({entry, {}});
      }
      Part& part = parts.back();
      part.arguments.size[part.operands.size()] = x.size();
      part.largest = std::max(part.largest, x.size());
      part.operands.push_back(i);
      full = part.operands.size() == kFiniteTensors;
    }
  }
  return make_kernel(
      [=, device = request.target.device](const RunContext& context, void* const* operands,
                                          void* const* results) {
        check_device(device, device_api(device).fill(context.stream, results[0], 1, 1));
        for (const Part& part : parts) {
          FiniteArguments arguments = part.arguments;
          for (size_t i = 0; i < part.operands.size(); ++i)
            arguments.x[i] = operands[part.operands[i]];
          arguments.out = results[0];
          part.entry.launch(context.stream, element_blocks(part.largest),
                            static_cast<int64_t>(part.operands.size()), &arguments);
        }
      },
      0, "cuda:rows");
}

}  // namespace paddle::cuda
