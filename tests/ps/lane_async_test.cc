// Lanes of asynchronous runs: the gradients of each worker count once whatever gets lost, and a
// replay of the order of messages gives the same rows, however its messages arrive.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/scratch_folder.h"
#include "ps/lane.h"
#include "ps/opener.h"

namespace paddle::ps {
namespace {

namespace fs = std::filesystem;
using test::kWidth;
using test::spec;

constexpr int kWorkers = 3;
constexpr int64_t kSteps = 40;

/// The rows that a worker has got.
struct Transcript {
  std::vector<std::vector<std::byte>> rows;  ///< by step
  bool operator==(const Transcript&) const = default;
};

/// The keys of a worker in a step.
std::vector<uint64_t> keys_of(uint32_t worker, int64_t step) {
  std::mt19937_64 random(static_cast<uint64_t>(step) * kWorkers + worker);
  std::map<uint64_t, bool> keys;
  for (int i = 0; i < 4; ++i) keys[random() % 12] = true;
  std::vector<uint64_t> out;
  for (const auto& [key, there] : keys) out.push_back(key);
  return out;
}

/// The files with the order of a lane, the last one at the end.
std::vector<fs::path> order_files(const std::string& folder) {
  std::map<int64_t, fs::path> out;
  if (fs::exists(folder))
    for (const auto& entry : fs::directory_iterator(folder))
      out[std::stoll(entry.path().filename().string())] = entry.path() / "lane-0";
  std::vector<fs::path> files;
  for (const auto& [start, path] : out) files.push_back(path);
  return files;
}

OrderKind last_kind(const fs::path& file) {
  const std::string bytes = read_file(file.string(), 1 << 20, ErrorCode::kModel);
  constexpr int kKindMask = 15;
  return static_cast<OrderKind>(bytes[bytes.size() - sizeof(uint64_t)] & kKindMask);
}

/// Workers and a lane between which messages arrive in a random order.
class AsyncRun {
 public:
  /// `chaos`: connections and the lane are lost at times. `fences`: steps after which workers wait
  /// for each other; 0: only at the end.
  AsyncRun(LaneOptions options, unsigned seed, int ahead, bool chaos, int64_t fences = 0)
      : options_(std::move(options)), random_(seed), ahead_(ahead), chaos_(chaos), fences_(fences) {
    options_.open = test::opener();
    make_lane();
    lane_->begin_session(7, kWorkers);
    for (uint32_t w = 0; w < kWorkers; ++w) {
      workers_[w].transcript.rows.resize(kSteps + 2);
      fence(w, 0);
      connect(w);
    }
  }

  /// Up to `last`, where all wait for each other.
  void run(int64_t last = kSteps) {
    last_ = last;
    for (int64_t turns = 0; !is_over(); ++turns) {
      ASSERT_LT(turns, 200000) << "nothing happens any longer";
      const auto w = static_cast<uint32_t>(random_() % kWorkers);
      const unsigned event = random_() % 40;
      if (chaos_ && event == 0)
        connect(w);
      else if (chaos_ && (event == 1 || (fences_ > 0 && event % 2 == 0 && has_new_file())))
        restart();
      else if (!workers_[w].way.empty())
        deliver(w);
    }
    lane_->end();
  }

  std::vector<Transcript> transcripts() const {
    std::vector<Transcript> out;
    for (const auto& worker : workers_) {
      out.push_back(worker.transcript);
      out.back().rows.resize(static_cast<size_t>(last_) + 1);  // without what was asked ahead
    }
    return out;
  }
  const std::vector<int64_t>& leads() const { return leads_; }
  /// Times that the lane was killed between the two files of its order.
  int cut_fences() const { return cut_fences_; }

 private:
  struct Worker {
    int64_t step = 0, asked = 0;  ///< the step that it is at; 0: before the first fence
    uint64_t events = 0;
    bool has_pushed = false, is_at_fence = false;
    std::vector<Message> kept, way;
    Transcript transcript;
  };

