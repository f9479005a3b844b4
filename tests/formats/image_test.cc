#include "formats/image.h"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "formats/exif.h"
#include "formats/idx.h"

namespace paddle::formats {
namespace {

const std::string kFixtures = "tests/data/formats/";

TEST(Image, Png) {
  const Image rgb = read_image(kFixtures + "rgb.png", 3);
  EXPECT_EQ(rgb.height, 4);
  EXPECT_EQ(rgb.width, 6);
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 6; ++x) {
      const uint8_t* p = &rgb.pixels[static_cast<size_t>((y * 6 + x) * 3)];
      EXPECT_EQ(p[0], x * 40);
      EXPECT_EQ(p[1], y * 60);
      EXPECT_EQ(p[2], 128);
    }
  for (const char* file : {"rgba.png", "palette.png"})
    for (const int channels : {1, 3, 4})
      EXPECT_EQ(read_image(kFixtures + file, channels).channels, channels);
  EXPECT_EQ(read_image(kFixtures + "rgba.png", 3).pixels, rgb.pixels);
  const Image grey = read_image(kFixtures + "grey.png", 1);
  for (int x = 0; x < 6; ++x) EXPECT_EQ(grey.pixels[static_cast<size_t>(x)], x * 40);
  EXPECT_EQ(read_image(kFixtures + "one_bit.png", 1).pixels[5], 255);
}

// The file stores x * 40 * 257.
TEST(Image, SixteenBitPngKeepsItsBitsOrIsRejected) {
  const std::string path = kFixtures + "sixteen_bit.png";
  const Image whole = read_image(path, 3, SampleDepth::kSixteen);
  ASSERT_EQ(whole.wide.size(), 4u * 6 * 3);
  const Image reduced = read_image(path, 1, SampleDepth::kReduced);
  for (size_t x = 0; x < 6; ++x) {
    for (size_t c = 0; c < 3; ++c) EXPECT_EQ(whole.wide[x * 3 + c], x * 40 * 257);
    EXPECT_EQ(reduced.pixels[x], x * 40);
  }
  EXPECT_EQ(read_image(kFixtures + "grey.png", 1, SampleDepth::kSixteen).wide[5], 200 * 257);
  try {
    read_image(path, 1);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("dtype: uint16"), std::string::npos) << error.what();
  }
}

std::string big_endian(uint32_t x) {
  return {static_cast<char>(x >> 24), static_cast<char>(x >> 16), static_cast<char>(x >> 8),
          static_cast<char>(x)};
}

std::span<const std::byte> bytes_of(const std::string& content) {
  return std::as_bytes(std::span<const char>(content));
}

/// The PNG with a chunk after its header.
std::string with_chunk(const std::string& png, const std::string& type, const std::string& data) {
  const std::string body = type + data;
  constexpr size_t kHeaderEnd = 33;
  return png.substr(0, kHeaderEnd) + big_endian(static_cast<uint32_t>(data.size())) + body +
         big_endian(crc32(bytes_of(body))) + png.substr(kHeaderEnd);
}

std::string exif(int orientation, bool big) {
  const std::string value(1, static_cast<char>(orientation)), zero(1, '\0');
  using namespace std::string_literals;
  return big ? "MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01"s + zero + value + "\0\0\0\0\0\0"s
             : "II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0"s + value + "\0\0\0\0\0\0\0"s;
}

// As Pillow and OpenCV return it; a gamma of 1 would otherwise turn 40 into 110.
TEST(Image, PngGammaIsNotApplied) {
  const std::string png = read_file(kFixtures + "grey.png");
  const std::string linear = with_chunk(png, "gAMA", big_endian(100000));
  EXPECT_EQ(decode_image(bytes_of(linear), 1, "x").pixels,
            decode_image(bytes_of(png), 1, "x").pixels);
}

