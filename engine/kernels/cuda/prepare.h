#pragma once
// Helpers of kernels for preparing and queueing.

#include "kernels/common/rounding.h"
#include "kernels/cuda/device_types.h"
#include "kernels/cuda/program.h"
#include "ops/core/kernel.h"

namespace paddle::cuda {

/// The program of this text, which begins to compile unless the request leaves code out.
std::shared_ptr<Program> start_program(const KernelRequest& request, std::string text);
/// A kernel of a program: `call`, a function of device/, with the structure `arguments`.
std::string entry_text(std::string_view name, std::string_view arguments, std::string_view call);

/// The text of a program of the functions of device/`name`, with complex numbers if an operand has
/// them.
std::string number_text(const KernelRequest& request, std::string_view name,
                        const std::string& kernels);

/// Blocks for that many threads; a thread takes further elements where there are more.
int64_t element_blocks(int64_t threads);
/// Blocks for tasks of a block each; a block takes further tasks where there are more.
int64_t task_blocks(int64_t tasks);

/// The request of a kernel that is compiled where it first runs.
template <class Request>
Request compiled_late(Request request) {
  request.prepare.codegen = false;
  return request;
}

/// Bytes of a piece of scratch, such that the next one begins at an aligned address.
inline size_t scratch_piece(size_t bytes) { return (bytes + 255) / 256 * 256; }

/// Whether all addresses are multiples of `alignment`; null is one.
inline bool are_aligned(std::span<const void* const> addresses, uintptr_t alignment) {
  for (const void* const address : addresses)
    if (reinterpret_cast<uintptr_t>(address) % alignment != 0) return false;
  return true;
}

/// An absent operand, or contiguous elements of a type that device/ has.
inline bool is_plain(const Layout& layout) {
  return !layout.present || (device_type(layout.dtype) && layout.is_contiguous());
}

/// The same of all operands.
bool are_plain(const KernelRequest& request);

/// The same with complex numbers.
bool are_numbers(const KernelRequest& request);
/// Whether all operands are absent or contiguous, for copies of elements of any type.
bool are_contiguous(const KernelRequest& request);

/// Queues a copy within the memory of the device; nothing where it is in place.
void copy_on_device(Device device, paddle_stream stream, void* to, const void* from, size_t bytes);

}  // namespace paddle::cuda
