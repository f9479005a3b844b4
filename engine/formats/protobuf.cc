#include "formats/protobuf.h"

#include <cstring>

#include "base/error.h"

namespace paddle::formats {

bool ProtobufReader::next(Field& field) {
  if (at_ >= bytes_.size()) return false;
  const uint64_t tag = varint();
  field = {tag >> 3, 0, {}};
  switch (tag & 7) {
    case 0:
      field.integer = varint();
      break;
    case 1:
      field.integer = fixed(8);
      break;
    case 2:
      field.bytes = take(varint());
      break;
    case 5:
      field.integer = fixed(4);
      break;
    default:
      reject();
  }
  return true;
}

void ProtobufReader::reject() const {
  reject_(at_);
  fail(ErrorCode::kInternal, "ProtobufReader: damaged bytes are not reported");
}

uint64_t ProtobufReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at_ >= bytes_.size()) reject();
    const auto byte = static_cast<unsigned char>(bytes_[at_++]);
    value |= uint64_t{byte & 127U} << shift;
    if (byte < 128) return value;
  }
  reject();
}

std::string_view ProtobufReader::take(uint64_t count) {
  if (count > bytes_.size() - at_) reject();
  const std::string_view out = bytes_.substr(at_, static_cast<size_t>(count));
  at_ += static_cast<size_t>(count);
  return out;
}

uint64_t ProtobufReader::fixed(size_t count) {
  uint64_t value = 0;
  std::memcpy(&value, take(count).data(), count);
  return value;
}

}  // namespace paddle::formats
