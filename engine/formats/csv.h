#pragma once
// Delimited text (CSV, TSV; RFC 4180): quoted fields, doubled quotes, line breaks in quotes, LF or
// CRLF, optional byte-order mark. Parses one record at a time without copying plain fields, so that
// files larger than memory can be mapped and read at random.

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

/// Offset and line number (from 1, counting quoted line breaks) of a record.
struct CsvRecord {
  uint64_t offset = 0;
  int64_t line = 0;
};

class CsvParser {
 public:
  /// `text` must outlive the parser; `name` is used in errors.
  CsvParser(std::string_view text, std::string name, CsvOptions options = {});

  /// All records except blank lines. Fails on an unterminated quote.
  std::vector<CsvRecord> index() const;
  /// The fields of a record. Unquoted fields are views of the text; others are stored in `scratch`.
  /// Fails on text after a closing quote.
  void fields(const CsvRecord& record, std::vector<std::string_view>& out,
              std::string& scratch) const;
  const std::string& name() const { return name_; }

 private:
  size_t record_end(size_t at, int64_t line) const;
  std::string_view text_;
  std::string name_;
  CsvOptions options_;
};

/// Parses a decimal number, "nan" or "inf" with surrounding blanks; false if the text is not one.
bool parse_number(std::string_view text, double& out);
bool parse_integer(std::string_view text, int64_t& out);

/// Quotes the field if CSV requires it.
std::string csv_quote(std::string_view field, const CsvOptions& options = {});

}  // namespace paddle::formats