// Results of Pillow's ImageOps.exif_transpose for the pixels 1 2 3 / 4 5 6.
TEST(Image, ExifOrientationIsApplied) {
  const std::vector<std::vector<uint8_t>> upright = {
      {1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1}, {4, 5, 6, 1, 2, 3},
      {1, 4, 2, 5, 3, 6}, {4, 1, 5, 2, 6, 3}, {6, 3, 5, 2, 4, 1}, {3, 6, 2, 5, 1, 4}};
  const std::string path = testing::TempDir() + "/paddle_" + std::to_string(::getpid()) + "_o.png";
  write_png(path, {2, 3, 1, {1, 2, 3, 4, 5, 6}});
  const std::string png = read_file(path);
  std::filesystem::remove(path);
  const std::string jpeg = read_file(kFixtures + "grey.jpg");
  const Image flat = decode_image(bytes_of(jpeg), 1, "x");
  for (int orientation = 1; orientation <= 8; ++orientation)
    for (const bool big : {true, false}) {
      const std::string tiff = exif(orientation, big);
      EXPECT_EQ(exif_orientation(bytes_of(tiff)), orientation);
      const Image image = decode_image(bytes_of(with_chunk(png, "eXIf", tiff)), 1, "x");
      EXPECT_EQ(image.height, orientation > 4 ? 3 : 2);
      EXPECT_EQ(image.width, orientation > 4 ? 2 : 3);
      EXPECT_EQ(image.pixels, upright[static_cast<size_t>(orientation - 1)]) << orientation;
      const std::string segment = std::string("Exif\0\0", 6) + tiff;
      const std::string marked = jpeg.substr(0, 2) + "\xff\xe1" +
                                 big_endian(static_cast<uint32_t>(segment.size() + 2)).substr(2) +
                                 segment + jpeg.substr(2);
      const Image turned = decode_image(bytes_of(marked), 1, "x");
      EXPECT_EQ(turned.height, orientation > 4 ? flat.width : flat.height);
      if (orientation == 6) {
        EXPECT_EQ(turned.pixels[0], flat.pixels[static_cast<size_t>(31 * 48)]);
      }
    }
}

TEST(Image, DamagedExifIsIgnored) {
  const std::string whole = exif(6, true);
  for (size_t size = 0; size < whole.size(); ++size) {
    const int got = exif_orientation(bytes_of(whole.substr(0, size)));
    EXPECT_TRUE(got == 1 || (got == 6 && size >= 20)) << size;
  }
  for (const int bad : {0, 9, 255}) EXPECT_EQ(exif_orientation(bytes_of(exif(bad, false))), 1);
  uint32_t state = 11;
  for (int i = 0; i < 20000; ++i) {
    std::string content = exif(6, i % 2 == 0);
    for (int k = 0; k < 3; ++k) {
      state = state * 1664525 + 1013904223;
      content[(state >> 8) % content.size()] = static_cast<char>(state >> 24);
    }
    const int got = exif_orientation(bytes_of(content));
    EXPECT_GE(got, 1);
    EXPECT_LE(got, 8);
  }
}

TEST(Image, StrayBytesInAJpegAreAWarning) {
  const std::string jpeg = read_file(kFixtures + "rgb.jpg");
  const std::string stray =
      jpeg.substr(0, jpeg.size() - 2) + std::string(40, '\x12') + jpeg.substr(jpeg.size() - 2);
  const Image image = decode_image(bytes_of(stray), 3, "x");
  EXPECT_EQ(image.pixels, decode_image(bytes_of(jpeg), 3, "x").pixels);
  EXPECT_NE(image.warning.find("extraneous"), std::string::npos) << image.warning;
  EXPECT_TRUE(decode_image(bytes_of(jpeg), 3, "x").warning.empty());
}

TEST(Image, Jpeg) {
  const Image rgb = read_image(kFixtures + "rgb.jpg", 3);
  EXPECT_EQ(rgb.width, 48);
  EXPECT_EQ(rgb.height, 32);
  EXPECT_NEAR(rgb.pixels[2], 128, 4);
  EXPECT_EQ(read_image(kFixtures + "grey.jpg", 1).channels, 1);
  EXPECT_EQ(read_image(kFixtures + "grey.jpg", 3).channels, 3);
  EXPECT_EQ(read_image(kFixtures + "rgb.jpg", 4).pixels[3], 255);
  const Image inks = read_image(kFixtures + "cmyk.jpg", 3);
  EXPECT_NEAR(inks.pixels[2], 128, 8);
}