  bool is_over() const {
    for (const Worker& worker : workers_)
      if (worker.step <= last_ + 1) return false;
    return true;
  }
  void make_lane() {
    lane_ = std::make_unique<Lane>(options_);
    ASSERT_EQ(lane_->problem(), "");
  }
  /// Whether the last file of the order, which is not the only one, has only the fence at its
  /// beginning.
  bool has_new_file() const {
    const std::vector<fs::path> files = order_files(options_.order_folder);
    return files.size() > 1 && fs::file_size(files.back()) == kHeader + kFence;
  }
  /// The lane is killed, perhaps after its log had an event and before the order had it.
  void restart() {
    lane_.reset();
    const std::vector<fs::path> files = order_files(options_.order_folder);
    if (!files.empty()) {
      const size_t size = fs::file_size(files.back());
      if (has_new_file()) {
        fs::remove(files.back());
        const fs::path& earlier = files[files.size() - 2];
        fs::resize_file(earlier, fs::file_size(earlier) - kFence);
        ++cut_fences_;
      } else if (last_kind(files.back()) == OrderKind::kPush) {
        fs::resize_file(files.back(), size - sizeof(uint64_t));
      }
    }
    make_lane();
    for (uint32_t each = 0; each < kWorkers; ++each) connect(each);
  }
  void connect(uint32_t w) {
    Worker& worker = workers_[w];
    lane_->begin_worker(static_cast<int>(w));
    worker.way = {{Kind::kOpen, 0, 0, w, 0, declaration_of(spec(), 1, {})}};
    worker.way.insert(worker.way.end(), worker.kept.begin(), worker.kept.end());
  }
  void send(uint32_t w, Kind kind, uint64_t sequence, std::vector<std::byte> body) {
    workers_[w].kept.push_back({kind, 0, 0, w, sequence, std::move(body)});
    workers_[w].way.push_back(workers_[w].kept.back());
  }
  void fence(uint32_t w, int64_t step) {
    BodyWriter out;
    out.add(step);
    workers_[w].is_at_fence = true;
    send(w, Kind::kFence, ++workers_[w].events, out.take());
  }
  bool is_fence(int64_t step) const {
    return step == last_ || (fences_ > 0 && step % fences_ == 0);
  }
  void ask(uint32_t w, int64_t step) {
    Worker& worker = workers_[w];
    worker.asked = step;
    BodyWriter out;
    // After its fence and gradients so far.
    out.add(worker.events);
    out.add(step);
    out.add<uint32_t>(0);
    out.add<uint8_t>(1);
    const std::vector<uint64_t> keys = keys_of(w, step);
    out.add_list(std::span<const uint64_t>(keys));
    send(w, Kind::kAsk, static_cast<uint64_t>(step), out.take());
  }
  /// Gradients that depend on the rows: 1 + row / 8.
  void push(uint32_t w) {
    Worker& worker = workers_[w];
    const std::vector<uint64_t> keys = keys_of(w, worker.step);
    std::vector<double> rows(keys.size() * kWidth);
    const auto& bytes = worker.transcript.rows[static_cast<size_t>(worker.step)];
    ASSERT_EQ(bytes.size(), rows.size() * sizeof(double));
    std::memcpy(rows.data(), bytes.data(), bytes.size());
    BodyWriter out;
    out.add<uint32_t>(0);
    out.add<uint8_t>(1);
    out.add<uint64_t>(keys.size());
    out.add_list(std::span<const uint64_t>(keys));
    for (const double row : rows) out.add(1 + row / 8);
    const uint64_t event = ++worker.events;
    send(w, Kind::kPush, event, out.take());
    BodyWriter scalars;
    scalars.add<double>(1);
    scalars.add(worker.step);
    scalars.add<int64_t>(0);
    scalars.add<uint8_t>(0);
    send(w, Kind::kUpdate, event, scalars.take());
    worker.has_pushed = true;
  }
  /// Sends what the worker can send now.
  void advance(uint32_t w) {
    Worker& worker = workers_[w];
    if (worker.step == 0 || worker.step > last_ || worker.has_pushed || worker.is_at_fence) return;
    if (worker.asked < worker.step) ask(w, worker.step);
    if (worker.transcript.rows[static_cast<size_t>(worker.step)].empty()) return;
    // Questions for rows after a fence would be sent again after it.
    while (worker.asked < worker.step + ahead_ && !is_fence(worker.asked)) ask(w, worker.asked + 1);
    push(w);
  }
  void deliver(uint32_t w) {
    const Message message = workers_[w].way.front();
    workers_[w].way.erase(workers_[w].way.begin());
    Lane::Answers answers;
    lane_->take(message, answers);
    std::set<uint32_t> lost;  // connections, with all answers from then on
    for (const Message& answer : answers) {
      if (chaos_ && random_() % 20 == 0) lost.insert(answer.worker);
      if (!lost.contains(answer.worker)) take(answer);
    }
    for (const uint32_t worker : lost) connect(worker);
  }
  void take(const Message& answer) {
    Worker& worker = workers_[answer.worker];
    const auto is_answered = [&](const Message& message) {
      return message.sequence == answer.sequence &&
             (message.kind == Kind::kAsk) == (answer.kind == Kind::kRows);
    };
    if (answer.sequence == 0 || std::erase_if(worker.kept, is_answered) == 0) return;
    if (answer.kind == Kind::kRows) {
      worker.transcript.rows.at(answer.sequence) = answer.body;
      if (answer.sequence <= static_cast<uint64_t>(last_)) {
        int64_t slowest = kSteps;
        for (const Worker& each : workers_) slowest = std::min(slowest, each.step);
        leads_.push_back(static_cast<int64_t>(answer.sequence) - slowest);
      }
    } else if (worker.is_at_fence) {
      worker.is_at_fence = false;
      if (worker.step == 0 || worker.step > last_) ++worker.step;
    } else {
      worker.has_pushed = false;
      if (is_fence(worker.step++)) fence(answer.worker, worker.step - 1);
    }
    advance(answer.worker);
  }

