// Lanes: rows after random steps are those of a plain recount, whatever the order in which messages
// arrive, get lost or come twice, and after the lane was made again from its log at any moment.

#include "ps/lane.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "base/error.h"
#include "base/scratch_folder.h"
#include "ps/opener.h"

namespace paddle::ps {
namespace {

namespace fs = std::filesystem;

constexpr int kWorkers = 3;
using test::kWidth;
using test::spec;

LaneOptions options_of(const std::string& folder, int lane = 0, int lanes = 1) {
  LaneOptions out;
  out.lane = lane;
  out.lanes = lanes;
  out.open = test::opener();
  out.log_folder = folder;
  out.min_log_bytes = 4096;  // snapshots come often
  return out;
}

/// The counts by key that each worker sends in a step.
using Step = std::vector<std::map<uint64_t, double>>;

Step random_step(std::mt19937& random) {
  Step out(kWorkers);
  for (auto& worker : out)
    for (unsigned i = 0; i < random() % 6; ++i) worker[random() % 40] = 1 + random() % 3;
  return out;
}

Message push(const Step& step, uint32_t worker, uint64_t event) {
  BodyWriter out;
  if (!step[worker].empty()) {
    out.add<uint32_t>(0);
    out.add<uint8_t>(1);
    out.add<uint64_t>(step[worker].size());
    out.add<uint64_t>(step[worker].size());
    for (const auto& [key, count] : step[worker]) out.add(key);
    for (const auto& [key, count] : step[worker])
      for (int64_t k = 0; k < kWidth; ++k) out.add(count);
  }
  return {Kind::kPush, 0, 0, worker, event, out.take()};
}

Message update(uint32_t worker, uint64_t event) {
  BodyWriter out;
  out.add<double>(1);
  out.add(static_cast<int64_t>(event));
  out.add<int64_t>(0);
  out.add<uint8_t>(0);
  return {Kind::kUpdate, 0, 0, worker, event, out.take()};
}

Message open_message(uint32_t worker) {
  return {Kind::kOpen, 0, 0, worker, 0, declaration_of(spec(), 1, {})};
}

std::map<uint64_t, double> rows_of(Lane& lane, uint64_t after) {
  BodyWriter out;
  out.add(after);
  out.add<uint8_t>(0);
  out.add<uint8_t>(1);
  Lane::Answers answers;
  lane.take({Kind::kContent, 0, 0, 0, 1, out.take()}, answers);
  std::map<uint64_t, double> rows;
  for (const Message& each : answers) {
    BodyReader in(each.body);
    in.take_flag();
    in.take<uint32_t>();
    const tables::TableContent content = in.take_content();
    for (int64_t i = 0; i < content.keys.shape[0]; ++i)
      rows[static_cast<const uint64_t*>(content.keys.raw())[i]] = content.weight.number(i * kWidth);
  }
  return rows;
}

/// Workers as they are: each keeps what was not answered, and sends it again.
class SimulatedRun {
 public:
  SimulatedRun(std::string folder, unsigned seed) : folder_(std::move(folder)), random_(seed) {
    make_lane();
    lane_->begin_session(7, kWorkers);
    for (uint32_t w = 0; w < kWorkers; ++w) connect(w);
  }

  void make_lane() {
    lane_ = std::make_unique<Lane>(options_of(folder_));
    EXPECT_EQ(lane_->problem(), "");
  }

  void connect(uint32_t worker) {
    lane_->begin_worker(static_cast<int>(worker));
    ways_[worker] = {open_message(worker)};
    ways_[worker].insert(ways_[worker].end(), kept_[worker].begin(), kept_[worker].end());
  }

  void step() {
    ++event_;
    const Step step = random_step(random_);
    for (uint32_t w = 0; w < kWorkers; ++w) {
      for (const auto& [key, count] : step[w]) wanted_[key] -= count;
      for (Message message : {push(step, w, event_), update(w, event_)}) {
        kept_[w].push_back(message);
        ways_[w].push_back(std::move(message));
      }
    }
    while (!kept_[0].empty() || !kept_[1].empty() || !kept_[2].empty()) {
      const auto w = static_cast<uint32_t>(random_() % kWorkers);
      switch (random_() % 12) {
        case 0:  // the connection is lost, with what was on its way
          connect(w);
          break;
        case 1:  // the server is killed
          lane_.reset();
          make_lane();
          for (uint32_t each = 0; each < kWorkers; ++each) connect(each);
          break;
        default:
          if (!ways_[w].empty()) deliver(w);
      }
    }
  }

  void check() { EXPECT_EQ(rows_of(*lane_, event_), wanted_); }
  Lane& lane() { return *lane_; }
  uint64_t event() const { return event_; }

