#include "ps/message.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/crc32c.h"
#include "base/error.h"

namespace paddle::ps {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint32_t kFrameMagic = 0x31535050;  // "PPS1"; the last digit is the version
constexpr uint16_t kMore = 1;                 // flag: the message continues in the next frame

/// The header of a frame, as it is sent.
struct Header {
  uint32_t magic = kFrameMagic;
  uint16_t kind = 0, flags = 0;
  uint32_t table = 0, lane = 0, worker = 0;
  std::array<uint32_t, 2> sequence = {};  // so that no padding comes before it
  uint32_t epoch = 0, length = 0;
  uint32_t checksum = 0;  // of the header before it, and of the body
};
static_assert(sizeof(Header) == kHeaderBytes && std::is_trivially_copyable_v<Header>);

uint32_t checksum_of(const Header& header, std::span<const std::byte> body) {
  const auto bytes = std::as_bytes(std::span(&header, 1));
  return crc32c(body, crc32c(bytes.first(bytes.size() - sizeof header.checksum)));
}

template <class... Parts>
[[noreturn]] void reject_frame(const Parts&... parts) {
  fail(ErrorCode::kPeer, "tables: a damaged frame: ", parts...);
}

/// Shapes of arrays in messages.
constexpr uint64_t kMaxDims = 2;

}  // namespace

void append_frames(std::vector<std::byte>& out, const Message& message, uint32_t epoch) {
  size_t at = 0;
  do {
    const size_t length = std::min(kMaxFrameBody, message.body.size() - at);
    const auto body = std::span(message.body).subspan(at, length);
    at += length;
    Header header;
    header.kind = static_cast<uint16_t>(message.kind);
    header.flags = at < message.body.size() ? kMore : 0;
    header.table = message.table;
    header.lane = message.lane;
    header.worker = message.worker;
    std::memcpy(header.sequence.data(), &message.sequence, sizeof message.sequence);
    header.epoch = epoch;
    header.length = static_cast<uint32_t>(length);
    header.checksum = checksum_of(header, body);
    const auto bytes = std::as_bytes(std::span(&header, 1));
    out.insert(out.end(), bytes.begin(), bytes.end());
    out.insert(out.end(), body.begin(), body.end());
  } while (at < message.body.size());
}

void FrameReader::add(std::span<const std::byte> bytes) {
  if (at_ > 0) {
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<ptrdiff_t>(at_));
    at_ = 0;
  }
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

std::optional<Message> FrameReader::next() {
  while (bytes_.size() - at_ >= kHeaderBytes) {
    Header header;
    std::memcpy(&header, bytes_.data() + at_, sizeof header);
    if (header.magic != kFrameMagic) reject_frame("it begins otherwise");
    if (header.kind == 0 || header.kind > static_cast<uint16_t>(kLastKind))
      reject_frame("the kind ", header.kind, " is unknown");
    if ((header.flags & ~kMore) != 0) reject_frame("the flags ", header.flags, " are unknown");
    if (header.length > kMaxFrameBody) reject_frame(header.length, " bytes are too many");
    if (bytes_.size() - at_ < kHeaderBytes + header.length) return std::nullopt;
    const auto body = std::span(bytes_).subspan(at_ + kHeaderBytes, header.length);
    if (checksum_of(header, body) != header.checksum) reject_frame("its checksum is wrong");
    Message first{static_cast<Kind>(header.kind), header.table, header.lane, header.worker, 0};
    std::memcpy(&first.sequence, header.sequence.data(), sizeof first.sequence);
    if (!is_partial_) {
      partial_ = std::move(first);
    } else if (first.kind != partial_.kind || first.table != partial_.table ||
               first.lane != partial_.lane || first.worker != partial_.worker ||
               first.sequence != partial_.sequence) {
      reject_frame("it is not of the message that the frame before it began");
    }
    if (partial_.body.size() + header.length > max_message_)
      reject_frame("a message of more than ", max_message_, " bytes");
    partial_.body.insert(partial_.body.end(), body.begin(), body.end());
    at_ += kHeaderBytes + header.length;
    is_partial_ = (header.flags & kMore) != 0;
    if (is_partial_) continue;
    Message out = std::move(partial_);
    partial_ = {};
    return out;
  }
  return std::nullopt;
}

void BodyWriter::add_array(const Array& array) {
  const Array packed = array.contiguous();
  add(static_cast<uint8_t>(packed.dtype));
  add_list(std::span<const int64_t>(packed.shape.data(), packed.shape.size()));
  add_bytes({static_cast<const std::byte*>(packed.raw()),
             static_cast<size_t>(storage_bytes(packed.dtype, packed.size()))});
}

void BodyWriter::add_content(const tables::TableContent& content) {
  add_array(content.keys);
  add_array(content.weight);
  for (const auto* columns : {&content.states, &content.statistics}) {
    add<uint64_t>(columns->size());
    for (const auto& [name, values] : *columns) {
      add_text(name);
      add_array(values);
    }
  }
}

void BodyReader::fail_short() { fail(ErrorCode::kPeer, "tables: a message is short"); }

std::span<const std::byte> BodyReader::take_bytes(uint64_t count) {
  if (count > bytes_.size()) fail_short();
  const auto out = bytes_.first(count);
  bytes_ = bytes_.subspan(count);
  return out;
}

std::string BodyReader::take_text() {
  const auto bytes = take_bytes(take<uint64_t>());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Array BodyReader::take_array() {
  const auto dtype = static_cast<DType>(take<uint8_t>());
  if (dtype != DType::kF32 && dtype != DType::kF64 && dtype != DType::kI64 && dtype != DType::kU64)
    fail(ErrorCode::kPeer, "tables: a message has an array of another type");
  const auto dims = take_list<int64_t>();
  if (dims.empty() || dims.size() > kMaxDims) fail_short();
  uint64_t elements = 1;
  for (const int64_t dim : dims) {
    if (dim < 0 || (dim > 0 && elements > kMaxMessage / static_cast<uint64_t>(dim))) fail_short();
    elements *= static_cast<uint64_t>(dim);
  }
  const auto bytes =
      take_bytes(static_cast<uint64_t>(storage_bytes(dtype, static_cast<int64_t>(elements))));
  Array out = Array::empty(dtype, Dims(dims.begin(), dims.end()));
  if (!bytes.empty()) std::memcpy(out.raw(), bytes.data(), bytes.size());
  return out;
}

tables::TableContent BodyReader::take_content() {
  tables::TableContent out;
  out.keys = take_array();
  out.weight = take_array();
  for (auto* columns : {&out.states, &out.statistics}) {
    const auto count = take<uint64_t>();
    for (uint64_t i = 0; i < count; ++i) {
      std::string name = take_text();
      columns->emplace_back(std::move(name), take_array());
    }
  }
  return out;
}

void BodyReader::end() const {
  if (!bytes_.empty()) fail(ErrorCode::kPeer, "tables: a message is too long");
}

}  // namespace paddle::ps
