// Tables that the ranks of a run share, or servers keep for them: the same numbers whatever their
// number, and rows that are fetched a step ahead.

#include "train/tables/tables.h"

#include <atomic>
#include <cmath>
#include <filesystem>
#include <functional>

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/scratch_folder.h"
#include "comm/simulation.h"
#include "train/job/trainer.h"

namespace paddle::train {
namespace {

namespace fs = std::filesystem;

program::TableSpec shared_spec() {
  return {"emb", 3, DType::kF64, {lang::Initializer::Kind::kNormal, 0, 0.5, {}}};
}

std::vector<double> numbers_of(const Array& array) {
  std::vector<double> out;
  for (int64_t i = 0; i < array.size(); ++i) out.push_back(array.number(i));
  return out;
}

/// Four steps of a table whose keys and gradients are functions of the sample; the samples are
/// divided among the ranks. Gives the content, and of the last step the sums of squares and the
/// rows that the ranks have read, in order.
struct Shared {
  std::vector<double> keys, weight, moment, read;
  double squares = 0;
};
/// `servers`: those that keep the rows, with seven lanes; 0: the ranks do.
Shared train_shared(int ranks, bool announces, const std::function<double(int64_t)>& gradient,
                    int servers = 0) {
  constexpr int64_t kSamples = 13, kKeys = 3, kSteps = 4;
  program::ParameterStore store;
  store.seed = 3;
  const auto adagrad = std::make_shared<optim::Optimizer>(
      optim::OptimizerOptions{.rule = optim::make_rule("adagrad", "{}"), .lr = 0.1});
  const TableOpening opening{.rule = adagrad};
  std::optional<ps::LocalServers> local;
  if (servers > 0) {
    ps::ServerOptions options;
    options.servers = servers;
    options.lanes = 7;
    options.open = [opening](program::TableSpec declared, uint64_t seed) {
      return opening.open(std::move(declared), seed);
    };
    local.emplace(options, ranks);
  }
  const auto connect_as = [&](int rank) -> Tables::Connect {
    if (!local) return nullptr;
    return [&, rank] {
      ps::ClientOptions options;
      options.place = {
          .worker = rank, .workers = ranks, .session = 1, .servers = servers, .lanes = 7};
      return std::make_unique<ps::Client>(std::move(options), local->link(rank));
    };
  };
  Shared out;
  std::vector<std::vector<double>> reads(static_cast<size_t>(ranks));
  comm::simulate(ranks, [&](const std::shared_ptr<comm::Communicator>& communicator) {
    const int64_t rank = communicator->rank();
    Tables tables(store, opening, "", ranks > 1 ? communicator : nullptr,
                  connect_as(communicator->rank()));
    tables.open(shared_spec());
    // One rank may have no samples.
    const int64_t begin = kSamples * rank / ranks, end = kSamples * (rank + 1) / ranks;
    const auto use_of = [&](int64_t step) {
      std::vector<int64_t> keys;
      for (int64_t i = begin; i < end; ++i)
        for (int64_t k = 0; k < kKeys; ++k) keys.push_back((i * 7 + k * step) % 11 - 4);
      return TableUse{"emb", Array::from<int64_t>(keys, {end - begin, kKeys})};
    };
    double squares = 0;
    for (int64_t step = 1; step <= kSteps; ++step) {
      if (announces && step < kSteps) tables.announce({use_of(step + 1)});
      tables.begin_step(MissingRow::kInitial);
      const size_t use = tables.add(use_of(step));
      tables.fetch(true);
      const Array rows = tables.rows(use, false).rows;
      if (step == kSteps) reads[static_cast<size_t>(rank)] = numbers_of(rows);
      std::vector<double> gradients;
      for (int64_t i = begin * kKeys * 3; i < end * kKeys * 3; ++i)
        gradients.push_back(gradient(i));
      tables.add_gradients(use, Array::from<double>(gradients, {(end - begin) * kKeys, 3}));
      squares = tables.sums_of_squares().at("emb");
      tables.update({.rate = 0.1, .step = step}, {{"emb", 0.5}});
      // An evaluation in between.
      tables.begin_step(MissingRow::kZero);
      tables.add({"emb", Array::from<int64_t>({99, -4}, {2})});
      tables.fetch();
    }
    const program::ParameterStore whole = tables.with_tables(store);
    if (!communicator->is_root()) return;
    out.squares = squares;
    out.keys = numbers_of(whole.array("emb.keys"));
    out.weight = numbers_of(whole.array("emb.weight"));
    out.moment = numbers_of(whole.array("optimizer/emb.weight/moment"));
  });
  for (const auto& each : reads) out.read.insert(out.read.end(), each.begin(), each.end());
  return out;
}

TEST(Tables, OfAnyRanksAreTheSameWhereSumsAreExact) {
  const auto integers = [](int64_t i) { return static_cast<double>(i % 17 - 8); };
  const Shared one = train_shared(1, false, integers);
  EXPECT_EQ(one.keys, (std::vector<double>{-4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6}));
  for (const int ranks : {2, 3, 4, 16})
    for (const bool announces : {false, true}) {
      const Shared several = train_shared(ranks, announces, integers);
      EXPECT_EQ(several.keys, one.keys) << ranks;
      EXPECT_EQ(several.weight, one.weight) << ranks;
      EXPECT_EQ(several.moment, one.moment) << ranks;
      EXPECT_EQ(several.read, one.read) << ranks;
      EXPECT_EQ(several.squares, one.squares) << ranks;
    }
}

TEST(Tables, AnnouncedKeysChangeNoBits) {
  const auto fractions = [](int64_t i) { return std::sin(static_cast<double>(i)) / 3; };
  for (const int ranks : {2, 3}) {
    const Shared plain = train_shared(ranks, false, fractions),
                 announced = train_shared(ranks, true, fractions);
    EXPECT_EQ(plain.weight, announced.weight);
    EXPECT_EQ(plain.squares, announced.squares);
    EXPECT_EQ(plain.read, announced.read);
    const Shared one = train_shared(1, false, fractions);
    for (size_t i = 0; i < one.weight.size(); ++i)
      EXPECT_NEAR(plain.weight[i], one.weight[i], 1e-12);
  }
}

TEST(Tables, OnServersHaveTheBitsOfThoseInRanks) {
  const auto fractions = [](int64_t i) { return std::sin(static_cast<double>(i)) / 3; };
  for (const int ranks : {1, 2, 3, 16})
    for (const bool announces : {false, true})
      for (const int servers : {1, 2, 5}) {
        const Shared in_ranks = train_shared(ranks, false, fractions),
                     on_servers = train_shared(ranks, announces, fractions, servers);
        EXPECT_EQ(on_servers.keys, in_ranks.keys) << ranks;
        EXPECT_EQ(on_servers.weight, in_ranks.weight) << ranks;
        EXPECT_EQ(on_servers.moment, in_ranks.moment) << ranks;
        EXPECT_EQ(on_servers.read, in_ranks.read) << ranks;
        EXPECT_EQ(on_servers.squares, in_ranks.squares) << ranks;
      }
}

// --- rows that are fetched a step ahead ---

constexpr int64_t kSteps = 12;
constexpr int kRanks = 2, kLanes = 3;

/// Questions for rows that workers have sent to lanes.
using Questions = std::atomic<int64_t>;

class CountingLink final : public ps::Link {
 public:
  CountingLink(std::unique_ptr<ps::Link> link, Questions& questions)
      : link_(std::move(link)), questions_(questions) {}
  ps::Message connect(int server, const ps::WorkerPlace& place) override {
    return link_->connect(server, place);
  }
  bool send(int server, std::span<const std::shared_ptr<const ps::Message>> messages) override {
    for (const auto& message : messages)
      if (message->kind == ps::Kind::kAsk) ++questions_;
    return link_->send(server, messages);
  }
  std::optional<Received> wait(std::chrono::milliseconds timeout) override {
    return link_->wait(timeout);
  }