  /// Bytes of an order: the header, and a fence with the checksum after it.
  static constexpr size_t kHeader = 40, kFence = 2 * sizeof(uint64_t);

  LaneOptions options_;
  std::mt19937 random_;
  int ahead_;
  bool chaos_;
  int64_t fences_;
  int cut_fences_ = 0;
  int64_t last_ = kSteps;
  std::unique_ptr<Lane> lane_;
  std::array<Worker, kWorkers> workers_;
  std::vector<int64_t> leads_;
};

LaneOptions options_of(const std::string& folder, std::optional<int> staleness = {}) {
  LaneOptions out;
  out.log_folder = (fs::path(folder) / "log").string();
  out.min_log_bytes = 4096;  // snapshots come often
  out.updates = {.mode = Mode::kAsync, .staleness = staleness};
  out.order_folder = (fs::path(folder) / kOrderFolder).string();
  return out;
}

LaneOptions replay_of(const std::string& run, const std::string& folder,
                      std::optional<int64_t> until = {}) {
  LaneOptions out = options_of(folder);
  out.log_folder.clear();
  out.replay = {.folder = (fs::path(run) / kOrderFolder).string(),
                .from = 0,
                .until = until,
                .checks_digests = true};
  return out;
}

TEST(AsyncLane, ReplaysAreTheRun) {
  bool differ = false;
  std::vector<Transcript> before;
  for (unsigned seed = 0; seed < 20; ++seed) {
    const ScratchFolder run, again;
    const int ahead = static_cast<int>(seed % 2);
    AsyncRun first(options_of(run.path()), seed, ahead, seed % 4 >= 2);
    first.run();
    differ = differ || (seed > 0 && before != first.transcripts());
    before = first.transcripts();
    for (unsigned other = 0; other < 2; ++other) {
      AsyncRun replay(replay_of(run.path(), again.path()), 100 + seed + other, ahead, false);
      replay.run();
      EXPECT_TRUE(replay.transcripts() == first.transcripts()) << "seed " << seed;
    }
  }
  EXPECT_TRUE(differ) << "the order does not matter in this test";
}

// Where no worker sends its gradients before all have the rows of that step, as in runs whose
// workers add their losses.
TEST(AsyncLane, ReplaysEndAtAnyStep) {
  const ScratchFolder run, again;
  AsyncRun first(options_of(run.path(), 0), 1, 1, false);
  first.run();
  for (const int64_t until : {1, 17, 39}) {
    AsyncRun replay(replay_of(run.path(), again.path(), until), 5, 1, false);
    replay.run(until);
    for (int w = 0; w < kWorkers; ++w)
      for (int64_t step = 1; step <= until; ++step)
        EXPECT_TRUE(replay.transcripts()[static_cast<size_t>(w)].rows[static_cast<size_t>(step)] ==
                    first.transcripts()[static_cast<size_t>(w)].rows[static_cast<size_t>(step)])
            << "worker " << w << ", step " << step << " of " << until;
  }
}

TEST(AsyncLane, WorkersAreNotAheadByMoreThanTheBound) {
  int64_t most = 0;
  for (unsigned seed = 0; seed < 10; ++seed) {
    for (const int bound : {0, 2}) {
      const ScratchFolder run;
      AsyncRun bounded(options_of(run.path(), bound), seed, 0, false);
      bounded.run();
      for (const int64_t lead : bounded.leads()) EXPECT_LE(lead, bound + 1);
    }
    const ScratchFolder run;
    AsyncRun free(options_of(run.path()), seed, 0, false);
    free.run();
    for (const int64_t lead : free.leads()) most = std::max(most, lead);
  }
  EXPECT_GT(most, 3) << "without a bound they are not further apart";
}

TEST(AsyncLane, LongOrdersAreInSeveralFiles) {
  int cut_fences = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    const ScratchFolder run, again;
    const int ahead = static_cast<int>(seed % 4);
    LaneOptions options = options_of(run.path());
    options.order_file_updates = 20;
    AsyncRun first(options, seed, ahead, seed % 2 == 1, 5);
    first.run();
    cut_fences += first.cut_fences();
    // 3 updates a step, and fences after 5 steps.
    std::vector<std::string> starts;
    for (const fs::path& file : order_files(options.order_folder))
      starts.push_back(file.parent_path().filename().string());
    EXPECT_EQ(starts, (std::vector<std::string>{"0", "10", "20", "30", "40"})) << seed;
    for (const int until : {40, 15, 20}) {
      LaneOptions replayed = replay_of(run.path(), again.path(), until);
      replayed.order_file_updates = options.order_file_updates;
      AsyncRun replay(replayed, 100 + seed, ahead, false, 5);
      replay.run(until);
      for (size_t w = 0; w < kWorkers; ++w)
        for (size_t step = 1; step <= static_cast<size_t>(until); ++step)
          ASSERT_TRUE(replay.transcripts()[w].rows[step] == first.transcripts()[w].rows[step])
              << "seed " << seed << ", worker " << w << ", step " << step;
    }
  }
  EXPECT_GT(cut_fences, 0);
}

TEST(AsyncLane, OldOrdersAreRemoved) {
  const ScratchFolder run;
  LaneOptions options = options_of(run.path());
  options.log_folder.clear();
  options.order_file_updates = 20;
  options.updates.order_keep = std::chrono::hours(1);
  AsyncRun first(options, 3, 1, false, 5);
  first.run(25);
  ASSERT_EQ(order_files(options.order_folder).size(), 3u);
  EXPECT_EQ(read_order(run.path(), 0, {}).last_step, 25);
  for (const fs::path& file : order_files(options.order_folder))
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(2));
  OrderLog::remove_old(options.order_folder, 0, 20, std::chrono::hours(3));
  EXPECT_EQ(order_files(options.order_folder).size(), 3u);
  OrderLog::remove_old(options.order_folder, 0, 20, std::chrono::hours(1));
  EXPECT_EQ(order_files(options.order_folder).size(), 1u) << "the last file stays";
  EXPECT_EQ(read_order(run.path(), 20, {}).last_step, 25);
  try {
    read_order(run.path(), 10, {});
    ADD_FAILURE() << "the order from step 10 on was removed";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    EXPECT_NE(e.message().find("step 20"), std::string::npos) << e.message();
  }
}

// A replay of which a worker does something else says so, and where.
TEST(AsyncLane, AReplayThatDiffersEnds) {
  const ScratchFolder run, again;
  AsyncRun first(options_of(run.path()), 1, 0, false);
  first.run();
  AsyncRun replay(replay_of(run.path(), again.path()), 2, 0, false);
  try {
    replay.run(10);  // where the workers of the run did not wait for each other
    ADD_FAILURE() << "the replay has ended";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kDifference);
    EXPECT_NE(e.message().find("lane-0"), std::string::npos) << e.message();
    EXPECT_NE(e.message().find("after step 10"), std::string::npos) << e.message();
  }
}

}  // namespace
}  // namespace paddle::ps
