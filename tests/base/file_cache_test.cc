#include "base/file_cache.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/text.h"

namespace paddle {
namespace {

namespace fs = std::filesystem;

class FileCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "paddle-cache-XXXXXX").string();
    ASSERT_TRUE(mkdtemp(name.data()));
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  FileCache cache(uint64_t limit = 1 << 20) const {
    return FileCache((folder_ / "kept").string(), ".test", limit);
  }
  fs::path folder_;
};

TEST_F(FileCacheTest, KeepsContentByKey) {
  FileCache first = cache();
  EXPECT_FALSE(first.find("a"));
  first.keep("a", std::string_view("one\0two", 7));
  first.keep("b", "");
  FileCache second = cache();
  EXPECT_EQ(second.find("a"), std::string("one\0two", 7));
  EXPECT_EQ(second.find("b"), "");
  EXPECT_FALSE(second.find("c"));
  second.keep("a", "three");
  EXPECT_EQ(first.find("a"), "three");
}

TEST_F(FileCacheTest, DamagedFilesAreAsGoodAsNone) {
  FileCache kept = cache();
  kept.keep("key", "some content");
  const std::string path = kept.path("key");
  std::ifstream in(path, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    std::ofstream(path, std::ios::binary) << bad;
    EXPECT_FALSE(kept.find("key")) << at;
    std::ofstream(path, std::ios::binary) << good.substr(0, at);
    EXPECT_FALSE(kept.find("key")) << at;
  }
  std::ofstream(path, std::ios::binary) << good;
  EXPECT_EQ(kept.find("key"), "some content");
  // The file of another key in its place.
  kept.keep("other", "other content");
  fs::copy_file(kept.path("other"), path, fs::copy_options::overwrite_existing);
  EXPECT_FALSE(kept.find("key"));
}

TEST_F(FileCacheTest, WorksWhereNothingCanBeKept) {
  std::ofstream(folder_ / "file") << "x";
  for (const std::string& folder : {std::string(), (folder_ / "file" / "below").string()}) {
    FileCache none(folder, ".test", 1000);
    none.keep("a", "x");
    EXPECT_FALSE(none.find("a"));
  }
}

TEST_F(FileCacheTest, TheOldestFilesGo) {
  FileCache kept = cache(20'000);
  for (int i = 0; i < 200; ++i) kept.keep(str("key ", i), std::string(500, 'x'));
  uint64_t total = 0;
  for (const auto& entry : fs::directory_iterator(kept.folder())) total += entry.file_size();
  EXPECT_LT(total, 20'000u + 64 * 600);
  EXPECT_TRUE(kept.find("key 199"));
}

TEST(CacheFolder, FollowsTheEnvironment) {
  const char* const before = std::getenv("PADDLE_CACHE_DIR");
  const std::string kept = before ? before : "";
  setenv("PADDLE_CACHE_DIR", "/somewhere", 1);
  EXPECT_EQ(cache_folder("cuda"), "/somewhere/cuda");
  setenv("PADDLE_CACHE_DIR", "", 1);
  EXPECT_EQ(cache_folder("cuda"), "");
  if (before)
    setenv("PADDLE_CACHE_DIR", kept.c_str(), 1);
  else
    unsetenv("PADDLE_CACHE_DIR");
}

}  // namespace
}  // namespace paddle
