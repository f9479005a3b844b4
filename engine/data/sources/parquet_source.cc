// Records of Parquet files: a column of the file is a column, an empty cell is an empty text.

#include <algorithm>

#include "data/dataset_kind.h"
#include "data/sources/record_source.h"
#include "formats/parquet/reader.h"

namespace paddle::data {
namespace {

class ParquetSource final : public RecordSource {
 public:
  ParquetSource(const std::string& path, const std::vector<std::string>& columns) : path_(path) {
    const formats::ParquetReader reader(path);
    rows_ = reader.rows();
    if (rows_ == 0) fail(ErrorCode::kData, path, ": the file is empty");
    std::vector<std::string> all;
    for (const formats::ParquetColumn& column : reader.columns()) all.push_back(column.name);
    const auto matches = [](const std::string& pattern, const std::string& name) {
      return matches_pattern(pattern, name);
    };
    // Where a column is not named as it is (I1..I13, a number), all are decoded.
    const bool all_named =
        !columns.empty() && std::all_of(columns.begin(), columns.end(), [&](const std::string& p) {
          return std::any_of(all.begin(), all.end(),
                             [&](const auto& name) { return matches(p, name); });
        });
    // The leaves of a list or a struct have longer names.
    for (const std::string& name : columns)
      for (const formats::ParquetColumn& leaf : reader.columns())
        if (!all_named && !leaf.problem.empty() && leaf.name.starts_with(name + "."))
          fail(ErrorCode::kData, path, ": column '", name, "' ", leaf.problem);
    for (size_t c = 0; c < all.size(); ++c) {
      const bool is_wanted =
          all_named ? std::any_of(columns.begin(), columns.end(),
                                  [&](const std::string& p) { return matches(p, all[c]); })
                    : reader.columns()[c].problem.empty();
      if (!is_wanted) continue;
      names_.push_back(all[c]);
      cells_.push_back(reader.read(c));
    }
    if (names_.empty()) fail(ErrorCode::kData, path, ": holds no columns that can be read");
  }
  int64_t size() const override { return rows_; }
  void cells(int64_t record, std::vector<std::string_view>& out,
             std::string& scratch) const override {
    scratch.clear();
    std::vector<size_t> ends;
    for (const formats::ParquetCells& column : cells_) {
      scratch += column.text(record);
      ends.push_back(scratch.size());
    }
    split_cells(scratch, ends, out);
  }
  SourceLocation location(int64_t record) const override {
    return {path_, static_cast<int>(record + 1)};
  }
  std::vector<std::string> paths() const override { return {path_}; }

 private:
  std::string path_;
  int64_t rows_ = 0;
  std::vector<formats::ParquetCells> cells_;
};

}  // namespace

DatasetKind parquet_kind() {
  return make_record_kind("parquet", "Parquet files; * and ? match several", {".parquet"},
                          [](const CsvFileOptions& options, const std::string& path) {
                            return std::make_unique<ParquetSource>(path, wanted_columns(options));
                          });
}

}  // namespace paddle::data
