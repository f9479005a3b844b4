// Frames: messages of any length arrive whole however their bytes are cut, and damaged ones are
// rejected.

#include "ps/message.h"

#include <gtest/gtest.h>

#include <random>

#include "base/crc32c.h"
#include "base/error.h"

namespace paddle::ps {
namespace {

std::vector<std::byte> bytes_of(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> out(count);
  for (std::byte& each : out) each = static_cast<std::byte>(random());
  return out;
}

TEST(Crc32c, IsThatOfRfc3720) {
  // The test vectors of its appendix B.4.
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0})), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0xff})), 0x62a8ab43u);
  std::vector<std::byte> rising;
  for (int i = 0; i < 32; ++i) rising.push_back(static_cast<std::byte>(i));
  EXPECT_EQ(crc32c(rising), 0x46dd794eu);
  const auto all = std::span(rising);
  EXPECT_EQ(crc32c(all.subspan(13), crc32c(all.first(13))), 0x46dd794eu);
}

TEST(Frames, ArriveWholeHoweverTheyAreCut) {
  std::vector<Message> sent;
  std::vector<std::byte> bytes;
  for (const size_t length : {size_t{0}, size_t{1}, kMaxFrameBody, 3 * kMaxFrameBody + 7}) {
    sent.push_back({Kind::kAsk, 1, 2, 3, 4 + length, bytes_of(length, 5)});
    append_frames(bytes, sent.back());
  }
  EXPECT_EQ(bytes.size(), 7 * kHeaderBytes + 4 * kMaxFrameBody + 8);
  std::mt19937 random(1);
  for (const size_t most : {size_t{97}, size_t{100'000}, bytes.size()}) {
    FrameReader reader;
    std::vector<Message> received;
    for (size_t at = 0; at < bytes.size();) {
      const size_t count = std::min(bytes.size() - at, 1 + random() % most);
      reader.add(std::span(bytes).subspan(at, count));
      at += count;
      while (auto message = reader.next()) received.push_back(std::move(*message));
    }
    ASSERT_EQ(received.size(), sent.size());
    for (size_t i = 0; i < sent.size(); ++i) {
      EXPECT_EQ(received[i].kind, sent[i].kind);
      EXPECT_EQ(received[i].lane, 2u);
      EXPECT_EQ(received[i].worker, 3u);
      EXPECT_EQ(received[i].sequence, sent[i].sequence);
      EXPECT_EQ(received[i].body, sent[i].body);
    }
    EXPECT_EQ(reader.size(), 0u);
  }
}

TEST(Frames, AnyFlippedBitIsNoticed) {
  std::vector<std::byte> bytes;
  append_frames(bytes, {Kind::kPush, 1, 2, 3, 4, bytes_of(60, 6)});
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::vector<std::byte> damaged = bytes;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    FrameReader reader;
    reader.add(damaged);
    try {
      // A longer length waits for bytes that do not come.
      EXPECT_FALSE(reader.next()) << bit;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kPeer);
    }
  }
}

TEST(Frames, OfAnotherMessageOrTooLongAreRejected) {
  std::vector<std::byte> bytes;
  append_frames(bytes, {Kind::kPush, 0, 0, 0, 1, bytes_of(kMaxFrameBody + 1, 7)});
  std::vector<std::byte> other;
  append_frames(other, {Kind::kPush, 0, 0, 0, 2, bytes_of(3, 8)});
  bytes.resize(kHeaderBytes + kMaxFrameBody);
  bytes.insert(bytes.end(), other.begin(), other.end());
  FrameReader reader;
  reader.add(bytes);
  EXPECT_THROW(reader.next(), Error);
  FrameReader small(100);
  std::vector<std::byte> more;
  append_frames(more, {Kind::kPush, 0, 0, 0, 1, bytes_of(101, 9)});
  small.add(more);
  EXPECT_THROW(small.next(), Error);
}

TEST(Bodies, ListsAreNotLongerThanTheirMessage) {
  BodyWriter out;
  out.add<uint64_t>(uint64_t{1} << 61);
  EXPECT_THROW(BodyReader(out.bytes()).take_list<uint64_t>(), Error);
  EXPECT_THROW(BodyReader(out.bytes()).take_text(), Error);
}

}  // namespace
}  // namespace paddle::ps
