// Tables of rows by key (`sparse_embedding`): the table itself, and runs that train one, against
// `embedding` with row-sparse gradients and against PyTorch (golden.npz, which tables/make.py
// computed).

#include "train/tables/row_table.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.h"
#include "formats/npz.h"
#include "formats/safetensors.h"
#include "train/tables/key_index.h"
#include "train/trainer.h"

namespace paddle::train {
namespace {

namespace fs = std::filesystem;
using Losses = std::vector<double>;

const char* const kGolden = "tests/train/tables/golden.npz";

TEST(KeyIndex, NumbersKeysInTheOrderOfTheirArrival) {
  KeyIndex index;
  EXPECT_EQ(index.find(0), -1);
  const std::vector<int64_t> some = {INT64_MAX, INT64_MIN, 0, -1, int64_t{1} << 62};
  for (size_t i = 0; i < some.size(); ++i) EXPECT_EQ(index.add(some[i]), static_cast<int64_t>(i));
  for (int64_t i = 0; i < 5000; ++i) index.add(i * (int64_t{1} << 40) - (int64_t{1} << 62));
  EXPECT_EQ(index.size(), 5005);
  for (size_t i = 0; i < some.size(); ++i) EXPECT_EQ(index.add(some[i]), static_cast<int64_t>(i));
  EXPECT_EQ(index.find(12345), -1);
  index.clear();
  EXPECT_EQ(index.find(0), -1);
  EXPECT_EQ(index.add(0), 0);
}

program::TableSpec spec(DType dtype = DType::kF32) {
  return {"emb", 3, dtype, {lang::Initializer::Kind::kNormal, 0, 0.5, {}}};
}

std::shared_ptr<const optim::Optimizer> rule(const char* name, const char* keys = "{}") {
  return std::make_shared<optim::Optimizer>(
      optim::OptimizerOptions{.rule = optim::make_rule(name, keys), .lr = 0.1});
}

std::vector<double> values(const Array& array) {
  std::vector<double> out;
  for (int64_t i = 0; i < array.size(); ++i) out.push_back(array.number(i));
  return out;
}

using Keys = std::vector<int64_t>;

TEST(LocalTable, FirstRowsDependOnTheKeyAlone) {
  const auto sgd = rule("sgd");
  LocalTable a(spec(), sgd, 7), b(spec(), sgd, 7), other(spec(), sgd, 8);
  const Array first = a.read(Keys{5, -9}, MissingRow::kInsert);
  const Array second = b.read(Keys{-9, int64_t{1} << 62, 5}, MissingRow::kInsert);
  EXPECT_EQ(a.count(), 2);
  EXPECT_EQ(b.count(), 3);
  const auto x = values(first), y = values(second);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(x[i], y[6 + i]);
    EXPECT_EQ(x[3 + i], y[i]);
    EXPECT_NE(x[i], x[3 + i]);
    EXPECT_NE(x[i], values(other.read(Keys{5}, MissingRow::kInitial))[i]);
  }
}

TEST(LocalTable, OnlyTrainingAddsRows) {
  LocalTable table(spec(), rule("adam"), 7);
  EXPECT_EQ(values(table.read(Keys{3}, MissingRow::kZero)), (std::vector<double>{0, 0, 0}));
  const auto initial = values(table.read(Keys{3}, MissingRow::kInitial));
  EXPECT_EQ(table.count(), 0);
  EXPECT_EQ(values(table.read(Keys{3}, MissingRow::kInsert)), initial);
  EXPECT_EQ(table.count(), 1);
  EXPECT_EQ(values(table.read(Keys{3}, MissingRow::kZero)), initial);
}

TEST(LocalTable, AnUpdateLeavesOtherRowsAndTheirStatesAlone) {
  LocalTable table(spec(DType::kF64), rule("adagrad", "{epsilon: 1e-8}"), 7);
  const auto before = values(table.read(Keys{1, 2}, MissingRow::kInsert));
  table.update(Keys{2}, Array::from<double>({1, -2, 0}, {1, 3}), {.rate = 0.1, .step = 1});
  const auto after = values(table.read(Keys{1, 2}, MissingRow::kZero));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(after[i], before[i]);
  EXPECT_NEAR(after[3], before[3] - 0.1, 1e-7);
  EXPECT_NEAR(after[4], before[4] + 0.1, 1e-7);
  EXPECT_EQ(after[5], before[5]);
  const TableContent content = table.content();
  EXPECT_EQ(values(content.states.at(0).second), (std::vector<double>{0, 0, 0, 1, 4, 0}));
}

TEST(LocalTable, IsRestoredFromItsContent) {
  const auto adam = rule("adam");
  LocalTable table(spec(), adam, 7), again(spec(), adam, 1);
  table.read(Keys{9, INT64_MIN, 4, INT64_MAX}, MissingRow::kInsert);
  const Array gradient = Array::from<float>({1, 2, 3, -1, 0.5, 2}, {2, 3});
  table.update(Keys{INT64_MAX, 9}, gradient, {.rate = 0.1, .step = 1});
  const TableContent content = table.content();
  EXPECT_EQ(content.keys.shape, (Dims{4}));
  EXPECT_EQ(content.keys.data<int64_t>()[0], INT64_MIN);
  EXPECT_EQ(content.keys.data<int64_t>()[3], INT64_MAX);
  check_content(spec(), content, "file");
  again.restore(content, 7);
  for (LocalTable* each : {&table, &again})
    each->update(Keys{9, 4}, gradient, {.rate = 0.1, .step = 2});
  const Keys all = {9, INT64_MIN, 4, INT64_MAX, 77};
  EXPECT_EQ(values(table.read(all, MissingRow::kInsert)),
            values(again.read(all, MissingRow::kInsert)));
  EXPECT_EQ(values(table.content().states.at(1).second),
            values(again.content().states.at(1).second));
}

TEST(LocalTable, DamagedContentIsRejected) {
  const auto good = [] {
    return TableContent{Array::from<int64_t>({-4, 9}, {2}),
                        Array::zeros(DType::kF32, {2, 3}),
                        {{"moment1", Array::zeros(DType::kF32, {2, 3})}}};
  };
  check_content(spec(), good(), "file");
  std::vector<TableContent> bad(6, good());
  bad[0].keys = Array::from<int64_t>({9, 9}, {2});
  bad[1].keys = Array::from<int64_t>({9, -4}, {2});
  bad[2].keys = Array::from<float>({1, 2}, {2});
  bad[3].weight = Array::zeros(DType::kF32, {3, 3});
  bad[4].weight = Array::zeros(DType::kF64, {2, 3});
  bad[5].states[0].second = Array::zeros(DType::kF32, {2, 4});
  for (size_t i = 0; i < bad.size(); ++i) try {
      check_content(spec(), bad[i], "file");
      ADD_FAILURE() << i;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kModel);
      EXPECT_EQ(error.message().find("file: 'emb."), 0u) << error.message();
    }
}

