// Tables of rows by key (`sparse_embedding`): the table itself, and runs that train one, against
// `embedding` with row-sparse gradients and against PyTorch (golden.npz, which tables/make.py
// computed).

#include "train/tables/tables.h"
#include "program/memory_table.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.h"
#include "formats/npz.h"
#include "formats/safetensors.h"
#include "train/job/trainer.h"

namespace paddle::train {
namespace {

using program::check_content;
using program::MemoryTable;
using program::table_kinds;

namespace fs = std::filesystem;
using Losses = std::vector<double>;

const char* const kGolden = "tests/train/tables/golden.npz";

TEST(KeyIndex, NumbersKeysInTheOrderOfTheirArrival) {
  KeyIndex index;
  EXPECT_EQ(index.find(0), -1);
  const std::vector<uint64_t> some = {uint64_t{1} << 63, UINT64_MAX, 0, 1, uint64_t{1} << 62};
  for (size_t i = 0; i < some.size(); ++i) EXPECT_EQ(index.add(some[i]), static_cast<int64_t>(i));
  for (uint64_t i = 0; i < 5000; ++i) index.add((i << 40) + 17);
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

using Keys = std::vector<uint64_t>;
constexpr uint64_t kLowest = uint64_t{1} << 63, kHighest = kLowest - 1;  // int64's

std::vector<double> read(const RowTable& table, const Keys& keys,
                         MissingRow missing = MissingRow::kZero) {
  Array rows =
      Array::empty(table.spec().dtype, {static_cast<int64_t>(keys.size()), table.spec().width});
  table.read(keys, missing, static_cast<std::byte*>(rows.raw()));
  return values(rows);
}

TEST(RowTable, FirstRowsDependOnTheKeyAlone) {
  const auto sgd = rule("sgd");
  MemoryTable a(spec(), sgd, 7), b(spec(), sgd, 7), other(spec(), sgd, 8);
  a.insert(Keys{5, uint64_t(-9)});
  b.insert(Keys{uint64_t(-9), uint64_t{1} << 62, 5, 5});
  EXPECT_EQ(a.count(), 2);
  EXPECT_EQ(b.count(), 3);
  const auto x = read(a, {5, uint64_t(-9)}), y = read(b, {uint64_t(-9), 5});
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(x[i], y[3 + i]);
    EXPECT_EQ(x[3 + i], y[i]);
    EXPECT_NE(x[i], x[3 + i]);
    EXPECT_NE(x[i], read(other, {5}, MissingRow::kInitial)[i]);
  }
}

TEST(RowTable, ReadingAddsNoRows) {
  MemoryTable table(spec(), rule("adam"), 7);
  EXPECT_EQ(read(table, {3}), (std::vector<double>{0, 0, 0}));
  const auto initial = read(table, {3}, MissingRow::kInitial);
  EXPECT_EQ(table.count(), 0);
  table.insert(Keys{3});
  EXPECT_EQ(table.count(), 1);
  EXPECT_EQ(read(table, {3}), initial);
}

TEST(RowTable, AnUpdateLeavesOtherRowsAndTheirStatesAlone) {
  MemoryTable table(spec(DType::kF64), rule("adagrad", "{epsilon: 1e-8}"), 7);
  table.insert(Keys{1, 2});
  const auto before = read(table, {1, 2});
  table.update(Keys{2}, Array::from<double>({1, -2, 0}, {1, 3}), {.rate = 0.1, .step = 1});
  const auto after = read(table, {1, 2});
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(after[i], before[i]);
  EXPECT_NEAR(after[3], before[3] - 0.1, 1e-7);
  EXPECT_NEAR(after[4], before[4] + 0.1, 1e-7);
  EXPECT_EQ(after[5], before[5]);
  const TableContent content = table.content();
  EXPECT_EQ(values(content.states.at(0).second), (std::vector<double>{0, 0, 0, 1, 4, 0}));
}

TEST(RowTable, IsRestoredFromItsContent) {
  for (const char* name : {"adam", "rmsprop"}) {  // in place, and by operations
    const auto optimizer = rule(name);
    MemoryTable table(spec(), optimizer, 7), again(spec(), optimizer, 1);
    table.insert(Keys{9, kLowest, 4, kHighest});
    const Array gradient = Array::from<float>({1, 2, 3, -1, 0.5, 2}, {2, 3});
    table.update(Keys{kHighest, 9}, gradient, {.rate = 0.1, .step = 1});
    const TableContent content = table.content();
    EXPECT_EQ(content.keys.shape, (Dims{4}));
    EXPECT_EQ(content.keys.data<int64_t>()[0], INT64_MIN);
    EXPECT_EQ(content.keys.data<int64_t>()[3], INT64_MAX);
    check_content(spec(), content, "file");
    again.clear(7);
    for (int part = 0; part < 3; ++part) again.add(content, tables::shards_of_part(part, 3));
    for (RowTable* each : {&table, &again}) {
      each->update(Keys{9, 4}, gradient, {.rate = 0.1, .step = 2});
      each->insert(Keys{77});
    }
    const Keys all = {9, kLowest, 4, kHighest, 77};
    EXPECT_EQ(read(table, all), read(again, all));
    EXPECT_EQ(values(table.content().states.at(0).second),
              values(again.content().states.at(0).second));
  }
}

TEST(RowTable, UpdatesInPlaceAreThoseOfTheOperations) {
  // The same optimizer without its rule for rows.
  struct WithoutRowRule : optim::UpdateRule {
    explicit WithoutRowRule(std::shared_ptr<const optim::UpdateRule> wrapped)
        : rule(std::move(wrapped)) {}
    std::vector<optim::StateSlot> slots(const std::string& name, const Dims& shape,
                                        double lr) const override {
      return rule->slots(name, shape, lr);
    }
    Tensors update(const optim::UpdateOperands& operands) const override {
      return rule->update(operands);
    }
    std::shared_ptr<const optim::UpdateRule> rule;
  };
  for (const auto& [name, keys] :
       std::vector<std::pair<const char*, const char*>>{{"sgd", "{}"},
                                                        {"momentum", "{momentum: 0.8}"},
                                                        {"momentum", "{nesterov: true}"},
                                                        {"adagrad", "{initial_accumulator: 0.1}"},
                                                        {"adam", "{beta1: 0.8}"},
                                                        {"adamw", "{}"}})
    for (const DType dtype : {DType::kF32, DType::kF64}) {
      optim::OptimizerOptions options{.rule = optim::make_rule(name, keys),
                                      .lr = 0.1,
                                      .weight_decay = 0.01,
                                      .groups = {optim::ParameterGroup{}}};
      options.groups[0].match = {"emb.*"};
      options.groups[0].lr_scale = 0.3;
      const auto in_place = std::make_shared<optim::Optimizer>(options);
      options.rule.rule = std::make_shared<WithoutRowRule>(options.rule.rule);
      const auto by_operations = std::make_shared<optim::Optimizer>(options);
      MemoryTable a(spec(dtype), in_place, 7), b(spec(dtype), by_operations, 7);
      const Keys all = {1, 2, 3};
      for (int64_t step = 1; step <= 4; ++step)
        for (RowTable* table : {&a, &b}) {
          table->insert(all);
          std::vector<double> gradient(9);
          for (size_t i = 0; i < 9; ++i)
            gradient[i] = std::sin(static_cast<double>(i) + 7 * static_cast<double>(step));
          RowUpdate update{.rate = 0.1 / static_cast<double>(step), .step = step};
          if (step > 1) update.scale = 1.7;
          if (step > 2) update.bound = 0.5;
          table->update(all, Array::from<double>(gradient, {3, 3}).cast(dtype), update);
        }
      EXPECT_EQ(read(a, all), read(b, all)) << name << keys;
      const TableContent x = a.content(), y = b.content();
      for (size_t i = 0; i < x.states.size(); ++i)
        EXPECT_EQ(values(x.states[i].second), values(y.states[i].second)) << name << keys;
    }
}

TEST(RowTable, DamagedContentIsRejected) {
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

TEST(RowTable, RowsAreSetAndChangesAdded) {
  MemoryTable table(spec(DType::kF64), rule("adagrad"), 7);
  table.insert(Keys{5});
  table.update(Keys{5}, Array::from<double>({1, 2, 3}, {1, 3}), {.rate = 0.1});
  const std::vector<double> moment = values(table.content().states.at(0).second);
  // A row that is there keeps its states, one that is not begins with new ones.
  const std::vector<double> rows = {1, 2, 3, 4, 5, 6};
  table.set_rows(Keys{5, 9}, reinterpret_cast<const std::byte*>(rows.data()));
  EXPECT_EQ(read(table, {5, 9}), rows);
  std::vector<double> states = values(table.content().states.at(0).second);
  EXPECT_EQ(std::vector<double>(states.begin(), states.begin() + 3), moment);
  EXPECT_EQ(std::vector<double>(states.begin() + 3, states.end()), (std::vector<double>{0, 0, 0}));
  const std::vector<double> first = read(table, {2}, MissingRow::kInitial);
  table.add_changes(Keys{9, 2}, Array::from<double>({1, 1, 1, 8, 0, -4}, {2, 3}), 0.5);
  EXPECT_EQ(read(table, {9, 2}),
            (std::vector<double>{4.5, 5.5, 6.5, first[0] + 4, first[1], first[2] - 2}));
  states = values(table.content().states.at(0).second);
  EXPECT_EQ(std::vector<double>(states.begin() + 3, states.begin() + 6), moment) << "of key 5";
}

TEST(RowTable, KeysOfUint64HaveTheirOwnOrder) {
  program::TableSpec wide = spec();
  wide.key = DType::kU64;
  MemoryTable table(wide, rule("sgd"), 7);
  table.insert(Keys{UINT64_MAX, 0, kLowest, 5});
  const TableContent content = table.content();
  EXPECT_EQ(content.keys.dtype, DType::kU64);
  const auto* const keys = content.keys.data<uint64_t>();
  EXPECT_EQ(Keys(keys, keys + 4), (Keys{0, 5, kLowest, UINT64_MAX}));
  check_content(wide, content, "file");
  EXPECT_THROW(check_content(spec(), content, "file"), Error);
}

TEST(TableKinds, AreAddedWhileTheProgramRuns) {
  // A kind that counts what it opens.
  static int opened = 0;
  table_kinds().add({{"counted", "as memory",
                      [](program::TableSpec spec, std::shared_ptr<const optim::Optimizer> rule,
                         uint64_t seed, const KindOptions&) -> std::unique_ptr<RowTable> {
                        ++opened;
                        return std::make_unique<MemoryTable>(std::move(spec), std::move(rule),
                                                             seed);
                      }}},
                    {"plugin.yaml", 2});
  program::ParameterStore store;
  Tables counted(store, {.rule = rule("sgd"), .kind = {"counted"}}, "", nullptr);
  counted.open(spec());
  EXPECT_EQ(opened, 1);
  Tables unknown(store, {.rule = rule("sgd"), .kind = {"nowhere"}}, "", nullptr);
  try {
    unknown.open(spec());
    FAIL() << "expected an error";
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "tables: unknown kind 'nowhere', expected one of memory, counted");
  }
  EXPECT_THROW(table_kinds().add({{"fresh", "", {}}, {"memory", "", {}}}, {"other.yaml"}), Error);
  EXPECT_EQ(table_kinds().find("fresh"), nullptr) << "all or nothing";
  table_kinds().remove({"counted"});
}

TEST(RowTable, OptimizersOfWholeMatricesAreRejected) {
  for (const char* kind : {"lamb", "muon", "adafactor"})
    EXPECT_THROW(MemoryTable(spec(), rule(kind), 7), Error);
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
    int64_t steps = 20, accumulate = 1;
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
    write_file_atomically(config,
                          str(R"(
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
                              run.steps, ", accumulate: ", run.accumulate, "}\n", run.more, "\n"));
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
  std::iota(numbers.begin(), numbers.end(), uint64_t{0});
  const MemoryTable table({"emb", 4, dtype, {lang::Initializer::Kind::kUniform, -0.05, 0.05, {}}},
                          rule("sgd"), 1);
  Array rows = Array::empty(dtype, {keys.size(), 4});
  table.read(numbers, MissingRow::kInitial, static_cast<std::byte*>(rows.raw()));
  formats::write_safetensors(init, {{"emb.weight", rows}});
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

TEST_F(TableRuns, OfMicroBatchesAreThoseOfTheWholeBatch) {
  const std::string init = golden_weights();
  for (const char* clip : {"", "clip: {global_norm: 0.05}", "clip: {norm: 0.02}"})
    for (const bool eager : {false, true}) {
      Run run{.optimizer = "{name: adam, lr: 0.02}", .init = init, .more = clip, .eager = eager};
      const std::string what = str(clip, eager ? " eager" : "");
      const Result whole = train("whole", run);
      run.accumulate = 3;
      const Result parts = train("parts", run);
      expect_near(parts.losses, whole.losses, 1e-9, what);
      const auto wanted = whole.weights("emb.weight"), got = parts.weights("emb.weight");
      expect_near(got, wanted, 1e-9, what);
      fs::remove_all(file("whole"));
      fs::remove_all(file("parts"));
    }
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
