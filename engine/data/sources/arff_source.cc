// Records of Weka's ARFF files: declared attributes (numeric, nominal, string, date), then a record
// a line, dense or sparse. A missing value (?) is an empty cell, a date the seconds since 1970. The
// file stays mapped; of each record only the place is kept.

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>

#include "base/files.h"
#include "data/dataset_kind.h"
#include "formats/compressed/compressed.h"
#include "formats/csv.h"

namespace paddle::data {
namespace {

[[noreturn]] void reject_arff(const SourceLocation& place, const std::string& why) {
  throw Error(ErrorCode::kData, why, place);
}

std::string excerpt(std::string_view text) { return str("'", printable(text.substr(0, 40)), "'"); }

bool is_blank(char c) { return c == ' ' || c == '\t'; }

void skip_blanks(std::string_view& rest) {
  while (!rest.empty() && is_blank(rest[0])) rest.remove_prefix(1);
}

/// One word of a line, plain or in quotes.
struct ArffWord {
  std::string text;
  bool quoted = false;
  bool is_missing() const { return !quoted && text == "?"; }
};

/// Takes a word from the front of a line. A plain word ends before a blank or one of `ends`.
ArffWord take_word(std::string_view& rest, std::string_view ends, const SourceLocation& place) {
  ArffWord word;
  if (!rest.empty() && (rest[0] == '\'' || rest[0] == '"')) {
    const char quote = rest[0];
    const std::string_view begin = rest;
    word.quoted = true;
    for (rest.remove_prefix(1); !rest.empty() && rest[0] != quote; rest.remove_prefix(1)) {
      if (rest[0] != '\\' || rest.size() == 1) {
        word.text += rest[0];
        continue;
      }
      rest.remove_prefix(1);
      word.text += rest[0] == 'n' ? '\n' : rest[0] == 't' ? '\t' : rest[0] == 'r' ? '\r' : rest[0];
    }
    if (rest.empty()) reject_arff(place, str("the quote of ", excerpt(begin), " is not closed"));
    rest.remove_prefix(1);
    return word;
  }
  while (!rest.empty() && !is_blank(rest[0]) && ends.find(rest[0]) == ends.npos) {
    word.text += rest[0];
    rest.remove_prefix(1);
  }
  return word;
}

/// A date's format in the letters of Java's SimpleDateFormat: numbers of fixed width, and
/// characters between them.
class DateFormat {
 public:
  DateFormat(std::string_view format, const SourceLocation& place) {
    static const std::map<std::string_view, char> kNumbers = {
        {"yyyy", 'y'}, {"MM", 'M'}, {"dd", 'd'}, {"HH", 'H'},
        {"mm", 'm'},   {"ss", 's'}, {"SSS", 'S'}};
    for (size_t at = 0; at < format.size();) {
      if (format[at] == '\'') {
        const size_t end = std::min(format.find('\'', at + 1), format.size());
        for (const char c : format.substr(at + 1, end - at - 1)) pieces_.push_back({0, 1, c});
        at = std::min(end + 1, format.size());
        continue;
      }
      size_t end = at + 1;
      while (end < format.size() && format[end] == format[at]) ++end;
      const std::string_view run = format.substr(at, end - at);
      if (const auto number = kNumbers.find(run); number != kNumbers.end())
        pieces_.push_back({number->second, run.size(), 0});
      else if (std::isalpha(static_cast<unsigned char>(run[0])) != 0)
        reject_arff(place, str("date format ", excerpt(format), ": ", excerpt(run),
                               " is not among yyyy, MM, dd, HH, mm, ss, SSS"));
      else
        for (const char c : run) pieces_.push_back({0, 1, c});
      at = end;
    }
  }

