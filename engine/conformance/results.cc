#include "conformance/results.h"

#include <cstring>

#include "base/text.h"
#include "inspect/compare.h"

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

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace paddle::conformance
