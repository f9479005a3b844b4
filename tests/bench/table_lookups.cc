// Tables that are only read: how long it takes to open one, and lookups of random keys a second of
// processor time of one thread. table_lookups.py compares them with Redis.
//
//   bench_table_lookups write FOLDER ROWS       float32[16] rows of the keys hash(0) … hash(ROWS -
//   1) bench_table_lookups open FOLDER             seconds, and the growth of resident memory
//   bench_table_lookups read FOLDER ROWS KEYS   that many keys, every tenth of which is absent

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "tables/mapped_table.h"

namespace {

using namespace paddle;

constexpr int64_t kWidth = 16;
constexpr size_t kBatch = 2048 * 26;

int write(const std::string& folder, uint64_t rows) {
  const tables::TableFormat format{
      .name = "t", .key = DType::kU64, .dtype = DType::kF32, .width = kWidth, .states = {}};
  ensure_directory(folder);
  const std::string part = tables::write_segments(
      folder, format,
      [&](std::pair<int, int> range, const auto& use) {
        tables::RecordTable records(format.dtype, kWidth, 0);
        for (uint64_t i = 0; i < rows; ++i) {
          const uint64_t key = tables::hash_of(i);
          const int shard = tables::shard_of(key);
          if (shard < range.first || shard >= range.second) continue;
          const float value = static_cast<float>(i);
          std::byte* const row = records.insert(key);
          for (int64_t k = 0; k < kWidth; ++k)
            std::memcpy(row + static_cast<size_t>(k) * sizeof value, &value, sizeof value);
        }
        use(records);
      },
      {0, tables::kShards}, 1);
  tables::write_manifest(folder, format, 1, {&part, 1});
  return 0;
}

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double pages = 0;
  file >> pages >> pages;
  return pages * 4096;
}

int open(const std::string& folder) {
  const double before = resident_bytes();
  const auto begun = std::chrono::steady_clock::now();
  const auto table = tables::MappedTable::open(folder);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  std::printf("%.6f %.0f\n", seconds, resident_bytes() - before);
  return table->stored_rows() > 0 ? 0 : 1;
}

int read(const std::string& folder, uint64_t rows, uint64_t count) {
  const auto table = tables::MappedTable::open(folder);
  std::mt19937_64 random(1);
  std::vector<uint64_t> numbers(count), keys(count);
  for (uint64_t i = 0; i < count; ++i) {
    numbers[i] = i % 10 == 0 ? rows + random() % rows : random() % rows;
    keys[i] = tables::hash_of(numbers[i]);
  }
  std::vector<float> found(kBatch * kWidth);
  double seconds = 0;
  for (const bool counted : {false, true}) {  // the first round brings the pages into memory
    const std::clock_t begun = std::clock();
    for (uint64_t at = 0; at < count; at += kBatch) {
      const auto some = std::span(keys).subspan(at, std::min<uint64_t>(kBatch, count - at));
      table->read(some, DType::kF32, reinterpret_cast<std::byte*>(found.data()));
      for (size_t i = 0; i < some.size(); ++i) {
        const uint64_t number = numbers[at + i];
        const float wanted = number < rows ? static_cast<float>(number) : 0;
        if (found[i * kWidth] == wanted) continue;
        std::fprintf(stderr, "a row is wrong\n");
        return 1;
      }
    }
    if (counted) seconds = static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
  }
  std::printf("%.0f\n", static_cast<double>(count) / seconds);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 2 ? argv[1] : "";
  const auto number = [&](int at) { return argc > at ? std::strtoull(argv[at], nullptr, 10) : 0; };
  if (what == "write" && number(3) > 0) return write(argv[2], number(3));
  if (what == "open") return open(argv[2]);
  if (what == "read" && number(3) > 0 && number(4) > 0) return read(argv[2], number(3), number(4));
  std::fprintf(stderr,
               "bench_table_lookups write FOLDER ROWS | open FOLDER | "
               "read FOLDER ROWS KEYS\n");
  return 2;
}
