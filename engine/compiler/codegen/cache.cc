#include "compiler/codegen/cache.h"

#include <cstring>
#include <string_view>

#include "base/text.h"

namespace paddle::codegen {
namespace {

void put(std::string& out, uint64_t value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}
void put(std::string& out, std::string_view text) {
  put(out, text.size());
  out += text;
}

class Reader {
 public:
  explicit Reader(std::string_view content) : content_(content) {}
  bool number(uint64_t& value) {
    if (content_.size() < sizeof value) return false;
    std::memcpy(&value, content_.data(), sizeof value);
    content_.remove_prefix(sizeof value);
    return true;
  }
  bool text(std::string_view& value) {
    uint64_t size = 0;
    if (!number(size) || size > content_.size()) return false;
    value = content_.substr(0, size);
    content_.remove_prefix(size);
    return true;
  }
  bool done() const { return content_.empty(); }

 private:
  std::string_view content_;
};

/// entry, names of functions, code
std::string cached_content(const CodeImage& image) {
  std::string content;
  put(content, image.entry);
  put(content, join(image.functions, "\n"));
  put(content, image.bytes);
  return content;
}

std::optional<CodeImage> image_of(std::string_view content) {
  Reader reader(content);
  CodeImage image;
  std::string_view functions, bytes;
  if (!reader.number(image.entry) || !reader.text(functions) || !reader.text(bytes) ||
      !reader.done())
    return std::nullopt;
  if (!functions.empty()) image.functions = split(functions, '\n');
  image.bytes = bytes;
  return image;
}

}  // namespace

std::string hex(uint64_t number) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (; out.size() < 16; number >>= 4) out += kDigits[number & 15];
  return out;
}

CodeCache::CodeCache(std::string folder, uint64_t limit)
    : files_(std::move(folder), ".code", limit) {}

std::optional<CodeImage> CodeCache::find(const std::string& key) const {
  const auto content = files_.find(key);
  return content ? image_of(*content) : std::nullopt;
}

void CodeCache::keep(const std::string& key, const CodeImage& image) {
  files_.keep(key, cached_content(image));
}

std::string default_cache_folder() { return cache_folder("codegen"); }

}  // namespace paddle::codegen
