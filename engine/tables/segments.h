#pragma once
// Files with the rows of a table: one safetensors file for each range of shards, with the tensors
// `keys`, `weight`, one for each state and one for each statistic, whose rows are sorted by shard
// and key. A manifest lists the files, the rows of each shard and checksums, so any process can
// pick the rows of its shards.
//
//   vectors/manifest.json
//   vectors/base-12000/0000-0127.safetensors
//   vectors/delta-13000/0000-0127.safetensors
//
// A delta has the rows that changed since the save before it, and the keys that were removed
// (`deleted`). The base with all deltas is the table.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tables/record_table.h"
#include "tensor/tensor.h"

namespace paddle::tables {

/// The tensors of a table.
struct TableFormat {
  std::string name;  ///< of the table
  DType key = DType::kI64;
  DType dtype = DType::kF32;
  int64_t width = 0;
  std::vector<std::string> states;  ///< names, in the order of a record
  /// float32 numbers of each row, after the states of its record. A file may lack them.
  std::vector<std::string> statistics = {};
};

/// Rows of a table: `keys` int64 or uint64 [n], `weight` [n, width], and states in the shape of the
/// weight; statistics.
struct TableContent {
  Array keys, weight;
  std::vector<std::pair<std::string, Array>> states = {};
  std::vector<std::pair<std::string, Array>> statistics = {};  ///< float32 [n]
};

/// The folder of a table, as a name that every file system takes; different for different tables.
std::string folder_name(const std::string& table);

/// In the folder of a checkpoint: a folder for each table.
inline constexpr const char* kTablesFolder = "tables";
inline constexpr const char* kManifest = "manifest.json";
/// The tensor of a delta with the keys that have been removed.
inline constexpr const char* kDeletedKeys = "deleted";

/// Writes the rows of shards [first, last) into the folder of a table. Needs memory for the rows of
/// one shard. The result describes the files, for `write_manifest`.
std::string write_segments(const std::string& folder, const TableFormat& format,
                           const RecordTable& rows, std::pair<int, int> shards, int64_t step);
/// The same of rows that are kept elsewhere: `use_rows(range, write)` calls `write` with a table
/// that has the rows of these shards, those of one file.
std::string write_segments(
    const std::string& folder, const TableFormat& format,
    const std::function<void(std::pair<int, int> range,
                             const std::function<void(const RecordTable&)>& write)>& use_rows,
    std::pair<int, int> shards, int64_t step);
/// Writes what has changed since the last save as a delta: `changed` has the rows, `deleted` keys
/// without a row, of these shards. The result is for `write_delta_manifest`.
std::string write_delta(const std::string& folder, const TableFormat& format,
                        const RecordTable& changed, std::span<const uint64_t> deleted,
                        std::pair<int, int> shards, int64_t step);
/// Puts the files of the save before, in the folder `before`, next to the delta (as links where
/// the file system has them) and writes the manifest of all. `count`: rows of the whole table.
/// `base`: a folder with the rows of one of these saves as a base, which takes the place of the
/// base and of the deltas up to that save; "": none. kModel if what was there is damaged.
void write_delta_manifest(const std::string& folder, const std::string& before,
                          const TableFormat& format, int64_t step, int64_t count,
                          std::span<const std::string> parts, const std::string& base = "");

/// The saves that a folder holds.
struct SavedChain {
  int64_t base_step = 0, count = 0;
  std::vector<int64_t> delta_steps = {};
  uint64_t base_bytes = 0, delta_bytes = 0;
  std::vector<std::pair<int, int>> shards = {};  ///< of each file of the base
};
/// Of the manifest of a table. kModel if it is damaged.
SavedChain read_chain(const std::string& folder);

/// A file of a base or of a delta, as the manifest lists it.
struct SegmentFile {
  std::string path;
  uint64_t bytes = 0;
  int first_shard = 0;
  std::vector<int64_t> rows = {};  ///< of each shard from the first on
  int64_t count = 0;               ///< rows of all of them
  int64_t deleted = 0;             ///< keys that a delta removes
};
struct TableFiles {
  TableFormat format;
  std::vector<std::vector<SegmentFile>> saves;  ///< those of the base, and then of each delta
};
/// The format and the files of a table, as its manifest lists them. kModel if it is damaged; the
/// files are not read.
TableFiles list_segments(const std::string& folder);

/// Writes the manifest, when all files are there: `parts` are the results of `write_segments`,
/// whose shards must cover all. kDevice if a part is not one.
void write_manifest(const std::string& folder, const TableFormat& format, int64_t step,
                    std::span<const std::string> parts);

/// The rows of shards [first, last), sorted by shard and key: mapped files, or in memory where
/// deltas are merged. kModel if the folder has no table of this format, or if files are missing or
/// damaged: those with such rows or, if `checks_all`, any. `deltas`: only the base and the first
/// ones of them.
std::vector<TableContent> read_segments(const std::string& folder, const TableFormat& format,
                                        std::pair<int, int> shards, bool checks_all,
                                        size_t deltas = SIZE_MAX);

/// The format that the manifest of a table states. kModel if it is damaged. Rows are float32 or
/// float64; those of a table that is only read (MappedTable) may also be float16, bfloat16 or int8.
TableFormat read_format(const std::string& folder);

}  // namespace paddle::tables
