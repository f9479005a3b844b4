#include "data/sources/record_source.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/files.h"
#include "data/config/dataset_config.h"
#include "data/dataset_kind.h"
#include "formats/compressed/compressed.h"

namespace paddle::data {
namespace {

/// Text files of equally many lines, such as a text and its translation.
class LinesSource final : public RecordSource {
 public:
  explicit LinesSource(const std::vector<std::pair<std::string, std::string>>& files) {
    for (const auto& [name, path] : files) {
      names_.push_back(name);
      Column& column = columns_.emplace_back();
      column.path = path;
      column.file = formats::open_data_file(path);
      const std::string_view text = column.file->view();
      for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        column.lines.push_back(text.substr(at, end - at));
        if (column.lines.back().ends_with('\r')) column.lines.back().remove_suffix(1);
        at = end + 1;
      }
      if (column.lines.size() != columns_[0].lines.size())
        fail(ErrorCode::kData, path, ": has ", column.lines.size(), " lines, ", columns_[0].path,
             " has ", columns_[0].lines.size(), "; parallel files have equally many");
    }
    if (columns_.empty()) fail(ErrorCode::kConfig, "lines: no file is given");
  }
  int64_t size() const override { return static_cast<int64_t>(columns_[0].lines.size()); }
  void cells(int64_t record, std::vector<std::string_view>& out, std::string&) const override {
    out.clear();
    for (const Column& column : columns_) out.push_back(column.lines[static_cast<size_t>(record)]);
  }
  SourceLocation location(int64_t record) const override {
    return {columns_[0].path, static_cast<int>(record + 1)};
  }
  std::vector<std::string> paths() const override {
    std::vector<std::string> out;
    for (const Column& column : columns_) out.push_back(column.path);
    return out;
  }

 private:
  struct Column {
    std::string path;
    std::shared_ptr<MappedFile> file;
    std::vector<std::string_view> lines;
  };
  std::vector<Column> columns_;
};

/// A record for each of some files: its path.
class ListedFiles final : public RecordSource {
 public:
  ListedFiles(const std::string& column, std::vector<std::string> files)
      : files_(std::move(files)) {
    names_ = {column};
    for (std::string& file : files_) file = std::filesystem::absolute(file).string();
  }
  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  void cells(int64_t record, std::vector<std::string_view>& out, std::string&) const override {
    out = {files_[static_cast<size_t>(record)]};
  }
  SourceLocation location(int64_t record) const override {
    return {files_[static_cast<size_t>(record)]};
  }
  std::vector<std::string> paths() const override { return files_; }

 private:
  std::vector<std::string> files_;
};

/// Several files as one. Their columns may come in different orders.
class JoinedSource final : public RecordSource {
 public:
  explicit JoinedSource(std::vector<RecordSourcePtr> parts) : parts_(std::move(parts)) {
    names_ = parts_[0]->names();
    for (const RecordSourcePtr& part : parts_) {
      std::vector<size_t>& order = orders_.emplace_back();
      for (const std::string& name : names_) {
        const auto at = std::find(part->names().begin(), part->names().end(), name);
        if (at == part->names().end())
          fail(ErrorCode::kData, part->paths()[0], ": no column '", name, "', which ",
               parts_[0]->paths()[0], " has; it has ", join(part->names(), ", "));
        order.push_back(static_cast<size_t>(at - part->names().begin()));
      }
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + part->size());
    }
  }
  int64_t size() const override { return ends_.back(); }
  bool may_lack_columns() const override { return parts_[0]->may_lack_columns(); }
  bool holds_files() const override { return parts_[0]->holds_files(); }
  ColumnKind column_kind(size_t column) const override { return parts_[0]->column_kind(column); }
  std::vector<std::string> declared_values(size_t column) const override {
    std::vector<std::string> out;
    for (size_t i = 0; i < parts_.size(); ++i)
      for (std::string& value : parts_[i]->declared_values(orders_[i][column]))
        if (std::find(out.begin(), out.end(), value) == out.end()) out.push_back(std::move(value));
    return out;
  }
  void cells(int64_t record, std::vector<std::string_view>& out,
             std::string& scratch) const override {
    const auto [part, index] = find(record);
    thread_local std::vector<std::string_view> own;
    parts_[part]->cells(index, own, scratch);
    out.clear();
    for (const size_t column : orders_[part]) out.push_back(own[column]);
  }
  SourceLocation location(int64_t record) const override {
    const auto [part, index] = find(record);
    return parts_[part]->location(index);
  }
  std::vector<std::string> paths() const override {
    std::vector<std::string> out;
    for (const RecordSourcePtr& part : parts_)
      for (const std::string& path : part->paths()) out.push_back(path);
    return out;
  }

