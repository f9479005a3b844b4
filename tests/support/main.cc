// The main function of all test programs: files that tests leave in testing::TempDir() go with it.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  std::error_code error;
  std::string folder =
      (std::filesystem::temp_directory_path(error) / "paddle_test_XXXXXX").string();
  if (error || !mkdtemp(folder.data())) {
    std::perror("no folder for the files of tests");
    return 1;
  }
  setenv("TEST_TMPDIR", folder.c_str(), 1);
  setenv("PADDLE_STRICT", "1", 1);  // see base/strict.h
  const int status = RUN_ALL_TESTS();
  std::filesystem::remove_all(folder, error);
  return status;
}
