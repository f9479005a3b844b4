#include "formats/onnx/payloads.h"

#include <cstdint>

#include "base/error.h"

namespace paddle::formats::onnx {
namespace {

constexpr int kMaxDepth = 90;            // protobuf's own limit is 100
constexpr size_t kSmallPayload = 256;    // stays in the message
constexpr uint64_t kMaxSlim = 1u << 30;  // limit on what remains to be parsed
constexpr uint64_t kPayloadOffset = 100001, kPayloadSize = 100002, kRawData = 9;

struct Child {
  MessageKind parent;
  uint64_t field;
  MessageKind kind;
};
constexpr Child kChildren[] = {
    {MessageKind::kModel, 7, MessageKind::kGraph},
    {MessageKind::kModel, 25, MessageKind::kFunction},
    {MessageKind::kGraph, 1, MessageKind::kNode},
    {MessageKind::kGraph, 5, MessageKind::kTensor},
    {MessageKind::kGraph, 15, MessageKind::kSparseTensor},
    {MessageKind::kFunction, 7, MessageKind::kNode},
    {MessageKind::kFunction, 11, MessageKind::kAttribute},
    {MessageKind::kNode, 5, MessageKind::kAttribute},
    {MessageKind::kAttribute, 5, MessageKind::kTensor},
    {MessageKind::kAttribute, 6, MessageKind::kGraph},
    {MessageKind::kAttribute, 10, MessageKind::kTensor},
    {MessageKind::kAttribute, 11, MessageKind::kGraph},
    {MessageKind::kAttribute, 22, MessageKind::kSparseTensor},
    {MessageKind::kSparseTensor, 1, MessageKind::kTensor},
    {MessageKind::kSparseTensor, 2, MessageKind::kTensor},
    {MessageKind::kSequence, 3, MessageKind::kTensor},
    {MessageKind::kSequence, 5, MessageKind::kSequence},
    {MessageKind::kSequence, 7, MessageKind::kOptional},
    {MessageKind::kOptional, 3, MessageKind::kTensor},
    {MessageKind::kOptional, 5, MessageKind::kSequence},
    {MessageKind::kOptional, 7, MessageKind::kOptional},
};

MessageKind child_of(MessageKind parent, uint64_t field) {
  for (const Child& c : kChildren)
    if (c.parent == parent && c.field == field) return c.kind;
  return MessageKind::kPlain;
}

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

class Slimmer {
 public:
  Slimmer(std::string_view bytes, const std::string& path) : bytes_(bytes), path_(path) {}

  std::string message(size_t at, size_t end, MessageKind kind, int depth) {
    if (depth > kMaxDepth)
      fail(ErrorCode::kModel, path_, ": messages are nested more than ", kMaxDepth, " deep");
    std::string out;
    while (at < end) {
      const size_t begin = at;
      const uint64_t key = varint(at, end);
      const uint64_t field = key >> 3;
      if (field == 0) bad(begin);
      switch (key & 7) {
        case 0:
          varint(at, end);
          break;
        case 1:
          skip(at, end, 8);
          break;
        case 5:
          skip(at, end, 4);
          break;
        case 2: {
          const uint64_t size = varint(at, end);
          const size_t content = at;
          skip(at, end, size);
          if (const MessageKind child = child_of(kind, field); child != MessageKind::kPlain) {
            const std::string slim = message(content, at, child, depth + 1);
            append_varint(out, key);
            append_varint(out, slim.size());
            append(out, slim);
            continue;
          }
          if (kind == MessageKind::kTensor && field == kRawData && size > kSmallPayload) {
            append_varint(out, kPayloadOffset << 3);
            append_varint(out, content);
            append_varint(out, kPayloadSize << 3);
            append_varint(out, size);
            continue;
          }
          break;
        }
        default:
          bad(begin);
      }
      // A file must not set our own offset fields.
      if (kind == MessageKind::kTensor && (field == kPayloadOffset || field == kPayloadSize))
        continue;
      append(out, bytes_.substr(begin, at - begin));
    }
    return out;
  }

 private:
  [[noreturn]] void bad(size_t at) const {
    fail(ErrorCode::kModel, path_, ": not a readable ONNX file: no protobuf field at byte ", at);
  }
  void append(std::string& out, std::string_view more) const {
    if (out.size() + more.size() > kMaxSlim)
      fail(ErrorCode::kModel, path_, ": holds more than ", human_bytes(kMaxSlim),
           " in addition to the tensors' raw data");
    out += more;
  }
  uint64_t varint(size_t& at, size_t end) const {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (at >= end) cut(at);
      const auto byte = static_cast<uint8_t>(bytes_[at++]);
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    bad(at);
  }
  void skip(size_t& at, size_t end, uint64_t size) const {
    if (size > end - at) cut(at);
    at += static_cast<size_t>(size);
  }
  [[noreturn]] void cut(size_t at) const {
    fail(ErrorCode::kModel, path_, ": cut short, or not an ONNX file: a field at byte ", at,
         " does not end within its message");
  }

  std::string_view bytes_;
  const std::string& path_;
};

}  // namespace

std::string without_payloads(std::string_view bytes, MessageKind kind, const std::string& path) {
  return Slimmer(bytes, path).message(0, bytes.size(), kind, 0);
}

}  // namespace paddle::formats::onnx
