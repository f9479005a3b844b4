// Files with the rows of tables: what is written can be read by any number of owners, and damaged
// files are rejected.

#include "tables/segments.h"

#include <cstring>
#include <filesystem>
#include <set>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"

namespace paddle::tables {
namespace {

namespace fs = std::filesystem;

class Segments : public ::testing::Test {
 protected:
  Segments() : folder_(fs::temp_directory_path() / str("paddle-segments-", getpid())) {
    fs::create_directories(folder_);
  }
  ~Segments() override { fs::remove_all(folder_); }

  static RecordTable table_of(uint64_t rows) {
    RecordTable table(DType::kF32, 2, 1);
    for (uint64_t i = 0; i < rows; ++i) {
      const uint64_t key = i < 2 ? i - 1 : hash_of(i);  // 2^64 - 1 and 0 are keys like others
      const float row[] = {static_cast<float>(i), -static_cast<float>(i), 1, 2};
      std::memcpy(table.insert(key), row, sizeof row);
    }
    return table;
  }
  /// Writes the shards of each of `parts` owners, and the manifest.
  void write(const RecordTable& table, int parts) const {
    std::vector<std::string> descriptions;
    for (int part = 0; part < parts; ++part)
      descriptions.push_back(
          write_segments(folder_.string(), format_, table, shards_of_part(part, parts), 7));
    write_manifest(folder_.string(), format_, 7, descriptions);
  }
  std::string error_of(const TableFormat& format) const {
    try {
      read_segments(folder_.string(), format, {0, kShards}, true);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kModel);
      return error.message();
    }
    return "";
  }
  fs::path folder_;
  TableFormat format_{
      .name = "t", .key = DType::kU64, .dtype = DType::kF32, .width = 2, .states = {"moment"}};
};

TEST_F(Segments, AreReadByAnyNumberOfOwners) {
  const RecordTable table = table_of(5000);
  for (const int writers : {1, 3, 8}) {
    fs::remove_all(folder_);
    write(table, writers);
    for (const int readers : {1, 2, 5}) {
      std::set<uint64_t> seen;
      for (int part = 0; part < readers; ++part) {
        const auto shards = shards_of_part(part, readers);
        for (const TableContent& each :
             read_segments(folder_.string(), format_, shards, part == 0)) {
          const auto* const keys = static_cast<const uint64_t*>(each.keys.raw());
          for (int64_t i = 0; i < each.keys.size(); ++i) {
            const int shard = shard_of(keys[i]);
            ASSERT_TRUE(shard >= shards.first && shard < shards.second);
            ASSERT_TRUE(seen.insert(keys[i]).second);
            const std::byte* const row = table.find(keys[i]);
            ASSERT_NE(row, nullptr);
            ASSERT_EQ(std::memcmp(row, static_cast<const std::byte*>(each.weight.raw()) + 8 * i, 8),
                      0);
            ASSERT_EQ(std::memcmp(
                          row + 8,
                          static_cast<const std::byte*>(each.states.at(0).second.raw()) + 8 * i, 8),
                      0);
          }
        }
      }
      EXPECT_EQ(seen.size(), 5000u);
    }
  }
}

TEST_F(Segments, OfAnotherFormatAreRejected) {
  write(table_of(10), 1);
  EXPECT_EQ(error_of(format_), "");
  TableFormat other = format_;
  other.width = 3;
  EXPECT_NE(error_of(other).find("'width' is 2, the table of this run has 3"), std::string::npos);
  other = format_;
  other.states = {"moment1", "moment2"};
  EXPECT_NE(error_of(other).find("'states'"), std::string::npos);
  other = format_;
  other.key = DType::kI64;
  EXPECT_NE(error_of(other).find("'key'"), std::string::npos);
}

TEST_F(Segments, ThatAreDamagedAreRejected) {
  const RecordTable table = table_of(2000);
  write(table, 2);
  const fs::path file = folder_ / "base-7" / "0384-0511.safetensors";
  const std::string good = read_file(file.string());
  std::string bad = good;
  bad[bad.size() / 2] ^= 1;
  write_file_atomically(file.string(), bad);
  EXPECT_NE(error_of(format_).find("0384-0511.safetensors: is damaged"), std::string::npos);
  // Other shards can be read.
  EXPECT_NO_THROW(read_segments(folder_.string(), format_, {0, 384}, false));
  write_file_atomically(file.string(), good.substr(0, good.size() - 8));
  EXPECT_NE(error_of(format_).find("bytes, expected"), std::string::npos);
  fs::remove(file);
  EXPECT_NE(error_of(format_).find("0384-0511.safetensors"), std::string::npos);
  write_file_atomically(file.string(), good);
  EXPECT_EQ(error_of(format_), "");
  fs::remove(folder_ / kManifest);
  EXPECT_NE(error_of(format_), "");
}

TEST_F(Segments, FoldersOfTablesDiffer) {
  const std::string long_name(255, 'a');
  std::set<std::string> names;
  const std::vector<std::string> tables = {"a b", "a%20b", "a/b",  "..",      ".",
                                           "é",   "a_b",   "a.b.", long_name, long_name + "b"};
  for (const std::string& name : tables) {
    const std::string folder = folder_name(name);
    EXPECT_TRUE(names.insert(folder).second) << name;
    EXPECT_LE(folder.size(), 220u);
    EXPECT_EQ(folder.find('/'), std::string::npos);
    EXPECT_NE(folder[0], '.');
  }
  EXPECT_EQ(folder_name("blocks.3.emb"), "blocks.3.emb");
}

TEST_F(Segments, HaveStatisticsWhereRowsDo) {
  RecordTable table(DType::kF32, 2, 1, 8);
  for (uint64_t key = 1; key < 3000; ++key) {
    const auto number = static_cast<float>(key);
    const float record[] = {number, 2, 3, 4, number + 0.5F, -number};
    std::memcpy(table.insert(key), record, sizeof record);
  }
  format_.statistics = {"show", "click"};
  write(table, 3);
  int64_t rows = 0;
  for (const TableContent& each : read_segments(folder_.string(), format_, {100, 900}, true)) {
    ASSERT_EQ(each.statistics.size(), 2U);
    for (int64_t i = 0; i < each.keys.size(); ++i, ++rows) {
      const float key = each.weight.number(2 * i);
      ASSERT_EQ(each.statistics[0].second.number(i), key + 0.5F);
      ASSERT_EQ(each.statistics[1].second.number(i), -key);
    }
  }
  EXPECT_GT(rows, 1500);
  // Files without them serve tables that begin to keep them.
  fs::remove_all(folder_);
  format_.statistics = {};
  write(table_of(100), 1);
  format_.statistics = {"show", "click"};
  EXPECT_EQ(error_of(format_), "");
}

}  // namespace
}  // namespace paddle::tables
