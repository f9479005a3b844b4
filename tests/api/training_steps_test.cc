// Training step by step through the C++ and C interfaces, and the options of models and runs that
// say where and how they are computed.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>

#include "paddle/paddle.h"
#include "paddle/paddle_c.h"

namespace {

using paddle::Array;
using paddle::Model;

/// A line through four points, and a folder that is removed at the end.
class TrainingSteps : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("paddle_steps_" + std::to_string(::getpid()) + "_" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    write("rows.csv", "a,y\n0,1\n1,3\n2,5\n3,7\n");
    write("line.yaml",
          "model: {inputs: {x: \"float32[batch, 1]\"}, model: [{linear: 1}], outputs: [p]}\n"
          "loss: mse_loss(p, y)\n"
          "optimizer: {name: sgd, lr: 0.1}\n"
          "data:\n"
          "  batch_size: 2\n"
          "  train: &rows {kind: csv, path: rows.csv, fields: [{name: x, columns: [a]}, "
          "{name: y, columns: [y]}]}\n"
          "  valid: *rows\n"
          "train: {epochs: 10, log_every: 5, evaluate_every: 2 epochs}\n");
    write("wide.yaml",
          "name: wide\n"
          "inputs: {x: \"float32[batch, 256]\"}\n"
          "model: |\n"
          "  y = exp(sin(x)) * 2\n"
          "outputs: [y]\n");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  paddle::TrainOptions into(const std::string& run) const {
    paddle::TrainOptions options;
    options.output = path(run);
    return options;
  }
  std::vector<float> weights(const std::string& folder) const {
    std::vector<float> out;
    Model model(folder);
    for (const float x : {0.0f, 1.0f})
      out.push_back(model.predict({Array::from<float>({1, 1}, {x})})[0].to_vector<float>()[0]);
    return out;
  }
  std::filesystem::path folder_;
};

TEST_F(TrainingSteps, AreThoseOfARun) {
  const paddle::TrainResult whole = paddle::Trainer(path("line.yaml"), into("whole")).run();
  paddle::Trainer trainer(path("line.yaml"), into("steps"));
  std::vector<double> losses;
  int evaluations = 0;
  while (const auto step = trainer.step()) {
    losses.push_back(step->loss);
    EXPECT_EQ(step->step, static_cast<int64_t>(losses.size()));
    EXPECT_EQ(step->epoch, step->step / 2);
    EXPECT_EQ(step->learning_rate, 0.1);
    EXPECT_EQ(step->evaluation.has_value(), step->step % 4 == 0);
    if (step->evaluation) {
      ++evaluations;
      EXPECT_EQ(step->evaluation->kind, "valid");
    }
  }
  EXPECT_EQ(losses.size(), 20u);
  EXPECT_EQ(evaluations, 5);
  EXPECT_LT(losses.back(), losses.front());
  EXPECT_FALSE(trainer.step()) << "the run has no further steps";
  const paddle::TrainResult stepped = trainer.finish();
  EXPECT_EQ(stepped.steps, 20);
  EXPECT_EQ(stepped.log.size(), whole.log.size());
  EXPECT_EQ(weights(stepped.model_folder), weights(whole.model_folder));
  EXPECT_THROW(trainer.step(), paddle::UsageError);
  EXPECT_THROW(trainer.finish(), paddle::UsageError);
}

TEST_F(TrainingSteps, ContinueFromWhatWasSaved) {
  std::vector<double> losses;
  {
    paddle::Trainer trainer(path("line.yaml"), into("whole"));
    while (const auto step = trainer.step()) losses.push_back(step->loss);
  }
  {
    paddle::Trainer trainer(path("line.yaml"), into("saved"));
    EXPECT_THROW(trainer.save(), paddle::UsageError);
    for (int i = 0; i < 6; ++i) ASSERT_TRUE(trainer.step());
    EXPECT_TRUE(std::filesystem::exists(trainer.save()));
    ASSERT_TRUE(trainer.step());  // is lost with the trainer
  }
  paddle::TrainOptions options = into("saved");
  options.resume = true;
  paddle::Trainer again(path("line.yaml"), options);
  for (size_t i = 6; i < losses.size(); ++i) {
    const auto step = again.step();
    ASSERT_TRUE(step);
    EXPECT_EQ(step->step, static_cast<int64_t>(i) + 1);
    EXPECT_EQ(step->loss, losses[i]) << i;
  }
  EXPECT_FALSE(again.step());
}

TEST_F(TrainingSteps, RunsAndStepsExcludeEachOther) {
  paddle::Trainer trainer(path("line.yaml"), into("run"));
  ASSERT_TRUE(trainer.step());
  EXPECT_THROW(trainer.run(), paddle::UsageError);
  ASSERT_TRUE(trainer.step());
  paddle::Trainer second(path("line.yaml"), into("other"));
  second.run();
  EXPECT_THROW(second.step(), paddle::UsageError);
}

TEST_F(TrainingSteps, InC) {
  paddle_trainer_options options = {};
  options.struct_size = sizeof options;
  const std::string output = path("c"), config = path("line.yaml");
  options.output = output.c_str();
  const char* const overrides[] = {"train.epochs=3"};
  options.overrides = overrides;
  options.override_count = 1;
  paddle_trainer* trainer = nullptr;
  ASSERT_EQ(paddle_trainer_open(config.c_str(), &options, &trainer), PADDLE_OK)
      << paddle_last_error();
  paddle_train_step step = {};
  step.struct_size = sizeof step;
  int32_t ended = 1;
  for (int i = 1; i <= 6; ++i) {
    ASSERT_EQ(paddle_trainer_step(trainer, &step, &ended), PADDLE_OK) << paddle_last_error();
    EXPECT_EQ(ended, 0);
    EXPECT_EQ(step.step, i);
    EXPECT_EQ(step.evaluated != 0, i == 4 || i == 6);
  }
  EXPECT_EQ(paddle_trainer_step(trainer, &step, &ended), PADDLE_OK);
  EXPECT_EQ(ended, 1);
  const char* saved = nullptr;
  ASSERT_EQ(paddle_trainer_save(trainer, &saved), PADDLE_OK) << paddle_last_error();
  EXPECT_TRUE(std::filesystem::exists(saved));
  const char* model = nullptr;
  ASSERT_EQ(paddle_trainer_finish(trainer, &model), PADDLE_OK) << paddle_last_error();
  EXPECT_EQ(Model(model).parameter_count(), 2);
  EXPECT_EQ(paddle_trainer_step(trainer, nullptr, &ended), PADDLE_USAGE);
  EXPECT_EQ(paddle_trainer_close(trainer), PADDLE_OK);
  EXPECT_EQ(paddle_trainer_close(trainer), PADDLE_USAGE) << "it is closed";
  EXPECT_EQ(paddle_trainer_close(nullptr), PADDLE_OK);
}

// Callers that were compiled with an older or a newer header.
TEST_F(TrainingSteps, CStructuresOfOtherSizes) {
  const std::string output = path("sizes"), config = path("line.yaml");
  struct Longer {
    paddle_trainer_options known = {};
    uint64_t unknown = 0;
  } options;
  options.known.struct_size = sizeof options;
  options.known.output = output.c_str();
  paddle_trainer* trainer = nullptr;
  options.unknown = 1;
  EXPECT_EQ(paddle_trainer_open(config.c_str(), &options.known, &trainer), PADDLE_USAGE);
  options.unknown = 0;
  ASSERT_EQ(paddle_trainer_open(config.c_str(), &options.known, &trainer), PADDLE_OK);
  int32_t ended = 0;
  paddle_train_step step = {};
  EXPECT_EQ(paddle_trainer_step(trainer, &step, &ended), PADDLE_USAGE) << "without a size";
  struct Shorter {
    size_t struct_size = sizeof(Shorter);
    int64_t step = 0;
    int64_t guard = 77;
  };
  Shorter shorter;
  shorter.struct_size = offsetof(Shorter, guard);
  ASSERT_EQ(paddle_trainer_step(trainer, reinterpret_cast<paddle_train_step*>(&shorter), &ended),
            PADDLE_OK);
  EXPECT_EQ(shorter.step, 1);
  EXPECT_EQ(shorter.guard, 77);
  EXPECT_EQ(shorter.struct_size, offsetof(Shorter, guard));
  EXPECT_EQ(paddle_trainer_close(trainer), PADDLE_OK);
  EXPECT_EQ(paddle_trainer_open(nullptr, nullptr, &trainer), PADDLE_USAGE);
  EXPECT_EQ(paddle_trainer_step(nullptr, nullptr, &ended), PADDLE_USAGE);
}

TEST_F(TrainingSteps, OptionsSayWhereAndHow) {
  const std::vector<std::string> kinds = paddle::devices();
  EXPECT_NE(std::find(kinds.begin(), kinds.end(), "mirror"), kinds.end());
  EXPECT_EQ(std::string(paddle_devices()).substr(0, 3), "cpu");
  const Array x = Array::from<float>({2, 256}, std::vector<float>(512, 0.5f));
  const auto predicted = [&](const paddle::ModelOptions& options) {
    return Model(path("wide.yaml"), options).predict({x})[0].to_vector<float>();
  };
  const std::vector<float> wanted = predicted({});
  EXPECT_NEAR(wanted[0], 2 * std::exp(std::sin(0.5)), 1e-5);
  paddle::ModelOptions options;
  options.device = "mirror";
  EXPECT_EQ(predicted(options), wanted);
  options.device = "abacus";
  EXPECT_THROW(predicted(options), paddle::UsageError);
  options = {};
  options.leave_out = {"fusion", "codegen"};
  EXPECT_NEAR(predicted(options)[0], wanted[0], 1e-5);
  options.leave_out = {"fussion"};
  EXPECT_THROW(predicted(options), paddle::UsageError);
  options = {};
  options.exact = true;
  EXPECT_NEAR(predicted(options)[0], wanted[0], 1e-5);
  options = {};
  options.memory = 1 << 20;
  EXPECT_EQ(predicted(options), wanted);
  options.memory = 1000;
  EXPECT_THROW(predicted(options), paddle::DeviceError);

  paddle_model_options c = {};
  c.struct_size = sizeof c;
  c.device = "mirror";
  const char* const left[] = {"winograd"};
  c.leave_out = left;
  c.leave_out_count = 1;
  paddle_model* model = nullptr;
  ASSERT_EQ(paddle_model_open_with(path("wide.yaml").c_str(), &c, &model), PADDLE_OK)
      << paddle_last_error();
  EXPECT_EQ(paddle_model_close(model), PADDLE_OK);
  c.device = "abacus";
  EXPECT_EQ(paddle_model_open_with(path("wide.yaml").c_str(), &c, &model), PADDLE_USAGE);
  // A caller that does not know these options.
  c.struct_size = offsetof(paddle_model_options, device);
  EXPECT_EQ(paddle_model_open_with(path("wide.yaml").c_str(), &c, &model), PADDLE_OK);
  EXPECT_EQ(paddle_model_close(model), PADDLE_OK);
}

TEST_F(TrainingSteps, RunOnADevice) {
  std::vector<double> on_cpu, on_mirror;
  for (auto& [device, losses] :
       {std::pair<const char*, std::vector<double>&>{"cpu", on_cpu}, {"mirror", on_mirror}}) {
    paddle::TrainOptions options = into(device);
    options.device = device;
    options.memory = 1 << 20;
    paddle::Trainer trainer(path("line.yaml"), options);
    while (const auto step = trainer.step()) losses.push_back(step->loss);
  }
  EXPECT_EQ(on_mirror, on_cpu);
  paddle::TrainOptions options = into("small");
  options.memory = 16;
  EXPECT_THROW(paddle::Trainer(path("line.yaml"), options).step(), paddle::DeviceError);
}

}  // namespace
