#include "recipes/csv_profile.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "data/sources/csv_columns.h"
#include "data/tokens.h"
#include "data/vocabulary.h"
#include "formats/compressed/compressed.h"
#include "formats/csv.h"
#include "formats/image.h"
#include "formats/sound/sound.h"
#include "recipes/recipes.h"

namespace paddle::recipes {
namespace {

constexpr size_t kMaxRecords = 200000, kSampled = 100;

using Cells = std::vector<std::string_view>;

/// The records of a file in memory.
class Table {
 public:
  Table(const std::string& path, formats::CsvOptions options)
      : file_(opened(path)), parser_(file_->view(), path, options), records_(parser_.index()) {}
  size_t size() const { return records_.size(); }
  int64_t line(size_t record) const { return records_[record].line; }
  void cells(size_t record, Cells& out, std::string& scratch) const {
    parser_.fields(records_[record], out, scratch);
  }

 private:
  static std::shared_ptr<MappedFile> opened(const std::string& path) {
    if (is_directory(path)) fail(ErrorCode::kData, path, ": expected a CSV file");
    return formats::open_data_file(path);
  }
  std::shared_ptr<MappedFile> file_;
  formats::CsvParser parser_;
  std::vector<formats::CsvRecord> records_;
};

/// The number of cells in each of the first records; 0 where they differ or cannot be read.
size_t columns_with(const std::string& path, formats::CsvOptions options) {
  try {
    const Table table(path, options);
    Cells cells;
    std::string scratch;
    size_t columns = 0;
    for (size_t r = 0; r < std::min(table.size(), kSampled); ++r) {
      table.cells(r, cells, scratch);
      if (r > 0 && cells.size() != columns) return 0;
      columns = cells.size();
    }
    return columns;
  } catch (const Error&) {
    return 0;
  }
}

std::string word_of(char delimiter) {
  return delimiter == '\t' ? "tab" : std::string(1, delimiter);
}

/// Finds what separates the columns, and whether quotes are ordinary characters.
void find_format(const RecipeRequest& request, CsvProfile& profile) {
  const std::string& path = request.data;
  data::CsvFileOptions& format = profile.format;
  format.path = path;
  const bool tabs = formats::has_tab_ending(path);
  const char usual = tabs ? '\t' : ',';
  std::vector<char> marks = {usual, ',', ';', '\t', '|'};
  if (!request.delimiter.empty()) {
    const std::string& given = request.delimiter;
    if (given.size() != 1 && given != "tab" && given != "\\t")
      fail(ErrorCode::kUsage, "--delimiter: expected one character or tab, found '", given, "'");
    marks = {given.size() == 1 ? given[0] : '\t'};
  }
  char found = marks[0], quote = '"';
  size_t most = 0;
  for (const char each : {'"', '\0'}) {
    for (const char mark : marks) {
      const size_t columns = columns_with(path, {.delimiter = mark, .quote = each});
      // The usual mark is right where it gives columns at all.
      if (columns > most && (most < 2 || found != usual))
        most = columns, found = mark, quote = each;
    }
    if (most >= 2) break;
  }
  if (found != usual || !request.delimiter.empty()) {
    format.delimiter = found;
    if (request.delimiter.empty())
      profile.notes.push_back(str("columns are separated by ", found == '\t' ? "tabs" : "'",
                                  found == '\t' ? "" : word_of(found), found == '\t' ? "" : "'"));
  }
  format.quote = quote;
  if (quote == '\0') profile.notes.push_back("quotes are ordinary characters (quote: none)");
}

/// A number with signs around it: "$1,200", "12 %", "1.234,5"; a column of them holds amounts.
bool is_dressed_number(std::string_view cell, char decimal) {
  std::string bare;
  cell = trim(cell);
  static constexpr std::string_view kSigns[] = {"$",   "€",   "£",   "¥", "%",
                                                "USD", "EUR", "GBP", " ", "\u00a0"};
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view sign : kSigns) {
      if (cell.starts_with(sign)) cell.remove_prefix(sign.size()), found = true;
      if (cell.ends_with(sign)) cell.remove_suffix(sign.size()), found = true;
    }
  }
  if (cell.empty()) return false;
  // Thousands in groups of three, and at most one decimal mark after them.
  for (const char thousands : {',', '.', ' ', '\'', '\0'}) {
    bare.clear();
    size_t digits = 0, groups = 0;
    bool whole = true, fits = true;
    for (size_t i = 0; i < cell.size() && fits; ++i) {
      const char c = cell[i];
      if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
        bare += c, ++digits;
      } else if (c == thousands && whole && digits > 0 && digits <= 3 &&
                 (groups == 0 || digits == 3)) {
        ++groups, digits = 0;
      } else if ((c == '.' || c == ',') && c != thousands && whole) {
        fits = groups == 0 || digits == 3;
        bare += '.', whole = false;
      } else {
        fits = (c == '-' || c == '+') && i == 0;
        bare += c;
      }
    }
    double ignored = 0;
    if (fits && (!whole || groups == 0 || digits == 3) && formats::parse_number(bare, ignored))
      return true;
  }
  double ignored = 0;
  return data::cell_number(cell, decimal == '.' ? ',' : '.', ignored);
}

