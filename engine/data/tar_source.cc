// Records of WebDataset shards: members whose names differ by their extension alone are one record,
// and the extensions are its columns ("000017.jpg" and "000017.cls": columns jpg and cls).

#include <algorithm>
#include <map>

#include "base/files.h"
#include "data/record_source.h"
#include "formats/tar.h"

namespace paddle::data {
namespace {

class TarSource final : public RecordSource {
 public:
  explicit TarSource(const std::string& path) : path_(path), file_(MappedFile::open(path)) {
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
  }
  int64_t size() const override { return static_cast<int64_t>(records_.size()); }
  bool may_lack_columns() const override { return true; }
  void cells(int64_t record, std::vector<std::string_view>& out, std::string&) const override {
    out.assign(names_.size(), {});
    for (const Part& part : records_[static_cast<size_t>(record)].parts)
      out[part.column] = file_->view().substr(part.offset, part.size);
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
  std::string path_;
  std::shared_ptr<MappedFile> file_;
  std::vector<Record> records_;
};

}  // namespace

RecordSourcePtr open_tar(const std::string& path) { return std::make_unique<TarSource>(path); }

}  // namespace paddle::data
