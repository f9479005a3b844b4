// TIFF, WebP and BMP against the pixels that Pillow reads (make_images.py).

#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "formats/image.h"
#include "formats/npz.h"

namespace paddle::formats {
namespace {

const std::string kFolder = "tests/formats/data/";

std::span<const std::byte> content_of(const std::string& text) {
  return std::as_bytes(std::span<const char>(text));
}

std::string error_of(const std::string& content, SampleDepth depth = SampleDepth::kReduced) {
  try {
    decode_image(content_of(content), 3, "name", depth);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kData) << error.what();
    EXPECT_EQ(error.message().find("name: "), 0u) << error.what();
    EXPECT_EQ(error.message().find('\n'), std::string::npos) << error.what();
    return error.message();
  }
}

/// The file with other bytes from a place on.
std::string patched(std::string content, size_t at, const std::string& with) {
  return content.replace(at, with.size(), with);
}

std::string little(uint32_t value, size_t bytes) {
  std::string out;
  for (size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

/// The place of a tag in the directory of a little-endian TIFF.
size_t entry_of(const std::string& tiff, uint32_t tag) {
  const auto number = [&](size_t at, size_t bytes) {
    uint32_t out = 0;
    for (size_t i = bytes; i-- > 0;) out = out << 8 | static_cast<uint8_t>(tiff[at + i]);
    return out;
  };
  const size_t directory = number(4, 4);
  for (size_t i = 0; i < number(directory, 2); ++i)
    if (number(directory + 2 + i * 12, 2) == tag) return directory + 2 + i * 12;
  ADD_FAILURE() << "no tag " << tag;
  return 0;
}

/// With another value of a tag, as a number of 32 bits.
std::string with_tag(const std::string& tiff, uint32_t tag, uint32_t value) {
  return patched(tiff, entry_of(tiff, tag) + 2, little(4, 2) + little(1, 4) + little(value, 4));
}

TEST(ImageFormats, PixelsAreThoseOfPillow) {
  const NpzReader golden(kFolder + "images.npz");
  for (const std::string& name : golden.names()) {
    const Array want = golden.read(name);
    const std::string path = kFolder + "images/" + name.substr(0, name.find(':'));
    const bool wide = want.dtype == DType::kU16;
    const Image image = read_image(path, static_cast<int>(want.shape[2]),
                                   wide ? SampleDepth::kSixteen : SampleDepth::kEight);
    EXPECT_EQ((Dims{image.height, image.width, image.channels}), want.shape) << name;
    ASSERT_EQ(static_cast<int64_t>(wide ? image.wide.size() : image.pixels.size()), want.size());
    int64_t different = 0;
    for (int64_t i = 0; i < want.size(); ++i) {
      const auto k = static_cast<size_t>(i);
      different += (wide ? image.wide[k] : image.pixels[k]) != want.integer(i);
    }
    EXPECT_EQ(different, 0) << name;
    EXPECT_EQ(image.warning, name == "pages.tif" ? "more than one page; the first is read" : "");
  }
}

TEST(ImageFormats, SixteenBitTiffIsReducedOrRejected) {
  const std::string path = kFolder + "images/rgb16_deflate.tif";
  const Image whole = read_image(path, 3, SampleDepth::kSixteen);
  const Image reduced = read_image(path, 3, SampleDepth::kReduced);
  for (size_t i = 0; i < whole.wide.size(); ++i)
    EXPECT_EQ(reduced.pixels[i], (whole.wide[i] + 128) / 257);
  EXPECT_NE(error_of(read_file(path), SampleDepth::kEight).find("dtype: uint16"),
            std::string::npos);
}

TEST(ImageFormats, GreyAndAlpha) {
  const std::string folder = kFolder + "images/";
  const Image grey = read_image(folder + "grey.tif", 1);
  EXPECT_EQ(grey.channels, 1);
  EXPECT_EQ(read_image(folder + "white_is_zero.tif", 1).pixels, grey.pixels);
  EXPECT_EQ(read_image(folder + "grey.bmp", 1).pixels, grey.pixels);
  EXPECT_EQ(read_image(folder + "rgb.bmp", 4).pixels[3], 255);
}

TEST(ImageFormats, IndicesAndGreyValuesAreKeptForMasks) {
  const auto indices_of = [](const std::string& name) {
    return decode_indices(content_of(read_file(kFolder + "images/" + name)), name);
  };
  const Image palette = indices_of("palette.bmp");
  ASSERT_EQ(palette.pixels.size(), 11u * 21);
  for (size_t y = 0; y < 11; ++y)
    for (size_t x = 0; x < 21; ++x) EXPECT_EQ(palette.pixels[y * 21 + x], (x / 4 + y) % 14);
  for (const char* name :
       {"palette.tif", "palette_4_bits.bmp", "palette_few.bmp", "os2.bmp", "grey_4_bits.tif"})
    EXPECT_EQ(indices_of(name).pixels, palette.pixels) << name;
  EXPECT_EQ(indices_of("grey_2_bits.tif").pixels[13 * 4], palette.pixels[13 * 4] % 4);
  EXPECT_EQ(indices_of("grey16_big_endian.tif").wide.size(), palette.pixels.size());
  for (const char* name : {"rgb.bmp", "rgb_lzw.tif", "lossless.webp"})
    EXPECT_THROW(indices_of(name), Error) << name;
}

TEST(ImageFormats, WhatIsNotReadIsNamed) {
  const auto rejected = [](const std::string& name) {
    return error_of(read_file(kFolder + "images/" + name));
  };
  EXPECT_NE(rejected("floats.tif").find("floating-point"), std::string::npos);
  EXPECT_NE(rejected("signed.tif").find("signed"), std::string::npos);
  EXPECT_NE(rejected("deep.tif").find("32 bits a sample, expected 8 or 16"), std::string::npos);
  EXPECT_NE(rejected("animated.webp").find("animated"), std::string::npos);
  const std::string bmp = read_file(kFolder + "images/rgb.bmp");
  EXPECT_NE(error_of(patched(bmp, 30, little(4, 4))).find("24 bits a pixel and compression 4"),
            std::string::npos);
  EXPECT_NE(error_of(patched(bmp, 28, little(2, 2))).find("2 bits a pixel"), std::string::npos);
  EXPECT_NE(error_of(patched(bmp, 14, little(77, 4))).find("header of 77"), std::string::npos);
  EXPECT_NE(error_of("GIF89a").find("neither JPEG, PNG, TIFF, WebP nor BMP"), std::string::npos);
  const std::string tiff = read_file(kFolder + "images/grey.tif");
  EXPECT_NE(error_of(with_tag(tiff, 262, 8)).find("color space 8"), std::string::npos);
  EXPECT_NE(error_of(with_tag(tiff, 259, 34712)).find("damaged TIFF: "), std::string::npos);
}

// Files of a few hundred bytes that declare gigabytes.
TEST(ImageFormats, LyingHeadersAreRejectedBeforeMemoryIsTaken) {
  const std::string tiff = read_file(kFolder + "images/grey.tif");
  const std::string tiles = read_file(kFolder + "images/tiles_deflate.tif");
  const std::string huge = with_tag(with_tag(tiff, 256, 1u << 20), 257, 1u << 20);
  EXPECT_NE(error_of(huge).find("declares 1048576 x 1048576 pixels"), std::string::npos);
  EXPECT_NE(error_of(with_tag(tiff, 257, 0xFFFFFFFF)), "");
  EXPECT_NE(error_of(with_tag(tiff, 257, 0)), "");
  EXPECT_NE(error_of(with_tag(tiles, 277, 60000)), "");
  EXPECT_NE(error_of(with_tag(with_tag(tiles, 322, 1u << 20), 323, 1u << 20)), "");
  EXPECT_NE(error_of(with_tag(tiff, 257, 2000)), "");
  for (const char* name : {"rgb.bmp", "runs_8.bmp", "palette.bmp", "bits.bmp"}) {
    const std::string bmp = read_file(kFolder + "images/" + name);
    const auto sized = [&](uint32_t width, uint32_t height) {
      return error_of(patched(bmp, 18, little(width, 4) + little(height, 4)));
    };
    EXPECT_NE(sized(1u << 20, 1u << 20).find("declares"), std::string::npos) << name;
    EXPECT_NE(sized(0x7FFFFFFF, 0x80000000).find("declares"), std::string::npos) << name;
    EXPECT_NE(sized(0, 5).find("declares"), std::string::npos) << name;
    EXPECT_NE(sized(static_cast<uint32_t>(-5), 5).find("declares"), std::string::npos) << name;
  }
  // Lossless: 14 bits each of width - 1 and height - 1.
  const std::string webp = read_file(kFolder + "images/lossless.webp");
  ASSERT_EQ(webp.substr(12, 4), "VP8L");
  const std::string large = patched(webp, 21, little((1u << 28) - 1, 4));
  EXPECT_NE(error_of(large).find("declares 16384 x 16384 pixels"), std::string::npos);
}

TEST(ImageFormats, DamagedFilesAreRejectedNotCrashedOn) {
  for (const auto& entry : std::filesystem::directory_iterator(kFolder + "images")) {
    const std::string whole = read_file(entry.path().string());
    const bool is_read = error_of(whole).empty();
    // The last bytes may be padding or the place of a next page, and the second page is not read.
    const size_t spare = entry.path().filename() == "pages.tif" ? 207 : 4;
    for (size_t size = 0; is_read && size + spare < whole.size(); ++size)
      EXPECT_NE(error_of(whole.substr(0, size)), "") << entry.path() << " cut to " << size;
    uint32_t state = 7;
    for (int i = 0; i < 400; ++i) {
      std::string content = whole;
      for (int k = 0; k <= i % 3; ++k) {
        state = state * 1664525 + 1013904223;
        content[(state >> 4) % content.size()] = static_cast<char>(state >> 24);
      }
      error_of(content);
    }
  }
}

TEST(ImageFormats, EndingsOfNames) {
  for (const char* name : {"a.jpg", "b.JPEG", "c.Png", "d.tif", "e.TIFF", "f.webp", "g.bmp"})
    EXPECT_TRUE(has_image_ending(name)) << name;
  for (const char* name : {"", "jpg", "a.jpg.txt", "tiff", "a.gif", "a.webp~"})
    EXPECT_FALSE(has_image_ending(name)) << name;
}

}  // namespace
}  // namespace paddle::formats