TEST(LocalTable, OptimizersOfWholeMatricesAreRejected) {
  for (const char* kind : {"lamb", "muon", "adafactor"})
    EXPECT_THROW(LocalTable(spec(), rule(kind), 7), Error);
}

// --- runs ---

class TableRuns : public ::testing::Test {
 protected:
  TableRuns() : folder_(fs::temp_directory_path() / str("paddle-tables-", getpid())) {
    fs::create_directories(folder_);
  }
  ~TableRuns() override { fs::remove_all(folder_); }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }

  struct Observer : TrainObserver {
    void log(const LogLine& line) override {
      if (line.kind == "train") losses.push_back(line.loss);
    }
    Losses losses;
  };
  struct Run {
    std::string layer = "sparse_embedding(ids, 4, name=\"emb\")";
    std::string optimizer = {}, init = {}, more = {};
    std::string precision = "float64";
    int64_t steps = 20;
    bool eager = false, resume = false;
  };
  struct Result {
    Losses losses;
    std::string model;
    std::vector<double> weights(const std::string& name) const {
      return values(formats::SafetensorsReader(model + "/model.safetensors").read(name));
    }
  };
  Result train(const std::string& name, const Run& run) const {
    const std::string config = file(name + ".yaml");
    write_file_atomically(config, str(R"(
model:
  name: net
  inputs: {ids: "int64[batch, 3]", others: "int64[batch, 2]"}
  model: |
    rows = )",
                                      run.layer, R"(
    prediction = linear(tanh(linear(sum(rows, 1), 5, name="fc1")), 2, name="fc2")
  outputs: [prediction]
loss: mse_loss(prediction, y)
precision: )",
                                      run.precision, "\noptimizer: ", run.optimizer, "\n", run.init,
                                      R"(
data:
  batch_size: 8
  shuffle: false
  workers: 0
  train: {kind: npz, path: )",
                                      data_, R"(, arrays: {ids: ids, others: others, y: y}}
train: {checkpoint_every: never, evaluate_every: never, log_every: 1, steps: )",
                                      run.steps, "}\n", run.more, "\n"));
    TrainOptions options;
    options.output = file(name);
    options.eager = run.eager;
    options.resume = run.resume;
    Observer observer;
    Trainer trainer(read_config(config, {}), options, observer);
    const TrainResult result = trainer.run();
    return {observer.losses, result.model_folder};
  }
  /// The golden weights of a case, or those that all cases begin with.
  std::string golden_weights() const {
    const formats::NpzReader golden(kGolden);
    std::vector<std::pair<std::string, Array>> weights;
    for (const char* name :
         {"emb.keys", "emb.weight", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"})
      weights.emplace_back(name, golden.read(name));
    formats::write_safetensors(file("init.safetensors"), weights);
    return "init: {weights: " + file("init.safetensors") + "}";
  }
  static void expect_near(const Losses& got, const Losses& wanted, double relative,
                          const std::string& what) {
    ASSERT_EQ(got.size(), wanted.size()) << what;
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], wanted[i], relative * std::max(std::abs(wanted[i]), 1e-3))
          << what << " " << i;
  }
  const fs::path folder_;
  std::string data_ = fs::absolute(kGolden).string();
};

