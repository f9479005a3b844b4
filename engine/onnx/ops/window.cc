#include "onnx/ops/window.h"

#include <algorithm>
#include <optional>

namespace paddle::onnx {
namespace {

constexpr int64_t kMaxExtent = 1 << 24;

/// Whether auto_pad pads the end more than the beginning; nothing where it is not SAME.
std::optional<bool> same_upper(const NodeCall& c) {
  const std::string word = c.string_attr("auto_pad", "NOTSET");
  if (word == "NOTSET" || word.empty() || word == "VALID") return std::nullopt;
  c.check(word == "SAME_UPPER" || word == "SAME_LOWER", "unknown auto_pad '", word, "'");
  return word == "SAME_UPPER";
}

}  // namespace

Window::Window(const NodeCall& c, std::vector<int64_t> kernel_shape)
    : kernel(std::move(kernel_shape)) {
  const size_t n = kernel.size();
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
  if (word != "NOTSET" && !word.empty()) return;
  const auto pads = c.ints_attr("pads");
  if (pads.empty()) return;
  c.check(pads.size() == 2 * n, "pads must have ", 2 * n, " elements, not ", pads.size());
  for (size_t i = 0; i < n; ++i) {
    before[i] = pads[i];
    after[i] = pads[i + n];
    c.check(before[i] >= 0 && after[i] >= 0 && before[i] <= kMaxExtent && after[i] <= kMaxExtent,
            "pads must be from 0 to ", kMaxExtent);
  }
}

Window::Window(const NodeCall& c, const Shape& shape, std::vector<int64_t> kernel_shape)
    : Window(c, std::move(kernel_shape)) {
  c.check(shape.size() == rank() + 2, "a window over ", rank(), " axes for a tensor of rank ",
          shape.size());
  const auto upper = same_upper(c);
  if (!upper) return;
  for (size_t i = 0; i < rank(); ++i) {
    const int64_t reach = (kernel[i] - 1) * dilation[i] + 1;
    int64_t total = reach - 1;
    if (stride[i] > 1) {
      const Dim& size = shape[i + 2];
      if (!size.is_constant())
        throw DataDependentError(ErrorCode::kModel, str("auto_pad needs the size ", size));
      const int64_t count = (size.value() + stride[i] - 1) / stride[i];
      total = std::max<int64_t>(0, (count - 1) * stride[i] + reach - size.value());
    }
    set_pads(i, total, *upper);
  }
}

Window Window::transposed(const NodeCall& c, std::vector<int64_t> kernel_shape,
                          const std::vector<int64_t>& output_padding) {
  Window out(c, std::move(kernel_shape));
  const auto upper = same_upper(c);
  for (size_t i = 0; upper && i < out.rank(); ++i) {
    const int64_t reach = (out.kernel[i] - 1) * out.dilation[i] + 1;
    out.set_pads(i, std::max<int64_t>(0, reach + output_padding[i] - out.stride[i]), *upper);
  }
  return out;
}

void Window::set_pads(size_t axis, int64_t total, bool upper) {
  (upper ? before : after)[axis] = total / 2;
  (upper ? after : before)[axis] = total - total / 2;
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
