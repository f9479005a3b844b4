// print and assert_true.

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "base/error.h"
#include "base/source_location.h"
#include "ops/core/kernel.h"
#include "ops/generated/debug.h"
#include "tensor/tensor.h"

namespace paddle::cpu {
namespace {

/// The first elements of the operand, in one row.
Array first_elements(const Layout& layout, const void* data, int64_t count) {
  Array out = Array::empty(layout.dtype, {count});
  if (count > 0)
    std::memcpy(out.raw(), data, static_cast<size_t>(storage_bytes(layout.dtype, count)));
  return out;
}

void copy_result(const Layout& layout, void* from, void* to) {
  if (to && from != to && layout.size() > 0)
    std::memmove(to, from, static_cast<size_t>(storage_bytes(layout.dtype, layout.size())));
}

/// "model.yaml:6:5 (encoder.0): ".
std::string head_of(const std::string& place) {
  if (place.empty()) return "";
  const Origin origin = parse_origin(place);
  // A saved model may state any place.
  return printable(origin.layer.empty() ? origin.place : origin.place + " (" + origin.layer + ")") +
         ": ";
}

std::string elements_of(const Layout& layout, const void* data, int64_t most) {
  const int64_t size = layout.size(), shown = most < 0 ? size : std::min(size, most);
  std::string out = text(first_elements(layout, data, shown));
  if (shown < size) out.replace(out.size() - 1, 1, shown > 0 ? ", …]" : "…]");
  return out;
}

/// How often a line of a model has printed. Eager mode prepares a kernel for each call, and
/// compiled mode one for each binding of the dims, so those of one place share it.
std::shared_ptr<std::atomic<int64_t>> times_printed(const std::string& place,
                                                    const std::string& message) {
  if (place.empty()) return std::make_shared<std::atomic<int64_t>>(0);
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<std::atomic<int64_t>>> counts;
  const std::lock_guard lock(mutex);
  auto& count = counts[place + "\n" + message];
  if (!count) count = std::make_shared<std::atomic<int64_t>>(0);
  return count;
}

}  // namespace

std::unique_ptr<Kernel> prepare_print(const KernelRequest& request) {
  const PrintAttrs a(request.attrs);
  const Layout layout = request.operands[0];
  std::string head = head_of(a.place);
  if (a.message && !a.message->empty()) head += printable(*a.message) + ": ";
  if (a.print_tensor_type && a.print_tensor_shape)
    head += TensorType{layout.dtype, to_shape(layout.shape)}.text() + " ";
  else if (a.print_tensor_type)
    head += text(layout.dtype) + " ";
  else if (a.print_tensor_shape)
    head += text(to_shape(layout.shape)) + " ";
  const bool prints = a.print_phase != "backward";
  const auto times = a.first_n < 0 ? nullptr : times_printed(a.place, a.message.value_or(""));
  return make_kernel([=, first = a.first_n, most = a.summarize](
                         const RunContext&, void* const* operands, void* const* results) {
    if (prints && (first < 0 || times->fetch_add(1) < first)) {
      const std::string line = head + elements_of(layout, operands[0], most) + "\n";
      std::fwrite(line.data(), 1, line.size(), stderr);
    }
    copy_result(layout, operands[0], results[0]);
  });
}

std::unique_ptr<Kernel> prepare_assert_true(const KernelRequest& request) {
  const AssertTrueAttrs a(request.attrs);
  const Layout layout = request.operands[0];
  const SourceLocation location = parse_source_location(a.place);
  const std::string message = a.message ? printable(*a.message) : "the condition does not hold";
  return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
    const Array values = first_elements(layout, operands[0], layout.size());
    int64_t failed = 0;
    for (int64_t i = 0; i < values.size(); ++i) failed += values.number(i) == 0;
    if (failed > 0)
      throw Error(ErrorCode::kData,
                  values.size() == 1 ? str("assert: ", message)
                                     : str("assert: ", message, " (", failed, " of ", values.size(),
                                           " elements are false)"),
                  location);
    copy_result(layout, operands[0], results[0]);
  });
}

}  // namespace paddle::cpu
