#pragma once
// A row of a table whose updates a lane writes down, a line of JSON for each, in the folder of the
// run:
//
//   {"step": 25, "worker": 1, "gradient_norm": 0.25, "row": [0.5, -1.0]}

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "program/row_table.h"

namespace paddle::ps {

struct WatchedRow {
  std::string table;
  uint64_t key = 0;
};
inline constexpr const char* kWatchFile = "row-updates.jsonl";

class RowWatch {
 public:
  RowWatch(WatchedRow row, std::string file) : row_(std::move(row)), file_(std::move(file)) {}
  /// Begins the file. kDevice if it cannot be written.
  void begin() const;
  /// Notes an update of these rows, which has happened, if the watched one is among them. `worker`:
  /// nothing for the gradients of all workers. `gradients`: their changes, where workers have rows
  /// of their own.
  void note(const program::RowTable& table, std::span<const uint64_t> keys, const Array& gradients,
            int64_t step, std::optional<uint32_t> worker) const;

 private:
  WatchedRow row_;
  std::string file_;
};

}  // namespace paddle::ps