 private:
  std::pair<size_t, int64_t> find(int64_t record) const {
    const auto part =
        static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), record) - ends_.begin());
    return {part, part == 0 ? record : record - ends_[part - 1]};
  }
  std::vector<RecordSourcePtr> parts_;
  std::vector<std::vector<size_t>> orders_;  ///< of each part's columns
  std::vector<int64_t> ends_;                ///< number of records up to the end of each part
};

/// The files below `folder` whose paths match the parts of a pattern from `next` on.
void match_below(const std::string& folder, const std::vector<std::string>& parts, size_t next,
                 std::vector<std::string>& out) {
  const std::string& part = parts[next];
  const bool last = next + 1 == parts.size();
  std::vector<std::string> names = {part};
  if (part.find_first_of("*?") != part.npos) {
    names = list_directory(folder.empty() ? "." : folder);
    std::erase_if(names, [&](const std::string& name) {
      return name.starts_with('.') || !matches_pattern(part, name);
    });
  }
  for (const std::string& name : names) {
    const std::string path = folder.empty() ? name : join_path(folder, name);
    if (last ? file_exists(path) : is_directory(path))
      last ? out.push_back(path) : match_below(path, parts, next + 1, out);
  }
}

}  // namespace

std::vector<std::string> expand_pattern(const std::string& path) {
  if (path.find_first_of("*?") == std::string::npos || file_exists(path)) return {path};
  const std::filesystem::path pattern(path);
  std::vector<std::string> parts, out;
  for (const auto& part : pattern.relative_path()) parts.push_back(part.string());
  match_below(pattern.root_path().string(), parts, 0, out);
  std::sort(out.begin(), out.end());
  if (out.empty()) fail(ErrorCode::kData, path, ": no file matches");
  return out;
}

std::vector<std::string> wanted_columns(const CsvFileOptions& options) {
  std::vector<std::string> out;
  std::set<std::string> seen;
  for (const CsvField& field : options.fields)
    for (const std::string& name : field.columns.empty() ? std::vector{field.name} : field.columns)
      if (seen.insert(name).second) out.push_back(name);
  if (!out.empty())
    for (const std::string& name : options.more_columns)
      if (seen.insert(name).second) out.push_back(name);
  return out;
}

RecordSourcePtr open_records(const CsvFileOptions& options) {
  if (!options.line_files.empty()) return std::make_unique<LinesSource>(options.line_files);
  if (!options.listed_files.empty())
    return std::make_unique<ListedFiles>(options.listed_column, options.listed_files);
  const auto kind = record_kind(options.format);
  std::vector<std::string> paths = expand_pattern(options.path);
  for (const std::string& more : options.more_paths)
    for (std::string& path : expand_pattern(more)) paths.push_back(std::move(path));
  std::vector<RecordSourcePtr> parts;
  for (const std::string& path : paths) parts.push_back(kind->open(options, path));
  if (parts.size() == 1) return std::move(parts[0]);
  return std::make_unique<JoinedSource>(std::move(parts));
}

DatasetKind lines_kind() {
  return {.name = "lines",
          .keys =
              [] {
                config::Schema s;
                s.add("files", config::Spec::map_of(config::Spec::text())
                                   .required()
                                   .doc("text files of equally many lines, by the name of their "
                                        "column"))
                    .add("fields", fields_key());
                return s;
              },
          .read = [](const config::Section& s) -> DatasetSource {
            CsvFileOptions o;
            o.format = "lines";
            o.line_files = text_map(s, "files", true);
            if (o.line_files.empty())
              throw Error(ErrorCode::kConfig, "lines: give files", s.node().location());
            for (const config::Section& f : s.sections("fields")) o.fields.push_back(read_field(f));
            return o;
          },
          .path_keys = {"files"}};
}

}  // namespace paddle::data
