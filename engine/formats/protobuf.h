#pragma once
// Messages of protocol buffers without their generated code, field by field, for files of which few
// fields are read.

#include <cstdint>
#include <functional>
#include <string_view>

namespace paddle::formats {

class ProtobufReader {
 public:
  /// `reject(at)` throws what damaged bytes at this position of the message are reported as.
  using Reject = std::function<void(size_t at)>;
  ProtobufReader(std::string_view bytes, const Reject& reject) : bytes_(bytes), reject_(reject) {}

  struct Field {
    uint64_t number = 0;
    uint64_t integer = 0;    ///< of a varint or a fixed number
    std::string_view bytes;  ///< of a text or a message
  };
  /// False at the end of the message.
  bool next(Field& field);
  /// A message inside this one.
  ProtobufReader message(const Field& field) const { return {field.bytes, reject_}; }

 private:
  [[noreturn]] void reject() const;
  uint64_t varint();
  std::string_view take(uint64_t count);
  uint64_t fixed(size_t count);

  std::string_view bytes_;
  const Reject& reject_;
  size_t at_ = 0;
};

}  // namespace paddle::formats
