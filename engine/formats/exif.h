#pragma once
// The orientation of an image from EXIF data (TIFF structure, EXIF 2.32, tag 0x0112).

#include <cstddef>
#include <span>

namespace paddle::formats {

/// 1 to 8 as in EXIF; 1 (upright) if absent or damaged. `tiff` starts with the byte-order mark,
/// after "Exif\0\0" of a JPEG segment.
int exif_orientation(std::span<const std::byte> tiff);

}  // namespace paddle::formats
