// Readers of streams as datasets: numbered samples in any order, places, damage and ends.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <deque>
#include <numeric>
#include <thread>

#include "plugin/host.h"
#include "plugin/stream_adapter.h"

namespace paddle::plugin {
namespace {

/// Samples 0, 1, …, each with its number, of which sample 5 is damaged.
struct Counting {
  static inline int64_t length = 10, damaged = -1;
  static inline int opened = 0, seeks = 0;
  int64_t next = 0;

  static paddle_reader functions(bool has_places) {
    paddle_reader out{};
    out.struct_size = sizeof out;
    out.name = "counting";
    out.open = [](paddle_call*, const paddle_options*, void** state) -> paddle_status {
      ++opened;
      *state = new Counting;
      return PADDLE_OK;
    };
    out.describe = [](void*) { return "x: int64[]"; };
    out.close = [](void* state) { delete static_cast<Counting*>(state); };
    out.location = [](void*, int64_t index, char* text, size_t capacity) {
      text[str("counting:", index).copy(text, capacity - 1)] = '\0';
    };
    out.next = [](void* state, paddle_call* call, const paddle_sample* sample) -> paddle_status {
      int64_t& number = static_cast<Counting*>(state)->next;
      if (number == length) return PADDLE_DECLINED;
      const int64_t own = number++;
      if (own == damaged) return host().fail(call, PADDLE_DATA, "is damaged");
      auto* const x = static_cast<int64_t*>(sample->field(sample->context, 0, nullptr, 0));
      if (!x) return PADDLE_DATA;
      *x = own;
      return PADDLE_OK;
    };
    if (!has_places) return out;
    out.position = [](void* state, paddle_call* call) -> paddle_status {
      host().write(call, str(static_cast<Counting*>(state)->next).c_str());
      return PADDLE_OK;
    };
    out.seek = [](void* state, paddle_call*, const char* position) -> paddle_status {
      ++seeks;
      static_cast<Counting*>(state)->next = std::atoll(position);
      return PADDLE_OK;
    };
    return out;
  }
};

class Streams : public testing::Test {
 protected:
  Streams() {
    Counting::length = 10;
    Counting::damaged = -1;
    Counting::opened = Counting::seeks = 0;
  }
  data::DatasetPtr open(int64_t epoch_samples, bool has_places = true) {
    contexts_.push_back({"test 1.0.0", "test.counting", Counting::functions(has_places), {}});
    return open_stream(contexts_.back(), {}, epoch_samples);
  }
  static int64_t at(const data::Dataset& stream, int64_t index, uint64_t epoch = 0) {
    data::Sample sample;
    stream.read(index, {0, epoch}, sample);
    return sample[0].data<int64_t>()[0];
  }

 private:
  std::deque<ReaderContext> contexts_;
};

TEST_F(Streams, GoOnInTheNextEpochAndBeginAgainAtTheirEnd) {
  const auto stream = open(7);
  EXPECT_EQ(stream->size(), 7);
  for (int64_t number = 0; number < 28; ++number)
    EXPECT_EQ(at(*stream, number % 7, static_cast<uint64_t>(number / 7)), number % 10) << number;
  EXPECT_EQ(Counting::opened, 3);  // and at each end
}

TEST_F(Streams, GiveSamplesInAnyOrder) {
  const auto stream = open(1000);
  Counting::length = 5000;
  std::vector<int64_t> order(1000);
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = 0; i < order.size(); ++i) std::swap(order[i], order[(i * 7919) % order.size()]);
  for (const int64_t index : order) EXPECT_EQ(at(*stream, index, 2), 2000 + index);
  EXPECT_EQ(at(*stream, 3), 3);
  EXPECT_EQ(at(*stream, 3), 3) << "once more";
}

TEST_F(Streams, AreReadByThreadsNearlyInOrderOnce) {
  const auto stream = open(4000);
  Counting::length = 4000;
  std::vector<std::thread> threads;
  std::atomic<int64_t> wrong = 0;
  for (int64_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (int64_t index = thread; index < 4000; index += 4) wrong += at(*stream, index) != index;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(Counting::opened, 1);
}

TEST_F(Streams, GoOnFromAPlace) {
  Counting::length = 100000;
  const auto stream = open(50000);
  for (int64_t index = 0; index < 40000; ++index) at(*stream, index);
  const std::string place = stream->place_before(0, 39990);
  ASSERT_FALSE(place.empty());
  const auto again = open(50000);
  again->go_to(place);
  Counting::seeks = 0;
  EXPECT_EQ(at(*again, 39990), 39990);
  EXPECT_EQ(Counting::seeks, 1);
  EXPECT_EQ(at(*again, 12), 12) << "before the place";
  EXPECT_EQ(at(*again, 10, 2), 10) << "in the next pass";
  EXPECT_EQ(open(50000)->place_before(0, 0), "");
  EXPECT_EQ(open(10, false)->place_before(0, 9), "");
  for (const char* text : {"", "1", "x 1 2", "1 x 2", "-1 0 2", "99999999999999999999 0 2"})
    EXPECT_THROW(again->go_to(text), Error) << text;
  EXPECT_THROW(open(10, false)->go_to("1 1 1"), Error);
}

TEST_F(Streams, NameADamagedSampleAndGoOn) {
  Counting::damaged = 5;
  const auto stream = open(10);
  EXPECT_EQ(at(*stream, 4), 4);
  try {
    at(*stream, 5);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kData);
    EXPECT_NE(e.message().find("is damaged"), std::string::npos) << e.message();
  }
  EXPECT_EQ(stream->location(5), "counting:5");
  EXPECT_EQ(at(*stream, 6), 6);
}

TEST_F(Streams, WithoutSamplesAreErrors) {
  Counting::length = 0;
  const auto stream = open(10);
  EXPECT_THROW(at(*stream, 0), Error);
}

}  // namespace
}  // namespace paddle::plugin
