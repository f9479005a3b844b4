#pragma once
// Records of nodes and edges in files: lines of CSV, TSV or words, read one after the other in
// bounded memory, and NumPy archives. Used by `build_graph`.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "tensor/tensor.h"

namespace paddle::graph {

enum class Header {
  kAuto,  ///< texts in the first line where the second has numbers
  kYes,
  kNo,
};

/// Lines of cells. Empty lines, and lines that begin with `#`, are passed over. Cells in quotes may
/// hold the delimiter, and quotes that are doubled; a line break ends them in any case.
class LineReader {
 public:
  /// '\0' as delimiter: a comma for .csv, else a tab if the first line has one, else blanks.
  LineReader(const std::string& path, char delimiter, Header header);
  const std::vector<std::string>& names() const { return names_; }  ///< empty without a header
  size_t width() const { return width_; }                           ///< cells of the first line
  /// The next line's cells, valid until the next call. False at the end.
  bool next(std::vector<std::string_view>& cells);
  SourceLocation location() const { return {path_, static_cast<int>(line_), 0}; }

 private:
  bool next_line(std::string_view& line);
  void split(std::string_view line, std::vector<std::string_view>& cells);

  std::string path_;
  std::shared_ptr<MappedFile> file_;
  std::string_view rest_;
  size_t forgotten_ = 0;
  int64_t line_ = 0;
  char delimiter_;
  size_t width_ = 0;
  std::vector<std::string> names_;
  std::vector<std::string> unquoted_;
};

/// The files that a path with `*` and `?` in its last part names, sorted; kData if there are none.
std::vector<std::string> files_of(const std::string& pattern);

/// The unsigned integer that a cell is. kData with the place for anything else.
uint64_t parse_id(std::string_view cell, const SourceLocation& place);
/// Whether all of it is an unsigned integer of 64 bits, in its usual form.
bool is_integer_id(std::string_view cell);

}  // namespace paddle::graph
