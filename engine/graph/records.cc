#include "graph/records.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "formats/compressed/compressed.h"
#include "formats/csv.h"

namespace paddle::graph {
namespace {

constexpr size_t kForgetBytes = size_t{64} << 20;

bool is_number(std::string_view cell) {
  double value = 0;
  return formats::parse_number(cell, value);
}

std::string_view without_blanks(std::string_view text) { return trim(text); }

}  // namespace

LineReader::LineReader(const std::string& path, char delimiter, Header header)
    : path_(path),
      file_(formats::open_data_file(path)),
      rest_(file_->view()),
      delimiter_(delimiter) {
  if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);
  const std::string_view all = rest_;
  std::string_view line;
  if (!next_line(line)) return;
  if (delimiter_ == '\0') {
    const bool comma = formats::uncompressed_name(path).ends_with(".csv");
    delimiter_ = comma ? ',' : line.find('\t') != line.npos ? '\t' : ' ';
  }
  std::vector<std::string_view> first, second;
  split(line, first);
  width_ = first.size();
  std::vector<std::string> names;
  for (const std::string_view cell : first) names.emplace_back(cell);
  bool has = header == Header::kYes;
  if (header == Header::kAuto) {
    const auto none = [](const std::string& cell) { return !is_number(cell); };
    has = names.size() < 2 ? none(names[0]) : none(names[0]) && none(names[1]);
    if (has) {
      has = next_line(line);
      if (has) split(line, second);
      has = has && (is_number(second[0]) || (second.size() > 1 && is_number(second[1])));
    }
    if (names.size() >= 2 && !has) {
      // Texts in both lines: the usual names of the columns of a list of edges.
      constexpr std::string_view kNames[] = {"source", "src", "from", "id", "node"};
      has = std::find(std::begin(kNames), std::end(kNames), names[0]) != std::end(kNames);
    }
  }
  rest_ = all;
  line_ = 0;
  if (!has) return;
  names_ = std::move(names);
  next_line(line);
}

bool LineReader::next_line(std::string_view& line) {
  while (!rest_.empty()) {
    const size_t end = std::min(rest_.find('\n'), rest_.size());
    line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++line_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!without_blanks(line).empty() && line[0] != '#') {
      // Pages that were read need not stay.
      const size_t at = file_->size() - rest_.size();
      if (at - forgotten_ > 2 * kForgetBytes) {
        forget_mapped(file_->data() + forgotten_, kForgetBytes);
        forgotten_ += kForgetBytes;
      }
      return true;
    }
  }
  return false;
}

void LineReader::split(std::string_view line, std::vector<std::string_view>& cells) {
  cells.clear();
  unquoted_.clear();
  unquoted_.reserve(line.size() / 2 + 1);  // views into its texts must stay
  if (delimiter_ == ' ') {
    for (size_t at = 0; at < line.size();) {
      const size_t begin = line.find_first_not_of(" \t", at);
      if (begin == line.npos) break;
      at = std::min(line.find_first_of(" \t", begin), line.size());
      cells.push_back(line.substr(begin, at - begin));
    }
    return;
  }
  while (true) {
    if (line.starts_with('"') && delimiter_ == ',') {
      std::string& text = unquoted_.emplace_back();
      size_t at = 1;
      for (; at < line.size(); ++at) {
        if (line[at] == '"') {
          if (at + 1 >= line.size() || line[at + 1] != '"') break;
          ++at;
        }
        text += line[at];
      }
      if (at >= line.size()) throw Error(ErrorCode::kData, "a quote is not closed", location());
      line.remove_prefix(at + 1);
      cells.push_back(text);
      if (line.empty()) return;
      if (line[0] != delimiter_)
        throw Error(ErrorCode::kData, "text after a closing quote", location());
      line.remove_prefix(1);
      continue;
    }
    const size_t end = line.find(delimiter_);
    cells.push_back(without_blanks(line.substr(0, end)));
    if (end == line.npos) return;
    line.remove_prefix(end + 1);
  }
}

bool LineReader::next(std::vector<std::string_view>& cells) {
  std::string_view line;
  if (!next_line(line)) return false;
  split(line, cells);
  return true;
}

std::vector<std::string> files_of(const std::string& pattern) {
  const std::filesystem::path path(pattern);
  const std::string name = path.filename().string();
  if (name.find_first_of("*?") == name.npos) {
    if (!file_exists(pattern)) fail(ErrorCode::kData, pattern, ": no such file");
    return {pattern};
  }
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  std::vector<std::string> out;
  for (const std::string& entry : list_directory(folder))
    if (matches_pattern(name, entry)) out.push_back(join_path(folder, entry));
  if (out.empty()) fail(ErrorCode::kData, pattern, ": no file matches");
  return out;
}

bool is_integer_id(std::string_view cell) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  const bool whole = error == std::errc() && end == cell.data() + cell.size();
  return whole && (cell.size() == 1 || cell[0] != '0');
}

uint64_t parse_id(std::string_view cell, const SourceLocation& place) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size() || cell.empty())
    throw Error(ErrorCode::kData,
                str("the id '", printable(cell.substr(0, 40)),
                    "' is not an integer from 0 to 2^64 - 1; `ids: text` reads ids as texts"),
                place);
  return value;
}

}  // namespace paddle::graph
