#pragma once
// Checks of what a config says about the columns of a CSV file, and the columns of a field.

#include <string>
#include <vector>

#include "data/options.h"

namespace paddle::data {

/// Rejects a header that is a row of data: all of its cells are numbers. It is a header if it
/// counts the columns from 0 (as pandas names them) or the fields name their columns by it.
void check_csv_header(const std::vector<std::string>& names, const std::vector<CsvField>& fields,
                      const SourceLocation& place);
/// Renames columns whose name an earlier one has: the second `x` becomes `x.1`, as pandas reads it.
void tell_apart(std::vector<std::string>& names);
/// The columns of a field, by number. kData, with the file, for a column that is not there.
std::vector<size_t> csv_columns_of(const CsvField& field, const std::vector<std::string>& names,
                                   const std::string& path);
/// Rejects options that would have no effect on the field.
void check_csv_options(const CsvField& field);

}  // namespace paddle::data
