// Predictions of several requests as one batch: the same results as one by one, each request with
// its own error, and no batches where rows depend on each other.

#include "serve/predictor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/parallel.h"
#include "runtime/execute.h"

namespace paddle::serve {
namespace {

class Predictions : public testing::Test {
 protected:
  Predictions() {
    runtime::register_backends();
    path_ = testing::TempDir() + "/paddle_predictor_" + std::to_string(::getpid()) + ".yaml";
  }
  ~Predictions() override { std::filesystem::remove(path_); }

  std::unique_ptr<Predictor> predictor(const std::string& model, PredictLimits limits) {
    std::ofstream(path_) << model;
    ModelEntry entry{.name = "m", .path = path_};
    return std::make_unique<Predictor>(entry, limits, Device(), metrics_);
  }
  static PredictJobPtr job(Array input) {
    infer::InputBatch batch;
    batch.rows = input.shape[0];
    batch.inputs = {std::move(input)};
    return std::make_shared<PredictJob>(std::move(batch), false, infer::ShownColumns());
  }
  /// Rows of numbers that differ by request.
  static Array numbers(int64_t rows, int64_t columns, int request) {
    Array out = Array::empty(DType::kF32, {rows, columns});
    for (int64_t i = 0; i < out.size(); ++i)
      out.data<float>()[i] = static_cast<float>((i * 37 + request * 101) % 64) / 16 - 2;
    return out;
  }
  static void finish(const PredictJobPtr& job) { ASSERT_TRUE(job->wait(60'000)); }
  double count(const std::string& name) {
    const std::string text = metrics_.text(), key = "\npaddle_" + name + "{model=\"m\"} ";
    const size_t at = text.find(key);
    return at == text.npos ? -1 : std::stod(text.substr(at + key.size()));
  }
  /// Jobs that are joined: they come while the model waits for more.
  std::vector<PredictJobPtr> together(Predictor& model, const std::vector<Array>& inputs) {
    std::vector<PredictJobPtr> jobs;
    for (const Array& input : inputs) jobs.push_back(job(input));
    for (const PredictJobPtr& each : jobs) EXPECT_TRUE(model.submit(each, false));
    for (const PredictJobPtr& each : jobs) finish(each);
    return jobs;
  }

  std::string path_;
  Metrics metrics_;
};

/// Equal but for roundings: some kernels add in an order that depends on the number of rows.
bool are_close(const Array& a, const Array& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  for (int64_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a.number(i) - b.number(i)) <= 1e-5 * (1 + std::abs(b.number(i))))) return false;
  return true;
}

constexpr const char* kLayers =
    "inputs: {x: 'float32[batch, 24]'}\n"
    "model: [{linear: 32}, gelu, layer_norm, {linear: 5}]\n"
    "outputs: [y]\n";

TEST_F(Predictions, JoinedBatchesHaveTheValuesOfSeparateOnes) {
  const auto alone = predictor(kLayers, {.max_batch = 1});
  const auto joining = predictor(kLayers, {.max_batch = 16, .batch_wait = 0.5});
  const PredictJobPtr first = job(numbers(1, 24, 0));
  ASSERT_TRUE(joining->submit(first, false));
  finish(first);
  const double before = count("predict_batches_total");
  std::vector<Array> inputs;
  for (int i = 0; i < 7; ++i) inputs.push_back(numbers(1 + i % 3, 24, i));
  for (int round = 0; round < 2;
       ++round) {  // the first joined batch is compared with separate ones
    const auto jobs = together(*joining, inputs);
    for (size_t i = 0; i < jobs.size(); ++i) {
      const PredictJobPtr one = job(inputs[i]);
      ASSERT_TRUE(alone->submit(one, false));
      finish(one);
      ASSERT_FALSE(jobs[i]->error) << jobs[i]->error->what();
      EXPECT_EQ(jobs[i]->names, std::vector<std::string>{"y"});
      EXPECT_TRUE(are_close(jobs[i]->outputs.at(0), one->outputs.at(0))) << i;
    }
  }
  EXPECT_TRUE(joining->joins());
  // 13 rows are one batch of at most 16; those of `alone` count under the same name.
  EXPECT_EQ(count("predict_batches_total") - before, 2 + 14);
}

TEST_F(Predictions, RowsThatDependOnEachOtherAreNotJoined) {
  const char* const model =
      "inputs: {x: 'float32[batch, 4]'}\n"
      "model: return x - mean(x, 0, keepdim=true)\n"
      "outputs: [y]\n";
  const auto alone = predictor(model, {.max_batch = 1});
  const auto joining = predictor(model, {.max_batch = 16, .batch_wait = 0.3});
  together(*joining, {numbers(2, 4, 9)});
  const std::vector<Array> inputs = {numbers(2, 4, 0), numbers(1, 4, 1), numbers(3, 4, 2)};
  const auto jobs = together(*joining, inputs);
  for (size_t i = 0; i < jobs.size(); ++i)
    EXPECT_TRUE(are_close(jobs[i]->outputs.at(0), together(*alone, {inputs[i]})[0]->outputs.at(0)))
        << i;
  EXPECT_FALSE(joining->joins());
}

TEST_F(Predictions, AnErrorIsOfItsRequestOnly) {
  const auto model = predictor(
      "inputs: {ids: 'int64[batch, 2]'}\n"
      "model: return embedding(ids, 10, 3)\n"
      "outputs: [y]\n",
      {.max_batch = 16, .batch_wait = 0.3});
  const auto ids = [](int64_t a, int64_t b) { return Array::from<int64_t>({a, b}, {1, 2}); };
  together(*model, {ids(0, 1)});
  const auto jobs = together(*model, {ids(1, 2), ids(3, 99), ids(4, 5)});
  EXPECT_FALSE(jobs[0]->error);
  ASSERT_TRUE(jobs[1]->error);
  EXPECT_EQ(jobs[1]->error->code(), ErrorCode::kData) << jobs[1]->error->what();
  EXPECT_FALSE(jobs[2]->error);
  EXPECT_TRUE(model->joins());
}

TEST_F(Predictions, OtherSizesAreOtherBatchesAndTheQueueIsBounded) {
  const auto model = predictor(
      "inputs: {x: 'float32[batch, length]'}\n"
      "model: return tanh(x)\n"
      "outputs: [y]\n",
      {.queue = 3, .max_batch = 8, .batch_wait = 0.3});
  together(*model, {numbers(1, 4, 0)});
  const double before = count("predict_batches_total");
  const auto jobs = together(*model, {numbers(1, 4, 1), numbers(1, 6, 2), numbers(2, 4, 3)});
  EXPECT_EQ(jobs[1]->outputs.at(0).shape, (Dims{1, 6}));
  EXPECT_EQ(jobs[2]->outputs.at(0).shape, (Dims{2, 4}));
  EXPECT_EQ(count("predict_batches_total") - before, 2);
  // The first is taken and waits for rows of its size, which never come, while three are queued.
  // Further batches of a request are always accepted.
  std::vector<PredictJobPtr> many;
  int accepted = 0;
  for (int i = 0; i < 10; ++i) {
    many.push_back(job(numbers(1, 4 + i, i)));
    accepted += model->submit(many.back(), false);
  }
  EXPECT_GE(accepted, 3);
  EXPECT_LT(accepted, 10);
  const PredictJobPtr more = job(numbers(1, 3, 0));
  EXPECT_TRUE(model->submit(more, true));
  finish(more);
}

}  // namespace
}  // namespace paddle::serve