 private:
  void deliver(uint32_t worker) {
    Lane::Answers answers;
    const Message message = ways_[worker].front();
    ways_[worker].erase(ways_[worker].begin());
    lane_->take(message, answers);
    for (const Message& answer : answers) {
      if (random_() % 10 == 0) {  // it does not arrive
        connect(answer.worker);
        continue;
      }
      if (answer.kind == Kind::kDone && answer.sequence == event_) kept_[answer.worker].clear();
    }
  }

  std::string folder_;
  std::mt19937 random_;
  std::unique_ptr<Lane> lane_;
  std::map<uint32_t, std::vector<Message>> kept_, ways_;
  std::map<uint64_t, double> wanted_;
  uint64_t event_ = 0;
};

TEST(Lane, CountsEachPushOnceThroughLossAndKills) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const ScratchFolder scratch;
    SimulatedRun run((fs::path(scratch.path()) / "lane-0").string(), seed);
    for (int step = 0; step < 60; ++step) run.step();
    run.check();
    EXPECT_EQ(run.lane().events(0), run.event());
  }
}

TEST(Lane, ALogThatWasCutOffIsContinuedAndADamagedOneIsNamed) {
  const ScratchFolder scratch;
  const std::string folder = (fs::path(scratch.path()) / "lane-0").string();
  {
    SimulatedRun run(folder, 1);
    for (int step = 0; step < 5; ++step) run.step();
  }
  std::string log;
  for (const auto& each : fs::directory_iterator(folder))
    if (each.path().filename().string().starts_with("log-")) log = each.path().string();
  ASSERT_FALSE(log.empty());
  const auto size = fs::file_size(log);
  ASSERT_GT(size, 200u);
  {
    std::ofstream(log, std::ios::app) << "half a record";
    const Lane lane(options_of(folder));
    EXPECT_EQ(lane.problem(), "");
    EXPECT_EQ(lane.events(0), 5u);
    EXPECT_EQ(fs::file_size(log), size);
  }
  {
    std::fstream file(log, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(60);
    file.put('\x55');
  }
  const Lane lane(options_of(folder));
  EXPECT_NE(lane.problem().find("the record at byte 0 is damaged"), std::string::npos)
      << lane.problem();
  EXPECT_EQ(lane.session(), 0u);
}

TEST(Lane, RejectsMessagesThatMakeNoSense) {
  Lane lane(options_of(""));
  lane.begin_session(1, 2);
  lane.begin_worker(0);
  lane.begin_worker(1);
  const auto rejects = [&](Message message) {
    Lane::Answers answers;
    try {
      lane.take(std::move(message), answers);
    } catch (const Error& e) {
      return e.code() == ErrorCode::kPeer;
    }
    return false;
  };
  EXPECT_TRUE(rejects({Kind::kAsk, 0, 0, 2, 1, {}})) << "an unknown worker";
  EXPECT_TRUE(rejects({Kind::kAsk, 0, 0, 0, 1, {}})) << "a short message";
  EXPECT_TRUE(rejects(push({{{1, 1}}, {}}, 0, 1))) << "a table that was not opened";
  EXPECT_TRUE(rejects(push({{}, {}}, 0, 2))) << "an event before its time";
  EXPECT_TRUE(rejects({Kind::kRows, 0, 0, 0, 1, {}})) << "an answer";
  EXPECT_TRUE(rejects({Kind::kAdd, 0, 0, 0, 1, {}})) << "rows at the wrong time";
  BodyWriter save;
  save.add<uint64_t>(0);
  save.add<uint8_t>(0);
  save.add<int64_t>(1);
  save.add_text("../outside");
  EXPECT_TRUE(rejects({Kind::kSave, 0, 0, 0, 1, save.take()})) << "a path out of the run";
  Lane::Answers answers;
  lane.take(open_message(0), answers);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].kind, Kind::kDone);
  BodyWriter wide;
  wide.add<uint32_t>(0);
  wide.add<uint8_t>(1);
  wide.add<uint64_t>(2);
  wide.add<uint64_t>(1);
  wide.add<uint64_t>(5);
  EXPECT_TRUE(rejects({Kind::kPush, 0, 0, 0, 1, wide.take()})) << "more gradients than keys";
}

TEST(Lane, AWorkerThatEndsEndsTheWaitOfTheOthers) {
  Lane lane(options_of(""));
  lane.begin_session(1, 2);
  for (const int worker : {0, 1}) lane.begin_worker(worker);
  Lane::Answers answers;
  lane.take(push({{}, {}}, 0, 1), answers);
  lane.take(update(0, 1), answers);
  EXPECT_TRUE(answers.empty());
  lane.end_worker(1, answers);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].kind, Kind::kError);
  EXPECT_EQ(answers[0].worker, 0u);
}

}  // namespace
}  // namespace paddle::ps
