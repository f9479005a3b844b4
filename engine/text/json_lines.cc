#include "text/json_lines.h"

#include <algorithm>

#include "base/text.h"
#include "text/json_value.h"

namespace paddle {

void for_each_json_line(
    std::string_view text, const std::string& path,
    const std::function<void(std::string_view line, const SourceLocation& place)>& add) {
  int number = 1;
  for (size_t at = 0; at < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (!trim(line).empty()) add(line, {path, number});
  }
}

void for_each_json_text(std::string_view text, const std::string& path, const std::string& key,
                        const std::function<void(std::string_view)>& add) {
  for_each_json_line(text, path, [&](std::string_view line, const SourceLocation& place) {
    Json record;
    try {
      record = parse_json(line, "the record");
    } catch (const Error& e) {
      throw Error(ErrorCode::kData, e.message(), place);
    }
    const Json* value = record.find(key);
    if (!value || value->kind != Json::Kind::kString)
      throw Error(ErrorCode::kData, str("expected a text at '", key, "'"), place);
    add(value->text);
  });
}

}  // namespace paddle