/// Takes the header, or numbers the columns of a file that has none.
size_t read_header(const Table& table, CsvProfile& profile) {
  Cells cells;
  std::string scratch;
  table.cells(0, cells, scratch);
  const std::string& path = profile.format.path;
  double ignored = 0;
  const bool numbers = std::all_of(cells.begin(), cells.end(), [&](std::string_view cell) {
    return formats::parse_number(cell, ignored);
  });
  const bool files = std::any_of(cells.begin(), cells.end(), [](std::string_view cell) {
    const std::string name = data::lowercase(cell);
    return formats::has_image_ending(name) || formats::has_sound_ending(name);
  });
  if (cells.size() < 2)
    fail(ErrorCode::kData, path, ":1: expected at least two columns, found '",
         data::printable(cells.empty() ? "" : cells[0].substr(0, 40)),
         "' only; --delimiter names what separates them");
  std::vector<std::string> names;
  for (const std::string_view cell : cells) names.emplace_back(trim(cell));
  if (numbers || files) {
    profile.format.header = false;
    for (size_t c = 0; c < cells.size(); ++c) names[c] = std::to_string(c);
    profile.notes.push_back(str("there is no header: columns are called ", join(names, ", ")));
  } else {
    const std::vector<std::string> before = names;
    data::tell_apart(names);
    for (size_t c = 0; c < names.size(); ++c)
      if (names[c] != before[c])
        profile.notes.push_back(str("duplicate column '", before[c], "': column ", c + 1,
                                    " is called '", names[c], "'"));
  }
  for (size_t c = 0; c < names.size(); ++c) {
    Column& column = profile.columns.emplace_back();
    column.name = names[c];
    column.number = c;
  }
  return profile.format.header ? 1 : 0;
}

/// A column of 0, 1, 2, … without a name, or with the one that pandas gives it.
bool is_index(const Column& column) {
  return column.name.empty() || column.name.starts_with("Unnamed: ");
}

class Gathering {
 public:
  explicit Gathering(CsvProfile& profile) : profile_(profile), times_(profile.columns.size()) {
    before_.resize(profile.columns.size());
    dressed_.resize(profile.columns.size());
    others_.resize(profile.columns.size());
  }
  void add(const Cells& cells, int64_t line) {
    for (Column& column : profile_.columns) add(column, cells[column.number], line);
  }
  void finish() {
    for (Column& column : profile_.columns) {
      const size_t c = column.number;
      column.time = times_[c].form();
      if (column.is_number && column.values.empty()) column.is_number = false;  // nothing but gaps
      if (!column.is_number && dressed_[c] && !others_[c] && column.time == data::TimeForm::kNone)
        fail(ErrorCode::kData, profile_.format.path, ":", dressed_[c]->line, ": column '",
             column.name, "': '", data::printable(dressed_[c]->text),
             "' is a number with a currency, a percent sign, ",
             "thousands separators or another decimal mark; write plain numbers");
      if (!column.is_number && counts_number(c) && column.time == data::TimeForm::kNone)
        profile_.notes.push_back(str("'", column.name, "' is taken as categories: line ",
                                     column.text->line, " has '",
                                     data::printable(column.text->text), "'"));
    }
  }

