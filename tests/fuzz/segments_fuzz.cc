// Any bytes as a manifest and the file that it lists: the length of the manifest in 4 bytes, the
// manifest, and the file.

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/files.h"
#include "fuzz/fuzz_target.h"
#include "tables/mapped_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace paddle;
  uint32_t length = 0;
  if (size < sizeof length) return 0;
  std::memcpy(&length, data, sizeof length);
  const size_t manifest = std::min<size_t>(length, size - sizeof length);
  std::string folder;
  fuzz::expect_documented_end([&] {
    const std::string file = fuzz::input_file(
        {data + sizeof length + manifest, size - sizeof length - manifest}, "x.safetensors");
    const std::string path = fuzz::input_file({data + sizeof length, manifest}, tables::kManifest);
    folder = std::filesystem::path(path).parent_path().string();
    const tables::TableFormat format{.name = "t",
                                     .key = DType::kU64,
                                     .dtype = DType::kF32,
                                     .width = 2,
                                     .states = {"moment"},
                                     .statistics = {"show"}};
    for (const auto& part : tables::read_segments(folder, format, {300, 900}, true)) {
      fuzz::read_all(part.keys);
      fuzz::read_all(part.weight);
      for (const auto& [name, values] : part.states) fuzz::read_all(values);
      for (const auto& [name, values] : part.statistics) fuzz::read_all(values);
    }
  });
  // Searched without such checks, it gives some rows or none.
  fuzz::expect_documented_end([&] {
    const auto table = tables::MappedTable::open(folder);
    std::vector<uint64_t> keys = {0, 1, ~uint64_t{0}};
    table->for_each([&](uint64_t key, const auto&) {
      if (keys.size() < 1000) keys.push_back(key);
    });
    std::vector<tables::MappedTable::Row> rows(keys.size());
    table->find(keys, rows.data());
    if (table->format().width > 1000) return;
    std::vector<std::byte> values(static_cast<size_t>(table->format().width) * sizeof(double));
    for (const auto& row : rows)
      if (row.values) table->put_row(row, DType::kF64, values.data());
  });
  return 0;
}
