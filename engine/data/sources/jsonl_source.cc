// Records of JSON lines: an object a line, whose keys are columns (json_cells.h).

#include "base/files.h"
#include "data/dataset_kind.h"
#include "data/sources/json_cells.h"
#include "data/sources/record_source.h"
#include "formats/compressed/compressed.h"

namespace paddle::data {
namespace {

class JsonlSource final : public RecordSource {
 public:
  JsonlSource(const std::string& path, const std::vector<std::string>& columns)
      : path_(path), file_(formats::open_data_file(path)) {
    const std::string_view text = file_->view();
    int64_t line = 1;
    for (size_t at = text.starts_with("\xef\xbb\xbf") ? 3 : 0; at < text.size(); ++line) {
      const size_t end = std::min(text.find('\n', at), text.size());
      if (!trim(text.substr(at, end - at)).empty()) records_.push_back({at, end - at, line});
      at = end + 1;
    }
    if (records_.empty()) fail(ErrorCode::kData, path_, ": the file is empty");
    names_ = columns;
    const JsonCells first = parse(0);
    if (names_.empty()) {
      names_ = first.keys();
      if (names_.empty())
        throw Error(ErrorCode::kData, "the first record has no keys", location(0));
    }
    check_names(first);
  }
  int64_t size() const override { return static_cast<int64_t>(records_.size()); }
  bool may_lack_columns() const override { return true; }
  void cells(int64_t record, std::vector<std::string_view>& out,
             std::string& scratch) const override {
    const JsonCells object = parse(record);
    scratch.clear();
    std::vector<size_t> ends;
    for (const std::string& name : names_) {
      object.append(name, scratch);
      ends.push_back(scratch.size());
    }
    split_cells(scratch, ends, out);
  }
  SourceLocation location(int64_t record) const override {
    return {path_, static_cast<int>(records_[static_cast<size_t>(record)].line)};
  }
  std::vector<std::string> paths() const override { return {path_}; }

 private:
  struct Record {
    size_t offset = 0, length = 0;
    int64_t line = 0;
  };

  JsonCells parse(int64_t record) const {
    const Record& r = records_[static_cast<size_t>(record)];
    return {file_->view().substr(r.offset, r.length), location(record)};
  }

  /// A key that none of the first records has is a typing error.
  void check_names(const JsonCells& first) const {
    constexpr int64_t kLooked = 1000;
    const std::vector<std::string> known = first.keys();
    std::vector<std::string> missing;
    for (const std::string& name : names_)
      if (!first.has(name)) missing.push_back(name);
    for (int64_t i = 1; !missing.empty() && i < std::min(size(), kLooked); ++i) {
      try {
        const JsonCells object = parse(i);
        std::erase_if(missing, [&](const std::string& name) { return object.has(name); });
      } catch (const Error&) {
        continue;  // reading it reports that
      }
    }
    if (!missing.empty())
      fail(ErrorCode::kData, path_, ": no record has the key '", missing[0], "'",
           did_you_mean(missing[0], known), "; the first one has: ", join(known, ", "));
  }

  std::string path_;
  std::shared_ptr<MappedFile> file_;
  std::vector<Record> records_;
};

}  // namespace

DatasetKind jsonl_kind() {
  return make_record_kind("jsonl", "files of a JSON object a line; * and ? match several",
                          {".jsonl", ".ndjson"},
                          [](const CsvFileOptions& options, const std::string& path) {
                            return std::make_unique<JsonlSource>(path, wanted_columns(options));
                          });
}

}  // namespace paddle::data
