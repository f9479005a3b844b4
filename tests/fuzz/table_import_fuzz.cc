// Bytes as a text file with the rows of a table. The first byte says of which kind and with which
// keys.

#include "fuzz/fuzz_target.h"
#include "train/tables/table_import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace paddle;
  if (size == 0) return 0;
  const std::string file = fuzz::input_file({data + 1, size - 1}, "table.txt");
  fuzz::expect_documented_end([&] {
    const train::StoredTable table = train::import_table(
        {file}, {.table = "t",
                 .key = data[0] & 2 ? DType::kU64 : DType::kI64,
                 .text = data[0] & 1 ? train::TableText::kPaddle : train::TableText::kCsv});
    for (const tables::TableContent& part : table.parts) {
      fuzz::read_all(part.keys);
      fuzz::read_all(part.weight);
      for (const auto& [name, values] : part.states) fuzz::read_all(values);
      for (const auto& [name, values] : part.statistics) fuzz::read_all(values);
    }
  });
  return 0;
}
