// Records of exchanges: what the files have of runs that end in order, with an error and by
// SIGKILL, and what they say about ranks that differ, wait or are slow.

#include "comm/flight.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/files.h"
#include "comm/flight_report.h"
#include "comm/simulation.h"

namespace paddle::comm {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSecond = 1'000'000'000;

class Flight : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = (fs::temp_directory_path() / str("flight-", ::getpid())).string();
    ensure_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string file(int rank) const { return str(folder_, "/", rank, ".flight"); }

  std::string folder_;
};

/// The record of a rank that runs, with exchanges that follow each other.
FlightLog log_of(int rank, int size, std::vector<FlightRecord> records = {}) {
  FlightLog out{.rank = rank, .size = size};
  for (size_t i = 0; i < records.size(); ++i) records[i].number = i + 1;
  out.exchanges = records.size();
  out.records = std::move(records);
  return out;
}

FlightRecord exchange(Exchange kind, uint64_t turn, int64_t begin, int64_t end, int ranks = 2,
                      const char* place = "net.yaml:3:5 @layer.0") {
  FlightRecord out{.turn = turn,
                   .step = 7,
                   .begin = begin * kSecond,
                   .end = end * kSecond,
                   .bytes = 64,
                   .kind = static_cast<uint32_t>(kind),
                   .count = ranks};
  std::copy_n(place, std::strlen(place), out.place);
  return out;
}

TEST_F(Flight, FilesHaveTheExchangesOfAllRanks) {
  simulate(3, [&](const std::shared_ptr<Communicator>& communicator) {
    communicator->keep_record(folder_, 0);
    communicator->set_step(4);
    communicator->set_activity(kReadingBatch);
    communicator->set_activity("");
    const std::string place = "net.yaml:3:5 @layer.0";
    std::vector<float> values(10, 1);
    const ReduceBuffer buffer{values.data(), values.data(), 10};
    std::vector<std::byte> scratch(all_reduce_scratch(DType::kF32, 10, 3));
    communicator->collectives().set_location(&place);
    communicator->collectives().all_reduce({&buffer, 1}, DType::kF32, Reduction::kSum,
                                           {communicator->all(), scratch.data()});
    communicator->barrier();
    const int next = (communicator->rank() + 1) % 3, before = (communicator->rank() + 2) % 3;
    communicator->isend(next, 5, std::as_bytes(std::span(values)));
    communicator->recv(before, 5, std::as_writable_bytes(std::span(values)));
    communicator->set_end(FlightEnd::kDone);
  });
  const std::vector<FlightLog> logs = read_flights(folder_);
  ASSERT_EQ(logs.size(), 3u);
  for (const FlightLog& log : logs) {
    EXPECT_EQ(log.size, 3);
    EXPECT_EQ(log.end, FlightEnd::kDone);
    EXPECT_EQ(log.process, ::getpid());
    ASSERT_EQ(log.records.size(), 5u);
    EXPECT_EQ(log.records[0].flags, FlightRecord::kActivity);
    EXPECT_STREQ(log.records[0].place, kReadingBatch);
    EXPECT_EQ(text(log.records[1]), "all_reduce 1 of step 4 (net.yaml:3:5 @layer.0)");
    EXPECT_EQ(log.records[1].bytes, 40);
    EXPECT_EQ(text(log.records[2]), "barrier 2 of step 4") << "of the same members, no operation";
    EXPECT_EQ(log.records[3].flags, FlightRecord::kSends);
    EXPECT_EQ(log.records[4].first, (log.rank + 2) % 3);
    for (const FlightRecord& record : log.records) EXPECT_GE(record.end, record.begin);
  }
  EXPECT_EQ(find_divergence(logs, latest(logs)), std::nullopt);
}

bool is_in_turn(const FlightLog& log, uint64_t turn) {
  const FlightRecord* const last = log.last_exchange();
  return last && last->turn == turn;
}

TEST_F(Flight, TheRankThatStopsIsNamed) {
  EXPECT_THROW(simulate(3,
                        [&](const std::shared_ptr<Communicator>& communicator) {
                          communicator->keep_record(folder_, 0);
                          communicator->set_step(2);
                          communicator->barrier();
                          try {
                            if (communicator->rank() == 1) {
                              communicator->set_activity(kReadingBatch);
                              while (!is_in_turn(read_flight(file(0)), 2))
                                std::this_thread::yield();
                              fail(ErrorCode::kData, "a bad sample");
                            }
                            communicator->barrier();
                          } catch (const Error&) {
                            communicator->set_end(FlightEnd::kFailed);
                            throw;
                          }
                        }),
               Error);
  const std::vector<FlightLog> logs = read_flights(folder_);
  EXPECT_EQ(find_divergence(logs, latest(logs)),
            "rank 1 did not enter barrier 2 of step 2; it has stopped with an error");
}

