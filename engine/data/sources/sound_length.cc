// The length of a sound from the header of its file, for batches of similar lengths.

#include <algorithm>

#include "base/files.h"
#include "data/sources/cell_values.h"
#include "formats/sound/sound.h"

namespace paddle::data {

int64_t sound_length(const CsvField& field, std::string_view cell, bool is_content,
                     const SourceLocation& place) {
  try {
    std::shared_ptr<MappedFile> file;
    std::span<const std::byte> content = std::as_bytes(std::span(cell.data(), cell.size()));
    if (!is_content) {
      file = MappedFile::open(path_in_cell(field, cell, place));
      content = file->bytes();
    }
    const formats::SoundHeader header = formats::read_sound_header(content, place.text());
    const double length = static_cast<double>(header.frames) / static_cast<double>(header.rate) *
                          static_cast<double>(field.sample_rate);
    return length < static_cast<double>(field.max_length) ? static_cast<int64_t>(length)
                                                          : field.max_length;
  } catch (const Error&) {
    return 0;  // `read` reports it
  }
}

}  // namespace paddle::data
