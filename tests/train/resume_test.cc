#include "train/job/resume.h"

#include <gtest/gtest.h>

namespace paddle::train {
namespace {

config::Node config(const std::string& yaml) { return config::parse_document(yaml, "run.yaml"); }

const std::string kRun = R"(
model: /a/models/net.yaml
optimizer: {name: adam, lr: 1e-3}
data: {batch_size: 4, workers: 1, train: {kind: idx, images: /d/x, range: [0, 10]}}
train: {epochs: 3}
)";

std::string with(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(Resume, TheSameConfigHasNoChanges) {
  EXPECT_TRUE(config_changes(config(kRun), config(kRun)).empty());
  EXPECT_TRUE(check_changes(config(kRun), config(with(kRun, "1e-3", "0.001"))).empty());
}

TEST(Resume, WhatMayChangeIsTold) {
  const auto changes = check_changes(
      config(kRun), config(with(with(with(kRun, "1e-3", "5e-4"), "epochs: 3", "epochs: 9"),
                                "images: /d/x", "images: /e/x")));
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(changes[0].path, "optimizer.lr");
  EXPECT_EQ(changes[0].before, "1e-3");
  EXPECT_EQ(changes[0].after, "5e-4");
  EXPECT_EQ(changes[1].path, "data.train.images");
  EXPECT_EQ(changes[2].path, "train.epochs");
}

TEST(Resume, AModelFileMayMoveButNotBecomeAnother) {
  EXPECT_TRUE(check_changes(config(kRun), config(with(kRun, "/a/models/", "/b/"))).empty());
  EXPECT_THROW(check_changes(config(kRun), config(with(kRun, "net.yaml", "other.yaml"))), Error);
}

TEST(Resume, EverythingElseIsRejectedWithItsPlace) {
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"batch_size: 4", "batch_size: 8"},
           {"name: adam", "name: sgd"},
           {"[0, 10]", "[0, 20]"},
           {"[0, 10]", "[0]"},
           {"workers: 1", "workers: 2, shuffle: false"},
           {", lr: 1e-3", ", lr: 1e-3, beta1: 0.5"}}) {
    try {
      check_changes(config(kRun), config(with(kRun, from, to)));
      ADD_FAILURE() << to;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig);
      EXPECT_NE(std::string(error.what()).find("cannot change on resume"), std::string::npos);
      EXPECT_EQ(std::string(error.what()).find("run.yaml:"), 0u) << error.what();
    }
  }
}

}  // namespace
}  // namespace paddle::train
