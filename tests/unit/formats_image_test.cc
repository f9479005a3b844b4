#include "formats/image.h"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

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
  for (const char* file : {"grey.png", "sixteen_bit.png"}) {
    const Image grey = read_image(kFixtures + file, 1);
    for (int x = 0; x < 6; ++x) EXPECT_NEAR(grey.pixels[static_cast<size_t>(x)], x * 40, 1) << file;
  }
  EXPECT_EQ(read_image(kFixtures + "one_bit.png", 1).pixels[5], 255);
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

TEST(Image, DamagedFilesAreRefusedNotCrashedOn) {
  for (const char* name : {"rgb.png", "rgb.jpg", "palette.png", "sixteen_bit.png"}) {
    const std::string whole = read_file(kFixtures + name);
    const auto decode = [&](const std::string& content) {
      try {
        decode_image(std::as_bytes(std::span<const char>(content)), 3, name);
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

TEST(Image, HugeSizesAreRefusedBeforeMemoryIsTaken) {
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

TEST(Idx, DamagedFilesAreRefused) {
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
