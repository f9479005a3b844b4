// Tables that are read where their files are mapped: each row is the one that was written, also
// after deltas and in other types.

#include "tables/mapped_table.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"

namespace paddle::tables {
namespace {

namespace fs = std::filesystem;

class MappedTables : public ::testing::Test {
 protected:
  MappedTables() : folder_(fs::temp_directory_path() / str("paddle-mapped-", getpid())) {
    fs::create_directories(folder_);
  }
  ~MappedTables() override { fs::remove_all(folder_); }

  using Rows = std::map<uint64_t, float>;

  static RecordTable records_of(const Rows& rows) {
    RecordTable table(DType::kF32, 2, 0);
    for (const auto& [key, value] : rows) {
      const float row[] = {value, -value};
      std::memcpy(table.insert(key), row, sizeof row);
    }
    return table;
  }
  std::string place(int save) const { return (folder_ / std::to_string(save)).string(); }
  void write(int save, const Rows& rows) const {
    const std::string part =
        write_segments(place(save), format_, records_of(rows), {0, kShards}, save);
    write_manifest(place(save), format_, save, {&part, 1});
  }
  void write_delta(int save, const Rows& changed, const std::vector<uint64_t>& deleted,
                   int64_t count) const {
    const std::string part =
        tables::write_delta(place(save), format_, records_of(changed), deleted, {0, kShards}, save);
    write_delta_manifest(place(save), place(save - 1), format_, save, count, {&part, 1});
  }
  static void expect_rows(const MappedTable& table, const Rows& rows,
                          std::vector<uint64_t> absent) {
    std::vector<uint64_t> keys = std::move(absent);
    const size_t missing = keys.size();
    for (const auto& [key, value] : rows) keys.push_back(key);
    std::vector<float> found(keys.size() * 2, 7);
    table.read(keys, DType::kF32, reinterpret_cast<std::byte*>(found.data()));
    for (size_t i = 0; i < keys.size(); ++i) {
      const float wanted = i < missing ? 0 : rows.at(keys[i]);
      ASSERT_EQ(found[2 * i], wanted) << keys[i];
      ASSERT_EQ(found[2 * i + 1], -wanted) << keys[i];
    }
    Rows seen;
    table.for_each([&](uint64_t key, const MappedTable::Row& row) {
      float value;
      std::memcpy(&value, row.values, sizeof value);
      ASSERT_TRUE(seen.emplace(key, value).second);
    });
    EXPECT_EQ(seen, rows);
  }
  fs::path folder_;
  TableFormat format_{
      .name = "t", .key = DType::kU64, .dtype = DType::kF32, .width = 2, .states = {}};
};

TEST_F(MappedTables, FindKeysOfEachKind) {
  Rows rows = {{0, 1}, {~uint64_t{0}, 2}, {uint64_t{1} << 63, 3}};
  for (uint64_t i = 1; i < 60000; ++i) rows[i * 3] = static_cast<float>(i);              // dense
  for (uint64_t i = 0; i < 60000; ++i) rows[hash_of(i)] = static_cast<float>(i) + 0.5F;  // anywhere
  for (uint64_t slot = 1; slot < 9; ++slot)                                              // clusters
    for (uint64_t i = 1; i < 3000; ++i) rows[(slot << 52) + i * i] = static_cast<float>(slot * i);
  std::vector<uint64_t> absent;
  for (uint64_t i = 0; i < 5000; ++i)
    for (const uint64_t key : {3 * i + 1, hash_of(i) + 1, (i % 9 << 52) + i * i + 2})
      if (!rows.contains(key)) absent.push_back(key);
  for (const DType key : {DType::kU64, DType::kI64}) {
    format_.key = key;
    fs::remove_all(folder_);
    write(1, rows);
    expect_rows(*MappedTable::open(place(1)), rows, absent);
  }
}

TEST_F(MappedTables, TheNewestSaveOfARowCounts) {
  Rows rows;
  for (uint64_t i = 0; i < 4000; ++i) rows[i] = static_cast<float>(i);
  write(1, rows);
  write_delta(2, {{5, 50}, {9000, 90}}, {6, 7}, 4000 - 2 + 1);
  rows[5] = 50;
  rows[9000] = 90;
  rows.erase(6);
  rows.erase(7);
  expect_rows(*MappedTable::open(place(2)), rows, {6, 7, 8000});
  write_delta(3, {{6, 60}, {5, 51}}, {9000}, 4000 - 1);
  rows[6] = 60;
  rows[5] = 51;
  rows.erase(9000);
  const auto table = MappedTable::open(place(3));
  expect_rows(*table, rows, {7, 9000});
  const TableContent sorted = table->sorted_content();
  ASSERT_EQ(sorted.keys.size(), static_cast<int64_t>(rows.size()));
  const auto* keys = static_cast<const uint64_t*>(sorted.keys.raw());
  for (const auto& [key, value] : rows) {
    EXPECT_EQ(keys[0], key);
    EXPECT_EQ(sorted.weight.number(2 * (keys - static_cast<const uint64_t*>(sorted.keys.raw()))),
              value);
    ++keys;
  }
}

TEST_F(MappedTables, WholeTablesAreSearchedByTheOrderOfTheirType) {
  std::vector<int64_t> keys;
  std::vector<double> weight;
  for (int64_t i = -500; i < 500; ++i) {
    keys.push_back(i * i * i);
    weight.push_back(static_cast<double>(i) / 3);
  }
  const auto count = static_cast<int64_t>(keys.size());
  const MappedTable table("t", Array::from<int64_t>(keys, {count}),
                          Array::from<double>(weight, {count, 1}));
  std::vector<uint64_t> wanted;
  for (const int64_t key : keys) wanted.push_back(static_cast<uint64_t>(key));
  wanted.push_back(static_cast<uint64_t>(int64_t{-3}));
  std::vector<float> found(wanted.size());
  table.read(wanted, DType::kF32, reinterpret_cast<std::byte*>(found.data()));
  for (size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(found[i], static_cast<float>(weight[i]));
  EXPECT_EQ(found.back(), 0);
}

TEST_F(MappedTables, RowsInFewerBitsAreConverted) {
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kI8}) {
    const bool is_integer = dtype == DType::kI8;
    TableFormat format{.name = "t", .key = DType::kI64, .dtype = dtype, .width = 3, .states = {}};
    if (is_integer) format.statistics = {kRowScale};
    RecordTable records(dtype, 3, 0, is_integer ? sizeof(float) : 0);
    for (uint64_t key = 0; key < 300; ++key) {
      std::byte* const row = records.insert(key);
      const auto value = static_cast<float>(key);
      for (size_t i = 0; i < 3; ++i) {
        const float each = value * static_cast<float>(i);
        if (dtype == DType::kF16) reinterpret_cast<float16*>(row)[i] = float16(each);
        if (dtype == DType::kBF16) reinterpret_cast<bfloat16*>(row)[i] = bfloat16(each);
        if (is_integer) reinterpret_cast<int8_t*>(row)[i] = static_cast<int8_t>(i);
      }
      if (is_integer) std::memcpy(row + records.further_at(), &value, sizeof value);
    }
    fs::remove_all(folder_);
    const std::string part = write_segments(place(1), format, records, {0, kShards}, 1);
    write_manifest(place(1), format, 1, {&part, 1});
    const auto table = MappedTable::open(place(1));
    std::vector<uint64_t> keys(301);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
    std::vector<float> found(keys.size() * 3);
    table->read(keys, DType::kF32, reinterpret_cast<std::byte*>(found.data()));
    for (size_t i = 0; i < 900; ++i) {
      const float wanted = static_cast<float>(i / 3) * static_cast<float>(i % 3);
      ASSERT_NEAR(found[i], wanted, dtype == DType::kBF16 ? wanted / 256 : 0) << i;
    }
    for (size_t i = 900; i < found.size(); ++i) EXPECT_EQ(found[i], 0);
  }
}

TEST_F(MappedTables, FilesThatLackWhatTheyListAreRejected) {
  write(1, {{1, 1}, {2, 2}});
  std::string manifest = read_file((fs::path(place(1)) / kManifest).string(), 1 << 20);
  const size_t at = manifest.find("\"width\":2");
  ASSERT_NE(at, std::string::npos);
  manifest.replace(at, 9, "\"width\":3");
  write_file_atomically((fs::path(place(1)) / kManifest).string(), manifest);
  try {
    MappedTable::open(place(1));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kModel);
    EXPECT_NE(std::string(error.message()).find("lacks 'weight' as float32["), std::string::npos)
        << error.message();
  }
}

}  // namespace
}  // namespace paddle::tables
