// Optional shared objects: found by variable and place, rejected when they are something else.

#include "base/module.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace paddle {
namespace {

TEST(Module, PathsComeFromTheEnvironment) {
  setenv("PADDLE_TRIAL_MODULE", "/somewhere/trial.so", 1);
  EXPECT_EQ(Module::default_path("trial"), "/somewhere/trial.so");
  unsetenv("PADDLE_TRIAL_MODULE");
  const std::string path = Module::default_path("trial");
  EXPECT_TRUE(path.ends_with("/libpaddle_trial.so")) << path;
}

TEST(Module, WhatIsNoModuleIsRejected) {
  Module absent("/nowhere/libpaddle_trial.so", 1);
  EXPECT_EQ(absent.function("f"), nullptr);
  EXPECT_NE(absent.problem().find("/nowhere/libpaddle_trial.so"), std::string::npos);

  const std::string text = testing::TempDir() + "text.so";
  std::ofstream(text) << "not a shared object";
  Module other(text, 1);
  EXPECT_EQ(other.function("f"), nullptr);
  EXPECT_FALSE(other.problem().empty());

  Module foreign("libm.so.6", 1);
  EXPECT_EQ(foreign.function("cos"), nullptr);
  EXPECT_EQ(foreign.problem(), "libm.so.6: is not a module of paddle");
}

}  // namespace
}  // namespace paddle
