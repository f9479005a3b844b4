#include "program/checkpoint.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/files.h"
#include "program/checkpoint_writer.h"

namespace paddle::program {
namespace {

namespace fs = std::filesystem;

class Checkpoints : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/paddle_checkpoints_" + std::to_string(::getpid());
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  static ParameterStore store(float value, int64_t rows = 2) {
    ParameterStore s;
    s.seed = 11;
    s.parameters["w"] = {
        Array::from<float>(std::vector<float>(static_cast<size_t>(rows), value), {rows}), "0"};
    s.states["norm.mean"] = Array::from<float>({value + 1}, {1});
    s.states["optimizer/w/moment"] =
        Array::from<float>(std::vector<float>(static_cast<size_t>(rows), value + 2), {rows});
    return s;
  }
  std::string write(int64_t step, float value) const {
    CheckpointContent content;
    content.config = "name: a\n";
    content.module = "module\n";
    content.state.step = step;
    content.state.position = {1, 5};
    content.state.best = 0.5;
    content.state.best_step = 3;
    content.state.evaluation_due = true;
    const ParameterStore values = store(value);
    CheckpointWriter writer(folder_, values, content, {});
    writer.create();
    writer.take([&](const std::string& name) { return whole_part(values.array(name)); }, false);
    writer.write();
    return writer.finish();
  }
  std::string folder_;
};

TEST_F(Checkpoints, ComeBackWithAllThatTheyHold) {
  const std::string path = write(7, 1.5f);
  ParameterStore s = store(0);
  s.seed = 0;
  const RunState state = read_checkpoint(path, s);
  EXPECT_EQ(state.step, 7);
  EXPECT_EQ(state.position, (data::LoaderPosition{1, 5}));
  EXPECT_EQ(state.best, 0.5);
  EXPECT_EQ(state.best_step, 3);
  EXPECT_TRUE(state.evaluation_due);
  EXPECT_EQ(s.seed, 11u);
  EXPECT_EQ(s.parameters["w"].value.data<float>()[1], 1.5f);
  EXPECT_EQ(s.states["norm.mean"].data<float>()[0], 2.5f);
  EXPECT_EQ(s.states["optimizer/w/moment"].data<float>()[0], 3.5f);
  EXPECT_EQ(fs::read_symlink(fs::path(folder_) / "latest"), "7");
}

TEST_F(Checkpoints, ADamagedFileIsFoundAndChangesNothing) {
  for (const char* name :
       {"config.yaml", "module.txt", "model.safetensors", "optimizer.safetensors", "state.json"}) {
    const std::string path = write(7, 1.5f);
    const std::string file = path + "/" + name;
    std::string content = read_file(file);
    for (const bool cut : {true, false}) {
      std::string bad = content;
      if (cut)
        bad.resize(bad.size() / 2);
      else if (std::string(name) != "state.json")
        bad.back() = static_cast<char>(bad.back() ^ 1);
      else
        bad = "{}";
      write_file_atomically(file, bad);
      ParameterStore s = store(0);
      try {
        read_checkpoint(path, s);
        ADD_FAILURE() << name << " " << cut;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kModel);
        EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
      }
      EXPECT_EQ(s.parameters["w"].value.data<float>()[0], 0);
      EXPECT_EQ(s.states["optimizer/w/moment"].data<float>()[0], 2);
    }
    fs::remove(file);
    ParameterStore s = store(0);
    EXPECT_THROW(read_checkpoint(path, s), Error) << name;
  }
}

TEST_F(Checkpoints, OfAnotherModelAreToldFromDamagedOnes) {
  const std::string path = write(7, 1.5f);
  ParameterStore other = store(0, 3);
  EXPECT_THROW(read_checkpoint(path, other), OtherModelError);
  EXPECT_EQ(other.states["norm.mean"].data<float>()[0], 1);  // untouched
  ParameterStore more = store(0);
  more.parameters["v"] = more.parameters["w"];
  EXPECT_THROW(read_checkpoint(path, more), OtherModelError);
  ParameterStore fewer = store(0);
  fewer.parameters.erase("w");
  EXPECT_THROW(read_checkpoint(path, fewer), OtherModelError);
}

TEST_F(Checkpoints, OneOfTheSameStepIsReplaced) {
  write(7, 1);
  const std::string path = write(7, 2);
  ParameterStore s = store(0);
  read_checkpoint(path, s);
  EXPECT_EQ(s.parameters["w"].value.data<float>()[0], 2);
  EXPECT_EQ(list_checkpoints(folder_), (std::vector<int64_t>{7}));
}

TEST_F(Checkpoints, TheNewestAndTheSparedAreKept) {
  for (const int64_t step : {1, 2, 3, 10, 20}) write(step, 1);
  prune_checkpoints(folder_, 2, {2});
  EXPECT_EQ(list_checkpoints(folder_), (std::vector<int64_t>{2, 10, 20}));
  prune_checkpoints(folder_, 1, {});
  EXPECT_EQ(list_checkpoints(folder_), (std::vector<int64_t>{20}));
}

TEST_F(Checkpoints, WhatAKilledProcessLeftIsNoCheckpointAndGoes) {
  write(5, 1);
  fs::create_directories(fs::path(folder_) / ".writing-6");
  fs::create_directories(fs::path(folder_) / ".removing-4");
  std::ofstream(fs::path(folder_) / ".writing-6" / "state.json") << "{}";
  fs::create_directories(fs::path(folder_) / "8");  // without its last file
  EXPECT_EQ(list_checkpoints(folder_), (std::vector<int64_t>{5}));
  remove_leftovers(folder_);
  EXPECT_FALSE(fs::exists(fs::path(folder_) / ".writing-6"));
  EXPECT_FALSE(fs::exists(fs::path(folder_) / ".removing-4"));
  set_aside(folder_, 5);
  EXPECT_TRUE(list_checkpoints(folder_).empty());
  EXPECT_TRUE(fs::exists(fs::path(folder_) / "5.damaged"));
}

TEST_F(Checkpoints, LoadReportsNameWhatDoesNotFit) {
  fs::create_directories(folder_);
  const std::string file = folder_ + "/w.safetensors";
  write_weights(file, store(1.5f));
  ParameterStore s = store(0);
  s.parameters["v"] = {Array::zeros(DType::kF32, {1}), "0"};
  s.parameters["w"].value = Array::zeros(DType::kF32, {5});
  s.states.erase("norm.mean");
  const LoadReport report = load_weights(file, s);
  EXPECT_EQ(report.missing, (std::vector<std::string>{"v"}));
  EXPECT_EQ(report.unused, (std::vector<std::string>{"norm.mean"}));
  ASSERT_EQ(report.mismatched.size(), 1u);
  EXPECT_TRUE(report.mismatched[0].starts_with("w ("));
  EXPECT_THROW(check_report(report, file, {"v"}, {"norm.*"}), Error);
  EXPECT_THROW(check_report(report, file, {"*"}, {}), Error);
  EXPECT_NO_THROW(check_report(report, file, {"*"}, {"*"}));
}

}  // namespace
}  // namespace paddle::program
