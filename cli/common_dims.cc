#include "common_dims.h"

#include "base/error.h"
#include "base/files.h"

namespace paddle::cli {

std::vector<std::string> take_arguments(std::vector<std::string>& words) {
  const auto is_argument = [](const std::string& word) {
    const std::string key = word.substr(0, word.find('='));
    if (key != word) return key.find('.') != std::string::npos;
    const std::string file = word.substr(0, word.rfind(':'));
    return file_exists(word) || is_directory(word) || file_exists(file);
  };
  std::vector<std::string> out, sizes;
  for (std::string& word : words) (is_argument(word) ? out : sizes).push_back(std::move(word));
  words = std::move(sizes);
  return out;
}

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
