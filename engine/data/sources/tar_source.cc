// Records of WebDataset shards: members whose names differ only by their extension are one record,
// and the extensions are its columns ("000017.jpg" and "000017.cls": columns jpg and cls). Keys of
// "000017.json" are columns, too: json.label.

#include <algorithm>
#include <map>
#include <optional>

#include "base/files.h"
#include "data/dataset_kind.h"
#include "data/sources/json_cells.h"
#include "data/sources/record_source.h"
#include "formats/compressed/compressed.h"
#include "formats/tar.h"

namespace paddle::data {
namespace {

class TarSource final : public RecordSource {
 public:
  TarSource(const std::string& path, const std::vector<std::string>& wanted)
      : path_(path), file_(formats::open_data_file(path)) {
    std::map<std::string, size_t> columns;
    std::string last;
    for (const formats::TarMember& member : formats::read_tar_index(file_->bytes(), path)) {
      const size_t slash = member.name.rfind('/') + 1;  // 0 without one
      if (member.name.compare(slash, 1, ".") == 0) continue;
      const size_t dot = member.name.find('.', slash);
      if (dot == std::string::npos) continue;
      const std::string key = member.name.substr(0, dot), column = member.name.substr(dot + 1);
      const auto [at, is_new] = columns.emplace(column, names_.size());
      if (is_new) names_.push_back(column);
      if (records_.empty() || key != last) records_.push_back({key, {}});
      last = key;
      auto& parts = records_.back().parts;
      if (std::any_of(parts.begin(), parts.end(),
                      [&](const Part& part) { return part.column == at->second; }))
        fail(ErrorCode::kData, path, ": the member '", member.name, "' appears twice");
      parts.push_back({at->second, member.offset, member.size});
    }
    if (records_.empty())
      fail(ErrorCode::kData, path, ": holds no files with an extension, which records are made of");
    add_keys(wanted);
  }
  bool holds_files() const override { return true; }
  int64_t size() const override { return static_cast<int64_t>(records_.size()); }
  bool may_lack_columns() const override { return true; }
  void cells(int64_t record, std::vector<std::string_view>& out,
             std::string& scratch) const override {
    out.assign(names_.size(), {});
    for (const Part& part : records_[static_cast<size_t>(record)].parts)
      out[part.column] = file_->view().substr(part.offset, part.size);
    if (keys_.empty()) return;
    scratch.clear();
    std::vector<size_t> ends;
    std::optional<JsonCells> object;
    for (size_t k = 0; k < keys_.size(); ++k) {
      const std::string_view text = out[keys_[k].member];
      if (k == 0 || keys_[k].member != keys_[k - 1].member) object.reset();
      if (!text.empty() && !object) object.emplace(text, location(record));
      if (object) object->append(keys_[k].path, scratch);
      ends.push_back(scratch.size());
    }
    // Views of the text when it is complete.
    for (size_t k = 0, begin = 0; k < keys_.size(); begin = ends[k++])
      out[members_ + k] = std::string_view(scratch).substr(begin, ends[k] - begin);
  }
  SourceLocation location(int64_t record) const override {
    return {path_ + ": " + records_[static_cast<size_t>(record)].key, 0};
  }
  std::vector<std::string> paths() const override { return {path_}; }

 private:
  struct Part {
    size_t column = 0;
    uint64_t offset = 0, size = 0;
  };
  struct Record {
    std::string key;
    std::vector<Part> parts;
  };
  /// A key of a JSON member: a column after those of the members.
  struct Key {
    size_t member = 0;  ///< its column
    std::string path = {};
  };

  /// The wanted columns that are keys of a member, such as json.label.
  void add_keys(const std::vector<std::string>& wanted) {
    members_ = names_.size();
    const std::vector<std::string> members = names_;
    for (const std::string& name : wanted)
      for (size_t m = 0; m < members_; ++m) {
        const std::string& member = members[m];
        if ((member != "json" && !member.ends_with(".json")) || !name.starts_with(member + ".") ||
            std::find(names_.begin(), names_.end(), name) != names_.end())
          continue;
        keys_.push_back({m, name.substr(member.size() + 1)});
        names_.push_back(name);
        check_key(keys_.back());
      }
  }
  /// A key that none of the first records has is a typing error.
  void check_key(const Key& key) const {
    constexpr int64_t kLooked = 1000;
    std::vector<std::string> known;
    for (int64_t record = 0; record < std::min(size(), kLooked); ++record)
      for (const Part& part : records_[static_cast<size_t>(record)].parts) {
        if (part.column != key.member) continue;
        try {
          const JsonCells object(file_->view().substr(part.offset, part.size), location(record));
          if (object.has(key.path)) return;
          if (known.empty()) known = object.keys();
        } catch (const Error&) {
          return;  // reading it reports that
        }
      }
    fail(ErrorCode::kData, path_, ": no .", names_[key.member], " has the key '", key.path, "'",
         did_you_mean(key.path, known), "; the first one has: ", join(known, ", "));
  }

  std::string path_;
  std::shared_ptr<MappedFile> file_;
  std::vector<Key> keys_;
  size_t members_ = 0;  ///< columns that are members
  std::vector<Record> records_;
};

}  // namespace

DatasetKind tar_kind() {
  return make_record_kind("tar", "tar shards; * and ? match several", {".tar"},
                          [](const CsvFileOptions& options, const std::string& path) {
                            return std::make_unique<TarSource>(path, wanted_columns(options));
                          });
}

}  // namespace paddle::data