  /// Seconds since 1970, in UTC. False for text of another format.
  bool parse(std::string_view text, double& seconds) const {
    int64_t year = 1970, month = 1, day = 1, hour = 0, minute = 0, second = 0, millisecond = 0;
    for (const Piece& piece : pieces_) {
      const std::string_view part = text.substr(0, piece.width);
      if (part.size() < piece.width) return false;
      text.remove_prefix(piece.width);
      if (piece.number == 0) {
        if (part[0] != piece.literal) return false;
        continue;
      }
      int64_t value = 0;
      for (const char c : part) {
        if (c < '0' || c > '9') return false;
        value = value * 10 + (c - '0');
      }
      (piece.number == 'y'   ? year
       : piece.number == 'M' ? month
       : piece.number == 'd' ? day
       : piece.number == 'H' ? hour
       : piece.number == 'm' ? minute
       : piece.number == 's' ? second
                             : millisecond) = value;
    }
    const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(year)),
                                           std::chrono::month(static_cast<unsigned>(month)),
                                           std::chrono::day(static_cast<unsigned>(day)));
    if (!text.empty() || !date.ok() || hour > 23 || minute > 59 || second > 60) return false;
    const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
    seconds = static_cast<double>(((days * 24 + hour) * 60 + minute) * 60 + second) +
              static_cast<double>(millisecond) / 1000;
    return true;
  }

 private:
  struct Piece {
    char number;  ///< 0: a literal
    size_t width;
    char literal;
  };
  std::vector<Piece> pieces_;
};