TEST_F(TableRuns, AreThoseOfPyTorch) {
  const formats::NpzReader golden(kGolden);
  const std::string init = golden_weights();
  for (const auto& [name, optimizer] : std::vector<std::pair<std::string, std::string>>{
           {"sgd", "{name: sgd, lr: 0.1}"},
           {"adagrad", "{name: adagrad, lr: 0.1, epsilon: 1e-10}"},
           {"adam", "{name: adam, lr: 0.02}"}})
    for (const bool eager : {false, true}) {
      const std::string what = name + (eager ? "-eager" : "");
      const Result run = train(what, {.optimizer = optimizer, .init = init, .eager = eager});
      expect_near(run.losses, values(golden.read(name + "/losses")), 1e-6, what);
      EXPECT_EQ(run.weights("emb.keys"), values(golden.read("emb.keys"))) << what;
      for (const char* weight : {"emb.weight", "fc1.weight", "fc2.bias"})
        expect_near(run.weights(weight), values(golden.read(name + "/" + weight)), 1e-5, what);
    }
}

/// The data with its keys replaced by their places in sorted order, and in `init` the rows that a
/// table of these begins with.
std::string dense_data(const std::string& folder, DType dtype, const std::string& init) {
  const formats::NpzReader golden(kGolden);
  const Array keys = golden.read("emb.keys");
  const auto places = [&](const char* name) {
    Array ids = golden.read(name).contiguous();
    const auto* const first = keys.data<int64_t>();
    for (int64_t i = 0; i < ids.size(); ++i)
      ids.data<int64_t>()[i] =
          std::find(first, first + keys.size(), ids.data<int64_t>()[i]) - first;
    return ids;
  };
  Keys numbers(static_cast<size_t>(keys.size()));
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  LocalTable table({"emb", 4, dtype, {lang::Initializer::Kind::kUniform, -0.05, 0.05, {}}},
                   rule("sgd"), 1);
  formats::write_safetensors(init, {{"emb.weight", table.read(numbers, MissingRow::kInitial)}});
  const std::string file = folder + "/dense.npz";
  formats::write_npz(
      file,
      {{"ids", places("ids")}, {"others", places("others")}, {"y", golden.read("y").cast(dtype)}});
  return file;
}

