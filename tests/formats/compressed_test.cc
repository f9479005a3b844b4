// Compressed data files (make_compressed.py) against the rows that they hold, and damaged ones.

#include "formats/compressed/compressed.h"

#include <gtest/gtest.h>

#include "base/files.h"

namespace paddle::formats {
namespace {

constexpr const char* kEndings[] = {"gz", "bz2", "xz", "zst", "lz4"};

std::string rows() {
  std::string out = "x,label\n";
  for (int i = 0; i < 64; ++i) out += str(i / 8.0, i % 2 ? ",odd\n" : ",even\n");
  return out;
}

TEST(CompressedFile, HoldsTheRows) {
  for (const char* ending : kEndings) {
    const auto file = open_data_file(str("tests/formats/data/rows.csv.", ending));
    std::string text(file->view());
    // Python writes whole numbers with a fraction.
    for (size_t at; (at = text.find(".0,")) != std::string::npos;) text.erase(at, 2);
    EXPECT_EQ(text, rows()) << ending;
  }
}

TEST(CompressedFile, DamageIsAnError) {
  const std::string path = testing::TempDir() + "paddle_damaged_rows";
  for (const char* ending : kEndings) {
    const std::string good = read_file(str("tests/formats/data/rows.csv.", ending));
    for (size_t size = 8; size < good.size(); size += 1 + good.size() / 29) {
      write_file_atomically(path, good.substr(0, size));
      try {
        const auto file = open_data_file(path);
        // The last bytes of some forms hold no data but an end mark or a checksum.
        EXPECT_GT(size + 30, good.size()) << ending << " " << size;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kData) << error.what();
        EXPECT_TRUE(std::string(error.what()).starts_with(path + ": ")) << error.what();
      }
    }
  }
}

TEST(CompressedFile, OthersAreMappedAsTheyAre) {
  const std::string path = testing::TempDir() + "paddle_rows.csv";
  write_file_atomically(path, rows());
  const auto file = open_data_file(path);
  EXPECT_EQ(file->view(), rows());
  EXPECT_EQ(file->path(), path);
}

TEST(CompressedFile, Names) {
  EXPECT_EQ(uncompressed_name("a/rows.csv.gz"), "a/rows.csv");
  EXPECT_EQ(uncompressed_name("rows.csv"), "rows.csv");
  EXPECT_TRUE(has_tab_ending("rows.tsv.zst"));
  EXPECT_FALSE(has_tab_ending("rows.csv.zst"));
}

}  // namespace
}  // namespace paddle::formats
