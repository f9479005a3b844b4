// Streams: results in the order of the input with the bits of one stream, threads of their own,
// and errors that arrive in their turn.

#include "infer/streams.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>

#include "base/parallel.h"
#include "base/thread_scope.h"

extern "C" int omp_get_max_threads() __attribute__((weak));

namespace paddle::infer {
namespace {

std::unique_ptr<program::Model> load(const std::string& yaml) {
  const std::string path =
      testing::TempDir() + "/paddle_streams_" + std::to_string(::getpid()) + ".yaml";
  std::ofstream(path) << yaml;
  auto model = program::load_model(path, {});
  std::filesystem::remove(path);
  return model;
}

const char* const kProduct =
    "inputs: {x: 'float32[n, 8]'}\n"
    "model: return matmul(tanh(x), param('w', [8, 8], init=normal(0, 1)))\n";

/// Batches of 1, 2, 3, … rows with the number of the batch in all elements; every fourth has none.
class Numbers final : public Batches {
 public:
  explicit Numbers(int64_t count) : count_(count) {}
  std::optional<InputBatch> next() override {
    if (at_ == count_) return std::nullopt;
    InputBatch batch;
    batch.rows = at_ % 4 == 3 ? 0 : 1 + at_ % 5;
    if (batch.rows == 0) batch.skipped.push_back({at_, "", "made so"});
    batch.inputs = {Array::from(
        std::vector<float>(static_cast<size_t>(batch.rows * 8), static_cast<float>(at_) / 10),
        {batch.rows, 8})};
    batch.indices = {at_++};
    return batch;
  }

 private:
  int64_t count_, at_ = 0;
};

using Numeric = std::vector<float>;

Numeric run(program::Model& model, const InputBatch& batch) {
  const Array out = model.run(batch.inputs)[0];
  return {out.data<float>(), out.data<float>() + out.size()};
}

/// The results of `count` batches, in the order in which they arrive.
std::vector<Numeric> predict(int64_t streams, int64_t count, std::set<size_t>* runners = nullptr) {
  const auto model = load(kProduct);
  Numbers batches(count);
  std::vector<Numeric> out;
  std::mutex mutex;
  Prediction<Numeric> prediction;
  prediction.run = [&](size_t runner, program::Model& own, const InputBatch& batch) {
    const std::lock_guard lock(mutex);
    if (runners) runners->insert(runner);
    return run(own, batch);
  };
  int64_t expected = 0;
  prediction.done = [&](const InputBatch& batch, const Numeric& result) {
    EXPECT_EQ(batch.indices[0], expected++);
    EXPECT_EQ(std::ssize(result), 8 * batch.rows);
    out.push_back(result);
    return true;
  };
  EXPECT_TRUE(predict_batches(*model, batches, streams, 4, prediction));
  EXPECT_EQ(expected, count);
  return out;
}

TEST(Streams, GiveTheResultsOfOneInOrder) {
  std::set<size_t> runners;
  const auto one = predict(1, 40);
  EXPECT_EQ(predict(3, 40, &runners), one);
  EXPECT_EQ(*runners.begin(), 0u);  // the first batch
  EXPECT_LE(*runners.rbegin(), 3u);
  EXPECT_GT(runners.size(), 1u);
  EXPECT_EQ(predict(3, 1), predict(1, 1));
  EXPECT_TRUE(predict(3, 0).empty());
}

TEST(Streams, RunOnTheirShareOfTheThreads) {
  const auto model = load(kProduct);
  Streams streams(*model, 3, 7);
  std::vector<int> counts(3);
  streams.run([&](size_t i) { counts[i] = thread_count(); });
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0), 7);
  for (const int count : counts) EXPECT_GE(count, 2);
  Streams more(*model, 4, 2);
  more.run([&](size_t i) { counts[i % 3] = thread_count(); });
  EXPECT_EQ(counts, std::vector<int>(3, 1));
}

TEST(Streams, AThreadScopeEndsAndLeavesOtherThreadsAlone) {
  const int before = thread_count();
  {
    const ThreadScope scope(before + 3);
    EXPECT_EQ(thread_count(), before + 3);
    int of_another = 0;
    std::thread([&] { of_another = thread_count(); }).join();
    EXPECT_EQ(of_another, before);
    const ThreadScope inner(0);
    EXPECT_EQ(thread_count(), 1);
  }
  EXPECT_EQ(thread_count(), before);
}

TEST(Streams, LibrariesTakeTheCountOfAThreadScope) {
  if (!omp_get_max_threads) GTEST_SKIP() << "built without OpenMP";
  // A new thread has OpenMP's own number, so that threads that run models open a scope.
  const int before = thread_count(), own = omp_get_max_threads();
  set_thread_count(own + 1);
  int alone = 0, scoped = 0;
  std::thread([&] { alone = omp_get_max_threads(); }).join();
  std::thread([&] {
    const ThreadScope threads(thread_count());
    scoped = omp_get_max_threads();
  }).join();
  set_thread_count(before);
  EXPECT_NE(alone, own + 1);
  EXPECT_EQ(scoped, own + 1);
}

TEST(Streams, RethrowErrorsInTheirTurn) {
  const auto model = load(kProduct);
  Numbers batches(50);
  int64_t delivered = 0;
  Prediction<Numeric> prediction;
  prediction.run = [&](size_t, program::Model& own, const InputBatch& batch) {
    if (batch.indices[0] >= 13) fail(ErrorCode::kData, "batch ", batch.indices[0]);
    return run(own, batch);
  };
  prediction.done = [&](const InputBatch&, const Numeric&) { return ++delivered > 0; };
  try {
    predict_batches(*model, batches, 4, 4, prediction);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "batch 13");
  }
  EXPECT_EQ(delivered, 13);
}

TEST(Streams, EndEarly) {
  const auto model = load(kProduct);
  Numbers batches(1000);
  int64_t delivered = 0;
  Prediction<Numeric> prediction;
  prediction.run = [&](size_t, program::Model& own, const InputBatch& batch) {
    return run(own, batch);
  };
  prediction.done = [&](const InputBatch&, const Numeric&) { return ++delivered < 9; };
  EXPECT_FALSE(predict_batches(*model, batches, 4, 4, prediction));
  EXPECT_EQ(delivered, 9);
}

TEST(Streams, ShareTheWeights) {
  const auto model = load(
      "inputs: {x: 'float32[n, 4096]'}\n"
      "model: return matmul(x, param('w', [4096, 4096], init=0.5))\n");
  const std::vector<Array> inputs = {Array::from(std::vector<float>(4096, 1), {1, 4096})};
  EXPECT_EQ(model->run(inputs)[0].number(7), 2048);
  const auto resident = [] {
    std::ifstream file("/proc/self/statm");
    int64_t size = 0, pages = 0;
    file >> size >> pages;
    return pages * ::sysconf(_SC_PAGESIZE);
  };
  const int64_t before = resident();
  Streams streams(*model, 4, 4);
  streams.run([&](size_t i) { EXPECT_EQ(streams.model(i).run(inputs)[0].number(7), 2048); });
  EXPECT_LT(resident() - before, 64 << 20);  // the size of one more matrix
}

TEST(Streams, RejectStatesThatPassFromRunToRun) {
  const auto model = load(
      "inputs: {x: 'float32[n]'}\n"
      "model: |\n"
      "  total = state('total', [], scope='sequence')\n"
      "  total = update(total, total + x.sum())\n"
      "  return x + total\n");
  try {
    model->clone();
    FAIL() << "a model with a state was cloned";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    EXPECT_NE(e.message().find("total"), std::string::npos);
  }
}

}  // namespace
}  // namespace paddle::infer
