// Edges and nodes of files, as build.h declares.

#include <algorithm>
#include <cmath>

#include "formats/csv.h"
#include "formats/npz.h"
#include "graph/build.h"

namespace paddle::graph {
namespace {

/// The position of a column: by its name, or by `fallback` if it has none.
size_t column_at(const LineReader& lines, const std::string& name, size_t fallback,
                 const std::string& path) {
  if (name.empty()) return fallback;
  const std::vector<std::string>& names = lines.names();
  const auto at = std::find(names.begin(), names.end(), name);
  if (at != names.end()) return static_cast<size_t>(at - names.begin());
  int64_t number = 0;
  if (formats::parse_integer(name, number) && number >= 0 &&
      number < static_cast<int64_t>(lines.width()))
    return static_cast<size_t>(number);
  fail(ErrorCode::kData, path, ": no column '", name, "'",
       names.empty() ? str("; the file has no header and ", lines.width(), " columns")
                     : str(did_you_mean(name, names), "; there are ", join(names, ", ")));
}

float parse_weight(std::string_view cell, const SourceLocation& place) {
  double value = 0;
  if (!formats::parse_number(cell, value))
    throw Error(ErrorCode::kData,
                str("the weight '", printable(cell.substr(0, 40)), "' is not a number"), place);
  const auto weight = static_cast<float>(value);
  if (!(weight >= 0) || !std::isfinite(weight))
    throw Error(ErrorCode::kData, str("the weight is ", value, ", expected 0 or more, and finite"),
                place);
  return weight;
}

GivenId given_id(std::string_view cell, bool is_text, const SourceLocation& place) {
  if (!is_text) return {parse_id(cell, place), {}};
  if (cell.empty()) throw Error(ErrorCode::kData, "an id is empty", place);
  return {0, cell};
}

uint64_t integer_id(const Array& array, int64_t at, const std::string& origin) {
  const int64_t value = array.integer(at);
  if (value < 0 && array.dtype != DType::kU64)
    fail(ErrorCode::kData, origin, ": element ", at, " is ", value, ", expected ids from 0 on");
  return static_cast<uint64_t>(value);
}

void read_edge_archive(const EdgeDescription& d, const std::string& path, const VisitEdge& visit) {
  const formats::NpzReader archive(path);
  const auto read = [&](const std::string& name) {
    if (!archive.contains(name))
      fail(ErrorCode::kData, path, ": no array '", name, "'", archive.what_it_has(name));
    return archive.read(name);
  };
  const auto check = [&](const Array& array, const std::string& name, bool integers) {
    if (integers ? !is_integer(array.dtype) : !is_float(array.dtype) && !is_integer(array.dtype))
      fail(ErrorCode::kData, path, ": '", name, "' is ", text(array.dtype), str(array.shape),
           ", expected ", integers ? "integers" : "numbers");
  };
  Array source, target, weight;
  if (d.source.empty() && archive.contains("edges")) {
    const Array edges = read("edges").contiguous();
    check(edges, "edges", true);
    if (edges.ndim() != 2 || edges.shape[1] != 2)
      fail(ErrorCode::kData, path, ": 'edges' has the shape ", str(edges.shape),
           ", expected [edges, 2]");
    source = target = edges;
    source.shape = target.shape = {edges.shape[0]};
    source.strides = target.strides = {2};
    target.offset += 1;
    source = source.contiguous();
    target = target.contiguous();
  } else {
    const std::string from = d.source.empty() ? "source" : d.source,
                      to = d.target.empty() ? "target" : d.target;
    source = read(from).contiguous();
    target = read(to).contiguous();
    check(source, from, true);
    check(target, to, true);
  }
  if (d.weighted) {
    const std::string name = d.weight.empty() ? "weight" : d.weight;
    weight = read(name).contiguous();
    check(weight, name, false);
  }
  const int64_t count = source.size();
  if (source.ndim() != 1 || target.ndim() != 1 || target.size() != count ||
      (d.weighted && weight.size() != count))
    fail(ErrorCode::kData, path, ": sources, targets and weights differ in length");
  for (int64_t e = 0; e < count; ++e) {
    float w = 1;
    if (d.weighted) {
      w = static_cast<float>(weight.number(e));
      if (!(w >= 0) || !std::isfinite(w))
        fail(ErrorCode::kData, path, ": weight ", e, " is ", w, ", expected 0 or more, and finite");
    }
    visit({integer_id(source, e, path), {}}, {integer_id(target, e, path), {}}, w,
          {str(path, ": edge ", e), 0, 0});
  }
}

void read_edge_lines(const EdgeDescription& d, const std::string& path, bool text_source,
                     bool text_target, const VisitEdge& visit) {
  LineReader lines(path, d.delimiter, d.header);
  if (lines.width() == 0) return;
  if (lines.width() < 2)
    throw Error(ErrorCode::kData, "a line has one cell, expected a source and a target",
                {path, 1, 0});
  const size_t source = column_at(lines, d.source, 0, path),
               target = column_at(lines, d.target, 1, path);
  const bool named = !d.weight.empty() || lines.names().empty();
  const size_t weight = !d.weighted ? 0
                        : named     ? column_at(lines, d.weight, 2, path)
                                    : column_at(lines, "weight", 2, path);
  const size_t needed = std::max({source, target, weight}) + 1;
  std::vector<std::string_view> cells;
  while (lines.next(cells)) {
    const SourceLocation place = lines.location();
    if (cells.size() < needed)
      throw Error(ErrorCode::kData,
                  str("the line has ", cells.size(), " cells, expected at least ", needed), place);
    visit(given_id(cells[source], text_source, place), given_id(cells[target], text_target, place),
          d.weighted ? parse_weight(cells[weight], place) : 1.0f, place);
  }
}

}  // namespace

void read_edges(const EdgeDescription& description, bool text_source, bool text_target,
                const VisitEdge& visit) {
  for (const std::string& pattern : description.files)
    for (const std::string& path : files_of(pattern)) {
      if (!path.ends_with(".npz")) {
        read_edge_lines(description, path, text_source, text_target, visit);
        continue;
      }
      if (text_source || text_target)
        fail(ErrorCode::kData, path, ": an archive has integers as ids, other files have texts");
      read_edge_archive(description, path, visit);
    }
}

NodeReader::NodeReader(const NodeDescription& description) : description_(description) {
  for (const std::string& pattern : description.files)
    for (std::string& path : files_of(pattern)) files_.push_back(std::move(path));
  open_next();
}

bool NodeReader::open_next() {
  if (file_ >= files_.size()) {
    lines_ = nullptr;
    return false;
  }
  const std::string& path = files_[file_++];
  lines_ = std::make_unique<LineReader>(path, description_.delimiter, description_.header);
  std::vector<std::string> columns = lines_->names();
  if (columns.empty())
    for (size_t i = 0; i < lines_->width(); ++i) columns.push_back(std::to_string(i));
  if (columns_.empty()) {
    columns_ = columns;
    id_ = columns.empty() ? 0 : column_at(*lines_, description_.id, 0, path);
  } else if (columns != columns_ && !columns.empty()) {
    fail(ErrorCode::kData, path, ": the columns are ", join(columns, ", "), ", those of ",
         files_[0], " are ", join(columns_, ", "));
  }
  return true;
}

bool NodeReader::next(std::vector<std::string_view>& cells) {
  while (lines_) {
    if (lines_->next(cells)) {
      ++record_;
      if (cells.size() == columns_.size()) return true;
      throw Error(ErrorCode::kData,
                  str("the line has ", cells.size(), " cells, expected ", columns_.size()),
                  location());
    }
    open_next();
  }
  return false;
}

SourceLocation NodeReader::location() const {
  return lines_ ? lines_->location() : SourceLocation{};
}

std::vector<size_t> columns_of(const FeatureDescription& feature,
                               const std::vector<std::string>& columns, const std::string& nodes) {
  const std::vector<std::string> patterns =
      feature.columns.empty() ? std::vector<std::string>{feature.name} : feature.columns;
  const auto position = [&](const std::string& name) {
    const auto at = std::find(columns.begin(), columns.end(), name);
    if (at == columns.end())
      fail(ErrorCode::kData, "nodes '", nodes, "': feature '", feature.name, "': no column '", name,
           "'", did_you_mean(name, columns), "; there are ", join(columns, ", "));
    return static_cast<size_t>(at - columns.begin());
  };
  std::vector<size_t> out;
  for (const std::string& pattern : patterns) {
    if (const size_t dots = pattern.find(".."); dots != pattern.npos) {
      const size_t first = position(pattern.substr(0, dots)),
                   last = position(pattern.substr(dots + 2));
      if (first > last)
        fail(ErrorCode::kData, "nodes '", nodes, "': feature '", feature.name, "': the run '",
             pattern, "' is empty");
      for (size_t c = first; c <= last; ++c) out.push_back(c);
    } else if (pattern.find_first_of("*?") != pattern.npos) {
      const size_t before = out.size();
      for (size_t c = 0; c < columns.size(); ++c)
        if (matches_pattern(pattern, columns[c])) out.push_back(c);
      if (out.size() == before) position(pattern);
    } else {
      out.push_back(position(pattern));
    }
  }
  return out;
}

bool has_text_ids(const GraphDescription& description, const NodeDescription& nodes) {
  if (nodes.text_ids) return *nodes.text_ids;
  std::vector<std::string_view> cells;
  if (!nodes.files.empty()) {
    NodeReader reader(nodes);
    return reader.next(cells) && !is_integer_id(cells[reader.id_column()]);
  }
  for (const EdgeDescription& edges : description.edges) {
    if (edges.from != nodes.name && edges.to != nodes.name) continue;
    for (const std::string& pattern : edges.files)
      for (const std::string& path : files_of(pattern)) {
        if (path.ends_with(".npz")) return false;
        LineReader lines(path, edges.delimiter, edges.header);
        if (!lines.next(cells) || cells.size() < 2) continue;
        const size_t at = edges.from == nodes.name ? column_at(lines, edges.source, 0, path)
                                                   : column_at(lines, edges.target, 1, path);
        return at < cells.size() && !is_integer_id(cells[at]);
      }
  }
  return false;
}

std::vector<FeatureDescription> inferred_features(const NodeDescription& nodes) {
  NodeReader reader(nodes);
  const std::vector<std::string> columns = reader.columns();
  std::vector<bool> integers(columns.size(), true), numbers(columns.size(), true);
  std::vector<std::string_view> cells;
  while (reader.next(cells))
    for (size_t c = 0; c < cells.size(); ++c) {
      if (!numbers[c]) continue;
      int64_t integer = 0;
      double number = 0;
      if (integers[c] && !formats::parse_integer(cells[c], integer)) integers[c] = false;
      if (!integers[c] && !formats::parse_number(cells[c], number)) numbers[c] = false;
    }
  std::vector<FeatureDescription> out;
  for (size_t c = 0; c < columns.size(); ++c) {
    if (c == reader.id_column()) continue;
    FeatureDescription feature{.name = columns[c], .columns = {columns[c]}};
    feature.category = !numbers[c];
    feature.dtype = !numbers[c] || integers[c] ? DType::kI64 : DType::kF32;
    out.push_back(std::move(feature));
  }
  return out;
}

}  // namespace paddle::graph