TEST_F(Flight, RecordsSurviveSigkill) {
  const pid_t child = ::fork();
  if (child == 0) {
    FlightRecorder recorder(file(0), 0, 2, 0);
    recorder.set_step(3);
    const std::vector<int> group = {0, 1};
    const std::string place = "net.yaml:9:1";
    for (int i = 0; i < 3; ++i)
      recorder.leave(recorder.enter(Exchange::kAllGather, group, 8, &place));
    recorder.enter(Exchange::kAllReduce, group, 8, &place);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const FlightLog log = read_flight(file(0));
  EXPECT_EQ(log.process, child);
  EXPECT_EQ(log.end, FlightEnd::kNone);
  ASSERT_EQ(log.records.size(), 4u);
  EXPECT_EQ(text(*log.last_exchange()), "all_reduce 4 of step 3 (net.yaml:9:1)");
  EXPECT_EQ(log.last_exchange()->end, 0);
}

TEST_F(Flight, TheLastRecordsAreKept) {
  constexpr uint64_t kAll = kFlightRecords + 100;
  {
    FlightRecorder recorder(file(0), 0, 1, 0);
    for (uint64_t i = 0; i < kAll; ++i)
      recorder.leave(recorder.enter(Exchange::kBarrier, {}, 0, nullptr));
  }
  const FlightLog log = read_flight(file(0));
  ASSERT_EQ(log.records.size(), kFlightRecords);
  EXPECT_EQ(log.exchanges, kAll);
  EXPECT_EQ(log.records.front().number, kAll - kFlightRecords + 1);
  EXPECT_EQ(log.records.back().turn, kAll);
}

TEST(FlightReport, ARankThatReadsDataIsNamedWithItsTime) {
  FlightLog late = log_of(1, 2, {exchange(Exchange::kAllReduce, 1, 10, 11)});
  late.activity = kReadingBatch;
  late.activity_since = 12 * kSecond;
  const FlightLog waits = log_of(
      0, 2, {exchange(Exchange::kAllReduce, 1, 10, 11), exchange(Exchange::kAllReduce, 2, 13, 0)});
  EXPECT_EQ(find_divergence({waits, late}, 53 * kSecond),
            "rank 1 did not enter all_reduce 2 of step 7 (net.yaml:3:5 @layer.0); it is in "
            "\"reading a batch\" since 41 s");
  late.activity.clear();
  EXPECT_EQ(find_divergence({waits, late}, 15 * kSecond),
            "rank 1 did not enter all_reduce 2 of step 7 (net.yaml:3:5 @layer.0); it computes "
            "since 3 s, after all_reduce 1 of step 7 (net.yaml:3:5 @layer.0)");
}

// Rank 1 waits for rank 2 and rank 0 for rank 1: the cause is rank 2, though rank 0 has waited for
// longer.
TEST(FlightReport, TheCauseIsTheRankThatDoesNotWait) {
  FlightRecord pair = exchange(Exchange::kAllGather, 1, 20, 0);
  pair.first = 1;
  const std::vector<FlightLog> logs = {log_of(0, 3, {exchange(Exchange::kAllReduce, 1, 10, 0, 2)}),
                                       log_of(1, 3, {pair}), log_of(2, 3)};
  const auto found = find_divergence(logs, 30 * kSecond);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->starts_with("rank 2 did not enter all_gather 1 of step 7")) << *found;
}

TEST(FlightReport, DifferentProgramsAreShownWithBothLines) {
  const std::vector<FlightLog> logs = {
      log_of(0, 2, {exchange(Exchange::kAllReduce, 3, 10, 0)}),
      log_of(1, 2, {exchange(Exchange::kAllReduce, 3, 12, 0, 2, "net.yaml:8:5")})};
  EXPECT_EQ(find_divergence(logs, 20 * kSecond),
            "rank 1 is in all_reduce 3 of step 7 (net.yaml:8:5) of 64 bytes where rank 0 is in "
            "all_reduce 3 of step 7 (net.yaml:3:5 @layer.0) of 64 bytes: their programs differ");
}

TEST(FlightReport, AMessageThatWasNotSentIsADifference) {
  FlightRecord message = exchange(Exchange::kMessage, 2, 10, 0);
  message.flags = FlightRecord::kReceives;
  FlightRecord sent = message;
  sent.flags = FlightRecord::kSends;
  sent.turn = 1;
  sent.end = 11 * kSecond;
  const auto found = find_divergence({log_of(0, 2, {sent}), log_of(1, 2, {message})}, 20 * kSecond);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->starts_with("rank 0 did not enter message 2 of step 7")) << *found;
  // A sender that is ahead is none.
  EXPECT_FALSE(find_divergence({log_of(0, 2, {sent}), log_of(1, 2)}, 20 * kSecond));
}

