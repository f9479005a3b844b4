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

/// All columns of a read, in the order of shards and keys.
std::vector<std::byte> bytes_of(const std::vector<TableContent>& parts) {
  std::vector<std::byte> keys, weights, states;
  const auto add = [](std::vector<std::byte>& to, const Array& from, size_t bytes) {
    const auto* const first = static_cast<const std::byte*>(from.raw());
    to.insert(to.end(), first, first + static_cast<size_t>(from.shape[0]) * bytes);
  };
  for (const TableContent& part : parts) {
    add(keys, part.keys, 8);
    add(weights, part.weight, 8);
    add(states, part.states.at(0).second, 8);
  }
  keys.insert(keys.end(), weights.begin(), weights.end());
  keys.insert(keys.end(), states.begin(), states.end());
  return keys;
}

TEST_F(Segments, OfABaseAndItsDeltasAreTheWholeTable) {
  const auto place = [this](const char* name) { return (folder_ / name).string(); };
  RecordTable table = table_of(3000);
  const auto write_whole = [&](const std::string& folder, int64_t step) {
    const std::string part = write_segments(folder, format_, table, {0, kShards}, step);
    write_manifest(folder, format_, step, std::span(&part, 1));
  };
  write_whole(place("0"), 10);
  std::vector<std::vector<std::byte>> wanted = {
      bytes_of(read_segments(place("0"), format_, {0, kShards}, true))};
  for (int64_t step = 1; step <= 3; ++step) {
    // Rows change, come, go, and go and come again.
    RecordTable changed(DType::kF32, 2, 1);
    std::vector<uint64_t> deleted;
    const auto put = [&](uint64_t key) {
      const float row[] = {static_cast<float>(step), static_cast<float>(key % 97), 5, 6};
      for (RecordTable* to : {&table, &changed}) {
        std::byte* const at = to->find(key);
        std::memcpy(at ? at : to->insert(key), row, sizeof row);
      }
    };
    for (uint64_t i = 0; i < 400; ++i) {
      const uint64_t key = hash_of(i * 7 + static_cast<uint64_t>(step));
      if (i % 5 == 0 && table.erase(key)) {
        deleted.push_back(key);
        deleted.push_back(key);
      }
    }
    for (uint64_t i = 1; i < 400; i += 5) {
      const uint64_t key = hash_of(i * 7 + static_cast<uint64_t>(step));
      std::erase(deleted, key);
      put(key);
    }
    for (uint64_t i = 0; i < 50; ++i) put(hash_of(100000 * static_cast<uint64_t>(step) + i));
    ASSERT_FALSE(deleted.empty());
    const std::string folder = place(std::to_string(step).c_str());
    std::vector<std::string> parts;
    for (int part = 0; part < 2; ++part)
      parts.push_back(
          write_delta(folder, format_, changed, deleted, shards_of_part(part, 2), 10 + step));
    write_delta_manifest(folder, place(std::to_string(step - 1).c_str()), format_, 10 + step,
                         table.count(), parts);
    write_whole(place("whole"), 10 + step);
    wanted.push_back(bytes_of(read_segments(place("whole"), format_, {0, kShards}, true)));
    fs::remove_all(place("whole"));
    fs::remove_all(place(std::to_string(step - 1).c_str()));  // the chain does not need it
    for (size_t deltas = 0; deltas <= static_cast<size_t>(step); ++deltas)
      EXPECT_EQ(bytes_of(read_segments(folder, format_, {0, kShards}, true, deltas)),
                wanted[deltas]);
    for (const int readers : {2, 5}) {
      std::vector<TableContent> all;
      for (int part = 0; part < readers; ++part)
        for (TableContent& each :
             read_segments(folder, format_, shards_of_part(part, readers), part == 0))
          all.push_back(std::move(each));
      EXPECT_EQ(bytes_of(all), wanted.back()) << readers;
    }
    const SavedChain chain = read_chain(folder);
    EXPECT_EQ(chain.base_step, 10);
    EXPECT_EQ(chain.count, table.count());
    EXPECT_EQ(chain.delta_steps.size(), static_cast<size_t>(step));
    EXPECT_LT(chain.delta_bytes, 3 * chain.base_bytes);
  }
  // A delta that is missing, damaged or not one of this table.
  folder_ /= "3";
  const fs::path file = folder_ / "delta-12" / "0128-0255.safetensors";
  const std::string whole = read_file(file.string(), 1 << 20);
  std::string damaged = whole;
  damaged[damaged.size() - 3] = static_cast<char>(damaged[damaged.size() - 3] ^ 1);
  write_file_atomically(file.string(), damaged);
  EXPECT_NE(error_of(format_).find("delta-12/0128-0255.safetensors: is damaged"), std::string::npos)
      << error_of(format_);
  fs::remove(file);
  EXPECT_NE(error_of(format_).find("delta-12/0128-0255.safetensors"), std::string::npos);
  write_file_atomically(file.string(), whole);
  EXPECT_EQ(error_of(format_), "");
  const std::string manifest = read_file((folder_ / kManifest).string(), 1 << 20);
  const auto changed_manifest = [&](const std::string& from, const std::string& to) {
    std::string text = manifest;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    write_file_atomically((folder_ / kManifest).string(), text.replace(at, from.size(), to));
    return error_of(format_);
  };
  EXPECT_NE(changed_manifest("\"deltas\":[", "\"deltas\":7,\"x\":[").find("is damaged"),
            std::string::npos);
  EXPECT_NE(changed_manifest("delta-11/0000", "../delta-11/0000").find("is not a file"),
            std::string::npos);
  EXPECT_NE(changed_manifest("\"deleted\":", "\"deleted\":1").find("lacks 'deleted'"),
            std::string::npos);
  const std::string count = str("\"count\":", table.count());
  EXPECT_NE(changed_manifest(count, count + "1").find("'count' is not"), std::string::npos);
}

}  // namespace
}  // namespace paddle::tables
