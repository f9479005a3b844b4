#pragma once
// Delimited text (CSV, TSV; RFC 4180): quoted fields, doubled quotes, line breaks in quotes, LF or
// CRLF, an optional byte-order mark. One record is parsed at a time, without copies of fields that
// need none, so that files larger than memory can be mapped and read anywhere.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace paddle::formats {

struct CsvOptions {
  char delimiter = ',';
  char quote = '"';  ///< '\0' for none
};

/// Where a record starts, and its line (from 1; quoted line breaks count).
struct CsvRecord {
  uint64_t offset = 0;
  int64_t line = 0;
};

class CsvParser {
 public:
  /// `text` must outlive the parser; `name` stands in errors.
  CsvParser(std::string_view text, std::string name, CsvOptions options = {});

  /// All records, blank lines left out. Fails on a quote that is never closed.
  std::vector<CsvRecord> index() const;
  /// The fields of the record at `record`. Fields without quotes are views of the text; others
  /// live in `scratch`. Fails on text after a closing quote.
  void fields(const CsvRecord& record, std::vector<std::string_view>& out,
              std::string& scratch) const;
  const std::string& name() const { return name_; }

 private:
  size_t record_end(size_t at, int64_t line) const;
  std::string_view text_;
  std::string name_;
  CsvOptions options_;
};

/// A decimal number, "nan" or "inf", surrounding blanks allowed; false if the text is none.
bool parse_number(std::string_view text, double& out);
bool parse_integer(std::string_view text, int64_t& out);

/// The field as CSV needs it, quoted where it must be.
std::string csv_quote(std::string_view field, const CsvOptions& options = {});

}  // namespace paddle::formats