class ArffSource final : public RecordSource {
 public:
  explicit ArffSource(const std::string& path) : path_(path), file_(formats::open_data_file(path)) {
    std::string_view text = file_->view();
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    bool in_data = false;
    int64_t line = 0;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      const std::string_view content = trim(text.substr(at, end - at));
      ++line;
      at = end + 1;
      if (content.empty() || content[0] == '%') continue;
      if (in_data)
        records_.push_back({content, line});
      else
        in_data = read_declaration(content, {path_, static_cast<int>(line)});
    }
    if (!in_data)
      reject_arff({path_, static_cast<int>(line)}, "expected @data, found the end of the file");
    if (records_.empty()) fail(ErrorCode::kData, path_, ": the file has no records after @data");
    find_missing();
  }

  int64_t size() const override { return static_cast<int64_t>(records_.size()); }
  void cells(int64_t record, std::vector<std::string_view>& out,
             std::string& scratch) const override {
    std::vector<ArffWord> row;
    read_row(record, row);
    scratch.clear();
    std::vector<size_t> ends;
    for (size_t c = 0; c < row.size(); ++c) {
      append_cell(attributes_[c], names_[c], row[c], location(record), scratch);
      ends.push_back(scratch.size());
    }
    split_cells(scratch, ends, out);
  }
  SourceLocation location(int64_t record) const override {
    return {path_, static_cast<int>(records_[static_cast<size_t>(record)].line)};
  }
  std::vector<std::string> paths() const override { return {path_}; }
  ColumnKind column_kind(size_t column) const override {
    switch (attributes_[column].type) {
      case Type::kNominal:
        return ColumnKind::kCategorical;
      case Type::kString:
        return ColumnKind::kText;
      case Type::kNumeric:
      case Type::kDate:
        break;
    }
    return ColumnKind::kNumeric;
  }
  std::vector<std::string> declared_values(size_t column) const override {
    std::vector<std::string> out = attributes_[column].values;
    if (!out.empty() && attributes_[column].has_missing) out.emplace_back();
    return out;
  }

 private:
  enum class Type { kNumeric, kNominal, kString, kDate };
  struct Attribute {
    Type type = Type::kNumeric;
    std::vector<std::string> values = {};           ///< nominal: in their order
    std::set<std::string, std::less<>> known = {};  ///< and for look-ups
    std::optional<DateFormat> format = {};          ///< of a date
    bool has_missing = false;                       ///< nominal: somewhere
  };
  struct Record {
    std::string_view text;
    int64_t line = 0;
  };

  /// A line of the header; true for @data.
  bool read_declaration(std::string_view content, const SourceLocation& place) {
    const std::string keyword = lowercase(take_word(content, "", place).text);
    skip_blanks(content);
    if (keyword == "@relation") return false;
    if (keyword == "@attribute") {
      read_attribute(content, place);
      return false;
    }
    if (keyword != "@data")
      reject_arff(place, str("expected @relation, @attribute or @data, found ", excerpt(keyword)));
    if (names_.empty()) reject_arff(place, "@data without an @attribute before it");
    return true;
  }

  void read_attribute(std::string_view content, const SourceLocation& place) {
    const std::string name = take_word(content, "{", place).text;
    if (name.empty()) reject_arff(place, "@attribute without a name");
    if (!seen_.insert(name).second)
      reject_arff(place, str("attribute ", excerpt(name), " is declared twice"));
    skip_blanks(content);
    Attribute attribute;
    if (content.starts_with('{')) {
      attribute.type = Type::kNominal;
      read_values(name, content, place, attribute);
    } else {
      const std::string type = lowercase(take_word(content, "", place).text);
      if (type == "string") {
        attribute.type = Type::kString;
      } else if (type == "date") {
        skip_blanks(content);
        const std::string format = take_word(content, "", place).text;
        attribute.type = Type::kDate;
        attribute.format.emplace(format.empty() ? "yyyy-MM-dd'T'HH:mm:ss" : format, place);
      } else if (type != "numeric" && type != "real" && type != "integer") {
        reject_arff(place, str("attribute ", excerpt(name), ": the type ", excerpt(type),
                               " is not among numeric, real, integer, string, date and {values}"));
      }
    }
    skip_blanks(content);
    if (!content.empty() && content[0] != '%')
      reject_arff(place, str("attribute ", excerpt(name), ": unexpected ", excerpt(content),
                             " after its type"));
    names_.push_back(name);
    attributes_.push_back(std::move(attribute));
  }

  static void read_values(const std::string& name, std::string_view& content,
                          const SourceLocation& place, Attribute& attribute) {
    content.remove_prefix(1);
    while (true) {
      skip_blanks(content);
      const ArffWord value = take_word(content, ",}", place);
      skip_blanks(content);
      if (content.empty())
        reject_arff(place, str("attribute ", excerpt(name), ": the list of values is not closed"));
      if (value.text.empty() && !value.quoted)
        reject_arff(place, str("attribute ", excerpt(name), ": a value is empty"));
      if (!attribute.known.insert(value.text).second)
        reject_arff(place, str("attribute ", excerpt(name), ": the value ", excerpt(value.text),
                               " is listed twice"));
      attribute.values.push_back(value.text);
      // Blanks alone separate values, too.
      if (content[0] == '}') break;
      if (content[0] == ',') content.remove_prefix(1);
    }
    content.remove_prefix(1);
  }

  /// The words of a record, one per attribute.
  void read_row(int64_t record, std::vector<ArffWord>& row) const {
    const SourceLocation place = location(record);
    std::string_view rest = records_[static_cast<size_t>(record)].text;
    row.clear();
    if (rest[0] == '{') return read_sparse(rest, place, row);
    while (!rest.empty()) {
      if (rest[0] == '{') reject_arff(place, "weights of records are not supported");
      const ArffWord word = take_word(rest, ",", place);
      if (word.text.empty() && !word.quoted)
        reject_arff(place, str("value ", row.size() + 1, " is empty; a missing value is ?"));
      if (row.size() == names_.size())
        reject_arff(place, str("this record has more than ", names_.size(), " values"));
      row.push_back(word);
      skip_blanks(rest);
      if (rest.empty() || rest[0] == '%') break;
      if (rest[0] == ',') {
        rest.remove_prefix(1);
        skip_blanks(rest);
        if (rest.empty())
          reject_arff(place, str("value ", row.size() + 1, " is empty; a missing value is ?"));
      }
    }
    if (row.size() != names_.size())
      reject_arff(place,
                  str("this record has ", row.size(), " values, ", names_.size(), " are declared"));
  }

  /// A sparse record: values that it does not state are zero, of nominal attributes the first one,
  /// of strings empty, and of dates missing.
  void read_sparse(std::string_view rest, const SourceLocation& place,
                   std::vector<ArffWord>& row) const {
    for (const Attribute& attribute : attributes_)
      row.push_back(attribute.type == Type::kNominal  ? ArffWord{attribute.values[0], true}
                    : attribute.type == Type::kString ? ArffWord{"", true}
                    : attribute.type == Type::kDate   ? ArffWord{"?", false}
                                                      : ArffWord{"0", false});
    for (auto& [column, word] : stated_values(rest, place)) row[column] = std::move(word);
  }

  /// The columns and values of `{index value, …}`.
  std::vector<std::pair<size_t, ArffWord>> stated_values(std::string_view rest,
                                                         const SourceLocation& place) const {
    std::vector<std::pair<size_t, ArffWord>> out;
    std::set<int64_t> stated;
    rest.remove_prefix(1);
    skip_blanks(rest);
    while (!rest.starts_with('}')) {
      if (rest.empty()) reject_arff(place, "the sparse record is not closed by }");
      const std::string number = take_word(rest, ",}", place).text;
      int64_t index = 0;
      if (!formats::parse_integer(number, index) || index < 0 ||
          index >= static_cast<int64_t>(names_.size()))
        reject_arff(place, str("expected the number of an attribute, 0 to ", names_.size() - 1,
                               ", found ", excerpt(number)));
      if (!stated.insert(index).second)
        reject_arff(place, str("attribute ", index, " is given twice"));
      skip_blanks(rest);
      const ArffWord word = take_word(rest, ",}", place);
      if (word.text.empty() && !word.quoted)
        reject_arff(place, str("attribute ", index, " has no value"));
      out.emplace_back(static_cast<size_t>(index), word);
      skip_blanks(rest);
      if (rest.starts_with(',')) {
        rest.remove_prefix(1);
        skip_blanks(rest);
      }
    }
    rest.remove_prefix(1);
    skip_blanks(rest);
    if (rest.starts_with(',') || rest.starts_with('{'))
      reject_arff(place, "weights of records are not supported");
    if (!rest.empty() && rest[0] != '%')
      reject_arff(place, str("unexpected ", excerpt(rest), " after the sparse record"));
    return out;
  }

  static void append_cell(const Attribute& attribute, const std::string& name, const ArffWord& word,
                          const SourceLocation& place, std::string& out) {
    if (word.is_missing()) return;
    if (attribute.type == Type::kNominal && !attribute.known.contains(word.text))
      reject_arff(place, str("attribute ", excerpt(name), " does not declare the value ",
                             excerpt(word.text)));
    if (attribute.type != Type::kDate) {
      out += word.text;
      return;
    }
    double seconds = 0;
    if (!attribute.format->parse(word.text, seconds))
      reject_arff(place, str("attribute ", excerpt(name), ": ", excerpt(word.text),
                             " is not a date of its format"));
    out += format_double(seconds);
  }

  /// Notes the nominal attributes that lack a value somewhere. Records that cannot be read are
  /// left to `cells`.
  void find_missing() {
    std::vector<ArffWord> row;
    for (size_t i = 0; i < records_.size(); ++i) {
      if (records_[i].text.find('?') == std::string_view::npos) continue;
      try {
        if (records_[i].text[0] == '{') {
          const SourceLocation place = location(static_cast<int64_t>(i));
          for (const auto& [column, word] : stated_values(records_[i].text, place))
            if (word.is_missing()) attributes_[column].has_missing = true;
          continue;
        }
        read_row(static_cast<int64_t>(i), row);
      } catch (const Error&) {
        continue;
      }
      for (size_t c = 0; c < row.size(); ++c)
        if (row[c].is_missing()) attributes_[c].has_missing = true;
    }
  }

  std::string path_;
  std::shared_ptr<MappedFile> file_;
  std::vector<Attribute> attributes_;  ///< as names_
  std::set<std::string> seen_;
  std::vector<Record> records_;
};

}  // namespace

DatasetKind arff_kind() {
  return make_record_kind("arff", "Weka's ARFF files; * and ? match several", {".arff"},
                          [](const CsvFileOptions&, const std::string& path) {
                            return std::make_unique<ArffSource>(path);
                          });
}

}  // namespace paddle::data
