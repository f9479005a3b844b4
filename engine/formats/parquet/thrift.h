#pragma once
// Thrift's compact protocol, in which Parquet writes the descriptions of files and pages
// (thrift-compact-protocol.md of Apache Thrift). Readers name the fields they want; all others are
// skipped.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace paddle::formats::parquet {

class Thrift {
 public:
  enum Type : uint8_t {
    kStop,
    kTrue,
    kFalse,
    kByte,
    kI16,
    kI32,
    kI64,
    kDouble,
    kBinary,
    kList,
    kSet,
    kMap,
    kStruct
  };
  Thrift(std::string_view bytes, std::string place) : bytes_(bytes), place_(std::move(place)) {}
  size_t position() const { return at_; }

  /// Calls `field(id, type)` for each field of a struct; it returns whether it has read the value.
  template <class F>
  void read_struct(F&& field) {
    const Nesting nesting(*this);
    int16_t id = 0;
    while (true) {
      const uint8_t head = byte();
      const auto type = static_cast<Type>(head & 15);
      if (type == kStop) return;
      const int delta = head >> 4;
      id = static_cast<int16_t>(delta ? id + delta : integer());
      if (!field(id, type)) skip(type);
    }
  }
  /// Calls `item(type)` for each item of a list.
  template <class F>
  void read_list(F&& item) {
    const Nesting nesting(*this);
    const auto [size, type] = list_head();
    for (uint64_t i = 0; i < size; ++i) item(type);
  }
  int64_t integer() {
    const uint64_t u = varint();
    return static_cast<int64_t>(u >> 1) ^ -static_cast<int64_t>(u & 1);
  }
  std::string_view binary() {
    const uint64_t size = varint();
    if (size > bytes_.size() - at_) damaged();
    const std::string_view out = bytes_.substr(at_, size);
    at_ += size;
    return out;
  }
  void skip(Type type) {
    switch (type) {
      case kTrue:
      case kFalse:
        return;
      case kByte:
        byte();
        return;
      case kI16:
      case kI32:
      case kI64:
        varint();
        return;
      case kDouble:
        for (int i = 0; i < 8; ++i) byte();
        return;
      case kBinary:
        binary();
        return;
      case kList:
      case kSet: {
        const Nesting nesting(*this);
        const auto [size, item] = list_head();
        for (uint64_t i = 0; i < size; ++i) skip_item(item);
        return;
      }
      case kMap: {
        const Nesting nesting(*this);
        const uint64_t size = varint();
        if (size == 0) return;
        const uint8_t types = byte();
        for (uint64_t i = 0; i < size; ++i) {
          skip_item(static_cast<Type>(types >> 4));
          skip_item(static_cast<Type>(types & 15));
        }
        return;
      }
      case kStruct:
        read_struct([](int16_t, Type) { return false; });
        return;
      default:
        damaged();
    }
  }

 private:
  static constexpr int kMaxNesting = 32;
  /// Rejects values too deep inside each other.
  class Nesting {
   public:
    explicit Nesting(Thrift& reader) : reader_(reader) {
      if (++reader_.depth_ > kMaxNesting) reader_.damaged();
    }
    ~Nesting() { --reader_.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Thrift& reader_;
  };

  [[noreturn]] void damaged() const {
    fail(ErrorCode::kData, place_, ": the description of the data is damaged at byte ", at_);
  }
  uint8_t byte() {
    if (at_ >= bytes_.size()) damaged();
    return static_cast<uint8_t>(bytes_[at_++]);
  }
  uint64_t varint() {
    uint64_t out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t b = byte();
      out |= uint64_t{b & 127u} << shift;
      if (b < 128) return out;
    }
    damaged();
  }
  std::pair<uint64_t, Type> list_head() {
    const uint8_t head = byte();
    uint64_t size = head >> 4;
    if (size == 15) size = varint();
    // Each item takes a byte at least.
    if (size > bytes_.size() - at_) damaged();
    return {size, static_cast<Type>(head & 15)};
  }
  /// Items of collections have a byte even where they are booleans.
  void skip_item(Type type) {
    if (type == kTrue || type == kFalse)
      byte();
    else
      skip(type);
  }

  std::string_view bytes_;
  std::string place_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace paddle::formats::parquet
