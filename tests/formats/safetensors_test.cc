#include "formats/safetensors.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <set>

#include <gtest/gtest.h>

namespace paddle::formats {
namespace {

std::string scratch(const std::string& name) {
  return testing::TempDir() + "/paddle_st_" + std::to_string(::getpid()) + "_" + name;
}

TEST(Safetensors, ReadsWhatTheReferenceWrites) {
  const SafetensorsReader reader("tests/data/formats/plain.safetensors");
  EXPECT_EQ(reader.metadata().at("note"), "x");
  ASSERT_EQ(reader.entries().size(), 5u);
  const Array weight = reader.read("b.weight");
  EXPECT_EQ(weight.dtype, DType::kF32);
  EXPECT_EQ(weight.shape, (Dims{2, 3}));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(weight.number(i), i);
  const Array half = reader.read("half");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(half.number(i), i);
  EXPECT_EQ(reader.read("none").shape, (Dims{0, 2}));
  EXPECT_EQ(reader.read("flag").integer(3), 1);
  try {
    reader.read("b.wieght");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kModel);
    EXPECT_NE(error.message().find("did you mean 'b.weight'"), std::string::npos);
  }
}

TEST(Safetensors, RoundTripKeepsValuesTypesAndMetadata) {
  const std::string path = scratch("roundtrip");
  const std::vector<std::pair<std::string, Array>> tensors = {
      {"z", Array::from<uint8_t>({1, 2, 3}, {3})},
      {"a", Array::from<bfloat16>({bfloat16(1.5f)}, {})},
      {"m", Array::from<double>({1, 2, 3, 4}, {2, 2})},
      {"e", Array::empty(DType::kF32, {0, 3})}};
  write_safetensors(path, tensors, {{"step", "12"}});
  const SafetensorsReader reader(path);
  EXPECT_EQ(reader.metadata().at("step"), "12");
  for (const auto& [name, array] : tensors) {
    const Array back = reader.read(name);
    EXPECT_EQ(back.dtype, array.dtype);
    EXPECT_EQ(back.shape, array.shape);
    for (int64_t i = 0; i < array.size(); ++i) EXPECT_EQ(back.number(i), array.number(i));
  }
  const std::string first = read_file(path);
  write_safetensors(path, {tensors[2], tensors[0], tensors[3], tensors[1]}, {{"step", "12"}});
  EXPECT_EQ(read_file(path), first);
  std::filesystem::remove(path);
}

TEST(Safetensors, HeaderSizesThatLookLikeOtherFormats) {
  // Sizes of 640 and 1152 bytes begin with the first bytes of pickles (80 02, 80 04).
  const std::string path = scratch("sizes");
  std::set<uint64_t> seen;
  for (size_t length = 1; length < 1200; length += 8) {
    const std::string name(length, 'n');
    write_safetensors(path, {{name, Array::from<uint8_t>({7}, {1})}}, {});
    uint64_t size = 0;
    std::memcpy(&size, read_file(path).data(), sizeof size);
    seen.insert(size);
    ASSERT_EQ(SafetensorsReader(path).read(name).integer(0), 7) << size;
  }
  EXPECT_TRUE(seen.contains(640) && seen.contains(1152));
  std::filesystem::remove(path);
}

TEST(Safetensors, WritesToAMappedTensorStayInMemory) {
  const std::string path = scratch("private");
  write_safetensors(path, {{"x", Array::from<float>({1, 2}, {2})}});
  {
    const Array x = SafetensorsReader(path).read("x");
    x.data<float>()[0] = 5;
    EXPECT_EQ(x.number(0), 5);
  }
  EXPECT_EQ(SafetensorsReader(path).read("x").number(0), 1);
  std::filesystem::remove(path);
}

std::string rejection(const std::string& header, const std::string& data, uint64_t length) {
  const std::string path = scratch("hostile");
  std::string content(reinterpret_cast<const char*>(&length), 8);
  write_file_atomically(path, content + header + data);
  std::string message;
  try {
    SafetensorsReader reader(path);
    ADD_FAILURE() << "accepted: " << header;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kModel);
    message = error.message();
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
  std::filesystem::remove(path);
  return message;
}

std::string rejection(const std::string& header, const std::string& data = "") {
  return rejection(header, data, header.size());
}

TEST(Safetensors, HostileFiles) {
  rejection("{}", "", 1000);
  rejection("{}", "", ~uint64_t{0});
  rejection("");
  rejection("[]");
  rejection("{\"a\": 1}");
  rejection("{");
  rejection(std::string(100000, '['));
  rejection("{\"a\": " + std::string(100000, '['));
  const std::string t = "{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}";
  EXPECT_NE(rejection("{\"x\":" + t + "}", "abc").find("cut short"), std::string::npos);
  EXPECT_NE(rejection("{\"x\":" + t + "}", "abcde").find("file has 5"), std::string::npos);
  rejection("{\"x\":" + t + ",\"x\":" + t + "}", "abcd");
  EXPECT_NE(rejection("{\"x\":" + t + ",\"y\":" + t + "}", "abcd").find("overlapping another"),
            std::string::npos);
  rejection("{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", "abcd");
  rejection("{\"x\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", "abcd");
  rejection("{\"x\":{\"dtype\":\"Q9\",\"shape\":[1],\"data_offsets\":[0,4]}}", "abcd");
  rejection("{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", "abcdefgh");
  rejection("{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", "abcd");
  rejection(
      "{\"x\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4611686018427387904],"
      "\"data_offsets\":[0,0]}}");
  rejection("{\"__metadata__\":{\"a\":1}}");
}

}  // namespace
}  // namespace paddle::formats
