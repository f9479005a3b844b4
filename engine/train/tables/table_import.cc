#include "train/tables/table_import.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "base/key_text.h"
#include "base/text.h"
#include "convert/source.h"
#include "formats/safetensors.h"
#include "tables/row_policy.h"
#include "tables/shards.h"

namespace paddle::train {
namespace {

using tables::TableContent;

/// A column of the result: `width` numbers of each row.
struct TextColumn {
  std::string name;
  size_t width = 1;
  bool is_list = false;  ///< weight or state, else a statistic
  std::vector<float> values = {};
};

struct TextLine {
  const std::string& file;
  size_t number;
  std::string_view text;
};

template <class... What>
[[noreturn]] void reject(const TextLine& line, const What&... what) {
  throw Error(ErrorCode::kData, str(what...),
              SourceLocation{line.file, static_cast<int>(line.number)});
}

/// Takes the part up to a separator from the front of a text.
std::string_view take(std::string_view& rest, char separator) {
  if (separator == ' ') rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  const size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view out = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return out;
}

float number_of(const TextLine& line, std::string_view text) {
  double number = 0;
  const std::string_view cell = trim(text);
  const char* const end = cell.data() + cell.size();
  const auto [rest, error] = std::from_chars(cell.data(), end, number);
  if (error != std::errc() || rest != end || !std::isfinite(static_cast<float>(number)))
    reject(line, "'", printable(cell.substr(0, 40)), "' is not a finite float32 number");
  return static_cast<float>(number);
}

uint64_t key_of(const TextLine& line, std::string_view text, DType type) {
  const std::string_view cell = trim(text);
  uint64_t key = 0;
  if (read_key(cell, type == DType::kI64, key) != std::errc())
    reject(line, "'", printable(cell.substr(0, 40)), "' is not a key of type ", paddle::text(type));
  return key;
}

template <class Use>
void for_each_line(const std::string& file, const Use& use) {
  const auto mapped = MappedFile::open(file, ErrorCode::kData);
  std::string_view rest = mapped->view();
  for (size_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view text = rest.substr(0, end);
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (!trim(text).empty()) use(TextLine{file, number, text});
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

class TextRows {
 public:
  explicit TextRows(const TableImport& import) : import_(import) {}

  void read_csv(const std::string& file) {
    std::vector<size_t> header;  // the column of each cell after the key
    bool has_header = false;
    for_each_line(file, [&](const TextLine& line) {
      std::string_view rest = line.text;
      if (!has_header) {
        has_header = true;
        header = header_of(line, rest);
        return;
      }
      add_key(line, take(rest, ','));
      for (const size_t column : header) {
        if (rest.empty()) reject(line, "has fewer cells than the header");
        columns_[column].values.push_back(number_of(line, take(rest, ',')));
      }
      if (!rest.empty()) reject(line, "has more cells than the header");
    });
    if (!has_header) fail(ErrorCode::kData, file, ": the file is empty");
  }

  void read_paddle(const std::string& file) {
    if (columns_.empty())
      for (const char* name : {"weight", "show", "click", "day", "wide"})
        columns_.push_back({name});
    columns_[0].is_list = true;
    for_each_line(file, [&](const TextLine& line) {
      std::string_view rest = line.text;
      add_key(line, take(rest, ' '));
      std::vector<float> cells;
      while (!trim(rest).empty()) cells.push_back(number_of(line, take(rest, ' ')));
      constexpr size_t kNarrow = 7;  // slot, unseen days, delta score, show, click, w, g2sum
      if (cells.size() < kNarrow || cells.size() == kNarrow + 1)
        reject(line, "has ", cells.size(), " numbers after the key, expected ", kNarrow,
               ", or more with a wide part");
      const size_t wide = cells.size() == kNarrow ? 0 : cells.size() - kNarrow - 1;
      if (wide > 0 && wide_ > 0 && wide != wide_)
        reject(line, "has a wide part of ", wide, " weights, earlier lines have ", wide_);
      wide_ = std::max(wide_, wide);
      wide_begin_.push_back(wide_rows_.size());
      wide_rows_.insert(wide_rows_.end(), cells.begin() + kNarrow,
                        cells.begin() + static_cast<ptrdiff_t>(kNarrow + wide));
      narrow_.push_back(cells[5]);
      columns_[1].values.push_back(cells[3]);
      columns_[2].values.push_back(cells[4]);
      columns_[3].values.push_back(-cells[1]);
      columns_[4].values.push_back(wide > 0 ? 1 : 0);
    });
  }

  void read_tensors(const std::string& file) {
    const auto source = convert::open_source(file, convert::input_format(file, ""));
    size_t matrix = SIZE_MAX, keys = SIZE_MAX;
    std::vector<std::string> names;
    for (size_t i = 0; i < source->tensors().size(); ++i) {
      const convert::StoredTensor& each = source->tensors()[i];
      if (each.name == "keys" && each.shape.size() == 1) keys = i;
      if (each.shape.size() != 2 || !is_float(each.dtype)) continue;
      names.push_back(each.name);
      if (import_.tensor.empty() || each.name == import_.tensor) matrix = i;
    }
    if (matrix == SIZE_MAX || (import_.tensor.empty() && names.size() > 1))
      fail(ErrorCode::kUsage, file, ": has no matrix '", import_.tensor,
           "' of floats that is the only one; --tensor chooses one of ", join(names, ", "));
    const Array weight = source->read(matrix).cast(DType::kF32).contiguous();
    const size_t before = keys_.size();
    if (!import_.keys_file.empty()) {
      for_each_line(import_.keys_file, [&](const TextLine& line) { add_key(line, line.text); });
    } else if (keys != SIZE_MAX) {
      const Array array = source->read(keys);
      if (array.dtype != DType::kI64 && array.dtype != DType::kU64)
        fail(ErrorCode::kData, file, ": 'keys' is ", text(array.dtype),
             ", expected int64 or uint64");
      if (array.dtype != import_.key)
        fail(ErrorCode::kData, file, ": 'keys' is ", text(array.dtype), ", the table has ",
             text(import_.key), " keys (--key-type)");
      const auto* const values = static_cast<const uint64_t*>(array.raw());
      for (int64_t i = 0; i < array.size(); ++i) {
        keys_.push_back(values[i]);
        lines_.emplace_back(&file, static_cast<size_t>(i) + 1);
      }
    } else {
      fail(ErrorCode::kUsage, file, ": has no tensor 'keys'; expected --keys FILE");
    }
    if (static_cast<int64_t>(keys_.size() - before) != weight.shape[0])
      fail(ErrorCode::kData, import_.keys_file.empty() ? file : import_.keys_file, ": ",
           keys_.size() - before, " keys for a matrix of ", weight.shape[0], " rows");
    const auto width = static_cast<size_t>(weight.shape[1]);
    if (columns_.empty()) columns_.push_back({"weight", width, true});
    if (columns_[0].width != width)
      fail(ErrorCode::kData, file, ": rows of ", width, " numbers, the file before has ",
           columns_[0].width);
    const float* const values = weight.data<float>();
    columns_[0].values.insert(columns_[0].values.end(), values, values + weight.size());
  }

  StoredTable table() {
    if (import_.text == TableText::kPaddle) finish_paddle();
    StoredTable out;
    std::vector<size_t> order(keys_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const bool is_signed = import_.key == DType::kI64;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return tables::ordered(keys_[a], is_signed) < tables::ordered(keys_[b], is_signed);
    });
    for (size_t i = 1; i < order.size(); ++i)
      if (keys_[order[i]] == keys_[order[i - 1]]) {
        const auto& [file, number] = lines_[std::max(order[i], order[i - 1])];
        reject({*file, number, {}}, "the key comes twice");
      }
    out.format = {
        .name = import_.table, .key = import_.key, .dtype = DType::kF32, .width = 0, .states = {}};
    TableContent& content = out.parts.emplace_back();
    const auto count = static_cast<int64_t>(keys_.size());
    content.keys = Array::empty(import_.key, {count});
    for (size_t i = 0; i < order.size(); ++i)
      static_cast<uint64_t*>(content.keys.raw())[i] = keys_[order[i]];
    for (const TextColumn& column : columns_) {
      const auto width = static_cast<int64_t>(column.width);
      Array values = Array::empty(DType::kF32, column.is_list ? Dims{count, width} : Dims{count});
      for (size_t i = 0; i < order.size(); ++i)
        std::copy_n(column.values.data() + order[i] * column.width, column.width,
                    values.data<float>() + i * column.width);
      if (column.name == "weight") {
        out.format.width = width;
        content.weight = std::move(values);
      } else if (column.is_list) {
        out.format.states.push_back(column.name);
        content.states.emplace_back(column.name, std::move(values));
      } else {
        out.format.statistics.push_back(column.name);
        content.statistics.emplace_back(column.name, std::move(values));
      }
    }
    return out;
  }

 private:
  void add_key(const TextLine& line, std::string_view text) {
    keys_.push_back(key_of(line, text, import_.key));
    lines_.emplace_back(&line.file, line.number);
  }

  /// The columns of a header, which the first file defines.
  std::vector<size_t> header_of(const TextLine& line, std::string_view rest) {
    if (take(rest, ',') != "key") reject(line, "the first column is not 'key'");
    std::vector<size_t> out;
    std::vector<TextColumn> found;
    while (!rest.empty()) {
      const std::string name(take(rest, ','));
      const size_t mark = name.rfind('_');
      size_t at = 0;
      const bool is_list =
          mark != std::string::npos &&
          std::from_chars(name.data() + mark + 1, name.data() + name.size(), at).ptr ==
              name.data() + name.size() &&
          mark + 1 < name.size();
      const std::string base = is_list ? name.substr(0, mark) : name;
      if (!found.empty() && is_list && found.back().is_list && found.back().name == base) {
        if (at != found.back().width) reject(line, "'", printable(name), "' is out of order");
        ++found.back().width;
      } else {
        if (is_list && at != 0) reject(line, "'", printable(name), "' is out of order");
        found.push_back({base, 1, is_list});
      }
      out.push_back(found.size() - 1);
    }
    if (found.empty() || found[0].name != "weight" || !found[0].is_list)
      reject(line, "expected the columns key, weight_0, weight_1, …");
    for (const TextColumn& each : found)
      if (each.is_list && each.width != found[0].width)
        reject(line, "'", printable(each.name), "' has ", each.width, " columns, weight has ",
               found[0].width);
    if (columns_.empty()) columns_ = found;
    const bool is_same = std::equal(found.begin(), found.end(), columns_.begin(), columns_.end(),
                                    [](const TextColumn& a, const TextColumn& b) {
                                      return a.name == b.name && a.width == b.width;
                                    });
    if (!is_same) reject(line, "has other columns than the file before");
    return out;
  }

  /// Weights of all widths, and days counted from the oldest row.
  void finish_paddle() {
    TextColumn& weight = columns_.at(0);
    weight.width = 1 + wide_;
    for (size_t i = 0; i < narrow_.size(); ++i) {
      weight.values.push_back(narrow_[i]);
      const bool is_wide = columns_[4].values[i] != 0;
      for (size_t k = 0; k < wide_; ++k)
        weight.values.push_back(is_wide ? wide_rows_[wide_begin_[i] + k] : 0);
    }
    std::vector<float>& days = columns_[3].values;
    const float oldest = days.empty() ? 0 : *std::min_element(days.begin(), days.end());
    for (float& day : days) day -= oldest;
    if (wide_ == 0) columns_.pop_back();
  }

  const TableImport& import_;
  std::vector<uint64_t> keys_;
  std::vector<std::pair<const std::string*, size_t>> lines_;  ///< of the keys
  std::vector<TextColumn> columns_;
  // Of PaddlePaddle's tables.
  size_t wide_ = 0;
  std::vector<float> narrow_, wide_rows_;
  std::vector<size_t> wide_begin_;
};

}  // namespace

StoredTable import_table(const std::vector<std::string>& files, const TableImport& import) {
  TextRows rows(import);
  for (const std::string& file : files)
    if (import.text == TableText::kCsv)
      rows.read_csv(file);
    else if (import.text == TableText::kPaddle)
      rows.read_paddle(file);
    else
      rows.read_tensors(file);
  return rows.table();
}

void export_table(const std::string& path, const StoredTable& table, bool states) {
  struct Place {
    uint64_t order;
    const TableContent* part;
    int64_t row;
  };
  std::vector<Place> places;
  for (const TableContent& part : table.parts)
    for (int64_t row = 0; row < part.keys.size(); ++row)
      places.push_back(
          {tables::ordered(static_cast<const uint64_t*>(part.keys.raw())[row], table.is_signed()),
           &part, row});
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return a.order < b.order; });
  const auto count = static_cast<int64_t>(places.size());
  /// `array_of(part)` in the order of the keys.
  const auto sorted = [&](DType dtype, int64_t width, const auto& array_of) {
    Array out = Array::empty(dtype, width == 0 ? Dims{count} : Dims{count, width});
    const auto bytes = static_cast<size_t>(storage_bytes(dtype, std::max<int64_t>(width, 1)));
    auto* to = static_cast<std::byte*>(out.raw());
    for (const Place& each : places) {
      const Array& from = array_of(*each.part);
      std::memcpy(to,
                  static_cast<const std::byte*>(from.raw()) + static_cast<size_t>(each.row) * bytes,
                  bytes);
      to += bytes;
    }
    return out;
  };
  const tables::TableFormat& format = table.format;
  std::vector<std::pair<std::string, Array>> all;
  all.emplace_back("keys", sorted(format.key, 0, [](const TableContent& part) -> const Array& {
                     return part.keys;
                   }));
  all.emplace_back("weight",
                   sorted(format.dtype, format.width,
                          [](const TableContent& part) -> const Array& { return part.weight; }));
  for (size_t i = 0; states && i < format.states.size(); ++i)
    all.emplace_back(format.states[i], sorted(format.dtype, format.width,
                                              [i](const TableContent& part) -> const Array& {
                                                return part.states.at(i).second;
                                              }));
  for (size_t i = 0; i < format.statistics.size(); ++i)
    all.emplace_back(format.statistics[i],
                     sorted(DType::kF32, 0, [i](const TableContent& part) -> const Array& {
                       return part.statistics.at(i).second;
                     }));
  formats::write_safetensors(path, all);
}

}  // namespace paddle::train
