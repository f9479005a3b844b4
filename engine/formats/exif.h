#pragma once
// The orientation of a picture from its EXIF data (TIFF structure, EXIF 2.32, tag 0x0112).

#include <cstddef>
#include <span>

namespace paddle::formats {

/// 1 to 8 as EXIF numbers them; 1 (upright) if there is none or the data is damaged. `tiff` begins
/// with the byte order mark, after the "Exif\0\0" of a JPEG segment.
int exif_orientation(std::span<const std::byte> tiff);

}  // namespace paddle::formats