 private:
  std::unique_ptr<ps::Link> link_;
  Questions& questions_;
};

/// The messages of a run, and the rows that it ends with.
struct Traffic {
  int64_t questions = 0, exchanges = 0;  ///< of all workers to lanes; of rank 0 with all others
  std::string weights;
};
/// A run of the trainer with two ranks; `more`: sections of the config, `train`: keys of `train`.
Traffic run_trainer(const std::string& folder, bool on_servers, const std::string& more = "",
                    const std::string& train = "") {
  const std::string config_path = folder + "/run.yaml";
  write_file_atomically(config_path, str(R"(
model:
  name: net
  inputs: {ids: "int64[batch, 3]"}
  model: |
    rows = sparse_embedding(ids, 4, name="emb")
    prediction = linear(sum(rows, 1), 2, name="fc")
  outputs: [prediction]
loss: mse_loss(prediction, y)
optimizer: {name: adagrad, lr: 0.1}
data:
  batch_size: 8
  train: {kind: npz, path: )",
                                         fs::absolute("tests/train/tables/golden.npz").string(),
                                         R"(, arrays: {ids: ids, y: y}}
parallel: {data: 2}
train: {steps: )",
                                         kSteps, train, "}\n", more));
  const auto config = [&] {
    RunConfig out = read_config(config_path, {});
    out.parameter_server.lanes = kLanes;
    out.parameter_server.on_servers = on_servers;
    return out;
  };
  Questions questions = 0;
  Traffic out;
  TrainOptions options;
  options.output = folder + "/run";
  options.overwrite = true;
  if (on_servers) {
    const ServersOfRun servers = servers_in_process(config(), kRanks, options.output);
    options.servers = servers;
    options.servers->link = [servers, &questions](int worker) -> std::unique_ptr<ps::Link> {
      return std::make_unique<CountingLink>(servers.link(worker), questions);
    };
  }
  comm::simulate(kRanks, [&](const std::shared_ptr<comm::Communicator>& communicator) {
    TrainOptions of_rank = options;
    of_rank.communicator = communicator;
    TrainObserver observer;
    Trainer trainer(config(), of_rank, observer);
    const TrainResult result = trainer.run();
    if (!communicator->is_root()) return;
    out.exchanges = communicator->costs()[static_cast<size_t>(comm::Exchange::kAllToAll)].calls;
    out.weights = read_file(result.model_folder + "/model.safetensors", 1 << 20, ErrorCode::kModel);
  });
  out.questions = questions;
  return out;
}

TEST(Prefetch, EachStepAsksServersOnce) {
  const ScratchFolder folder;
  const Traffic ahead = run_trainer(folder.path(), true);
  EXPECT_EQ(ahead.questions, kSteps * kRanks * kLanes);
  EXPECT_EQ(ahead.weights, run_trainer(folder.path(), false).weights);
}

TEST(Prefetch, StepsOfRanksHaveTwoExchanges) {
  const ScratchFolder folder;
  // Keys and rows of the first step; then gradients with the keys of the next step, and its rows.
  EXPECT_EQ(run_trainer(folder.path(), false).exchanges, 2 + 2 * kSteps - 1);
}

// The end of a day removes rows that were fetched before it.
TEST(Prefetch, RowsAreAskedForAgainAfterADay) {
  const ScratchFolder folder;
  const std::string days = "tables: {emb: {statistics: {show: 1}, evict: {unseen_days: 1}}}\n";
  constexpr int64_t kDays = 3;  // of four steps; the last one ends the run
  const Traffic ahead = run_trainer(folder.path(), true, days, ", table_day: 4");
  EXPECT_EQ(ahead.questions, (kSteps + kDays - 1) * kRanks * kLanes);
  EXPECT_EQ(ahead.weights, run_trainer(folder.path(), false, days, ", table_day: 4").weights);
}

}  // namespace
}  // namespace paddle::train
