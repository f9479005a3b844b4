#include "kernels/cuda/conversions.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ops/generated/shape.h"

namespace paddle::cuda {
namespace {

bool is_cast(const FusedStep& step) { return step.op->name() == "cast"; }

/// A group around one operation with a kernel of its own.
class AroundKernel {
 public:
  explicit AroundKernel(const FusedRequest& request) : request_(request) {}

  std::unique_ptr<Kernel> prepare(const KernelOf& kernel_of);

 private:
  /// A result of the operation in memory: a result of the group from an offset on, or unused.
  struct Target {
    int result = -1;
    Layout layout;
  };

  size_t value_of(size_t step) const;
  std::optional<size_t> reader_of(int value) const;
  int result_of(int value) const;
  std::optional<Target> target_of(int value, Layout layout) const;
  bool place_in_concat(const FusedStep& concat, int value, Target& target) const;

  const FusedRequest& request_;
};

/// The first value of a step.
size_t AroundKernel::value_of(size_t step) const {
  size_t value = request_.operands.size();
  for (size_t i = 0; i < step; ++i) value += request_.steps[i].results.size();
  return value;
}

/// The only step that reads the value.
std::optional<size_t> AroundKernel::reader_of(int value) const {
  std::optional<size_t> out;
  for (size_t i = 0; i < request_.steps.size(); ++i) {
    const auto reads = std::ranges::count(request_.steps[i].inputs, value);
    if (reads == 0) continue;
    if (out || reads > 1) return std::nullopt;
    out = i;
  }
  return out;
}

int AroundKernel::result_of(int value) const {
  const auto found = std::ranges::find(request_.result_values, value);
  return found == request_.result_values.end()
             ? -1
             : static_cast<int>(found - request_.result_values.begin());
}

/// Follows casts, views and a concat from a value of this layout to memory.
std::optional<AroundKernel::Target> AroundKernel::target_of(int value, Layout layout) const {
  Target out{result_of(value), std::move(layout)};
  if (out.result >= 0) return out;
  const auto reader = reader_of(value);
  if (!reader) {
    out.layout.present = false;
    return out;
  }
  const FusedStep& step = request_.steps[*reader];
  const int next = static_cast<int>(value_of(*reader));
  if (is_cast(step)) {
    out.result = result_of(next);
    out.layout.dtype = step.result;
    return out.result < 0 ? std::nullopt : std::optional(out);
  }
  // Views keep the order of elements, so the strides follow from those in the concat.
  int joined = value;
  std::optional<size_t> at = reader;
  while (at && request_.steps[*at].op->name() != "concat") {
    joined = static_cast<int>(value_of(*at));
    at = reader_of(joined);
  }
  if (!at || !place_in_concat(request_.steps[*at], joined, out)) return std::nullopt;
  out.result = result_of(static_cast<int>(value_of(*at)));
  return out.result < 0 ? std::nullopt : std::optional(out);
}

/// The strides of the layout of a contiguous operand of the concat: its leading axes are those
/// before the axis of the concat.
bool AroundKernel::place_in_concat(const FusedStep& concat, int value, Target& target) const {
  const Layout& whole = concat.results[0];
  const int64_t given = ConcatAttrs(concat.attrs).axis;
  const auto axis =
      static_cast<size_t>(given < 0 ? given + static_cast<int64_t>(whole.shape.size()) : given);
  int64_t outer = 1, before = 0;
  for (size_t i = 0; i < axis; ++i) outer *= whole.shape[i];
  const int64_t row = outer == 0 ? 0 : whole.size() / outer;
  for (const int input : concat.inputs) {
    if (input == value) break;
    // Operands of the same shape as this one, which joined results have.
    before += outer == 0 ? 0 : target.layout.size() / outer;
  }
  const int64_t own = outer == 0 ? 0 : target.layout.size() / outer;
  if (own * static_cast<int64_t>(concat.inputs.size()) != row) return false;
  // The axes of the layout that make up `outer`.
  int64_t leading = 1;
  size_t split = 0;
  while (split < target.layout.shape.size() && leading < outer)
    leading *= target.layout.shape[split++];
  if (leading != outer) return false;
  int64_t stride = row;
  for (size_t i = split; i-- > 0; stride *= target.layout.shape[i])
    target.layout.strides[i] = stride;
  target.layout.offset = before;
  return true;
}

std::unique_ptr<Kernel> AroundKernel::prepare(const KernelOf& kernel_of) {
  if (request_.steps.size() < 2) return nullptr;
  const auto own = std::ranges::find_if(request_.steps, [](const FusedStep& step) {
    return !step.op->has(kElementwise) && !step.op->def->view && step.op->name() != "concat";
  });
  if (own == request_.steps.end() || own->results.empty()) return nullptr;
  const auto at = static_cast<size_t>(own - request_.steps.begin());
  std::vector<Layout> operands;
  std::vector<int> read;
  for (const int input : own->inputs) {
    int from = input;
    for (size_t i = 0; i < at; ++i)
      if (from == static_cast<int>(value_of(i)) && is_cast(request_.steps[i]))
        from = request_.steps[i].inputs[0];
    if (from >= static_cast<int>(request_.operands.size())) return nullptr;
    read.push_back(from);
    if (from >= 0)
      operands.push_back(request_.operands[static_cast<size_t>(from)]);
    else
      operands.emplace_back().present = false;
  }
  std::vector<Layout> results;
  std::vector<std::pair<int, int64_t>> written;  // result of the group, offset in bytes
  for (size_t i = 0; i < own->results.size(); ++i) {
    auto target = target_of(static_cast<int>(value_of(at) + i), own->results[i]);
    if (!target) return nullptr;
    if (target->result < 0 && (i == 0 || !own->op->has(kSkipsUnusedResults))) return nullptr;
    written.emplace_back(target->result, target->layout.offset * item_size(target->layout.dtype));
    target->layout.offset = 0;
    results.push_back(std::move(target->layout));
  }
  std::shared_ptr<Kernel> kernel = kernel_of({.op = *own->op,
                                              .attrs = own->attrs,
                                              .operands = operands,
                                              .results = results,
                                              .target = request_.target,
                                              .prepare = request_.prepare});
  if (!kernel) return nullptr;
  constexpr size_t kMost = 16;
  if (read.size() > kMost || written.size() > kMost) return nullptr;
  const std::string name = kernel->implementation();
  return make_kernel(
      [kernel, read, written](const RunContext& context, void* const* from, void* const* to) {
        void* own_operands[kMost];
        void* own_results[kMost];
        for (size_t i = 0; i < read.size(); ++i)
          own_operands[i] = read[i] < 0 ? nullptr : from[read[i]];
        for (size_t i = 0; i < written.size(); ++i)
          own_results[i] = written[i].first < 0
                               ? nullptr
                               : static_cast<std::byte*>(to[written[i].first]) + written[i].second;
        kernel->run(context, own_operands, own_results);
      },
      kernel->scratch_bytes(), name);
}

}  // namespace

std::unique_ptr<Kernel> prepare_conversions(const FusedRequest& request,
                                            const KernelOf& kernel_of) {
  return AroundKernel(request).prepare(kernel_of);
}

}  // namespace paddle::cuda
