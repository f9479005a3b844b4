#include "common_dims.h"

#include "base/error.h"

namespace paddle::cli {

std::map<std::string, int64_t> parse_dims(const std::vector<std::string>& words) {
  std::map<std::string, int64_t> out;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (name.empty() || value.empty() || value.size() > 18 ||
        value.find_first_not_of("0123456789") != std::string::npos)
      fail(ErrorCode::kUsage, "--dim: expected NAME=SIZE, found '", word, "'");
    const auto [at, inserted] = out.emplace(name, std::stoll(value));
    if (!inserted && at->second != std::stoll(value))
      fail(ErrorCode::kUsage, "--dim: ", name, " is given twice, as ", at->second, " and ", value);
  }
  return out;
}

}  // namespace paddle::cli