 private:
  bool counts_number(size_t c) const { return numbers_.contains(c); }

  void add(Column& column, std::string_view cell, int64_t line) {
    const size_t c = column.number;
    column.bytes += static_cast<int64_t>(cell.size());
    double number = 0;
    const bool is_number = data::cell_number(cell, profile_.format.decimal, number);
    if (data::is_missing(cell) || (is_number && std::isnan(number))) {
      column.has_missing = true;
      return;
    }
    if (is_number) {
      numbers_.insert(c);
      column.has_fraction =
          column.has_fraction || cell.find(profile_.format.decimal) != std::string_view::npos;
    } else {
      column.is_number = false;
      const OddCell odd{std::string(cell.substr(0, 40)), line};
      if (!column.text) column.text = odd;
      if (!is_dressed_number(cell, profile_.format.decimal))
        others_[c] = true;
      else if (!dressed_[c])
        dressed_[c] = odd;
    }
    if (column.values.size() <= kMaxValues) ++column.values[std::string(cell)];
    times_[c].observe(cell);
    note_order(column, cell);
  }

  void note_order(Column& column, std::string_view cell) {
    const auto moment = data::parse_time(cell, times_[column.number].form());
    auto& before = before_[column.number];
    if (moment && before) {
      column.rises = column.rises && *moment >= *before;
      column.falls = column.falls && *moment <= *before;
    }
    before = moment;
  }

  CsvProfile& profile_;
  std::vector<data::TimeFormDetector> times_;
  std::vector<std::optional<double>> before_;
  std::vector<std::optional<OddCell>> dressed_;
  std::vector<bool> others_;
  std::set<size_t> numbers_;  ///< columns with some
};

/// "1,000": a number with thousands separators as well as one with a decimal comma.
bool may_be_thousands(std::string_view cell) {
  cell = trim(cell);
  if (cell.starts_with('-') || cell.starts_with('+')) cell.remove_prefix(1);
  const size_t comma = cell.find(',');
  return comma != std::string_view::npos && comma >= 1 && comma <= 3 && cell.size() == comma + 4 &&
         !cell.starts_with("0,");
}

/// The decimal mark: a comma where more columns are numbers with it than with a point.
char find_decimal(const Table& table, size_t first, size_t columns) {
  std::vector<bool> points(columns, true), commas(columns, true), marked(columns);
  Cells cells;
  std::string scratch;
  for (size_t r = first; r < std::min(table.size(), kMaxRecords); ++r) {
    table.cells(r, cells, scratch);
    for (size_t c = 0; c < std::min(columns, cells.size()); ++c) {
      if (data::is_missing(cells[c])) continue;
      double ignored = 0;
      points[c] = points[c] && data::cell_number(cells[c], '.', ignored);
      commas[c] = commas[c] && data::cell_number(cells[c], ',', ignored);
      marked[c] = marked[c] ||
                  (cells[c].find(',') != std::string_view::npos && !may_be_thousands(cells[c]));
    }
  }
  int balance = 0;
  for (size_t c = 0; c < columns; ++c)
    balance += (commas[c] && marked[c] ? 1 : 0) - (points[c] && !commas[c] ? 1 : 0);
  return balance > 0 ? ',' : '.';
}

}  // namespace

size_t CsvProfile::column(const std::string& name, const char* option) const {
  std::vector<std::string> names;
  for (size_t c = 0; c < columns.size(); ++c) {
    if (columns[c].name == name) return c;
    names.push_back(columns[c].name);
  }
  fail(ErrorCode::kUsage, option, ": there is no column '", name, "'", did_you_mean(name, names),
       "; there are: ", join(names, ", "));
}

