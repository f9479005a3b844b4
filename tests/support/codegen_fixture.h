#pragma once
// Where the tests of generated code find the module that compiles it, and keep what it has
// compiled.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/text.h"
#include "kernels/elementwise/loops.h"
#include "runtime/execute.h"

namespace paddle::testing_support {

namespace fs = std::filesystem;

inline std::string module_path() {
  return fs::read_symlink("/proc/self/exe").parent_path() / "../lib/libpaddle_codegen.so";
}

inline bool can_compile() { return fs::exists(module_path()) && cpu::vector_bytes() >= 32; }

class Codegen : public ::testing::Test {
 protected:
  void SetUp() override {
    runtime::register_backends();
    if (!can_compile()) GTEST_SKIP() << "built without LLVM, or no AVX2";
    folder_ = fs::temp_directory_path() / str("paddle-codegen-test-", getpid());
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string cache() const { return folder_ / "codegen"; }

  fs::path folder_;
};

}  // namespace paddle::testing_support
