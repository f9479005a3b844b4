// Single operations of PaddlePaddle's programs, whose results follow from what PaddlePaddle
// documents.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "onnx/graph/session.h"
#include "paddle_program/pir_program.h"
#include "paddle_program/register.h"
#include "runtime/execute.h"

namespace paddle::paddle_program {
namespace {

using onnx::Session;
using onnx::Value;
using onnx::Values;

namespace fs = std::filesystem;

std::vector<Array> run(const std::string& path, const std::vector<Array>& inputs) {
  runtime::register_backends();
  register_programs();
  Session session(path, {});
  Values values;
  for (const Array& each : inputs) values.emplace_back(Tensor(each));
  std::vector<Array> out;
  for (const Value& each : session.run(values))
    out.push_back(runtime::copied(each.tensor().array()));  // the session goes
  return out;
}

void expect(const Array& found, DType dtype, const Dims& shape, const std::vector<double>& values) {
  EXPECT_EQ(found.dtype, dtype);
  ASSERT_EQ(found.shape, shape);
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(found.number(static_cast<int64_t>(i)), values[i], 1e-5) << i;
}

Array floats(const std::vector<float>& values, const Dims& shape) {
  return Array::from<float>(values, shape);
}

TEST(PaddleOperations, SoftplusHasAThreshold) {
  PirProgram p;
  const int x = p.input("x", "f32", "[3]");
  p.fetch(p.op("softplus", {x},
               {PirProgram::number("beta", "1.0"), PirProgram::number("threshold", "1.0")}, "f32",
               "[3]"),
          "f32", "[3]");
  p.fetch(p.op("softplus", {x},
               {PirProgram::number("beta", "2.0"), PirProgram::number("threshold", "20.0")}, "f32",
               "[3]"),
          "f32", "[3]");
  const auto out = run(p.write("softplus"), {floats({0.5F, 2, -1}, {3})});
  expect(out[0], DType::kF32, {3}, {0.9740770, 2, 0.3132617});
  // log(1 + exp(2 x)) / 2
  expect(out[1], DType::kF32, {3}, {0.6566308, 2.0090749, 0.0634640});
}

TEST(PaddleOperations, IndicesOfAColumnAreAList) {
  PirProgram p;
  const int x = p.input("x", "f32", "[3,2]"), index = p.input("i", "i64", "[2,1]");
  const int axis = p.op("full", {},
                        {PirProgram::number("value", "0.0"),
                         PirProgram::attribute("dtype", R"("1.a_dtype")", R"("int32")"),
                         PirProgram::number("shape", "[1]")},
                        "i32", "[1]");
  p.fetch(p.op("gather", {x, index, axis}, {}, "f32", "[2,2]"), "f32", "[2,2]");
  const auto out = run(p.write("gather"),
                       {floats({0, 1, 2, 3, 4, 5}, {3, 2}), Array::from<int64_t>({2, 0}, {2, 1})});
  expect(out[0], DType::kF32, {2, 2}, {4, 5, 0, 1});
}

TEST(PaddleOperations, UnsqueezeInsertsOneAxisAfterTheOther) {
  PirProgram p;
  const int x = p.input("x", "f32", "[2,3]");
  p.fetch(p.op("unsqueeze", {x, p.integers("[2,0]", "[2]")}, {}, "f32", "[1,2,3,1]"), "f32",
          "[1,2,3,1]");
  p.fetch(p.op("unsqueeze", {x, p.integers("[-1,0]", "[2]")}, {}, "f32", "[1,2,3,1]"), "f32",
          "[1,2,3,1]");
  const auto out = run(p.write("unsqueeze"), {floats({0, 1, 2, 3, 4, 5}, {2, 3})});
  EXPECT_EQ(out[0].shape, (Dims{1, 2, 3, 1}));
  EXPECT_EQ(out[1].shape, (Dims{1, 2, 3, 1}));
}

TEST(PaddleOperations, AValueWithoutAxesHasAxisZero) {
  PirProgram p;
  const int x = p.input("x", "f32", "[]");
  const int axis = p.op("full", {},
                        {PirProgram::number("value", "0.0"),
                         PirProgram::attribute("dtype", R"("1.a_dtype")", R"("int32")"),
                         PirProgram::number("shape", "[1]")},
                        "i32", "[1]");
  p.fetch(p.op("cumsum", {x, axis}, {}, "f32", "[]"), "f32", "[]");
  p.fetch(p.op("softmax", {x}, {PirProgram::number("axis", "-1")}, "f32", "[]"), "f32", "[]");
  const std::string path = p.write("scalar");
  const auto out = run(path, {Array::scalar(2.5F)});
  expect(out[0], DType::kF32, {}, {2.5});
  expect(out[1], DType::kF32, {}, {1});
}

TEST(PaddleOperations, SumsOfIntegersAreInt64) {
  PirProgram p;
  const int x = p.input("x", "i32", "[2,2]"), axes = p.integers("[-1]", "[1]");
  p.fetch(p.op("sum", {x, axes},
               {PirProgram::attribute("dtype", R"("1.a_dtype")", R"("undefined")"),
                PirProgram::number("keepdim", "false")},
               "i64", "[2]"),
          "i64", "[2]");
  const auto out = run(p.write("sum"), {Array::from<int32_t>({1, 2, 2147483647, 1}, {2, 2})});
  expect(out[0], DType::kI64, {2}, {3, 2147483648.0});
}

TEST(PaddleOperations, ZerosOfReshapeAreSizesWhereThereAreNoElements) {
  PirProgram p;
  const int x = p.input("x", "f32", "[-1,2,3]");
  p.fetch(p.op("reshape", {x, p.integers("[0,0,3]", "[3]")}, {}, "f32", "[-1,2,3]"), "f32",
          "[-1,2,3]");
  const std::string path = p.write("reshape");
  EXPECT_EQ(run(path, {floats({1, 2, 3, 4, 5, 6}, {1, 2, 3})})[0].shape, (Dims{1, 2, 3}));
  EXPECT_EQ(run(path, {floats({}, {0, 2, 3})})[0].shape, (Dims{0, 0, 3}));
}

TEST(PaddleOperations, IntegersAreComputedAsIntegers) {
  PirProgram p;
  const int x = p.input("x", "i64", "[3]"), y = p.input("y", "i64", "[3]");
  p.fetch(p.op("floor_divide", {x, y}, {}, "i64", "[3]"), "i64", "[3]");
  const int list = p.op("floor", {x}, {}, "i64", "[3]");
  p.fetch(list, "i64", "[3]");
  p.fetch(p.op("sqrt", {y}, {}, "f32", "[3]"), "f32", "[3]");
  const std::string path = p.write("integers");
  const auto out = run(path, {Array::from<int64_t>({9007199254740993, -7, 7}, {3}),
                              Array::from<int64_t>({1, 4, 16}, {3})});
  EXPECT_EQ(out[0].integer(0), 9007199254740993);
  EXPECT_EQ(out[0].integer(1), -2);
  EXPECT_EQ(out[1].integer(0), 9007199254740993);
  expect(out[2], DType::kF32, {3}, {1, 2, 4});
}

TEST(PaddleOperations, AnOutputSizeAddsCellsBehind) {
  PirProgram p;
  const int x = p.input("x", "f32", "[1,1,1,2]"), filter = p.input("w", "f32", "[1,1,1,3]");
  const int size = p.integers("[1,4]", "[2]");
  p.fetch(p.op("conv2d_transpose", {x, filter, size},
               {PirProgram::number("strides", "[1,2]"), PirProgram::number("dilations", "[1,1]"),
                PirProgram::number("paddings", "[0,1]"), PirProgram::number("groups", "1"),
                PirProgram::number("output_padding", "[]")},
               "f32", "[1,1,1,4]"),
          "f32", "[1,1,1,4]");
  // 1, 2 with stride 2 and the filter 1 10 100: [1, 10, 102, 20, 200] without its first cell.
  const auto out = run(p.write("output_size"),
                       {floats({1, 2}, {1, 1, 1, 2}), floats({1, 10, 100}, {1, 1, 1, 3})});
  expect(out[0], DType::kF32, {1, 1, 1, 4}, {10, 102, 20, 200});
}

TEST(PaddleOperations, BatchNormWorksWithoutScaleAndBias) {
  PirProgram p;
  const int x = p.input("x", "f32", "[1,2,1,1]"), mean = p.input("m", "f32", "[2]"),
            variance = p.input("v", "f32", "[2]");
  p.fetch(p.op("batch_norm_", {x, mean, variance},
               {PirProgram::number("is_test", "true"), PirProgram::number("epsilon", "0.0")}, "f32",
               "[1,2,1,1]"),
          "f32", "[1,2,1,1]");
  const auto out = run(p.write("batch_norm"),
                       {floats({3, 8}, {1, 2, 1, 1}), floats({1, 2}, {2}), floats({4, 9}, {2})});
  expect(out[0], DType::kF32, {1, 2, 1, 1}, {1, 2});
}

/// Resizing of [1, 1, 3, 1] to one row.
std::vector<Array> resized(const std::string& name, const std::string& file) {
  PirProgram p;
  const int x = p.input("x", "f32", "[1,1,3,1]");
  p.fetch(
      p.op(name, {x},
           {PirProgram::number("out_h", "1"), PirProgram::number("out_w", "1"),
            PirProgram::number("align_corners", "false"), PirProgram::number("align_mode", "0")},
           "f32", "[1,1,1,1]"),
      "f32", "[1,1,1,1]");
  return run(p.write(file), {floats({1, 2, 4}, {1, 1, 3, 1})});
}

TEST(PaddleOperations, ResizingToOneElementReadsTheFirst) {
  expect(resized("bilinear_interp", "bilinear")[0], DType::kF32, {1, 1, 1, 1}, {1});
  // A cubic kernel (a = -0.75) between the first element and its repetition.
  expect(resized("bicubic_interp", "bicubic")[0], DType::kF32, {1, 1, 1, 1},
         {1.09375 - 2 * 0.09375});
}

TEST(PaddleOperations, AdaptivePoolingHasBinsOfDifferentSizes) {
  PirProgram p;
  const int x = p.input("x", "f32", "[1,1,1,5]");
  for (const char* kind : {R"("avg")", R"("max")"})
    p.fetch(p.op("pool2d", {x, p.integers("[1,3]", "[2]")},
                 {PirProgram::number("adaptive", "true"),
                  PirProgram::attribute("pooling_type", R"("0.a_str")", kind)},
                 "f32", "[1,1,1,3]"),
            "f32", "[1,1,1,3]");
  // Bins 0 to 2, 1 to 4 and 3 to 5.
  const auto out = run(p.write("adaptive"), {floats({1, 2, 3, 4, 5}, {1, 1, 1, 5})});
  expect(out[0], DType::kF32, {1, 1, 1, 3}, {1.5, 3, 4.5});
  expect(out[1], DType::kF32, {1, 1, 1, 3}, {2, 4, 5});
}

TEST(PaddleOperations, SamePaddingIgnoresDilations) {
  PirProgram p;
  const int x = p.input("x", "f32", "[1,1,4,4]"), filter = p.input("w", "f32", "[1,1,3,3]");
  const auto attributes = [](const char* strides) {
    return std::vector<std::string>{
        PirProgram::number("strides", strides), PirProgram::number("dilations", "[2,2]"),
        PirProgram::number("paddings", "[0,0]"), PirProgram::number("groups", "1"),
        PirProgram::attribute("padding_algorithm", R"("0.a_str")", R"("SAME")")};
  };
  p.fetch(p.op("conv2d", {x, filter}, attributes("[1,1]"), "f32", "[1,1,4,4]"), "f32", "[1,1,4,4]");
  // Transposed: the padding of a convolution of 4 by 3 with stride 2, one cell after each axis.
  p.fetch(p.op("conv2d_transpose", {x, filter}, attributes("[2,2]"), "f32", "[1,1,8,8]"), "f32",
          "[1,1,8,8]");
  const auto out = run(p.write("same"), {floats(std::vector<float>(16, 1), {1, 1, 4, 4}),
                                         floats(std::vector<float>(9, 1), {1, 1, 3, 3})});
  expect(out[0], DType::kF32, {1, 1, 4, 4}, {4, 6, 6, 4, 6, 9, 9, 6});
  expect(out[1], DType::kF32, {1, 1, 8, 8}, {1, 1, 2, 1, 2, 1, 2, 1});
}

TEST(PaddleOperations, RoundKeepsDecimals) {
  PirProgram p;
  const int x = p.input("x", "f32", "[2]");
  p.fetch(p.op("round", {x}, {PirProgram::number("decimals", "1")}, "f32", "[2]"), "f32", "[2]");
  expect(run(p.write("round"), {floats({1.26F, -0.51F}, {2})})[0], DType::kF32, {2}, {1.3, -0.5});
}

TEST(PaddleOperations, MeansCountPaddingAfterAnAxisAsThatBeforeIt) {
  PirProgram p;
  const int x = p.input("x", "f32", "[1,1,1,3]");
  p.fetch(p.op("pool2d", {x, p.integers("[1,2]", "[2]")},
               {PirProgram::attribute("pooling_type", R"("0.a_str")", R"("avg")"),
                PirProgram::number("strides", "[1,2]"), PirProgram::number("paddings", "[0,0,0,1]"),
                PirProgram::number("exclusive", "false")},
               "f32", "[1,1,1,2]"),
          "f32", "[1,1,1,2]");
  // The last window has one cell, as there is no padding before the axis.
  expect(run(p.write("means"), {floats({1, 3, 5}, {1, 1, 1, 3})})[0], DType::kF32, {1, 1, 1, 2},
         {2, 5});
}

// --- programs in protobuf ---

std::string varint(uint64_t value) {
  std::string out;
  for (; value > 127; value >>= 7) out += static_cast<char>(value | 128);
  return out + static_cast<char>(value);
}
std::string field(int number, const std::string& bytes) {
  return varint(static_cast<uint64_t>(number) << 3 | 2) + varint(bytes.size()) + bytes;
}
std::string field(int number, uint64_t value) {
  return varint(static_cast<uint64_t>(number) << 3) + varint(value);
}

/// framework.proto: the variables and operations of the first block.
class ProtobufProgram {
 public:
  /// `type` is a VarType.Type: 3 int64, 5 float32.
  void variable(const std::string& name, uint64_t type, const std::vector<int64_t>& dims,
                bool parameter = false) {
    std::string tensor = field(1, type);
    for (const int64_t size : dims) tensor += field(2, static_cast<uint64_t>(size));
    const std::string description = field(1, uint64_t{7}) + field(3, field(1, tensor));
    block_ += field(3, field(1, name) + field(2, description) + field(3, uint64_t{parameter}));
  }
  void op(const std::string& type, const std::vector<std::pair<std::string, std::string>>& inputs,
          const std::pair<std::string, std::string>& output,
          const std::vector<std::string>& attributes) {
    std::string out;
    for (const auto& [slot, name] : inputs) out += field(1, field(1, slot) + field(2, name));
    out += field(2, field(1, output.first) + field(2, output.second)) + field(3, type);
    for (const std::string& each : attributes) out += field(4, each);
    block_ += field(4, out);
  }
  void feed(const std::string& name) {
    op("feed", {{"X", "feed"}}, {"Out", name}, {integer("col", 0)});
  }
  void fetch(const std::string& name) {
    op("fetch", {{"X", name}}, {"Out", "fetch"}, {integer("col", 0)});
  }
  std::string bytes() const { return field(1, block_); }

