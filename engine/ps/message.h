#pragma once
// The messages between workers and the lanes of servers.
//
// A frame is a header of 40 bytes and at most 1 MiB of a message, little-endian; longer messages
// are several frames. Numbers of a worker's messages make them idempotent: a message that was
// executed before is answered again and changes nothing.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "tables/segments.h"

namespace paddle::ps {

/// The sender of a message that makes no sense is at fault.
template <class... Parts>
[[noreturn]] void reject_message(const Parts&... parts) {
  fail(ErrorCode::kPeer, "tables: ", parts...);
}

enum class Kind : uint16_t {
  kHello = 1,  ///< of a server, when a worker has connected: its state
  kOpen,       ///< a table; answered by kDone
  kAsk,        ///< keys; answered by kRows
  kRows,
  kPush,     ///< the gradients of a worker for an event; not answered
  kSquares,  ///< asks for the sums of squares of an event's gradients; answered by kSums
  kSums,
  kUpdate,  ///< the event itself; answered by kDone, when it is in the log
  kDone,
  kFence,   ///< all workers wait for each other; only of asynchronous runs
  kDay,     ///< the end of a day
  kFinish,  ///< ends the removal of rows; answered by kRemoved
  kRemoved,
  kMark,  ///< changes from now on are those of the next save
  kLoad,  ///< empties the tables
  kAdd,   ///< rows of a checkpoint; answered by kAdded
  kAdded,
  kLoaded,  ///< the last of them has been sent
  kCount,   ///< answered by kCounts
  kCounts,
  kContent,  ///< rows of a table; answered by one kContents or more
  kContents,
  kSave,  ///< answered by kSaved
  kSaved,
  kBye,   ///< the worker has ended; not answered
  kError  ///< of a server: a code and a message; the connection ends
};
inline constexpr auto kLastKind = Kind::kError;

/// Which files of a table a kSave writes.
enum class SavedPart : uint8_t { kAll, kChanges, kWaiting };

struct Message {
  Kind kind = Kind::kHello;
  uint32_t table = 0, lane = 0, worker = 0;
  uint64_t sequence = 0;
  std::vector<std::byte> body = {};
};

inline constexpr size_t kHeaderBytes = 40;
inline constexpr size_t kMaxFrameBody = size_t{1} << 20;
/// Of a message that a worker or a server takes.
inline constexpr size_t kMaxMessage = size_t{1} << 30;

/// Appends the frames of a message. `epoch`: of the map of lanes.
void append_frames(std::vector<std::byte>& out, const Message& message, uint32_t epoch = 0);

/// Takes bytes as they arrive apart into messages.
class FrameReader {
 public:
  FrameReader() = default;
  explicit FrameReader(size_t max_message) : max_message_(max_message) {}
  void add(std::span<const std::byte> bytes);
  /// The next whole message. kPeer, with the cause, for other bytes than frames; the connection
  /// must end then.
  std::optional<Message> next();
  /// Bytes that are kept.
  size_t size() const { return bytes_.size() - at_ + partial_.body.size(); }

 private:
  size_t max_message_ = kMaxMessage;
  std::vector<std::byte> bytes_;
  size_t at_ = 0;  ///< of the first byte that was not used
  Message partial_;
  bool is_partial_ = false;
};

/// Writes the body of a message.
class BodyWriter {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void add(const T& value) { add_bytes(std::as_bytes(std::span(&value, 1))); }
  void add_bytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  template <class T>
  void add_list(std::span<const T> values) {
    add<uint64_t>(values.size());
    add_bytes(std::as_bytes(values));
  }
  void add_text(std::string_view text) { add_list(std::span(text.data(), text.size())); }
  void add_array(const Array& array);
  void add_content(const tables::TableContent& content);
  void reserve(size_t bytes) { bytes_.reserve(bytes); }
  std::vector<std::byte> take() { return std::move(bytes_); }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads it: kPeer if it is short, or too long at its end.
class BodyReader {
 public:
  explicit BodyReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <class T>
  requires std::is_trivially_copyable_v<T> T take() {
    T out;
    std::memcpy(&out, take_bytes(sizeof out).data(), sizeof out);
    return out;
  }
  bool take_flag() { return take<uint8_t>() != 0; }
  std::span<const std::byte> take_bytes(uint64_t count);
  template <class T>
  std::vector<T> take_list() {
    const auto count = take<uint64_t>();
    if (count > bytes_.size() / sizeof(T)) fail_short();
    std::vector<T> out(count);
    if (count > 0) std::memcpy(out.data(), take_bytes(count * sizeof(T)).data(), count * sizeof(T));
    return out;
  }
  std::string take_text();
  Array take_array();
  tables::TableContent take_content();
  bool at_end() const { return bytes_.empty(); }
  void end() const;

 private:
  [[noreturn]] static void fail_short();
  std::span<const std::byte> bytes_;
};

}  // namespace paddle::ps
