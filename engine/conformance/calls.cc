#include "conformance/calls.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "base/text.h"
#include "inspect/both_modes.h"
#include "inspect/numeric.h"
#include "ops/core/operand_types.h"
#include "tensor/random.h"

namespace paddle::conformance {
namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// The text with `change(dtype, sizes)` in the place of each `dtype[sizes]`.
std::string with_types(
    const std::string& text,
    const std::function<std::string(const std::string& dtype, const std::string& sizes)>& change) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string word = text.substr(i, end - i);
    if (end > i && end < text.size() && text[end] == '[' && parse_dtype(word)) {
      const size_t close = text.find(']', end);
      if (close != std::string::npos) {
        out += change(word, text.substr(end + 1, close - end - 1));
        i = close + 1;
        continue;
      }
    }
    if (end == i) ++end;
    out += text.substr(i, end - i);
    i = end;
  }
  return out;
}

std::string with_dtype(const std::string& text, const std::string& dtype) {
  return with_types(text, [&](const std::string& old, const std::string& sizes) {
    return (is_float(*parse_dtype(old)) ? dtype : old) + "[" + sizes + "]";
  });
}

bool takes(const Op& op, DType dtype) {
  for (size_t d = 0; d < op.operands().size(); ++d)
    if (!op.operands()[d].hidden && (operand_types(op, d) & dtype_sets::kFloat) != 0 &&
        !(operand_types(op, d) & dtype_sets::of(dtype)))
      return false;
  return true;
}

}  // namespace

std::string resized(const std::string& text,
                    const std::function<int64_t(int64_t old, size_t n)>& size) {
  std::map<std::string, size_t> order;
  return with_types(text, [&](const std::string& dtype, const std::string& sizes) {
    std::string out;
    for (const std::string& part : split(sizes, ',')) {
      const size_t n = order.emplace(part, order.size()).first->second;
      int64_t old = 0;
      for (const char c : part)
        if (c >= '0' && c <= '9' && old < 100000) old = old * 10 + (c - '0');
      // 1 broadcasts, and others must not become 1 by chance.
      out += (out.empty() ? "" : ",") +
             (part.empty() ? "" : std::to_string(old == 1 ? 1 : size(old, n)));
    }
    return dtype + "[" + out + "]";
  });
}

std::vector<Call> calls_of(const Op& op, const Extent& extent) {
  const auto as_is = [](int64_t old, size_t) { return old; };
  const auto odd = [](int64_t, size_t n) { return static_cast<int64_t>(7 + 6 * n); };
  const auto long_odd = [](int64_t, size_t n) { return static_cast<int64_t>(n == 0 ? 3 : 131); };
  const auto one = [](int64_t, size_t) { return int64_t{1}; };
  const auto no_first = [](int64_t old, size_t n) { return n == 0 ? 0 : old; };
  const auto no_last = [](int64_t old, size_t n) { return n == 0 ? old : 0; };
  const Random random(extent.seed);
  const auto drawn = [&](int64_t, size_t n) {
    return 2 + static_cast<int64_t>(random.below(n, 40));
  };
  std::vector<std::function<int64_t(int64_t, size_t)>> sizes = {as_is, odd, no_first, no_last,
                                                                drawn};
  if (!extent.quick) sizes.insert(sizes.end(), {long_odd, one});
  std::vector<DType> dtypes = {DType::kF64, DType::kF32};
  if (!extent.quick) dtypes.insert(dtypes.end(), {DType::kF16, DType::kBF16});
  std::vector<Call> out;
  std::set<std::string> seen;
  for (const std::string& sample : inspect::samples_of(op))
    for (const auto& size : sizes)
      for (const DType dtype : dtypes) {
        if (!takes(op, dtype)) continue;
        const std::string words = with_dtype(resized(sample, size), text(dtype));
        if (!seen.insert(words).second) continue;
        out.push_back({words, false});
        if (dtype != DType::kF32) continue;
        out.push_back({words, true});
        if (&size >= &sizes[2]) continue;
        out.push_back({words, false, Values::kWhole});
        out.push_back({words, false, Values::kNan});
      }
  return out;
}

Array with_values(const Array& array, Values values) {
  if (values == Values::kDrawn || !is_float(array.dtype)) return array;
  Array out = array.contiguous().cast(DType::kF64);
  if (out.storage == array.storage) out = inspect::own_copy(out);
  double* const x = out.data<double>();
  for (int64_t i = 0; i < out.size(); ++i)
    if (values == Values::kWhole)
      x[i] = std::round(x[i]);
    else if (i % 5 == 2)
      x[i] = std::numeric_limits<double>::quiet_NaN();
  return out.cast(array.dtype);
}

inspect::NamedCall parse(const Op& op, const Call& call) {
  std::vector<std::string> words;
  for (const std::string& word : split(call.text, ' '))
    if (!word.empty()) words.push_back(word);
  return inspect::parse_call(op, words);
}

}  // namespace paddle::conformance