  static std::string integer(const std::string& name, int64_t value) {
    return field(1, name) + field(2, uint64_t{0}) + field(3, static_cast<uint64_t>(value));
  }
  static std::string integers(const std::string& name, const std::vector<int64_t>& values) {
    std::string out = field(1, name) + field(2, uint64_t{3});
    for (const int64_t each : values) out += field(6, static_cast<uint64_t>(each));
    return out;
  }
  /// Scalars of int64.
  static std::string scalars(const std::string& name, const std::vector<int64_t>& values) {
    std::string out = field(1, name) + field(2, uint64_t{17});
    for (const int64_t each : values)
      out += field(21, field(1, uint64_t{2}) + field(3, static_cast<uint64_t>(each)));
    return out;
  }

 private:
  std::string block_;
};

std::string written(const std::string& name, const std::string& bytes) {
  const std::string path = testing::TempDir() + "/paddle_operations/" + name;
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

TEST(PaddleOperations, IntegersKeepAllTheirBits) {
  ProtobufProgram p;
  p.variable("x", 3, {1});
  p.variable("c", 3, {1});
  p.variable("y", 3, {1});
  p.feed("x");
  p.op("assign_value", {}, {"Out", "c"},
       {ProtobufProgram::integers("shape", {1}), ProtobufProgram::integer("dtype", 3),
        ProtobufProgram::scalars("values", {9007199254740993})});
  p.op("elementwise_add", {{"X", "x"}, {"Y", "c"}}, {"Out", "y"},
       {ProtobufProgram::integer("axis", -1)});
  p.fetch("y");
  const auto out = run(written("bits.pdmodel", p.bytes()), {Array::from<int64_t>({1}, {1})});
  EXPECT_EQ(out[0].integer(0), 9007199254740994);
}

TEST(PaddleOperations, ExpandOfTheFirstVersionRepeats) {
  ProtobufProgram p;
  p.variable("x", 5, {1, 2});
  p.variable("y", 5, {2, 4});
  p.feed("x");
  p.op("expand", {{"X", "x"}}, {"Out", "y"}, {ProtobufProgram::integers("expand_times", {2, 2})});
  p.fetch("y");
  const auto out = run(written("expand.pdmodel", p.bytes()), {floats({1, 2}, {1, 2})});
  expect(out[0], DType::kF32, {2, 4}, {1, 2, 1, 2, 1, 2, 1, 2});
}

TEST(PaddleOperations, FillConstantTakesItsValueFromAnOperand) {
  ProtobufProgram p;
  p.variable("v", 5, {1});
  p.variable("y", 5, {2, 3});
  p.feed("v");
  p.op("fill_constant", {{"ValueTensor", "v"}}, {"Out", "y"},
       {ProtobufProgram::integers("shape", {2, 3}), ProtobufProgram::integer("dtype", 5)});
  p.fetch("y");
  const auto out = run(written("fill.pdmodel", p.bytes()), {floats({1.5F}, {1})});
  expect(out[0], DType::kF32, {2, 3}, {1.5, 1.5, 1.5, 1.5, 1.5, 1.5});
}

/// A tensor as .pdiparams has it.
std::string stored(uint64_t type, const std::vector<int64_t>& dims, const std::string& elements) {
  std::string description = field(1, type);
  for (const int64_t size : dims) description += field(2, static_cast<uint64_t>(size));
  const auto fixed = [](uint64_t value, size_t bytes) {
    return std::string(reinterpret_cast<const char*>(&value), bytes);
  };
  return fixed(0, 4) + fixed(0, 8) + fixed(0, 4) + fixed(description.size(), 4) + description +
         elements;
}
std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

TEST(PaddleOperations, FoldersHaveAFileForEachParameterOrOneForAll) {
  ProtobufProgram p;
  p.variable("x", 5, {2});
  p.variable("fc.b", 5, {2}, true);
  p.variable("fc.a", 5, {2}, true);
  p.variable("s", 5, {2});
  p.variable("y", 5, {2});
  p.feed("x");
  p.op("elementwise_mul", {{"X", "x"}, {"Y", "fc.a"}}, {"Out", "s"},
       {ProtobufProgram::integer("axis", -1)});
  p.op("elementwise_add", {{"X", "s"}, {"Y", "fc.b"}}, {"Out", "y"},
       {ProtobufProgram::integer("axis", -1)});
  p.fetch("y");
  const std::string a = stored(5, {2}, bytes_of({2, 3})), b = stored(5, {2}, bytes_of({10, 20}));
  written("each/__model__", p.bytes());
  written("each/fc.a", a);
  written("each/fc.b", b);
  written("all/__model__", p.bytes());
  const std::string joined = written("all/__params__", a + b);
  for (const char* folder : {"each", "all"})
    for (const char* file : {"", "/", "/__model__"}) {
      const std::string path = testing::TempDir() + "/paddle_operations/" + folder + file;
      ASSERT_TRUE(is_graph_file(path)) << path;
      expect(run(path, {floats({1, 1}, {2})})[0], DType::kF32, {2}, {12, 23});
    }
  // The form of later versions in a folder.
  written("later/net.pdmodel", p.bytes());
  written("later/net.pdiparams", a + b);
  const std::string later = testing::TempDir() + "/paddle_operations/later";
  ASSERT_TRUE(is_graph_file(later));
  expect(run(later, {floats({1, 1}, {2})})[0], DType::kF32, {2}, {12, 23});
  fs::remove(joined);
  EXPECT_THROW(import_program(testing::TempDir() + "/paddle_operations/all"), Error);
}

TEST(PaddleOperations, QuantizedProgramsDeclareScalesAndWeightsInAnotherForm) {
  ProtobufProgram p;
  p.variable("x", 5, {1, 2});
  p.variable("x@scale", 5, {1}, true);
  p.variable("w", 5, {2, 1}, true);
  p.variable("w@scale", 5, {1}, true);
  for (const char* name : {"x.q", "x.dq"}) p.variable(name, 5, {1, 2});
  p.variable("w.dq", 5, {2, 1});
  p.variable("y", 5, {1, 1});
  p.feed("x");
  const auto attributes = [](int64_t axis) {
    return std::vector<std::string>{ProtobufProgram::integer("quant_axis", axis),
                                    ProtobufProgram::integer("bit_length", 8)};
  };
  p.op("quantize_linear", {{"X", "x"}, {"Scale", "x@scale"}}, {"Y", "x.q"}, attributes(-1));
  p.op("dequantize_linear", {{"X", "x.q"}, {"Scale", "x@scale"}}, {"Y", "x.dq"}, attributes(-1));
  p.op("dequantize_linear", {{"X", "w"}, {"Scale", "w@scale"}}, {"Y", "w.dq"}, attributes(1));
  p.op("matmul_v2", {{"X", "x.dq"}, {"Y", "w.dq"}}, {"Out", "y"}, {});
  p.fetch("y");
  const std::string path = written("quantized.pdmodel", p.bytes());
  // Sorted by name: w (int8), w@scale [1], x@scale without axes.
  written("quantized.pdiparams", stored(21, {2, 1}, std::string{127, 64}) +
                                     stored(5, {1}, bytes_of({1.27F})) +
                                     stored(5, {}, bytes_of({12.7F})));
  // Steps of 0.1 and 0.01: x becomes 1.0 and -12.8 (the least integer), w 1.27 and 0.64.
  const auto out = run(path, {floats({1.04F, -20}, {1, 2})});
  expect(out[0], DType::kF32, {1, 1}, {1.27 - 12.8 * 0.64});
}

std::string rejection(const std::string& path) {
  try {
    import_program(path);
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.code())) + " " + error.what();
  }
  return "";
}

TEST(PaddleOperations, AnAttributeThatNoRuleKnowsRejectsTheProgram) {
  PirProgram p;
  const int x = p.input("x", "f32", "[2]");
  const int y = p.op("relu", {x}, {PirProgram::number("upper", "6")}, "f32", "[2]");
  p.fetch(
      p.op("cumprod", {y}, {PirProgram::number("dim", "0"), PirProgram::number("reverse", "true")},
           "f32", "[2]"),
      "f32", "[2]");
  const std::string message = rejection(p.write("attribute"));
  EXPECT_EQ(message.substr(0, 2), "3 ") << message;
  EXPECT_NE(
      message.find("relu: the attribute upper is 6, which is not supported (block 0, operation 1)"),
      std::string::npos)
      << message;
  EXPECT_NE(message.find("cumprod: the attribute reverse is 1, only 0 is supported"),
            std::string::npos)
      << message;
}

TEST(PaddleOperations, AttributesWithoutEffectAreAccepted) {
  PirProgram p;
  const int x = p.input("x", "f32", "[2]");
  p.fetch(p.op("relu", {x},
               {PirProgram::number("use_upper", "false"), PirProgram::number("axes", "[]"),
                PirProgram::attribute("op_device", R"("0.a_str")", R"("cpu")")},
               "f32", "[2]"),
          "f32", "[2]");
  expect(run(p.write("neutral"), {floats({-1, 2}, {2})})[0], DType::kF32, {2}, {0, 2});
}

TEST(PaddleOperations, AnOperandThatNoRuleKnowsRejectsTheProgram) {
  PirProgram pir;
  const int x = pir.input("x", "f32", "[2]");
  pir.fetch(pir.op("relu", {x, x}, {}, "f32", "[2]"), "f32", "[2]");
  EXPECT_NE(rejection(pir.write("operand")).find("relu: operand 1 is not supported"),
            std::string::npos);
  ProtobufProgram p;
  p.variable("x", 5, {2});
  p.variable("y", 5, {2});
  p.feed("x");
  p.op("relu", {{"X", "x"}, {"Bound", "x"}}, {"Out", "y"},
       {field(1, "op_callstack") + field(2, uint64_t{5}) +
        field(8, "  File \"net.py\", line 12, in forward")});
  p.fetch("y");
  const std::string message = rejection(written("operand.pdmodel", p.bytes()));
  EXPECT_NE(
      message.find("relu: the operand Bound is not supported (block 0, operation 1, net.py:12)"),
      std::string::npos)
      << message;
}

TEST(PaddleOperations, AMissingOperandRejectsTheProgram) {
  PirProgram p;
  const int x = p.input("x", "f32", "[2]");
  p.fetch(p.op("add", {x}, {}, "f32", "[2]"), "f32", "[2]");
  EXPECT_NE(rejection(p.write("missing")).find("add: its operand 'Y' is missing"),
            std::string::npos);
}

}  // namespace
}  // namespace paddle::paddle_program
