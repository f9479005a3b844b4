#include "kernels/cuda/prepare.h"

#include <algorithm>

#include "paddle/plugin/device.h"

namespace paddle::cuda {

std::shared_ptr<Program> start_program(const KernelRequest& request, std::string text) {
  auto program = Program::of(request.target.device.index, std::move(text));
  if (request.prepare.codegen) program->start();
  return program;
}

std::string entry_text(std::string_view name, std::string_view arguments, std::string_view call) {
  return str("PADDLE_KERNEL(", name, ", ", arguments, ") { ", call, "(arguments); }\n");
}

std::string number_text(const KernelRequest& request, std::string_view name,
                        const std::string& kernels) {
  const bool complex = std::ranges::any_of(request.operands, [](const Layout& operand) {
    return operand.present && is_complex(operand.dtype);
  });
  return complex ? program_text({"math", "scalar", "complex", name}, kernels)
                 : program_text({name}, kernels);
}

int64_t element_blocks(int64_t threads) {
  constexpr int64_t kMaxBlocks = 132 * 32;
  return std::clamp<int64_t>(cpu::ceil_div(threads, kBlockThreads), 1, kMaxBlocks);
}

int64_t task_blocks(int64_t tasks) { return std::min(tasks, int64_t{1} << 20); }

bool are_plain(const KernelRequest& request) {
  return std::ranges::all_of(request.operands, is_plain);
}

bool are_numbers(const KernelRequest& request) {
  return std::ranges::all_of(request.operands, [](const Layout& operand) {
    return !operand.present || (group_type(operand.dtype) && operand.is_contiguous());
  });
}

bool are_contiguous(const KernelRequest& request) {
  return std::ranges::all_of(request.operands, [](const Layout& operand) {
    return !operand.present || operand.is_contiguous();
  });
}

void copy_on_device(Device device, paddle_stream stream, void* to, const void* from, size_t bytes) {
  if (bytes == 0 || to == from) return;
  check_device(device, device_api(device).copy(stream, to, from, bytes, PADDLE_COPY_ON_DEVICE));
}

}  // namespace paddle::cuda
