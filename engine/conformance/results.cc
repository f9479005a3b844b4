#include "conformance/results.h"

#include <cstdlib>
#include <cstring>

#include "base/text.h"
namespace paddle::conformance {

std::string compare_results(const std::vector<Array>& found, const std::vector<Array>& expected,
                            bool bits, std::string_view who, double half_tolerance) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const bool is_half = expected[i].dtype == DType::kF16 || expected[i].dtype == DType::kBF16;
    const double tolerance = is_half ? half_tolerance : 2e-5;
    std::string bad = inspect::difference(found[i], expected[i], {tolerance, tolerance / 2});
    if (bad.empty() && bits &&
        std::memcmp(found[i].raw(), expected[i].raw(),
                    static_cast<size_t>(storage_bytes(found[i].dtype, found[i].size()))) != 0)
      bad = str("has other bits, though ", who, " states that it keeps them");
    if (!bad.empty()) return str("result ", i, ": ", bad);
  }
  return "";
}

inspect::Tolerance tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return {1e-10, 1e-12};
    case DType::kF16:
      return {4e-3, 2e-3};
    case DType::kBF16:
      return {3e-2, 2e-2};
    default:
      return {2e-5, 1e-6};
  }
}

std::string compare_each(const Results& found, const Results& expected, double scale) {
  for (size_t r = 0; r < expected.size(); ++r) {
    if (r >= found.size() || found[r].has_value() != expected[r].has_value())
      return str("result ", r, " is only there in one of both");
    if (!expected[r]) continue;
    const DType dtype = expected[r]->dtype;
    const bool is_half = dtype == DType::kF16 || dtype == DType::kBF16;
    const double tolerance = scale * (is_half                 ? tolerance_of(dtype).relative
                                      : item_size(dtype) <= 4 ? 2e-5
                                                              : 1e-10);
    const std::string bad =
        inspect::difference(*found[r], *expected[r], {tolerance, tolerance / 10});
    if (!bad.empty()) return str("result ", r, ": ", bad);
  }
  return "";
}

namespace {
/// Begins the values, and ends each of them.
constexpr char kValues = '\x1c', kValueEnd = '\x1f';
}  // namespace

std::string with_values(const std::string& message) {
  const auto values = inspect::mismatch_of(message);
  return values ? str(message, kValues, values->found, kValueEnd, values->expected, kValueEnd,
                      values->tolerance)
                : message;
}

std::optional<inspect::Mismatch> take_values(std::string& message) {
  const size_t at = message.find(kValues);
  if (at == std::string::npos) return std::nullopt;
  const std::vector<std::string> values = split(message.substr(at + 1), kValueEnd);
  message.resize(at);
  if (values.size() != 3) return std::nullopt;
  return inspect::Mismatch{message, values[0], values[1], std::strtod(values[2].c_str(), nullptr)};
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace paddle::conformance
