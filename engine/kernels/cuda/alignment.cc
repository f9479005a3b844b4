#include "kernels/cuda/alignment.h"

#include <algorithm>
#include <array>

#include "kernels/cuda/errors.h"
#include "kernels/cuda/prepare.h"
#include "ops/generated/loss.h"

namespace paddle::cuda {
namespace {

/// As in device/alignment.cuh.
struct AlignmentArguments {
  const void *x, *labels, *input_lengths, *label_lengths;
  void *out, *label_out, *scratch;
  int64_t batch, steps, classes, longest, blank;
  int64_t scratch_each;
  CUdeviceptr error;
  int64_t step_site, length_site, label_site;
};

/// Messages about lengths and labels out of range, those of the CPU.
using Sites = std::array<std::shared_ptr<ErrorSite>, 3>;

std::shared_ptr<ErrorSite> length_error(std::string_view op, const char* name, int64_t least,
                                        int64_t most) {
  return std::make_shared<ErrorSite>(
      DataMessage{str(op, ": ", name, " has "), str(", which is not from ", least, " to ", most)});
}

std::unique_ptr<Kernel> alignment_kernel(const KernelRequest& request, std::string_view call,
                                         const AlignmentArguments& base, const Sites& sites) {
  if (!are_plain(request)) return nullptr;
  const char* const type = compute_name(request.operands[0].dtype);
  if (!type || type != device_type(request.operands[0].dtype)) return nullptr;
  if (base.batch == 0) return nothing_to_do();
  const bool occupancy = request.op.name().ends_with("occupancy");
  const bool two_results = request.results.size() > 1;
  const Entry entry(
      start_program(request, program_text({"math", "scalar", "alignment"},
                                          entry_text("alignment", "AlignmentArguments",
                                                     str(call, "<", type,
                                                         occupancy ? ", true>" : ", false>")))),
      "alignment");
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        AlignmentArguments arguments = base;
        arguments.x = operands[0];
        arguments.labels = operands[1];
        arguments.input_lengths = operands[2];
        arguments.label_lengths = operands[3];
        arguments.out = results[0];
        arguments.label_out = two_results ? results[1] : nullptr;
        arguments.scratch = context.scratch;
        int64_t* const targets[] = {&arguments.step_site, &arguments.length_site,
                                    &arguments.label_site};
        for (size_t i = 0; i < sites.size(); ++i) {
          if (!sites[i]) continue;
          const ErrorTarget target = sites[i]->target(context.stream, context.location);
          arguments.error = target.record;
          *targets[i] = target.site;
        }
        entry.launch(context.stream, task_blocks(base.batch), &arguments);
      },
      static_cast<size_t>(base.batch * base.scratch_each), "cuda:alignment");
}

/// Of [steps, batch, classes].
std::unique_ptr<Kernel> ctc_kernel(const KernelRequest& request, int64_t blank) {
  const Dims& shape = request.operands[0].shape;
  AlignmentArguments base{};
  base.steps = shape[0];
  base.batch = shape[1];
  base.classes = shape[2];
  base.longest = request.operands[1].shape[1];
  base.blank = blank;
  const int64_t item = static_cast<int64_t>(item_size(request.operands[0].dtype));
  const int64_t states = 2 * base.longest + 1;
  constexpr int64_t kIndexRows = 3, kValueRows = 3;
  base.scratch_each = states * (kIndexRows * 8 + (base.steps + kValueRows) * item);
  base.scratch_each = (base.scratch_each + 7) / 8 * 8;
  return alignment_kernel(
      request, "ctc_sequences", base,
      {length_error("ctc_loss", "input_lengths", 0, base.steps),
       length_error("ctc_loss", "label_lengths", 0, base.longest),
       std::make_shared<ErrorSite>(
           DataMessage{"ctc_loss: label ", str(" is not one of ", base.classes, " classes")})});
}

/// Of blanks [batch, steps, labels + 1].
std::unique_ptr<Kernel> transducer_kernel(const KernelRequest& request) {
  const Dims& shape = request.operands[0].shape;
  AlignmentArguments base{};
  base.batch = shape[0];
  base.steps = shape[1];
  base.longest = shape[2] - 1;
  if (base.steps == 0) return nullptr;
  constexpr int64_t kRows = 2;
  base.scratch_each =
      (base.steps + kRows) * shape[2] * static_cast<int64_t>(item_size(request.operands[0].dtype));
  return alignment_kernel(request, "transducer_sequences", base,
                          {length_error("rnnt_loss", "input_lengths", 1, base.steps),
                           length_error("rnnt_loss", "label_lengths", 0, base.longest), nullptr});
}

}  // namespace

std::unique_ptr<Kernel> prepare_ctc_alignment(const KernelRequest& request) {
  return ctc_kernel(request, CtcAlignmentAttrs(request.attrs).blank);
}

std::unique_ptr<Kernel> prepare_ctc_occupancy(const KernelRequest& request) {
  return ctc_kernel(request, CtcOccupancyAttrs(request.attrs).blank);
}

std::unique_ptr<Kernel> prepare_rnnt_alignment(const KernelRequest& request) {
  return transducer_kernel(request);
}

std::unique_ptr<Kernel> prepare_rnnt_occupancy(const KernelRequest& request) {
  return transducer_kernel(request);
}

}  // namespace paddle::cuda
