// The table of plugins/file_rows with a fault: what `paddle plugin check` has to find (faults.txt).

#include "example.h"

#include "../file_rows/file_rows.cc"

#pragma pop_macro("PADDLE_PLUGIN")

namespace {

/// The spec that the table gets.
struct Told {
  explicit Told(const paddle_table_spec& given) : spec(given) {
    if (fault_is("order_of_keys")) spec.key_dtype = PADDLE_UINT64;
  }
  paddle_table_spec spec;
};

class FaultyRows : private Told, public FileRows {
 public:
  explicit FaultyRows(const paddle_table_spec& given) : Told(given), FileRows(spec) {}

  void read(std::span<const uint64_t> keys, int32_t missing, std::byte* rows) const {
    FileRows::read(keys, missing, rows);
    if (!fault_is("reading_adds")) return;
    std::vector<std::byte> record(spec.record_bytes);
    for (size_t i = 0; i < keys.size(); ++i) {
      std::memcpy(record.data(), rows + i * spec.row_bytes, spec.row_bytes);
      const_cast<FaultyRows*>(this)->restore(keys.subspan(i, 1), record.data());
    }
  }
};

}  // namespace

PADDLE_PLUGIN(faulty, "1.0.0", plugin) { plugin.table<FaultyRows>("rows", "in a file"); }
