// Records of CSV and TSV files. The file stays mapped; opening it finds the records.

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/files.h"
#include "data/config/dataset_config.h"
#include "data/dataset_kind.h"
#include "data/sources/csv_columns.h"
#include "data/sources/record_source.h"
#include "formats/compressed/compressed.h"
#include "formats/csv.h"

namespace paddle::data {
namespace {

using formats::CsvRecord;

class CsvSource final : public RecordSource {
 public:
  explicit CsvSource(const CsvFileOptions& options)
      : path_(options.path),
        file_(formats::open_data_file(options.path)),
        parser_(file_->view(), options.path, {delimiter_of(options), options.quote}),
        records_(parser_.index()) {
    read_header(options);
  }
  int64_t size() const override { return static_cast<int64_t>(records_.size()); }
  void cells(int64_t record, std::vector<std::string_view>& out,
             std::string& scratch) const override {
    parser_.fields(records_[static_cast<size_t>(record)], out, scratch);
    if (out.size() != names_.size())
      throw Error(ErrorCode::kData,
                  str("this row has ", out.size(), " fields, ", names_.size(), " are expected"),
                  location(record));
  }
  SourceLocation location(int64_t record) const override {
    return {path_, static_cast<int>(records_[static_cast<size_t>(record)].line)};
  }
  std::vector<std::string> paths() const override { return {path_}; }

 private:
  static char delimiter_of(const CsvFileOptions& options) {
    if (options.delimiter) return options.delimiter;
    if (options.decimal == ',') return ';';
    return formats::has_tab_ending(options.path) ? '\t' : ',';
  }

  void read_header(const CsvFileOptions& options) {
    if (records_.empty()) fail(ErrorCode::kData, path_, ": the file is empty");
    std::vector<std::string_view> cells;
    std::string scratch;
    parser_.fields(records_[0], cells, scratch);
    if (options.header) {
      for (const std::string_view cell : cells) names_.emplace_back(trim(cell));
      check_delimiter(options);
      tell_apart(names_);
      check_csv_header(names_, options.fields, {path_, static_cast<int>(records_[0].line)});
      records_.erase(records_.begin());
    } else {
      names_ = options.column_names;
      const bool repeated =
          !names_.empty() && std::equal(names_.begin(), names_.end(), cells.begin(), cells.end(),
                                        [](auto& name, auto& cell) { return name == trim(cell); });
      if (repeated)
        throw Error(ErrorCode::kData,
                    "this line repeats column_names, so it is a header; set `header: true`",
                    {path_, static_cast<int>(records_[0].line)});
      for (size_t i = names_.size(); i < cells.size(); ++i) names_.push_back(std::to_string(i));
      if (names_.size() > cells.size())
        fail(ErrorCode::kData, path_, ": ", names_.size(), " column names are given, line ",
             records_[0].line, " has ", cells.size(), " fields");
    }
    std::set<std::string> seen;
    for (const std::string& name : names_)
      if (!seen.insert(name).second)
        throw Error(ErrorCode::kData, str("column '", name, "' appears twice"), {path_, 1});
  }

  /// A header of one cell in which another separator stands.
  void check_delimiter(const CsvFileOptions& options) const {
    if (options.delimiter || names_.size() != 1) return;
    const std::pair<char, const char*> others[] = {
        {'\t', "tab"}, {';', ";"}, {',', ","}, {'|', "|"}};
    for (const auto& [mark, word] : others)
      if (names_[0].find(mark) != std::string::npos)
        throw Error(
            ErrorCode::kData,
            str("the header is one column, '", printable(std::string_view(names_[0]).substr(0, 40)),
                "'; if columns are separated otherwise, set `delimiter: \"", word, "\"`"),
            {path_, static_cast<int>(records_[0].line)});
  }

  std::string path_;
  std::shared_ptr<MappedFile> file_;
  formats::CsvParser parser_;
  std::vector<CsvRecord> records_;
};

}  // namespace

DatasetKind csv_kind() {
  using config::Spec;
  DatasetKind kind =
      make_record_kind("csv", "files; * and ? match several", {".csv", ".tsv", ".tab", ".txt"},
                       [](const CsvFileOptions& options, const std::string& path) {
                         CsvFileOptions one = options;
                         one.path = path;
                         return std::make_unique<CsvSource>(one);
                       });
  kind.keys = [] {
    config::Schema s;
    s.add("path", paths_spec("files; * and ? match several"));
    add_csv_format_keys(s);
    s.add("header",
          Spec::boolean().fallback("true").doc("whether the first line names the columns"))
        .add("column_names", Spec::list(Spec::text())
                                 .fallback("[]")
                                 .doc("names of the columns of a file without a header"))
        .add("fields", fields_key());
    return s;
  };
  kind.read = [](const config::Section& s) -> DatasetSource {
    CsvFileOptions o = read_records(s, "csv");
    read_csv_format(s, o);
    o.header = s.boolean("header");
    o.column_names = s.texts("column_names");
    return o;
  };
  return kind;
}

}  // namespace paddle::data
