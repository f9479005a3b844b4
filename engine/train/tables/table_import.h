#pragma once
// Tables from text: the CSV files that `paddle ps dump` writes, and the text tables of
// PaddlePaddle's parameter server.

#include <string>
#include <vector>

#include "train/tables/stored_tables.h"

namespace paddle::train {

enum class TableText {
  kCsv,  ///< a header and lines: key, weight_0, weight_1, …, states in the same form, statistics
  kPaddle  ///< key slot unseen_days delta_score show click w g2sum [wide weights g2sum]
};

struct TableImport {
  std::string table;
  DType key = DType::kI64;  ///< or uint64
  TableText text = TableText::kCsv;
};

/// The rows of all files, float32. Of PaddlePaddle's tables the weights (that of the first part and
/// then the wide ones, zeros in lines without), shows, clicks and days; squares of gradients and
/// delta scores are left out. kData with file and line for what is wrong, and for a key that comes
/// twice.
StoredTable import_table(const std::vector<std::string>& files, const TableImport& import);

}  // namespace paddle::train
