#include "onnx/ops/window.h"

#include <algorithm>

namespace paddle::onnx {
namespace {

constexpr int64_t kMaxExtent = 1 << 24;

}  // namespace

Window::Window(const NodeCall& c, const Shape& shape, std::vector<int64_t> kernel_shape)
    : kernel(std::move(kernel_shape)) {
  const size_t n = kernel.size();
  c.check(shape.size() == n + 2, "a window over ", n, " axes for a tensor of rank ", shape.size());
  const auto numbers = [&](const char* name, int64_t default_value) {
    auto all = c.ints_attr(name);
    if (all.empty()) all.assign(n, default_value);
    c.check(all.size() == n, name, " must have ", n, " elements, not ", all.size());
    return all;
  };
  stride = numbers("strides", 1);
  dilation = numbers("dilations", 1);
  for (size_t i = 0; i < n; ++i)
    for (const int64_t v : {kernel[i], stride[i], dilation[i]})
      c.check(v > 0 && v <= kMaxExtent, "kernel, strides and dilations must be from 1 to ",
              kMaxExtent, ", not ", v);
  before.assign(n, 0);
  after.assign(n, 0);
  const std::string word = c.string_attr("auto_pad", "NOTSET");
  if (word == "NOTSET" || word.empty()) {
    const auto pads = c.ints_attr("pads");
    if (pads.empty()) return;
    c.check(pads.size() == 2 * n, "pads must have ", 2 * n, " elements, not ", pads.size());
    for (size_t i = 0; i < n; ++i) {
      before[i] = pads[i];
      after[i] = pads[i + n];
      c.check(before[i] >= 0 && after[i] >= 0 && before[i] <= kMaxExtent && after[i] <= kMaxExtent,
              "pads must be from 0 to ", kMaxExtent);
    }
    return;
  }
  if (word == "VALID") return;
  c.check(word == "SAME_UPPER" || word == "SAME_LOWER", "unknown auto_pad '", word, "'");
  for (size_t i = 0; i < n; ++i) {
    const int64_t reach = (kernel[i] - 1) * dilation[i] + 1;
    int64_t total = reach - 1;
    if (stride[i] > 1) {
      const Dim& size = shape[i + 2];
      if (!size.is_constant())
        throw DataDependentError(ErrorCode::kModel, str("auto_pad needs the size ", size));
      const int64_t count = (size.value() + stride[i] - 1) / stride[i];
      total = std::max<int64_t>(0, (count - 1) * stride[i] + reach - size.value());
    }
    (word == "SAME_UPPER" ? before : after)[i] = total / 2;
    (word == "SAME_UPPER" ? after : before)[i] = total - total / 2;
  }
}

Window Window::along(const std::vector<size_t>& axes) const {
  Window out = *this;
  out.kernel = out.stride = out.dilation = out.before = out.after = {};
  for (const size_t i : axes) {
    const bool real = i < rank();
    out.kernel.push_back(real ? kernel[i] : 1);
    out.stride.push_back(real ? stride[i] : 1);
    out.dilation.push_back(real ? dilation[i] : 1);
    out.before.push_back(real ? before[i] : 0);
    out.after.push_back(real ? after[i] : 0);
  }
  return out;
}

AttrValue Window::borders() const {
  std::vector<int64_t> out;
  for (size_t i = 0; i < rank(); ++i) {
    out.push_back(before[i]);
    out.push_back(after[i]);
  }
  return out;
}

}  // namespace paddle::onnx
