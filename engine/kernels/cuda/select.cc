// Operations whose results have a size that is known only when they ran.

#include <algorithm>

#include "kernels/cuda/errors.h"
#include "kernels/cuda/index.h"
#include "kernels/cuda/prepare.h"
#include "kernels/cuda/waiting.h"

namespace paddle::cuda {
namespace {

constexpr size_t kSelectAxes = 8;

/// As in device/select.cuh.
struct SelectArguments {
  const void *x, *mask;
  void* out;
  void* counts;
  CUdeviceptr counters;
  int64_t size, chunk;
  int axes;
  int64_t shape[kSelectAxes], x_strides[kSelectAxes], mask_strides[kSelectAxes];
};

/// Counts what is selected, waits for the number, and stores it in memory of that size.
class SelectKernel final : public Kernel {
 public:
  SelectKernel(const KernelRequest& request, SelectArguments base, const std::string& which,
               bool coordinates)
      : base_(base), coordinates_(coordinates), device_(request.target.device) {
    constexpr int64_t kMaxChunks = 4096, kMinChunk = 1024;
    base_.chunk = std::max(kMinChunk, (base_.size + kMaxChunks - 1) / kMaxChunks);
    chunks_ = std::max<int64_t>(1, (base_.size + base_.chunk - 1) / base_.chunk);
    const auto program = start_program(
        request,
        number_text(
            request, "select",
            entry_text("count", "SelectArguments", str("count_selected<", which, ">")) +
                entry_text("store", "SelectArguments", str("store_selected<", which, ">"))));
    count_ = Entry(program, "count");
    store_ = Entry(program, "store");
  }

  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    SelectArguments arguments = base_;
    arguments.x = operands[0];
    if (!coordinates_) arguments.mask = operands[1];
    arguments.counts = context.scratch;
    arguments.counters = context.stream->counters;
    count_.launch(context.stream, chunks_, &arguments);
    int64_t count = 0;
    read_back(context, device_, &count,
              context.scratch + static_cast<size_t>(chunks_) * sizeof count, sizeof count);
    const Dims shape = coordinates_ ? Dims{count, base_.axes} : Dims{count};
    arguments.out = context.allocator ? context.allocator->allocate(0, shape) : results[0];
    if (count > 0) store_.launch(context.stream, chunks_, &arguments);
  }
  size_t scratch_bytes() const override {
    return static_cast<size_t>(chunks_ + 1) * sizeof(int64_t);
  }
  bool capturable() const override { return false; }
  std::string implementation() const override { return "cuda:select"; }

 private:
  SelectArguments base_;
  bool coordinates_;
  Device device_;
  int64_t chunks_ = 0;
  Entry count_, store_;
};

/// Strides of an operand by axis of `shape`, 0 where it broadcasts.
void set_strides(const Layout& layout, const Dims& shape, int64_t (&strides)[kSelectAxes]) {
  const size_t missing = shape.size() - layout.shape.size();
  for (size_t axis = missing; axis < shape.size(); ++axis)
    if (layout.shape[axis - missing] != 1) strides[axis] = layout.strides[axis - missing];
}

bool set_shape(SelectArguments& arguments, const Dims& shape) {
  if (shape.size() > kSelectAxes) return false;
  arguments.axes = static_cast<int>(shape.size());
  arguments.size = element_count(std::span<const int64_t>(shape));
  std::copy(shape.begin(), shape.end(), arguments.shape);
  return true;
}

}  // namespace

std::unique_ptr<Kernel> prepare_nonzero_rows(const KernelRequest& request) {
  const Layout& x = request.operands[0];
  SelectArguments base{};
  if (!are_numbers(request) || !set_shape(base, x.shape)) return nullptr;
  return std::make_unique<SelectKernel>(request, base, str("NonZero<", group_type(x.dtype), ">"),
                                        true);
}

std::unique_ptr<Kernel> prepare_masked_select(const KernelRequest& request) {
  const Layout &x = request.operands[0], &mask = request.operands[1];
  const char* const item = unsigned_type(x.dtype);
  if (!item || mask.dtype != DType::kBool) return nullptr;
  Dims shape = x.shape.size() >= mask.shape.size() ? x.shape : mask.shape;
  for (const Layout* const each : {&x, &mask})
    for (size_t i = 0; i < each->shape.size(); ++i)
      if (each->shape[i] != 1) shape[shape.size() - each->shape.size() + i] = each->shape[i];
  SelectArguments base{};
  if (!set_shape(base, shape)) return nullptr;
  set_strides(x, shape, base.x_strides);
  set_strides(mask, shape, base.mask_strides);
  return std::make_unique<SelectKernel>(request, base, str("Masked<", item, ">"), false);
}

}  // namespace paddle::cuda
