#pragma once
// Tables from files of other programs: CSV as `paddle ps dump` writes it, the text tables of
// PaddlePaddle's parameter server, and tensors, such as the weight of torch's EmbeddingBag; and to
// a file of tensors.

#include <string>
#include <vector>

#include "train/tables/stored_tables.h"

namespace paddle::train {

enum class TableText {
  kCsv,  ///< a header and lines: key, weight_0, weight_1, …, states in the same form, statistics
  kPaddle,  ///< key slot unseen_days delta_score show click w g2sum [wide weights g2sum]
  kTensors  ///< a matrix of a file of weights, and the key of each row
};

struct TableImport {
  std::string table;
  DType key = DType::kI64;  ///< or uint64
  TableText text = TableText::kCsv;
  // Of tensors.
  std::string tensor = {};  ///< the name of the matrix; "": the only one
  /// A text file with the key of each row in a line; "": the tensor `keys` of the file.
  std::string keys_file = {};
};

/// The rows of all files, float32. Of PaddlePaddle's tables the weights (that of the first part and
/// then the wide ones, zeros in lines without), shows, clicks and days; squares of gradients and
/// delta scores are left out. kData with file and line for what is wrong, and for a key that comes
/// twice.
StoredTable import_table(const std::vector<std::string>& files, const TableImport& import);

/// Writes a safetensors file with `keys` in rising order, `weight` and the statistics; with
/// `states`, also those of the optimizer.
void export_table(const std::string& path, const StoredTable& table, bool states);

}  // namespace paddle::train
