#pragma once
// Parquet files (parquet-format of Apache): tables of columns. Read are flat columns of booleans,
// integers, floats, texts and dates, in PLAIN and dictionary encoding, compressed with Snappy, gzip
// or Zstandard, as pandas, Arrow and Polars write them; empty cells are kept. Lists, structs and
// other encodings are rejected with their name.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

namespace paddle::formats {

struct ParquetColumn {
  enum class Kind { kBoolean, kInteger, kUnsigned, kFloat, kDouble, kText, kDate };
  std::string name;
  Kind kind = Kind::kInteger;
  bool is_optional = false;  ///< cells may be empty
  std::string problem = {};  ///< why it cannot be read; "" if it can
};

/// The cells of one column: numbers, or texts of the dictionary or of the pages.
class ParquetCells {
 public:
  bool is_empty(int64_t row) const {
    return !present_.empty() && !present_[static_cast<size_t>(row)];
  }
  /// The text of a cell; numbers are written so that they are read again without loss.
  std::string text(int64_t row) const;

 private:
  friend class ParquetReader;
  ParquetColumn::Kind kind_ = ParquetColumn::Kind::kInteger;
  std::vector<bool> present_;      ///< empty: all are
  std::vector<int64_t> integers_;  ///< booleans, integers, dates in days; for texts, which text
  std::vector<double> numbers_;
  std::vector<float> floats_;
  std::vector<std::string> texts_;
};

class ParquetReader {
 public:
  /// kData if the file is damaged or not Parquet.
  explicit ParquetReader(const std::string& path);
  const std::string& path() const { return path_; }
  int64_t rows() const { return rows_; }
  /// All leaves of the schema, those that cannot be read with the reason.
  const std::vector<ParquetColumn>& columns() const { return columns_; }
  /// Decodes a column. kData for damaged pages, or if the column cannot be read.
  ParquetCells read(size_t column) const;

 private:
  struct Leaf {
    int physical = 0;  ///< Parquet's type
    int levels = 0;    ///< the largest definition level
  };
  struct Chunk {
    size_t column = 0;
    int codec = 0;
    int64_t values = 0, begin = 0, size = 0;
  };
  class Decoder;
  void read_footer();

  std::string path_;
  std::shared_ptr<MappedFile> file_;
  int64_t rows_ = 0;
  std::vector<ParquetColumn> columns_;
  std::vector<Leaf> leaves_;
  std::vector<Chunk> chunks_;  ///< in the order of the row groups
};

}  // namespace paddle::formats
