#include "kernels/cuda/recurrent.h"

#include <algorithm>

#include "kernels/cuda/matmul.h"
#include "kernels/cuda/prepare.h"
#include "kernels/recurrent/scan.h"
#include "ops/generated/sequence.h"
#include "paddle/plugin/device.h"

namespace paddle::cuda {
namespace {

/// As in device/recurrent.cuh.
struct RecurrentArguments {
  const void *gates, *bias, *h;
  void* share;
  void *c, *saved, *out, *last;
  const void *grad_out, *c_before, *h_before, *values;
  void *dh, *dc, *dgates, *dhidden;
  int64_t batch, hidden, steps, step, h_stride, before_stride, c_stride;
};

const char* cell_name(cpu::Cell cell) {
  switch (cell) {
    case cpu::Cell::kLstm:
      return "LstmCell";
    case cpu::Cell::kGru:
      return "GruCell";
    case cpu::Cell::kTanh:
      return "RnnCell<true>";
    case cpu::Cell::kRelu:
      return "RnnCell<false>";
  }
  return nullptr;
}

std::shared_ptr<Program> recurrent_program(const KernelRequest& request,
                                           const std::string& kernels) {
  return start_program(request, program_text({"math", "scalar", "recurrent"}, kernels));
}

std::string recurrent_entry(std::string_view name, const std::string& call) {
  return entry_text(name, "RecurrentArguments", call);
}

bool is_supported(const KernelRequest& request) {
  const DType type = request.operands[0].dtype;
  if (type != DType::kF32 && type != DType::kF64) return false;
  return std::ranges::all_of(request.operands, [&](const Layout& operand) {
    return !operand.present || (operand.dtype == type && operand.is_contiguous());
  });
}

RecurrentArguments arguments_of(const cpu::ScanShape& s) {
  RecurrentArguments out{};
  out.batch = s.batch;
  out.hidden = s.hidden;
  out.steps = s.steps;
  return out;
}

/// A product with the weight: m = batch, of rows of x that are `stride` apart.
std::optional<ProductLaunch> product_of_step(const KernelRequest& request, const cpu::ScanShape& s,
                                             int64_t stride, bool backward) {
  Product product;
  product.x = product.y = product.out = request.operands[0].dtype;
  product.m = s.batch;
  product.n = backward ? s.hidden : s.width();
  product.k = backward ? s.width() : s.hidden;
  product.x_row = stride;
  product.x_column = 1;
  product.y_row = backward ? s.hidden : 1;
  product.y_column = backward ? 1 : s.hidden;
  product.out_row = product.n;
  return ProductLaunch::of(request, product, true);
}

std::byte* at(void* base, int64_t elements, int64_t item) {
  return static_cast<std::byte*>(base) + elements * item;
}

}  // namespace

std::unique_ptr<Kernel> prepare_recurrent_scan(const KernelRequest& request) {
  const RecurrentScanAttrs attrs(request.attrs);
  if (!is_supported(request)) return nullptr;
  const auto s = cpu::ScanShape::of(attrs.cell, attrs.reverse, request.results[0].shape);
  const int64_t item = item_size(request.operands[0].dtype);
  const auto first = product_of_step(request, s, s.hidden, false);
  const auto others = product_of_step(request, s, s.steps * s.hidden, false);
  if (!first || !others || s.batch * s.hidden == 0) return nullptr;
  const Entry entry(
      recurrent_program(request, recurrent_entry("step", str("recurrent_step<",
                                                             device_type(request.operands[0].dtype),
                                                             ", ", cell_name(s.cell), ">"))),
      "step");
  const size_t state_bytes = static_cast<size_t>(s.batch * s.hidden * item);
  const size_t share_bytes = scratch_piece(static_cast<size_t>(s.batch * s.width() * item));
  const size_t product_bytes = std::max(first->scratch_bytes(), others->scratch_bytes());
  const int64_t blocks = element_blocks(s.batch * s.hidden);
  return make_kernel(
      [=, device = request.target.device, first = *first, others = *others](
          const RunContext& context, void* const* operands, void* const* results) {
        RecurrentArguments arguments = arguments_of(s);
        arguments.gates = operands[0];
        arguments.bias = operands[2];
        arguments.share = context.scratch;
        arguments.out = results[0];
        arguments.c = results[2] ? results[2] : context.scratch + share_bytes;
        arguments.saved = results[3];
        std::byte* const scratch = context.scratch + share_bytes + scratch_piece(state_bytes);
        copy_on_device(device, context.stream, arguments.c, operands[4], state_bytes);
        arguments.h = operands[3];
        arguments.h_stride = s.hidden;
        if (s.steps == 0 && results[1])
          copy_on_device(device, context.stream, results[1], operands[3], state_bytes);
        for (int64_t i = 0; i < s.steps; ++i) {
          const ProductLaunch& product = i == 0 ? first : others;
          product.launch(context.stream, arguments.h, operands[1], nullptr, arguments.share,
                         scratch);
          arguments.step = s.step(i);
          arguments.last = i + 1 == s.steps ? results[1] : nullptr;
          entry.launch(context.stream, blocks, &arguments);
          arguments.h = at(results[0], arguments.step * s.hidden, item);
          arguments.h_stride = s.steps * s.hidden;
        }
      },
      share_bytes + scratch_piece(state_bytes) + product_bytes, "cuda:recurrent");
}

std::unique_ptr<Kernel> prepare_recurrent_scan_grad(const KernelRequest& request) {
  const RecurrentScanGradAttrs attrs(request.attrs);
  if (!is_supported(request)) return nullptr;
  const auto s = cpu::ScanShape::of(attrs.cell, attrs.reverse, request.operands[8].shape);
  const int64_t item = item_size(request.operands[0].dtype);
  const auto product = product_of_step(request, s, s.steps * s.width(), true);
  if (!product || s.batch * s.hidden == 0) return nullptr;
  const char* const type = device_type(request.operands[0].dtype);
  const auto program = recurrent_program(
      request,
      recurrent_entry("step", str("recurrent_grad_step<", type, ", ", cell_name(s.cell), ">")) +
          recurrent_entry("end", str("recurrent_grad_end<", type, ">")));
  const Entry step(program, "step"), end(program, "end");
  const size_t state_bytes = static_cast<size_t>(s.batch * s.hidden * item);
  const int64_t blocks = element_blocks(s.batch * s.hidden);
  return make_kernel(
      [=, device = request.target.device, product = *product](
          const RunContext& context, void* const* operands, void* const* results) {
        RecurrentArguments arguments = arguments_of(s);
        arguments.grad_out = operands[0];
        arguments.out = operands[8];
        arguments.values = operands[9];
        arguments.dgates = results[0];
        arguments.dhidden = results[1];
        arguments.dh = results[2];
        arguments.dc = results[3];
        copy_on_device(device, context.stream, results[2], operands[1], state_bytes);
        if (s.cell == cpu::Cell::kLstm)
          copy_on_device(device, context.stream, results[3], operands[2], state_bytes);
        else
          check_device(device, device_api(device).fill(context.stream, results[3], 0, state_bytes));
        std::byte* const scratch = context.scratch + scratch_piece(state_bytes);
        for (int64_t i = s.steps; i-- > 0;) {
          arguments.step = s.step(i);
          const int64_t previous = i > 0 ? s.step(i - 1) : 0;
          // States before the first step are one row each, others a row of all steps.
          arguments.before_stride = i > 0 ? s.steps * s.hidden : s.hidden;
          arguments.c_stride = i > 0 ? s.steps * s.saved * s.hidden : s.hidden;
          arguments.h_before = i > 0 ? at(operands[8], previous * s.hidden, item) : operands[6];
          arguments.c_before =
              i > 0 ? at(operands[9], (previous * s.saved + 4) * s.hidden, item) : operands[7];
          step.launch(context.stream, blocks, &arguments);
          arguments.share = context.scratch;
          product.launch(context.stream, at(results[1], arguments.step * s.width(), item),
                         operands[4], nullptr, context.scratch, scratch);
        }
        if (s.steps > 0) end.launch(context.stream, blocks, &arguments);
      },
      scratch_piece(state_bytes) + product->scratch_bytes(), "cuda:recurrent");
}

}  // namespace paddle::cuda