namespace {

std::vector<std::string> format_keys(const data::CsvFileOptions& format) {
  std::vector<std::string> out;
  if (format.delimiter != '\0') out.push_back("delimiter: \"" + word_of(format.delimiter) + "\"");
  if (format.decimal != '.') out.push_back(str("decimal: \"", format.decimal, "\""));
  if (format.quote == '\0') out.emplace_back("quote: none");
  if (!format.header) out.emplace_back("header: false");
  return out;
}

}  // namespace

std::string CsvProfile::block_keys() const {
  std::string out;
  for (const std::string& key : format_keys(format)) out += "\n    " + key;
  return out;
}

std::string CsvProfile::flow_keys() const {
  std::string out;
  for (const std::string& key : format_keys(format)) out += ", " + key;
  return out;
}

CsvProfile inspect_csv(const RecipeRequest& request) {
  CsvProfile profile;
  find_format(request, profile);
  const std::string& path = request.data;
  const char delimiter = profile.format.delimiter != '\0' ? profile.format.delimiter
                         : formats::has_tab_ending(path)  ? '\t'
                                                          : ',';
  const Table table(path, {.delimiter = delimiter, .quote = profile.format.quote});
  if (table.size() == 0) fail(ErrorCode::kData, path, ": the file is empty");
  const size_t first = read_header(table, profile);
  if (table.size() - first < 2)
    fail(ErrorCode::kData, path, ": expected a header and some rows, found ",
         table.size() - first == 1 ? "1 row" : "no rows");
  profile.format.decimal = find_decimal(table, first, profile.columns.size());
  if (profile.format.decimal == ',') {
    profile.notes.emplace_back("numbers have decimal commas");
    profile.format.delimiter = delimiter;
  }
  Gathering gathering(profile);
  Cells cells;
  std::string scratch;
  const size_t columns = profile.columns.size();
  for (size_t r = first; r < table.size(); ++r) {  // all rows: a class may come late
    table.cells(r, cells, scratch);
    if (cells.size() != columns)
      fail(ErrorCode::kData, path, ":", table.line(r), ": expected ", columns, " cells, found ",
           cells.size());
    gathering.add(cells, table.line(r));
  }
  gathering.finish();
  profile.rows = static_cast<int64_t>(table.size() - first);
  std::erase_if(profile.columns, [&](const Column& column) {
    if (!profile.format.header || !is_index(column)) return false;
    profile.notes.push_back(
        column.name.empty() ? str("column ", column.number + 1,
                                  " has no name (an index written by pandas?); left out")
                            : str("'", column.name, "' is an index written by pandas; left out"));
    return true;
  });
  if (profile.columns.size() < 2)
    fail(ErrorCode::kData, path, ":1: expected at least two columns with names, found ",
         profile.columns.size());
  return profile;
}

std::vector<std::string> cells_of(const CsvProfile& profile, const Column& column) {
  const std::string& path = profile.format.path;
  const char delimiter = profile.format.delimiter != '\0' ? profile.format.delimiter
                         : formats::has_tab_ending(path)  ? '\t'
                                                          : ',';
  const Table table(path, {.delimiter = delimiter, .quote = profile.format.quote});
  std::vector<std::string> out;
  Cells cells;
  std::string scratch;
  for (size_t r = profile.format.header ? 1 : 0; r < std::min(table.size(), kMaxRecords); ++r) {
    table.cells(r, cells, scratch);
    if (column.number < cells.size()) out.emplace_back(cells[column.number]);
  }
  return out;
}

bool is_time(const Column& column) {
  using data::TimeForm;
  if (column.time != TimeForm::kNone && column.time != TimeForm::kNumber) {
    // Plain numbers of eight digits, such as article numbers, are dates only by their name.
    if (!column.is_number) return true;
  } else if (column.time == TimeForm::kNone) {
    return false;
  }
  const std::string name = data::lowercase(column.name.substr(0, column.name.find(':')));
  static constexpr std::array<std::string_view, 9> kNames = {
      "time", "timestamp", "date", "datetime", "ds", "unix_timestamp", "epoch", "ts", "created_at"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

}  // namespace paddle::recipes
