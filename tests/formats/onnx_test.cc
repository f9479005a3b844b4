#include <unistd.h>

#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/files.h"
#include "formats/onnx/model.h"
#include "support/onnx_bytes.h"

namespace paddle::formats::onnx {
namespace {

using namespace testing_support;
namespace fs = std::filesystem;

class OnnxFile : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  std::string write(const std::string& bytes, const std::string& name = "model.onnx") {
    write_file_atomically(folder_ + "/" + name, bytes);
    return folder_ + "/" + name;
  }
  std::string rejection(const std::string& bytes) {
    const std::string path = write(bytes);
    try {
      read_model(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kModel);
      EXPECT_EQ(error.message().find('\n'), std::string::npos);
      return error.message();
    }
    return "";
  }
  static std::string with_tensor(const std::string& tensor) {
    return onnx_model(onnx_graph({onnx_node("MatMul", {"x", "w"}, {"y"})},
                                 {value_info("x", 1, {"batch", "100"})},
                                 {value_info("y", 1, {"batch", "3"})}, {tensor}));
  }
  static std::string floats(int64_t count) {
    std::string raw(static_cast<size_t>(count) * 4, '\0');
    for (int64_t i = 0; i < count; ++i) {
      const auto value = static_cast<float>(i);
      std::memcpy(raw.data() + 4 * i, &value, 4);
    }
    return raw;
  }
  const std::string folder_ = testing::TempDir() + "/paddle_onnx_" + std::to_string(::getpid());
};

TEST_F(OnnxFile, ReadsNodesTypesAndTensors) {
  const Model model = read_model(write(with_tensor(onnx_tensor("w", 1, {100, 3}, floats(300)))));
  EXPECT_EQ(model.opsets.at(""), 17);
  ASSERT_EQ(model.graph.nodes.size(), 1u);
  EXPECT_EQ(model.graph.nodes[0].op_type, "MatMul");
  EXPECT_EQ(model.graph.inputs[0].type.text(), "float32[batch, 100]");
  const TensorData& w = model.graph.initializers.at(0);
  EXPECT_EQ(w.shape, (Dims{100, 3}));
  for (int64_t i = 0; i < 300; ++i) EXPECT_EQ(w.array.number(i), static_cast<double>(i));
}

TEST_F(OnnxFile, SmallAndTypedTensorsAreTheSame) {
  const Model small = read_model(write(with_tensor(onnx_tensor("w", 1, {2, 3}, floats(6)))));
  EXPECT_EQ(small.graph.initializers[0].array.number(5), 5);
  // packed int64_data
  std::string packed;
  for (const char c : {1, 2, 127}) packed += c;
  const std::string typed =
      number_field(1, 3) + number_field(2, 7) + bytes_field(8, "w") + bytes_field(7, packed);
  EXPECT_EQ(read_model(write(with_tensor(typed))).graph.initializers[0].array.integer(2), 127);
}

TEST_F(OnnxFile, EveryPrefixIsRejectedOrRead) {
  const std::string bytes = with_tensor(onnx_tensor("w", 1, {100, 3}, floats(300)));
  size_t read = 0;
  for (size_t size = 0; size < bytes.size(); size += size < 200 ? 1 : 37)
    if (rejection(bytes.substr(0, size)).empty()) ++read;
  EXPECT_LT(read, 12u);  // those that end at a field of the outermost message
}

TEST_F(OnnxFile, AFileCannotNameThePlaceOfAPayload) {
  const std::string forged = number_field(1, 1000) + number_field(2, 1) + bytes_field(8, "w") +
                             number_field(100001, 0) + number_field(100002, 4000);
  EXPECT_NE(rejection(with_tensor(forged)).find("needs 1000 values"), std::string::npos);
}

TEST_F(OnnxFile, SizesMustFit) {
  EXPECT_NE(rejection(with_tensor(onnx_tensor("w", 1, {100, 3}, floats(299)))).find("1200 bytes"),
            std::string::npos);
  EXPECT_NE(rejection(with_tensor(onnx_tensor("w", 1, {-1, 3}, ""))).find("negative"),
            std::string::npos);
  const int64_t huge = int64_t{1} << 40;
  EXPECT_NE(rejection(with_tensor(onnx_tensor("w", 1, {huge, huge}, ""))).find("impossible"),
            std::string::npos);
  EXPECT_NE(rejection(with_tensor(onnx_tensor("w", 1, {int64_t{1} << 36}, ""))).find("needs"),
            std::string::npos);
  EXPECT_NE(rejection(with_tensor(onnx_tensor("w", 77, {1}, "x"))).find("element type 77"),
            std::string::npos);
}

TEST_F(OnnxFile, NestingIsBounded) {
  std::string graph = onnx_graph({onnx_node("Relu", {"x"}, {"y"})}, {}, {});
  for (int i = 0; i < 2000; ++i)
    graph = onnx_graph({onnx_node("If", {"x"}, {"y"}, {graph_attribute("then_branch", graph)})}, {},
                       {});
  EXPECT_NE(rejection(onnx_model(graph)).find("nested"), std::string::npos);
}

TEST_F(OnnxFile, ExternalDataStaysInTheFolder) {
  write(floats(300), "w.bin");
  const Model model = read_model(write(with_tensor(external_tensor("w", {100, 3}, "w.bin"))));
  EXPECT_EQ(model.graph.initializers[0].array.number(299), 299);
  for (const char* same : {"./w.bin", "././w.bin"})
    EXPECT_EQ(read_model(write(with_tensor(external_tensor("w", {100, 3}, same))))
                  .graph.initializers[0]
                  .array.number(299),
              299);
  fs::create_symlink("w.bin", folder_ + "/link.bin");
  fs::create_directories(folder_ + "/inner");
  const std::pair<const char*, const char*> kRejected[] = {
      {"../w.bin", "inside the model's folder"},
      {"/etc/passwd", "inside the model's folder"},
      {"inner/../w.bin", "inside the model's folder"},
      {"link.bin", "symbolic link"},
      {"nothing.bin", "does not exist"},
      {"inner", "not a regular file"},
      {"", "has no location"}};
  for (const auto& [location, reason] : kRejected)
    EXPECT_NE(rejection(with_tensor(external_tensor("w", {100, 3}, location))).find(reason),
              std::string::npos)
        << location;
  EXPECT_NE(
      rejection(with_tensor(external_tensor("w", {100, 4}, "w.bin"))).find("exceed that file"),
      std::string::npos);
}

}  // namespace
}  // namespace paddle::formats::onnx