/// A rank whose steps take `computing` and `reading` milliseconds between barriers.
FlightLog paced(int rank, int ranks, int64_t reading, int64_t computing) {
  constexpr int64_t kMillisecond = 1'000'000, kSlowest = 100;
  std::vector<FlightRecord> records;
  int64_t time = 0;
  for (int64_t step = 1; step <= 30; ++step) {
    FlightRecord data{.step = step,
                      .begin = time,
                      .end = time + reading * kMillisecond,
                      .flags = FlightRecord::kActivity};
    std::copy_n(kReadingBatch, std::strlen(kReadingBatch), data.place);
    records.push_back(data);
    FlightRecord barrier{.turn = static_cast<uint64_t>(step),
                         .step = step,
                         .begin = time + (reading + computing) * kMillisecond,
                         .end = (step * kSlowest) * kMillisecond,
                         .count = ranks};
    records.push_back(barrier);
    time = barrier.end;
  }
  return log_of(rank, ranks, std::move(records));
}

TEST(FlightReport, SlowRanksAreNamedWithWhatIsSlow) {
  EXPECT_TRUE(find_slow({paced(0, 3, 2, 20), paced(1, 3, 2, 22), paced(2, 3, 3, 21)}).empty());
  const auto computes = find_slow({paced(0, 3, 2, 20), paced(1, 3, 2, 60), paced(2, 3, 3, 21)});
  ASSERT_EQ(computes.size(), 1u);
  EXPECT_EQ(
      computes[0].evidence,
      "rank 1 is slow: it computes for 60 ms in each of the last 20 steps, the median rank 21 "
      "ms");
  const auto reads = find_slow({paced(0, 2, 2, 20), paced(1, 2, 70, 20)});
  ASSERT_EQ(reads.size(), 1u);
  EXPECT_EQ(reads[0].evidence,
            "rank 1 is slow: it waits for data for 70 ms in each of the last 20 steps, the median "
            "rank 2 ms");
}

// A link that is slow in one direction only.
TEST(FlightReport, SlowLinksAreNamed) {
  constexpr int64_t kMicrosecond = 1000;
  std::vector<std::vector<FlightRecord>> records(3);
  for (uint64_t turn = 1; turn <= 25; ++turn)
    for (int from = 0; from < 3; ++from)
      for (int to = 0; to < 3; ++to) {
        if (from == to) continue;
        const int64_t time = from == 2 && to == 0 ? 900 : 100;
        FlightRecord message{.turn = turn,
                             .begin = static_cast<int64_t>(turn) * 1000 * kMicrosecond,
                             .end = (static_cast<int64_t>(turn) * 1000 + time) * kMicrosecond,
                             .bytes = 1 << 20,
                             .kind = static_cast<uint32_t>(Exchange::kMessage),
                             .flags = FlightRecord::kReceives,
                             .first = from,
                             .stride = to - from,
                             .count = 2};
        records[static_cast<size_t>(to)].push_back(message);
        message.flags = FlightRecord::kSends;
        message.end = message.begin + 1;
        records[static_cast<size_t>(from)].push_back(message);
      }
  std::vector<FlightLog> logs;
  for (int rank = 0; rank < 3; ++rank)
    logs.push_back(log_of(rank, 3, records[static_cast<size_t>(rank)]));
  const auto slow = find_slow(logs);
  ASSERT_EQ(slow.size(), 1u);
  EXPECT_EQ(slow[0].name, "the link from rank 2 to rank 0");
}

TEST_F(Flight, FilesOfOtherKindsAreRejected) {
  const auto reject = [&](const std::string& content, const char* wanted) {
    write_file_atomically(file(0), content);
    try {
      read_flight(file(0));
      ADD_FAILURE() << "expected an error: " << wanted;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kData);
      EXPECT_NE(e.message().find(wanted), std::string::npos) << e.message();
    }
  };
  reject("", "is not a record of exchanges");
  reject(std::string(kFlightBytes, 'x'), "is not a record of exchanges");
  { const FlightRecorder recorder(file(0), 5, 2, 0); }
  EXPECT_THROW(read_flight(file(0)), Error);
  EXPECT_TRUE(read_flights(folder_ + "/none").empty());
  try {
    const FlightRecorder recorder(folder_ + "/none/0.flight", 0, 1, 0);
    ADD_FAILURE() << "expected an error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kDevice);
    EXPECT_NE(e.message().find("No such file"), std::string::npos) << e.message();
  }
}

}  // namespace
}  // namespace paddle::comm
