#include "train/records/tensorboard.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/files.h"

namespace paddle::train {
namespace {

/// CRC-32C (Castagnoli), reflected.
uint32_t crc32c(std::string_view bytes) {
  static const auto table = [] {
    std::array<uint32_t, 256> out{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = value & 1 ? value >> 1 ^ 0x82f63b78u : value >> 1;
      out[i] = value;
    }
    return out;
  }();
  uint32_t crc = ~0u;
  for (const char c : bytes) crc = table[(crc ^ static_cast<uint8_t>(c)) & 0xff] ^ crc >> 8;
  return ~crc;
}

/// The format stores checksums rotated, because records may hold checksums themselves.
uint32_t masked(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; }

template <class T>
void append_raw(std::string& out, T value) {
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  out.append(raw, sizeof value);
}

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void append_bytes(std::string& out, int field, std::string_view bytes) {
  append_varint(out, static_cast<uint64_t>(field) << 3 | 2);
  append_varint(out, bytes.size());
  out += bytes;
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The beginning of an Event message: the time, and the step.
std::string event_at(int64_t step) {
  std::string out;
  append_varint(out, 1 << 3 | 1);
  append_raw(out, now());
  append_varint(out, 2 << 3 | 0);
  append_varint(out, static_cast<uint64_t>(step));
  return out;
}

}  // namespace

EventWriter::EventWriter(const std::string& folder, int64_t resumed_step) {
  ensure_directory(folder);
  // TensorBoard looks for "tfevents" in names, and reads files in the order of their names.
  constexpr std::string_view kName = "events.out.tfevents.";
  auto seconds = static_cast<int64_t>(now());
  for (const std::string& name : list_directory(folder)) {
    if (!name.starts_with(kName)) continue;
    const int64_t earlier = std::strtoll(name.c_str() + kName.size(), nullptr, 10);
    if (earlier < seconds + 60) seconds = std::max(seconds, earlier + 1);
  }
  path_ = str(folder, "/", kName, seconds, ".", getpid());
  file_.open(path_, std::ios::binary | std::ios::app);
  if (!file_) fail(ErrorCode::kDevice, path_, ": cannot be written");
  std::string event = event_at(0);
  append_bytes(event, 3, "brain.Event:2");
  record(event);
  if (resumed_step < 0) return;
  // A session that starts at a step ends what is known of that step and of later ones.
  constexpr int kSessionLog = 7;
  std::string session, start = event_at(resumed_step + 1);
  append_varint(session, 1 << 3 | 0);
  append_varint(session, 1);  // SessionLog.START
  append_bytes(start, kSessionLog, session);
  record(start);
}

void EventWriter::record(const std::string& event) {
  std::string header;
  append_raw(header, static_cast<uint64_t>(event.size()));
  std::string out = header;
  append_raw(out, masked(crc32c(header)));
  out += event;
  append_raw(out, masked(crc32c(event)));
  file_.write(out.data(), static_cast<std::streamsize>(out.size()));
  if (!file_) fail(ErrorCode::kDevice, path_, ": cannot be written");
}

void EventWriter::scalar(const std::string& tag, int64_t step, double value) {
  if (!std::isfinite(value)) return;
  std::string number;
  append_bytes(number, 1, tag);
  append_varint(number, 2 << 3 | 5);
  append_raw(number, static_cast<float>(value));
  std::string summary;
  append_bytes(summary, 1, number);
  std::string event = event_at(step);
  append_bytes(event, 5, summary);
  record(event);
}

void EventWriter::flush() {
  file_.flush();
  if (!file_) fail(ErrorCode::kDevice, path_, ": cannot be written");
}

}  // namespace paddle::train
