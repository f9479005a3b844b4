#pragma once
// Cells that are more than a number, a category or a text: images, masks, sounds, lists of labels
// and of numbers.

#include <string>
#include <string_view>
#include <vector>

#include "data/options.h"
#include "formats/image.h"

namespace paddle::data {

bool is_cell_kind(ColumnKind kind);
DType cell_dtype(const CsvField& field);
/// kConfig for options that do not suit the kind, or several columns.
void check_cell_field(const CsvField& field, size_t columns);
/// Type, shape and classes of the field; false if it is of another kind. `vocabulary`: of labels.
bool describe_cell_field(const CsvField& field, const Vocabulary& vocabulary, Field& out);

/// The file that a cell names. kData for a cell without a path.
std::string path_in_cell(const CsvField& field, std::string_view cell, const SourceLocation& place);
/// Reads an image, a mask or a sound: the cell is its path, or with `is_content` the file itself.
/// kData for what cannot be decoded. Gives a warning about a file that was decoded nevertheless.
std::string read_file_cell(const CsvField& field, std::string_view cell, bool is_content,
                           const SourceLocation& place, Value& out);
/// Rejects a cell as `read_file_cell` does, without reading the file: no path, or no file there.
void check_file_cell(const CsvField& field, std::string_view cell, bool is_content,
                     const SourceLocation& place);
/// The samples of a sound at the field's rate, at most `max_length`, as the header of its file
/// states; 0 where it does not.
int64_t sound_length(const CsvField& field, std::string_view cell, bool is_content,
                     const SourceLocation& place);
/// Labels as 0 and 1. kData for one that the vocabulary lacks.
void read_labels(const CsvField& field, const Vocabulary& vocabulary, std::string_view cell,
                 Value& out);
/// Why a cell cannot be read as an integer.
std::string not_an_integer(std::string_view cell);
/// Numbers of the field's shape. kData for other counts and other text.
void read_numbers(const CsvField& field, DType dtype, std::string_view cell, char decimal,
                  Value& out);

/// Keys of 64 bits, at most `most` of the list; the bytes of `out` are those of int64 or uint64.
/// kData for what is not an integer of the type.
void read_keys(const CsvField& field, DType dtype, std::string_view cell, Value& out);
/// About how many keys a cell holds.
int64_t keys_in(const CsvField& field, std::string_view cell);

/// The items of a cell: of a JSON list, or what the separator separates.
std::vector<std::string> list_of(std::string_view cell, const std::string& separator);
/// An image as [channels, height, width].
void store_image(const formats::Image& image, Value& out);

}  // namespace paddle::data
