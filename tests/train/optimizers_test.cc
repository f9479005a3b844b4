// Optimizers, averages and schedules of configs against PyTorch: golden.npz holds the results of 30
// updates in float64, which optimizers/make.py computed, and adan.npz those of optimizers/adan.py.

#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.h"
#include "config/document.h"
#include "formats/npz.h"
#include "formats/safetensors.h"
#include "train/config/optimizer_config.h"
#include "train/job/trainer.h"

namespace paddle::train {
namespace {

const char* const kGolden = "tests/train/optimizers/golden.npz";
const char* const kParameters[] = {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"};

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / str("paddle-optimizers-", getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// The model folder of a run of 30 updates on the golden data.
std::string run(const Folder& folder, const std::string& name, const std::string& optimizer,
                const std::string& train, bool eager, int64_t steps = 30) {
  const std::string golden = std::filesystem::absolute(kGolden).string();
  const std::string config = folder.file(name + ".yaml");
  write_file_atomically(config, str(R"(
model:
  name: net
  inputs: {x: "float64[batch, 5]"}
  model: |
    prediction = linear(tanh(linear(x, 8, name="fc1")), 3, name="fc2")
  outputs: [prediction]
loss: mse_loss(prediction, y)
precision: float64
optimizer: )",
                                    optimizer, R"(
init: {weights: )",
                                    golden, R"(, allow_unused: "*"}
data:
  batch_size: 16
  shuffle: false
  workers: 0
  train: {kind: npz, path: )",
                                    golden, R"(, arrays: {x: x, y: y}}
train: {checkpoint_every: never, evaluate_every: never, steps: )",
                                    steps, train, "}\n"));
  TrainOptions options;
  options.output = folder.file(str(name, eager ? "-eager" : "", "-", train.size()));
  options.eager = eager;
  TrainObserver silent;
  Trainer trainer(read_config(config, {}), options, silent);
  return trainer.run().model_folder;
}

TEST(Optimizers, AreThoseOfPyTorch) {
  const Folder folder;
  const formats::NpzReader common(kGolden), adan("tests/train/optimizers/adan.npz");
  struct Case {
    const char *name, *optimizer, *train = "";
    int64_t steps = 30;
  };
  const Case cases[] = {
      {"sgd", "{name: sgd, lr: 0.1, weight_decay: 0.01}"},
      {"momentum", "{name: momentum, lr: 0.05, nesterov: true}"},
      {"adam", "{name: adam, lr: 0.02, weight_decay: 0.01}"},
      {"adamw", "{name: adamw, lr: 0.02, weight_decay: 0.1}"},
      {"adagrad", "{name: adagrad, lr: 0.1}"},
      {"rmsprop", "{name: rmsprop, lr: 0.01, epsilon: 1e-20}"},
      {"rmsprop_centered",
       "{name: rmsprop, lr: 0.01, epsilon: 1e-20, centered: true, momentum: 0.9}"},
      {"rmsprop_epsilon", "{name: rmsprop, lr: 0.01, epsilon: 1e-4}"},
      {"adamax", "{name: adamax, lr: 0.02}"},
      {"adadelta", "{name: adadelta, lr: 1}"},
      {"asgd", "{name: asgd, lr: 0.1, lambd: 1e-3}"},
      {"nadam", "{name: nadam, lr: 0.02}"},
      {"radam", "{name: radam, lr: 0.02}"},
      {"rprop", "{name: rprop, lr: 0.01}"},
      {"adafactor", "{name: adafactor, lr: 0.05, weight_decay: 0.1}"},
      {"muon", "{name: muon, lr: 0.02, weight_decay: 0.1, adamw_lr: 0.01}"},
      {"adan", "{name: adan, lr: 0.05, weight_decay: 0.1}"},
      {"lion", "{name: lion, lr: 0.01, weight_decay: 0.1}"},
      {"lamb", "{name: lamb, lr: 0.02, weight_decay: 0.1}"},
      {"lars", "{name: lars, lr: 1, coefficient: 0.01, weight_decay: 0.1}"},
      {"schedule_free_adamw",
       "{name: schedule_free_adamw, lr: 0.05, weight_decay: 0.1, warmup_steps: 5}"},
      {"lbfgs", "{name: lbfgs, iterations: 1, evaluations: 25, history: 6}"},
      {"lbfgs_many", "{name: lbfgs, iterations: 8, history: 5}", "", 6},
      {"lbfgs_many", "{name: lbfgs, iterations: 8, history: 5}", ", accumulate: 4", 6},
      {"lbfgs_fixed", "{name: lbfgs, lr: 0.2, iterations: 1, history: 10, line_search: none}"},
      {"swa", "{name: sgd, lr: 0.1}", ", swa: {start: 8, every: 3}"},
      {"swa", "{name: sgd, lr: 0.1}", ", swa: {start: 8 epochs, every: 3 epochs}, accumulate: 4"},
      {"ema", "{name: sgd, lr: 0.1}", ", ema: {decay: 0.9, warmup: false}"},
      {"ema_warmup", "{name: sgd, lr: 0.1}", ", ema: {decay: 0.999}"}};
  for (const auto& [name, optimizer, train, steps] : cases)
    for (const bool eager : {false, true}) {
      const formats::NpzReader& golden = std::string_view(name) == "adan" ? adan : common;
      const std::string model = run(folder, name, optimizer, train, eager, steps);
      const formats::SafetensorsReader weights(
          (std::filesystem::path(model) / "model.safetensors").string());
      for (const char* parameter : kParameters) {
        const auto* entry = weights.find(parameter);
        ASSERT_NE(entry, nullptr) << name << " " << parameter;
        const Array got = weights.read(*entry), wanted = golden.read(str(name, "/", parameter));
        ASSERT_EQ(got.shape, wanted.shape) << name << " " << parameter;
        for (int64_t i = 0; i < got.size(); ++i)
          ASSERT_NEAR(got.number(i), wanted.number(i), 1e-6)
              << name << " " << parameter << " " << i << (eager ? " eager" : "");
      }
    }
}

TEST(Schedules, AreThoseOfPyTorch) {
  const formats::NpzReader golden(kGolden);
  const std::pair<const char*, const char*> cases[] = {
      {"step", "{name: step, step_size: 7, gamma: 0.5}"},
      {"multi_step", "{name: multi_step, milestones: [5, 20], gamma: 0.3}"},
      {"exponential", "{name: exponential, gamma: 0.9}"},
      {"polynomial", "{name: polynomial, power: 2}"},
      {"linear", "{name: linear, end_factor: 0.1}"},
      {"cosine", "{name: cosine, end_factor: 0.1}"},
      {"cosine_restarts", "{name: cosine_restarts, period: 4, period_factor: 2, end_factor: 0.1}"},
      {"one_cycle", "{name: one_cycle, end_factor: 0.001}"},
      {"cyclic", "{name: cyclic, up: 3, down: 5, peak_factor: 4, triangular2: true}"},
      {"cyclic", "{name: cyclic, up: 3, down: 5, peak_factor: 4, halving: true}"},
      {"piecewise", "{name: piecewise, milestones: [5, 20], factors: [1, 0.5, 0.1]}"},
      {"inverse_sqrt", "{name: inverse_sqrt, timescale: 8}"},
      {"wsd", "{name: wsd, decay: 10, end_factor: 0.1}"},
      {"wsd_cosine", "{name: wsd, decay: 10, end_factor: 0.1, shape: cosine}"},
      {"noam", "{name: noam, width: 16, warmup_steps: 6}"},
      {"noam", "{name: noam, width: 16, rising: 6}"}};
  for (const auto& [name, yaml] : cases) {
    const optim::Schedule schedule = optim::make_schedule(yaml);
    const Array rates = golden.read(str("schedule/", name));
    for (int64_t step = 0; step < 30; ++step)
      EXPECT_NEAR(0.1 * optim::schedule_factor(schedule, step, 30), rates.number(step), 1e-12)
          << name << " " << step;
  }
}

TEST(Schedules, PlateausAreThoseOfPyTorch) {
  const formats::NpzReader golden(kGolden);
  const Array values = golden.read("plateau_values");
  for (const bool max : {false, true}) {
    optim::PlateauOptions options =
        *optim::make_schedule(
             max ? "{name: reduce_on_plateau, factor: 0.3, patience: 1, threshold: 0.02, "
                   "threshold_mode: absolute, smallest_factor: 0.05}"
                 : "{name: reduce_on_plateau, factor: 0.5, patience: 2, cooldown: 1, "
                   "threshold: 1e-2}")
             .plateau;
    options.larger_is_better = max;
    const Array rates =
        golden.read(max ? "schedule/reduce_on_plateau_max" : "schedule/reduce_on_plateau");
    optim::PlateauState state;
    for (int64_t step = 0; step < 30; ++step) {
      EXPECT_NEAR(0.1 * state.factor, rates.number(step), 1e-12) << step;
      optim::update_plateau(options, values.number(step), state);
    }
  }
}

TEST(Layers, DecayTowardsTheFirst) {
  EXPECT_EQ(optim::layer_of("blocks.3.attention.weight"), "blocks.3");
  EXPECT_EQ(optim::layer_of("encoder.layers.11.bias"), "encoder.layers.11");
  EXPECT_EQ(optim::layer_of("stem.conv.weight"), "stem");
  EXPECT_EQ(optim::layer_of("gain"), "gain");
  const auto factors =
      optim::layer_factors({"stem.weight", "b.0.w", "b.0.v", "b.1.w", "head.bias"}, 0.5);
  EXPECT_EQ(factors.at("stem.weight"), 0.125);
  EXPECT_EQ(factors.at("b.0.v"), 0.25);
  EXPECT_EQ(factors.at("head.bias"), 1);
}

}  // namespace
}  // namespace paddle::train
