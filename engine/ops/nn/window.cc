#include "ops/nn/window.h"

#include "base/error.h"
#include "ops/core/size_limits.h"

namespace paddle {

std::vector<int64_t> window_sizes(const AttrValue& value, size_t n, const std::string& what) {
  std::vector<int64_t> out = value.as_ints();
  if (out.size() == 1) out.assign(n, out[0]);
  if (out.size() != n)
    fail(ErrorCode::kUsage, what, " must be a number or ", n, " numbers, not ", value);
  for (const int64_t size : out) require_32_bits(size, what);
  return out;
}

std::vector<int64_t> window_padding(const AttrValue& padding, const Shape& spatial,
                                    const std::vector<int64_t>& kernel,
                                    const std::vector<int64_t>& stride,
                                    const std::vector<int64_t>& dilation, bool channels_last,
                                    const std::string& what) {
  const size_t n = spatial.size();
  std::vector<int64_t> out(2 * n, 0);
  for (size_t i = 0; i < n; ++i)
    if (stride[i] < 1 || dilation[i] < 1)
      fail(ErrorCode::kUsage, what, ": strides and dilations must be positive");
  if (padding.is_string()) {
    const std::string& word = padding.as_string();
    if (word == "VALID" || word == "valid") return out;
    if (word != "SAME" && word != "same")
      fail(ErrorCode::kUsage, what, ": padding '", word, "' is neither SAME nor VALID");
    for (size_t i = 0; i < n; ++i) {
      const int64_t reach = (kernel[i] - 1) * dilation[i] + 1;
      int64_t total = reach - 1;
      if (stride[i] != 1) {
        const int64_t size = spatial[i].value();
        const int64_t count = (size + stride[i] - 1) / stride[i];
        total = std::max<int64_t>(0, (count - 1) * stride[i] + reach - size);
      }
      out[2 * i] = total / 2;
      out[2 * i + 1] = total - total / 2;
    }
    return out;
  }
  if (padding.is_list() && !padding.as_list().empty() && padding.as_list()[0].is_list()) {
    const auto& pairs = padding.as_list();
    // Pairs for every axis, batch and channels included and zero.
    if (pairs.size() != n + 2)
      fail(ErrorCode::kUsage, what, ": padding must have ", n + 2, " pairs, not ", padding);
    const size_t first = channels_last ? 1 : 2;
    for (size_t i = 0; i < pairs.size(); ++i) {
      const auto pair = pairs[i].as_ints();
      if (pair.size() != 2)
        fail(ErrorCode::kUsage, what, ": padding ", padding, " is not a list of pairs");
      if (i >= first && i < first + n) {
        out[2 * (i - first)] = pair[0];
        out[2 * (i - first) + 1] = pair[1];
      } else if (pair[0] != 0 || pair[1] != 0) {
        fail(ErrorCode::kUsage, what, ": batch and channels cannot be padded: ", padding);
      }
    }
  } else {
    const auto numbers = padding.as_ints();
    if (numbers.size() == 1) {
      out.assign(2 * n, numbers[0]);
    } else if (numbers.size() == n) {
      for (size_t i = 0; i < n; ++i) out[2 * i] = out[2 * i + 1] = numbers[i];
    } else if (numbers.size() == 2 * n) {
      out = numbers;
    } else {
      fail(ErrorCode::kUsage, what, ": padding must be 1, ", n, " or ", 2 * n, " numbers, not ",
           padding);
    }
  }
  for (const int64_t p : out) {
    if (p < 0) fail(ErrorCode::kUsage, what, ": padding ", padding, " is negative");
    require_32_bits(p, what, ": padding");
  }
  return out;
}

AttrValue max_pool_padding(const AttrValue& padding, bool return_mask) {
  const bool same =
      padding.is_string() && (padding.as_string() == "SAME" || padding.as_string() == "same");
  return same && return_mask ? AttrValue(0) : padding;
}

std::vector<int64_t> transposed_padding(const AttrValue& padding, const Shape& spatial,
                                        const std::vector<int64_t>& kernel,
                                        const std::vector<int64_t>& stride,
                                        const std::vector<int64_t>& dilation, bool channels_last,
                                        const std::string& what) {
  const size_t n = spatial.size();
  for (size_t i = 0; i < n; ++i)
    if (stride[i] < 1 || dilation[i] < 1)
      fail(ErrorCode::kUsage, what, ": stride and dilation must be positive");
  if (!padding.is_string() || (padding.as_string() != "SAME" && padding.as_string() != "same"))
    return window_padding(padding, spatial, kernel, std::vector<int64_t>(n, 1), dilation,
                          channels_last, what);
  std::vector<int64_t> out;
  for (size_t i = 0; i < n; ++i) {
    if (!spatial[i].is_constant())
      fail(ErrorCode::kUsage, what, ": padding SAME needs a known size, not ", spatial[i]);
    const int64_t size = spatial[i].value();
    const int64_t covered = ((size + stride[i] - 1) / stride[i] - 1) * stride[i];
    const int64_t total = std::max<int64_t>(0, covered + (kernel[i] - 1) * dilation[i] + 1 - size);
    out.push_back(total / 2);
    out.push_back(total - total / 2);
  }
  return out;
}

Dim window_count(const Dim& size, int64_t before, int64_t after, int64_t kernel, int64_t stride,
                 int64_t dilation, bool ceil_mode) {
  const int64_t reach = (kernel - 1) * dilation;
  const Dim span = size + before + after - (reach + 1);
  if (!ceil_mode) return floor_divide(span, stride) + 1;
  const Dim count = floor_divide(span + (stride - 1), stride) + 1;
  if (after + stride <= reach + 1) return count;
  // The last window must start inside the input or its front border.
  const Dim inside = floor_divide(size + (before - 1), stride) + 1;
  return maximum(count - 1, minimum(count, inside));
}

}  // namespace paddle
