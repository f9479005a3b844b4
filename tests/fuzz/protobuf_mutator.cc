// Mutates protobuf messages without their schema: fields are changed, repeated, removed and moved
// between messages, and the lengths around them stay right. Random bytes seldom get past the
// parser.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

struct Field {
  uint64_t key = 0;     ///< number and wire type
  uint64_t number = 0;  ///< of a varint
  std::string bytes;    ///< of any other kind, unless it is a message
  std::vector<Field> fields;
  bool is_message = false;
};
using Message = std::vector<Field>;

std::optional<uint64_t> read_varint(const std::string& in, size_t& at) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at >= in.size()) return std::nullopt;
    const auto byte = static_cast<uint8_t>(in[at++]);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

void write_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

std::optional<Message> parse(const std::string& in, int depth) {
  Message out;
  for (size_t at = 0; at < in.size();) {
    Field f;
    const auto key = read_varint(in, at);
    if (!key || *key >> 3 == 0 || *key >> 3 > 64) return std::nullopt;
    f.key = *key;
    uint64_t size = 0;
    switch (f.key & 7) {
      case 0: {
        const auto number = read_varint(in, at);
        if (!number) return std::nullopt;
        f.number = *number;
        out.push_back(f);
        continue;
      }
      case 1:
        size = 8;
        break;
      case 5:
        size = 4;
        break;
      case 2: {
        const auto length = read_varint(in, at);
        if (!length) return std::nullopt;
        size = *length;
        break;
      }
      default:
        return std::nullopt;
    }
    if (size > in.size() - at) return std::nullopt;
    f.bytes = in.substr(at, size);
    at += size;
    if ((f.key & 7) == 2 && size > 1 && depth < 12)
      if (auto inner = parse(f.bytes, depth + 1)) {
        f.fields = std::move(*inner);
        f.is_message = true;
      }
    out.push_back(std::move(f));
  }
  return out;
}

std::string write(const Message& message) {
  std::string out;
  for (const Field& f : message) {
    write_varint(out, f.key);
    if ((f.key & 7) == 0) {
      write_varint(out, f.number);
      continue;
    }
    const std::string content = f.is_message ? write(f.fields) : f.bytes;
    if ((f.key & 7) == 2) write_varint(out, content.size());
    out += content;
  }
  return out;
}

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  void change(Message& root) {
    std::vector<Message*> messages;
    collect(root, messages);
    Message& at = *messages[pick(messages.size())];
    if (at.empty()) return;
    const size_t i = pick(at.size());
    switch (pick(8)) {
      case 0:
        at.erase(at.begin() + static_cast<int64_t>(i));
        break;
      case 1:
        at.insert(at.begin() + static_cast<int64_t>(pick(at.size() + 1)), Field(at[i]));
        break;
      case 2: {  // a field of another message in the place of this one
        const Message& other = *messages[pick(messages.size())];
        if (!other.empty()) at[i] = Field(other[pick(other.size())]);
        break;
      }
      case 3:
        std::swap(at[i], at[pick(at.size())]);
        break;
      default:
        change_value(at[i]);
    }
  }

 private:
  size_t pick(size_t count) { return count == 0 ? 0 : random_() % count; }
  uint64_t number() {
    static constexpr uint64_t kNumbers[] = {0, 1, 2, 3, 4, 5, 7, 8, 16, 64, 255, 1000, 65536};
    switch (pick(5)) {
      case 0:
        return uint64_t{1} << pick(64);
      case 1:
        return ~uint64_t{0} - pick(5);
      case 2:
        return (uint64_t{1} << pick(64)) - 1;
      default:
        return kNumbers[pick(std::size(kNumbers))];
    }
  }
  void change_value(Field& f) {
    if ((f.key & 7) == 0) {
      f.number = pick(3) == 0 ? f.number + pick(5) - 2 : number();
      return;
    }
    if (f.is_message) {
      f.fields.clear();
      return;
    }
    if (f.bytes.size() >= 8 && pick(3) > 0) {  // numbers of a tensor
      const uint64_t n = number();
      std::memcpy(f.bytes.data() + pick(f.bytes.size() / 8) * 8, &n, 8);
      return;
    }
    if (f.bytes.size() >= 4 && f.bytes.size() % 4 == 0 && pick(2) == 0) {
      static constexpr float kFloats[] = {0, -1, 0.5f, 1e10f, 1e38f, -1e-30f, 3};
      std::memcpy(f.bytes.data() + pick(f.bytes.size() / 4) * 4, &kFloats[pick(7)], 4);
      return;
    }
    const size_t room = f.bytes.size() + 8;
    std::vector<uint8_t> buffer(f.bytes.begin(), f.bytes.end());
    const size_t size = buffer.size();
    buffer.resize(room);
    const size_t now = LLVMFuzzerMutate(buffer.data(), size, (f.key & 7) == 2 ? room : size);
    if ((f.key & 7) == 2 || now == size)
      f.bytes.assign(buffer.begin(), buffer.begin() + static_cast<int64_t>(now));
  }
  static void collect(Message& message, std::vector<Message*>& out) {
    out.push_back(&message);
    for (Field& f : message)
      if (f.is_message) collect(f.fields, out);
  }

  std::minstd_rand random_;
};

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  auto message = parse(std::string(reinterpret_cast<const char*>(data), size), 0);
  if (!message || message->empty() || seed % 5 == 0) return LLVMFuzzerMutate(data, size, max_size);
  Mutator mutator(seed);
  for (unsigned i = 0; i <= seed % 3; ++i) mutator.change(*message);
  const std::string out = write(*message);
  if (out.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, out.data(), out.size());
  return out.size();
}
