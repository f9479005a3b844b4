// Running statistics of batch norms for averaged weights against PyTorch's update_bn: golden.npz
// holds what averaged_norms/make.py computed.

#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.h"
#include "comm/simulation.h"
#include "formats/npz.h"
#include "formats/safetensors.h"
#include "train/job/trainer.h"

namespace paddle::train {
namespace {

namespace fs = std::filesystem;

const char* const kGolden = "tests/train/averaged_norms/golden.npz";

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / str("paddle-averaged-norms-", getpid())) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

/// Trains on the golden data; the folder of the run.
std::string run(const Folder& folder, const std::string& train, bool eager,
                const std::string& parallel = "", int ranks = 1,
                const std::string& optimizer = "{name: sgd, lr: 0.1}") {
  const std::string golden = fs::absolute(kGolden).string();
  static int number = 0;
  const std::string name = str("run-", ++number), config = folder.file(name + ".yaml");
  write_file_atomically(config, str(R"(
model:
  name: net
  inputs: {x: "float64[batch, 5]"}
  model: |
    h = tanh(batch_norm(linear(x, 8, name="fc1"), name="norm"))
    h = batch_norm(h, share="shared")
    h = h + tanh(batch_norm(h * h, share="shared"))
    prediction = linear(h, 3, name="fc2")
  outputs: [prediction]
loss: mse_loss(prediction, y)
precision: float64
optimizer: )",
                                    optimizer, R"(
init: {weights: )",
                                    golden, R"(, allow_missing: "*running*", allow_unused: "*"}
data:
  batch_size: 16
  shuffle: false
  workers: 0
  train: {kind: npz, path: )",
                                    golden, R"(, arrays: {x: x, y: y}}
train: {checkpoint_every: 9, evaluate_every: never, steps: 30, )",
                                    train, "}\n", parallel));
  const auto train_on = [&](const std::shared_ptr<comm::Communicator>& communicator) {
    TrainOptions options;
    options.output = folder.file(name);
    options.eager = eager;
    options.communicator = communicator;
    TrainObserver silent;
    Trainer(read_config(config, {}), options, silent).run();
  };
  if (ranks == 1)
    train_on(nullptr);
  else
    comm::simulate(ranks, train_on);
  return folder.file(name);
}

void expect_golden(const std::string& file, const std::string& name) {
  const formats::NpzReader golden(kGolden);
  const formats::SafetensorsReader weights(file);
  EXPECT_EQ(weights.entries().size(), 12u) << file;
  for (const auto& entry : weights.entries()) {
    const Array got = weights.read(entry), wanted = golden.read(str(name, "/", entry.name));
    ASSERT_EQ(got.shape, wanted.shape) << entry.name;
    for (int64_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got.number(i), wanted.number(i), 1e-9) << file << " " << entry.name << " " << i;
  }
}

TEST(AveragedNorms, AreThoseOfPyTorch) {
  const Folder folder;
  for (const bool eager : {false, true})
    for (const auto& [name, train] :
         {std::pair("whole", "swa: {start: 6, every: 4}"),
          std::pair("parts", "swa: {start: 6, every: 4}, accumulate: 2")}) {
      const std::string path = run(folder, train, eager);
      expect_golden(path + "/model/model.safetensors", name);
      expect_golden(path + "/checkpoints/30/model.safetensors", name);
    }
}

TEST(AveragedNorms, AreThoseOfPyTorchOnRanks) {
  const Folder folder;
  const std::string swa = "swa: {start: 6, every: 4}";
  const std::string data = run(folder, swa, false, "parallel: {data: 2}\n", 2);
  expect_golden(data + "/model/model.safetensors", "whole");
  const std::string pipeline =
      run(folder, swa, false, "parallel: {pipeline: 2, micro_batches: 2}\n", 2);
  expect_golden(pipeline + "/model/model.safetensors", "parts");
}

TEST(AveragedNorms, GoWithScheduleFreeWeights) {
  const Folder folder;
  for (const bool eager : {false, true}) {
    const std::string path = run(folder, "log_every: 10", eager, "", 1,
                                 "{name: schedule_free_adamw, lr: 0.01, weight_decay: 0}");
    expect_golden(path + "/model/model.safetensors", "free");
    expect_golden(path + "/checkpoints/30/model.safetensors", "free");
  }
}

TEST(AveragedNorms, LeaveTrainingAlone) {
  const Folder folder;
  const std::string plain = run(folder, "log_every: 10", false),
                    averaged = run(folder, "log_every: 10, swa: {start: 20, every: 4}", false);
  // Until the average begins, a checkpoint has the statistics of training.
  EXPECT_EQ(read_file(plain + "/checkpoints/18/model.safetensors", 1 << 20),
            read_file(averaged + "/checkpoints/18/model.safetensors", 1 << 20));
  // From then on, those of training are next to the optimizer's states.
  const formats::SafetensorsReader trained(plain + "/checkpoints/27/model.safetensors"),
      weights(averaged + "/checkpoints/27/model.safetensors"),
      states(averaged + "/checkpoints/27/optimizer.safetensors");
  for (const auto& entry : trained.entries()) {
    const auto* kept = states.find("optimizer/" + entry.name + "/evaluation_weight");
    const auto* used = weights.find(entry.name);
    ASSERT_NE(kept, nullptr) << entry.name;
    ASSERT_NE(used, nullptr) << entry.name;
    const Array wanted = trained.read(entry), got = states.read(*kept), other = weights.read(*used);
    int64_t same = 0;
    for (int64_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(got.number(i), wanted.number(i)) << entry.name << " " << i;
      same += other.number(i) == wanted.number(i);
    }
    // The bias in front of a norm has no gradient.
    EXPECT_TRUE(same < wanted.size() || entry.name == "fc1.bias") << entry.name;
  }
}

}  // namespace
}  // namespace paddle::train
