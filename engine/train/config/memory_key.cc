#include "train/config/memory_key.h"

#include "base/byte_size.h"

namespace paddle::train {

std::optional<uint64_t> read_memory(const config::Section& s, const std::string& section,
                                    const std::string& name, uint64_t most, const char* example,
                                    config::Diagnostics& diagnostics) {
  const std::string& text = s.at(name).text;
  const auto bytes = parse_byte_size(text);
  if (bytes && *bytes > 0 && *bytes <= most) return bytes;
  diagnostics.add(ErrorCode::kConfig,
                  str(section, ".", name, ": expected an amount of memory such as ", example,
                      ", found '", text, "'"),
                  s.location(name));
  return std::nullopt;
}

}  // namespace paddle::train