TEST_F(TableRuns, AreThoseOfAnEmbeddingWithRowSparseGradients) {
  const std::string init = file("rows.safetensors");
  int64_t number = 0;
  for (const bool wide : {false, true}) {
    data_ = dense_data(folder_.string(), wide ? DType::kF64 : DType::kF32, init);
    for (const char* more :
         {"", "clip: {global_norm: 0.05}", "clip: {norm: 0.02}", "clip: {value: 0.01}"})
      for (const std::string optimizer :
           {"{name: sgd, lr: 0.1}", "{name: momentum, lr: 0.1}", "{name: adagrad, lr: 0.1}",
            "{name: adam, lr: 0.02}", "{name: adamw, lr: 0.02, weight_decay: 0.1}"}) {
        const bool is_adam = optimizer == "{name: adam, lr: 0.02}";
        if (wide && !is_adam) continue;
        if (*more && !is_adam && optimizer != "{name: sgd, lr: 0.1}") continue;
        const std::string name = str("case", number++),
                          what = str(optimizer, " ", more, wide ? " float64" : " float32");
        const Run run{.optimizer = optimizer,
                      .init = "seed: 1",
                      .more = more,
                      .precision = wide ? "float64" : "float32"};
        Run dense = run, eager = run;
        dense.layer = "embedding(ids, 12, 4, sparse=true, name=\"emb\")";
        dense.init += "\ninit: {weights: " + init + ", allow_missing: \"fc*\"}";
        eager.eager = true;
        const Result wanted = train(name + "-dense", dense), got = train(name, run),
                     one_by_one = train(name + "-eager", eager);
        ASSERT_EQ(wanted.losses.size(), 20u);
        EXPECT_NE(wanted.losses.front(), wanted.losses.back());
        expect_near(got.losses, wanted.losses, 1e-6, what);
        expect_near(one_by_one.losses, got.losses, 1e-6, what + " eager");
      }
  }
}

TEST_F(TableRuns, ContinueBitForBit) {
  Run run{.optimizer = "{name: adam, lr: 0.02}", .init = "seed: 3", .more = "clip: {norm: 0.1}"};
  const Result whole = train("whole", run);
  run.steps = 1;  // keys are still to come
  train("stopped", run);
  run.steps = 20;
  run.resume = true;
  const Result resumed = train("stopped", run);
  EXPECT_EQ(resumed.losses.back(), whole.losses.back());
  for (const char* part : {"/model/model.safetensors", "/checkpoints/latest/model.safetensors",
                           "/checkpoints/latest/optimizer.safetensors"})
    EXPECT_EQ(read_file(file("stopped") + part, 1 << 20), read_file(file("whole") + part, 1 << 20))
        << part;
}

TEST_F(TableRuns, SeveralFieldsMayHaveOneTable) {
  const std::string init = file("rows.safetensors");
  data_ = dense_data(folder_.string(), DType::kF64, init);
  const Run run{.layer =
                    "concat([sparse_embedding(ids, 4, share=\"emb\"), sparse_embedding(others, 4, "
                    "share=\"emb\")], 1)",
                .optimizer = "{name: adam, lr: 0.02}",
                .init = "seed: 1",
                .more = "clip: {global_norm: 0.05}"};
  Run dense = run;
  dense.layer = "embedding(concat([ids, others], 1), 12, 4, sparse=true, name=\"emb\")";
  dense.init += "\ninit: {weights: " + init + ", allow_missing: \"fc*\"}";
  const Result wanted = train("dense", dense);
  for (const bool eager : {false, true}) {
    Run each = run;
    each.eager = eager;
    expect_near(train(eager ? "eager" : "compiled", each).losses, wanted.losses, 1e-6, "losses");
  }
}

TEST_F(TableRuns, SeveralLookupsOfAFieldAreOne) {
  Run run{.optimizer = "{name: sgd, lr: 0.1}", .init = golden_weights()};
  run.layer = "sparse_embedding(ids, 4, share=\"emb\") + sparse_embedding(ids, 4, share=\"emb\")";
  const Result twice = train("twice", run);
  run.layer = "2 * sparse_embedding(ids, 4, name=\"emb\")";
  expect_near(twice.losses, train("scaled", run).losses, 1e-9, "losses");
}

}  // namespace
}  // namespace paddle::train
