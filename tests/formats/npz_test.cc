#include "formats/npz.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace paddle::formats {
namespace {

const std::string kFixtures = "tests/data/formats/";

std::string scratch(const std::string& name) {
  return testing::TempDir() + "/paddle_npz_" + std::to_string(::getpid()) + "_" + name;
}

void expect_counting(const Array& array) {
  for (int64_t i = 0; i < array.size(); ++i) {
    if (is_complex(array.dtype)) {
      const double value = array.dtype == DType::kC64
                               ? static_cast<double>(array.data<float>()[2 * i])
                               : array.data<double>()[2 * i];
      EXPECT_EQ(value, static_cast<double>(i));
    } else {
      EXPECT_EQ(array.number(i), static_cast<double>(array.dtype == DType::kBool ? i % 2 : i));
    }
  }
}

/// The message of the error that `call` must throw.
template <class Call>
std::string error_of(Call&& call, ErrorCode code = ErrorCode::kData) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_EQ(error.message().find('\n'), std::string::npos);
    return error.message();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST(Npz, ReadsEveryTypeThatNumpyWrites) {
  for (const char* file : {"types.npz", "types_deflated.npz"}) {
    const NpzReader reader(kFixtures + file);
    EXPECT_EQ(reader.names().size(), 16u);
    for (const std::string& name : reader.names()) {
      const Array array = reader.read(name);
      if (name == "scalar") {
        EXPECT_EQ(array.shape, Dims{});
        EXPECT_EQ(array.number(), 7);
      } else if (name == "empty") {
        EXPECT_EQ(array.shape, (Dims{0, 4}));
      } else {
        EXPECT_EQ(text(array.dtype), name);
        EXPECT_EQ(array.shape, (Dims{2, 3}));
        EXPECT_EQ(reader.header(name).shape, (Dims{2, 3}));
        expect_counting(array);
      }
    }
  }
}

TEST(Npz, ReadsSixtyFourBitDirectories) {
  expect_counting(NpzReader(kFixtures + "zip64.npz").read("x"));
}

TEST(Npy, ReadsOrdersAndVersions) {
  for (const char* file :
       {"fortran.npy", "big_endian.npy", "big_endian_fortran.npy", "version2.npy"}) {
    const Array array = read_npy(kFixtures + file);
    EXPECT_TRUE(array.is_contiguous());
    expect_counting(array);
  }
  EXPECT_EQ(read_npy(kFixtures + "fortran.npy").shape, (Dims{2, 3, 4}));
}

TEST(Npy, RejectsWhatItCannotHold) {
  EXPECT_NE(error_of([] { read_npy(kFixtures + "structured.npy"); }).find("structured"),
            std::string::npos);
  EXPECT_NE(error_of([] { read_npy(kFixtures + "strings.npy"); }).find("contains strings"),
            std::string::npos);
}

TEST(Npz, RoundTrip) {
  for (const bool deflate : {false, true}) {
    const std::string path = scratch("roundtrip.npz");
    NamedArrays arrays;
    arrays.emplace_back("f", Array::from<float>({0, 1, 2, 3, 4, 5}, {3, 2}));
    arrays.emplace_back("bf", Array::from<bfloat16>({bfloat16(0), bfloat16(1)}, {2}));
    arrays.emplace_back("b", Array::from<bool>({false, true, false}, {3, 1}));
    arrays.emplace_back("nothing", Array::empty(DType::kI32, {0}));
    arrays.emplace_back("s", Array::scalar<int64_t>(0));
    write_npz(path, arrays, deflate);
    const NamedArrays back = read_npz(path);
    ASSERT_EQ(back.size(), arrays.size());
    for (size_t i = 0; i < back.size(); ++i) {
      EXPECT_EQ(back[i].first, arrays[i].first);
      EXPECT_EQ(back[i].second.shape, arrays[i].second.shape);
      expect_counting(back[i].second);
    }
    EXPECT_EQ(back[1].second.dtype, DType::kF32);
    std::filesystem::remove(path);
  }
}

TEST(Npy, RoundTripOfAStridedArray) {
  Array array = Array::from<int16_t>({0, 2, 4, 1, 3, 5}, {2, 3});
  std::swap(array.shape[0], array.shape[1]);
  std::swap(array.strides[0], array.strides[1]);
  const std::string path = scratch("strided.npy");
  write_npy(path, array);
  const Array back = read_npy(path);
  EXPECT_EQ(back.shape, (Dims{3, 2}));
  expect_counting(back);
  std::filesystem::remove(path);
}

TEST(Npz, ErrorsNameTheArray) {
  const NpzReader reader(kFixtures + "types.npz");
  EXPECT_NE(error_of([&] { reader.read("flaot32"); }).find("did you mean 'float32'"),
            std::string::npos);
  EXPECT_NE(error_of([] { NpzReader("tests/data/formats/rgb.png"); }).find("not a zip"),
            std::string::npos);
}

TEST(Npy, HostileHeaders) {
  const auto file = [&](const std::string& header, const std::string& data) {
    const std::string path = scratch("hostile.npy");
    std::string all("\x93NUMPY\x01\x00", 8);
    all += static_cast<char>(header.size() & 0xff);
    all += static_cast<char>(header.size() >> 8);
    write_file_atomically(path, all + header + data);
    const std::string message = error_of([&] { read_npy(path); });
    std::filesystem::remove(path);
    return message;
  };
  const std::string f4 = "{'descr': '<f4', 'fortran_order': False, 'shape': ";
  EXPECT_NE(file(f4 + "(1000000000000,), }", "abcd").find("cut short"), std::string::npos);
  EXPECT_NE(file(f4 + "(4000000000,4000000000,4000000000), }", "").find("too large"),
            std::string::npos);
  EXPECT_NE(file(f4 + "(0,4000000000,4000000000,4000000000), }", "").find("too large"),
            std::string::npos);
  file(f4 + "(99999999999999999999,), }", "");
  file(f4 + "(-1,), }", "");
  file(f4 + "(1,", "");
  file(f4, "");
  file("", "");
  file("{}", "");
  file("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "        ");
  file("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "        ");
}

// Every file that is cut short or has one byte changed is read right or rejected; nothing else.
TEST(Npz, DamagedArchivesNeverCrash) {
  for (const char* name : {"types.npz", "types_deflated.npz", "zip64.npz"}) {
    const std::string whole = read_file(kFixtures + name);
    const std::string path = scratch("damaged.npz");
    const auto attempt = [&](const std::string& content) {
      std::ofstream(path, std::ios::binary) << content;
      try {
        read_npz(path);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kData) << error.what();
      }
    };
    for (size_t size = 0; size < whole.size(); size += 37) attempt(whole.substr(0, size));
    uint32_t state = 1;
    for (int i = 0; i < 300; ++i) {
      std::string content = whole;
      for (int change = 0; change < 3; ++change) {
        state = state * 1664525 + 1013904223;
        content[(state >> 4) % content.size()] = static_cast<char>(state >> 24);
      }
      attempt(content);
    }
    std::filesystem::remove(path);
  }
}

TEST(Npz, StringsComeBackAsTheyWere) {
  const std::string path = scratch("strings.npz");
  const NpyStrings strings{{2, 2}, {"", "abc", "\xc3\xa4\xe2\x82\xac", "\xf0\x9f\x98\x80"}};
  NpzWriter writer(path);
  writer.add("s", strings);
  writer.close();
  const NpzReader reader(path);
  EXPECT_EQ(reader.header("s").dtype, DType::kString);
  EXPECT_EQ(reader.header("s").string_width, 3u);
  const NpyStrings back = reader.read_strings("s");
  EXPECT_EQ(back.shape, strings.shape);
  EXPECT_EQ(back.items, strings.items);
  EXPECT_NE(error_of([&] { reader.read("s"); }).find("contains strings"), std::string::npos);
  std::filesystem::remove(path);
}

std::string npy_bytes(const std::string& descr, const std::string& shape, const std::string& data,
                      bool fortran = false) {
  std::string text = "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
                     ", 'shape': " + shape + "}\n";
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(text.size());
  out += '\0';
  return out + text + data;
}

NpyStrings strings_of(const std::string& file) {
  const auto bytes = std::as_bytes(std::span<const char>(file));
  const NpyHeader header = parse_npy_header(bytes, "x");
  return npy_strings(header, bytes.subspan(header.data_offset), "x");
}

TEST(Npz, StringsOfEveryForm) {
  using namespace std::string_literals;
  EXPECT_EQ(strings_of(npy_bytes("|S3", "(2,)", "ab\0cde"s)).items,
            (std::vector<std::string>{"ab", "cde"}));
  EXPECT_EQ(strings_of(npy_bytes(">U1", "(1,)", "\0\0\0a"s)).items,
            (std::vector<std::string>{"a"}));
  // Fortran order: the first axis runs fastest.
  EXPECT_EQ(strings_of(npy_bytes("|S1", "(2, 3)", "adbecf", true)).items,
            (std::vector<std::string>{"a", "b", "c", "d", "e", "f"}));
  EXPECT_NE(error_of([&] {
              strings_of(npy_bytes("<U1", "(1,)", "\0\xd8\0\0"s));
            }).find("not a character"),
            std::string::npos);
  EXPECT_NE(error_of([&] { strings_of(npy_bytes("<U2", "(9,)", "abcd")); }).find("cut short"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              strings_of(npy_bytes("<U0", "(1099511627776,)", ""));
            }).find("too many for the memory"),
            std::string::npos);
  EXPECT_NE(
      error_of([&] { strings_of(npy_bytes("|O", "(1,)", "12345678")); }).find("Python objects"),
      std::string::npos);
}

}  // namespace
}  // namespace paddle::formats
