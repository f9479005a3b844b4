#include "kernels/cuda/sequences.h"

#include "kernels/cuda/errors.h"
#include "kernels/cuda/prepare.h"
#include "kernels/cuda/waiting.h"
#include "ops/generated/sequence.h"
#include "ops/generated/signal.h"

namespace paddle::cuda {
namespace {

/// As in device/sequences.cuh.
struct SequenceArguments {
  const void *x, *parents;
  const void *lengths, *starts;
  void *out, *ends;
  int64_t count, total, most;
  int64_t steps, batch, beams;
  int64_t rows, size, length, number, hop;
  CUdeviceptr error;
  int64_t site;
};

std::string sequence_entry(std::string_view name, const std::string& call) {
  return entry_text(name, "SequenceArguments", call);
}

std::shared_ptr<Program> sequence_program(const KernelRequest& request,
                                          const std::string& kernels) {
  return start_program(request, number_text(request, "sequences", kernels));
}

}  // namespace

std::unique_ptr<Kernel> prepare_ragged_rows(const KernelRequest& request) {
  constexpr int64_t kMaxRows = int64_t{1} << 40;
  const bool ranges = request.op.name() == "concat_ranges";
  const Layout& lengths = request.operands[ranges ? 1 : 0];
  int64_t wanted = -1;
  if (!ranges)
    if (const auto given = SequenceRowsAttrs(request.attrs).total) wanted = given->value();
  if (!are_plain(request) || lengths.dtype != DType::kI64) return nullptr;
  SequenceArguments base{};
  base.count = lengths.size();
  base.most = kMaxRows;
  const auto program = sequence_program(
      request, sequence_entry("sum", "sum_lengths") + sequence_entry("number", "number_rows"));
  const Entry sum(program, "sum"), number(program, "number");
  const auto error = std::make_shared<ErrorSite>(
      DataMessage{str(request.op.name(), ": the length "), " is out of range"});
  return waiting_kernel(
      [=, device = request.target.device](const RunContext& context, void* const* operands,
                                          void* const*) {
        SequenceArguments arguments = base;
        arguments.lengths = operands[ranges ? 1 : 0];
        arguments.starts = ranges ? operands[0] : nullptr;
        arguments.ends = context.scratch;
        if (base.count > 0) {
          const ErrorTarget target = error->target(context.stream, context.location);
          arguments.error = target.record;
          arguments.site = target.site;
          sum.launch(context.stream, 1, &arguments);
          read_back(context, device, &arguments.total,
                    context.scratch + static_cast<size_t>(base.count - 1) * sizeof(int64_t),
                    sizeof(int64_t));
        }
        if (wanted >= 0 && arguments.total != wanted)
          fail(ErrorCode::kData, "the lengths add up to ", arguments.total, ", there are ", wanted,
               " rows");
        arguments.out = context.allocator->allocate(0, {arguments.total});
        if (arguments.total > 0)
          number.launch(context.stream, element_blocks(arguments.total), &arguments);
      },
      static_cast<size_t>(base.count) * sizeof(int64_t), "cuda:sequences");
}

std::unique_ptr<Kernel> prepare_overlap_frames(const KernelRequest& request) {
  const Layout &x = request.operands[0], &out = request.results[0];
  if (!are_numbers(request) || x.dtype == DType::kBool) return nullptr;
  if (out.size() == 0) return nothing_to_do();
  SequenceArguments base{};
  base.length = x.shape.back();
  base.number = x.shape[x.shape.size() - 2];
  base.size = out.shape.back();
  base.rows = out.size() / base.size;
  base.hop = OverlapFramesAttrs(request.attrs).hop_length;
  const char* const type = group_type(x.dtype);
  const char* const compute = compute_name(x.dtype);
  const Entry entry(sequence_program(request, sequence_entry("frames", str("overlap_frames<",
                                                                           compute ? compute : type,
                                                                           ", ", type, ">"))),
                    "frames");
  return make_kernel(
      [=, size = out.size()](const RunContext& context, void* const* operands,
                             void* const* results) {
        SequenceArguments arguments = base;
        arguments.x = operands[0];
        arguments.out = results[0];
        entry.launch(context.stream, element_blocks(size), &arguments);
      },
      0, "cuda:sequences");
}

std::unique_ptr<Kernel> prepare_gather_tree(const KernelRequest& request) {
  const Layout& ids = request.operands[0];
  if (!are_plain(request)) return nullptr;
  if (ids.size() == 0) return nothing_to_do();
  SequenceArguments base{};
  base.steps = ids.shape[0];
  base.batch = ids.shape[1];
  base.beams = ids.shape[2];
  const Entry entry(
      sequence_program(request,
                       sequence_entry("beams", str("follow_beams<", device_type(ids.dtype), ">"))),
      "beams");
  const auto error = std::make_shared<ErrorSite>(
      DataMessage{"gather_tree: the parent ", str(" is not one of ", base.beams, " beams")});
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        SequenceArguments arguments = base;
        arguments.x = operands[0];
        arguments.parents = operands[1];
        arguments.out = results[0];
        const ErrorTarget target = error->target(context.stream, context.location);
        arguments.error = target.record;
        arguments.site = target.site;
        entry.launch(context.stream, element_blocks(base.batch * base.beams), &arguments);
      },
      0, "cuda:sequences");
}

}  // namespace paddle::cuda
