// The order of messages in files: what a replay reads of it, and that damage is found.

#include "ps/order_log.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "base/scratch_folder.h"
#include "base/text.h"

namespace paddle::ps {
namespace {

namespace fs = std::filesystem;

constexpr OrderHeader kHeader{.start = 0, .lane = 0, .lanes = 1, .workers = 2, .session = 7};

OrderEntry pull(uint32_t worker, uint64_t step) { return {OrderKind::kPull, worker, step}; }
OrderEntry push(uint32_t worker, uint64_t step) { return {OrderKind::kPush, worker, step}; }
OrderEntry fence(uint64_t step) { return {OrderKind::kFence, 0, step}; }

std::vector<OrderEntry> messages_of(const std::string& folder, int64_t from = 0,
                                    std::optional<int64_t> until = {}) {
  OrderReader reader(folder, 0, from, until);
  std::vector<OrderEntry> out;
  for (; reader.next(); reader.advance()) out.push_back(*reader.next());
  return out;
}

/// Pulls and pushes of two workers.
void write_steps(OrderLog& log, uint64_t first, uint64_t last) {
  for (uint64_t step = first; step <= last; ++step)
    for (uint32_t worker : {0, 1}) {
      log.add(pull(worker, step), {});
      log.add(push(worker, step), {});
    }
}

TEST(OrderLog, HoldsMessagesInTheirOrder) {
  const ScratchFolder folder;
  {
    OrderLog log = OrderLog::create(folder.path(), kHeader);
    log.fence(0);
    log.add(pull(1, 1), {});
    log.add(pull(0, 1), {});
    log.add(push(1, 1), {});
    log.add(pull(1, 2), {});  // ahead of the end: of no use
    log.add(push(0, 1), {});
    log.fence(1);
    log.fence(1);  // once
    log.end();
  }
  std::vector<OrderEntry> found = messages_of(folder.path());
  std::erase_if(found, [](const OrderEntry& each) { return each.kind == OrderKind::kDigest; });
  EXPECT_EQ(found, (std::vector<OrderEntry>{fence(0), pull(1, 1), pull(0, 1), push(1, 1),
                                            push(0, 1), fence(1)}));
  EXPECT_TRUE(OrderReader(folder.path(), 0, 0, {}).has_end());
}

// The same messages with other bytes have another digest.
TEST(OrderLog, DigestsAreOfWhatMessagesHold) {
  const auto digest = [](uint8_t byte) {
    const ScratchFolder folder;
    OrderLog log = OrderLog::create(folder.path(), kHeader);
    log.fence(0);
    for (int i = 0; i < kDigestEvery; ++i) {
      EXPECT_FALSE(log.needs_digest());
      const std::byte bytes[] = {std::byte{1}, std::byte(i == 500 ? byte : 0)};
      log.add(push(0, 1), bytes);
    }
    EXPECT_TRUE(log.needs_digest());
    return log.put_digest();
  };
  EXPECT_EQ(digest(1), digest(1));
  EXPECT_NE(digest(1), digest(2));
}

// A step that ends the replay: later messages that came before its last ones are left out.
TEST(OrderLog, EndsAtAnyStep) {
  const ScratchFolder folder;
  {
    OrderLog log = OrderLog::create(folder.path(), kHeader);
    log.fence(0);
    log.add(push(1, 1), {});
    log.add(push(1, 2), {});
    log.add(pull(1, 3), {});
    log.add(push(0, 1), {});
    log.add(push(1, 3), {});
    log.add(push(0, 2), {});
    log.add(push(0, 3), {});
    log.fence(3);
    log.add(push(0, 4), {});  // the run was killed
  }
  EXPECT_EQ(messages_of(folder.path(), 0, 1),
            (std::vector<OrderEntry>{fence(0), push(1, 1), push(0, 1)}));
  EXPECT_EQ(messages_of(folder.path(), 0, 2),
            (std::vector<OrderEntry>{fence(0), push(1, 1), push(1, 2), push(0, 1), push(0, 2)}));
  const OrderReader whole(folder.path(), 0, 0, {});
  EXPECT_EQ(whole.until(), 3);
  EXPECT_EQ(whole.fences(), (std::vector<int64_t>{0, 3}));
  EXPECT_FALSE(whole.has_end());
  EXPECT_EQ(messages_of(folder.path()).back(), fence(3));
  EXPECT_THROW(messages_of(folder.path(), 0, 4), Error);
}

// A pull whose answer was lost comes again, and only the second one counts.
TEST(OrderLog, LeavesOutAnswersThatWereLost) {
  const ScratchFolder folder;
  {
    OrderLog log = OrderLog::create(folder.path(), kHeader);
    log.fence(0);
    log.add(pull(0, 1), {});
    log.add(push(1, 1), {});
    log.restart();
    log.add(pull(0, 1), {});
    log.add(push(0, 1), {});
    log.add(pull(0, 2), {});
    log.fence(1);
    log.add(pull(0, 2), {});  // asked again after the fence: both count
    log.fence(2);
  }
  const OrderEntry restart{OrderKind::kRestart, 0, 0};
  std::vector<OrderEntry> found = messages_of(folder.path());
  std::erase_if(found, [](const OrderEntry& each) { return each.kind == OrderKind::kDigest; });
  EXPECT_EQ(found, (std::vector<OrderEntry>{fence(0), push(1, 1), restart, pull(0, 1), push(0, 1),
                                            pull(0, 2), fence(1), pull(0, 2), fence(2)}));
}

// A run that was continued from checkpoints: files by their first step.
TEST(OrderLog, ContinuesInFilesOfCheckpoints) {
  const ScratchFolder folder;
  const auto write = [&](int64_t start, uint64_t last, int64_t fence_at) {
    OrderHeader header = kHeader;
    header.start = start;
    OrderLog log = OrderLog::create(folder.path(), header);
    log.fence(start);
    write_steps(log, static_cast<uint64_t>(start) + 1, static_cast<uint64_t>(fence_at));
    log.fence(fence_at);
    write_steps(log, static_cast<uint64_t>(fence_at) + 1, last);
  };
  write(0, 5, 4);
  write(4, 9, 8);
  write(8, 10, 10);
  EXPECT_EQ(OrderReader(folder.path(), 0, 0, {}).fences(), (std::vector<int64_t>{0, 4, 8, 10}));
  EXPECT_EQ(messages_of(folder.path(), 4).front(), fence(4));
  EXPECT_EQ(messages_of(folder.path(), 8).front(), fence(8));
  EXPECT_THROW(messages_of(folder.path(), 5), Error);
  std::vector<OrderEntry> pushes = messages_of(folder.path());
  std::erase_if(pushes, [](const OrderEntry& each) { return each.kind != OrderKind::kPush; });
  EXPECT_EQ(pushes.size(), 20u);  // steps 1 to 10 of two workers, none twice
  // Back to step 4: what came after it is gone.
  write(4, 6, 6);
  EXPECT_EQ(OrderReader(folder.path(), 0, 0, {}).fences(), (std::vector<int64_t>{0, 4, 6}));
  EXPECT_FALSE(fs::exists(fs::path(folder.path()) / "8"));
}

TEST(OrderLog, IsContinuedAfterTheDeathOfItsProcess) {
  const ScratchFolder folder;
  const std::string path = (fs::path(folder.path()) / "0" / "lane-0").string();
  {
    OrderLog log = OrderLog::create(folder.path(), kHeader);
    log.fence(0);
    write_steps(log, 1, 30);
  }
  std::ofstream(path, std::ios::app) << "cut";  // a part of an entry
  {
    auto log = OrderLog::reopen(folder.path(), kHeader);
    ASSERT_TRUE(log);
    EXPECT_EQ(log->updates(), 60u);
    write_steps(*log, 31, 40);
    log->fence(40);
    log->end();
  }
  std::vector<OrderEntry> pushes = messages_of(folder.path());
  std::erase_if(pushes, [](const OrderEntry& each) { return each.kind != OrderKind::kPush; });
  EXPECT_EQ(pushes.size(), 80u);
  OrderHeader other = kHeader;
  other.session = 8;
  EXPECT_FALSE(OrderLog::reopen(folder.path(), other));
}

// Each bit of a file that a fence ends, and each length: an error with the file, or the same order.
TEST(OrderLog, DamageIsFound) {
  const ScratchFolder folder;
  const std::string path = (fs::path(folder.path()) / "0" / "lane-0").string();
  {
    OrderLog log = OrderLog::create(folder.path(), kHeader);
    log.fence(0);
    write_steps(log, 1, 40);
    log.fence(40);
    log.end();
  }
  const std::string whole = read_file(path, 1 << 20, ErrorCode::kModel);
  const auto write = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  };
  const auto expect_error = [&](const std::string& what) {
    try {
      const OrderReader reader(folder.path(), 0, 0, {});
      ADD_FAILURE() << what << " was not found";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kModel);
      EXPECT_NE(e.message().find(path), std::string::npos) << e.message();
    }
  };
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    write(damaged);
    expect_error(str("bit ", bit));
  }
  // A file that ends after a fence is that of a run that was killed; `read_order` compares lanes.
  for (size_t size = 0; size < whole.size(); ++size) {
    write(whole.substr(0, size));
    try {
      const OrderReader reader(folder.path(), 0, 0, {});
      EXPECT_FALSE(reader.has_end() && size + sizeof(uint64_t) < whole.size());
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kModel);
    }
  }
}

TEST(OrderLog, LanesMustEndTogether) {
  const ScratchFolder run;
  const std::string folder = (fs::path(run.path()) / kOrderFolder).string();
  for (int lane = 0; lane < 2; ++lane) {
    OrderLog log = OrderLog::create(
        folder, {.start = 0, .lane = lane, .lanes = 2, .workers = 2, .session = 7});
    log.fence(0);
    write_steps(log, 1, 9);
    log.fence(9);
    log.end();
  }
  const RecordedOrder order = read_order(run.path(), 0, {});
  EXPECT_EQ(order.lanes, 2);
  EXPECT_EQ(order.workers, 2);
  EXPECT_EQ(order.last_step, 9);
  EXPECT_TRUE(order.has_ended);
  const fs::path last = fs::path(folder) / "0" / "lane-1";
  fs::resize_file(last, fs::file_size(last) - 2 * sizeof(uint64_t));
  EXPECT_THROW(read_order(run.path(), 0, {}), Error);
  fs::remove(last);
  EXPECT_THROW(read_order(run.path(), 0, {}), Error);
  const ScratchFolder empty;
  EXPECT_THROW(read_order(empty.path(), 0, {}), Error);
}

}  // namespace
}  // namespace paddle::ps