TEST(Image, WritesPng) {
  const std::string path = testing::TempDir() + "/paddle_" + std::to_string(::getpid()) + ".png";
  const Image rgb = read_image(kFixtures + "rgb.png", 3);
  write_png(path, rgb);
  EXPECT_EQ(read_image(path, 3).pixels, rgb.pixels);
  std::filesystem::remove(path);
}

TEST(Image, DamagedFilesAreRejectedNotCrashedOn) {
  for (const char* name : {"rgb.png", "rgb.jpg", "palette.png", "sixteen_bit.png"}) {
    const std::string whole = read_file(kFixtures + name);
    const auto decode = [&](const std::string& content) {
      try {
        decode_image(std::as_bytes(std::span<const char>(content)), 3, name, SampleDepth::kReduced);
        return true;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kData);
        EXPECT_NE(error.message().find(name), std::string::npos);
        return false;
      }
    };
    EXPECT_TRUE(decode(whole));
    for (size_t size = 0; size + 20 < whole.size(); ++size)
      EXPECT_FALSE(decode(whole.substr(0, size))) << name << " " << size;
    uint32_t state = 7;
    for (int i = 0; i < 500; ++i) {
      std::string content = whole;
      state = state * 1664525 + 1013904223;
      content[(state >> 4) % content.size()] = static_cast<char>(state >> 24);
      decode(content);
    }
  }
}

TEST(Image, HugeSizesAreRejectedBeforeMemoryIsTaken) {
  std::string content = read_file(kFixtures + "rgb.png");
  const std::string huge("\x00\x7f\xff\xff\x00\x7f\xff\xff", 8);
  content.replace(16, 8, huge);
  const uint32_t crc = crc32(std::as_bytes(std::span<const char>(content)).subspan(12, 17));
  for (int i = 0; i < 4; ++i)
    content[static_cast<size_t>(29 + i)] = static_cast<char>(crc >> (24 - 8 * i));
  EXPECT_THROW(decode_image(std::as_bytes(std::span<const char>(content)), 3, "x"), Error);
}

TEST(Idx, PlainAndGzip) {
  for (const char* file : {"images.idx", "images.idx.gz"}) {
    const Array images = read_idx(kFixtures + file);
    EXPECT_EQ(images.shape, (Dims{3, 4, 5}));
    EXPECT_EQ(images.dtype, DType::kU8);
    for (int64_t i = 0; i < 60; ++i) EXPECT_EQ(images.integer(i), i);
  }
  const Array floats = read_idx(kFixtures + "floats.idx");
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(floats.number(i), static_cast<double>(i));
}

TEST(Idx, DamagedFilesAreRejected) {
  const std::string path = testing::TempDir() + "/paddle_" + std::to_string(::getpid()) + ".idx";
  for (const char* name : {"images.idx", "images.idx.gz", "floats.idx"}) {
    const std::string whole = read_file(kFixtures + name);
    for (size_t size = 0; size < whole.size(); ++size) {
      std::ofstream(path, std::ios::binary) << whole.substr(0, size);
      try {
        read_idx(path);
        ADD_FAILURE() << name << " cut to " << size;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kData);
      }
    }
    write_file_atomically(path, whole + "x");
    if (!std::string(name).ends_with("gz")) {
      EXPECT_THROW(read_idx(path), Error);
    }
  }
  write_file_atomically(
      path, std::string("\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16));
  EXPECT_THROW(read_idx(path), Error);
  write_file_atomically(path, std::string("\0\0\x08\x02\0\0\0\0\xff\xff\xff\xff", 12));
  EXPECT_EQ(read_idx(path).size(), 0);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace paddle::formats
