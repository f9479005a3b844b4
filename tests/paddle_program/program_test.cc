// Programs of PaddlePaddle, as models: their outputs are PaddlePaddle's (make_programs.py).
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "formats/npz.h"
#include "formats/paddle_program.h"
#include "onnx/graph/session.h"
#include "paddle_program/register.h"
#include "paddle_program/training_program.h"
#include "runtime/execute.h"

namespace paddle::paddle_program {
namespace {

using onnx::Session;
using onnx::Values;

namespace fs = std::filesystem;

const std::string kFolder = "tests/paddle_program/data/";

class PaddleProgram : public testing::TestWithParam<std::string> {};

TEST_P(PaddleProgram, ComputesWhatPaddlePaddleDoes) {
  runtime::register_backends();
  const std::string file = GetParam();
  const formats::NpzReader expected(kFolder + file.substr(0, file.find('_')) + ".npz");
  register_programs();
  Session session(kFolder + file, {});
  Values inputs;
  for (size_t i = 0; i < session.inputs().size(); ++i)
    inputs.emplace_back(Tensor(expected.read("in" + std::to_string(i))));
  const Values found = session.run(inputs);
  ASSERT_GE(found.size(), 1u);
  for (size_t i = 0; i < found.size(); ++i) {
    const Array wanted = expected.read("out" + std::to_string(i));
    const Array got = found[i].tensor().array();
    ASSERT_EQ(got.shape, wanted.shape) << i;
    ASSERT_EQ(got.dtype, wanted.dtype) << i;
    for (int64_t k = 0; k < wanted.size(); ++k)
      ASSERT_NEAR(got.number(k), wanted.number(k), 1e-5) << "output " << i << ", element " << k;
  }
}

TEST(PaddlePrograms, OutputsKeepTheirNames) {
  runtime::register_backends();
  register_programs();
  const formats::PaddleProgram program =
      formats::read_paddle_program(kFolder + "words_program.pdmodel");
  std::vector<std::string> fetched;
  for (const auto& operation : program.blocks[0].operations)
    if (operation.type == "fetch") fetched.push_back(operation.inputs.at(0).second.at(0));
  const Session session(kFolder + "words_program.pdmodel", {});
  ASSERT_EQ(session.outputs().size(), fetched.size());
  for (size_t i = 0; i < fetched.size(); ++i) EXPECT_EQ(session.outputs()[i].name, fetched[i]);
}

INSTANTIATE_TEST_SUITE_P(, PaddleProgram,
                         testing::Values("pictures_pir.json", "pictures_program.pdmodel",
                                         "words_pir.json", "words_program.pdmodel",
                                         "steps_pir.json", "steps_program.pdmodel"),
                         [](const auto& name) {
                           std::string out = name.param;
                           out[out.find('.')] = '_';
                           return out;
                         });

std::string message_of(const std::string& path) {
  try {
    import_program(path);
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.code())) + " " + error.what();
  }
  return "";
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(PaddleProgramErrors, ListsAllOperationsThatAreNotThere) {
  const std::string folder = testing::TempDir() + "/paddle_program";
  fs::create_directories(folder);
  std::string text = read(kFolder + "words_pir.json");
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"\"1.tanh\"", "\"1.warp\""},
                                 {"\"1.gelu\"", "\"1.weft\""}})
    text.replace(text.find(from), from.size(), to);
  write(folder + "/x.json", text);
  fs::copy_file(kFolder + "words_pir.pdiparams", folder + "/x.pdiparams",
                fs::copy_options::overwrite_existing);
  const std::string message = message_of(folder + "/x.json");
  EXPECT_EQ(message.substr(0, 2), "3 ") << message;
  EXPECT_NE(message.find("2 operations cannot be imported"), std::string::npos) << message;
  EXPECT_NE(message.find("warp: unsupported operation"), std::string::npos) << message;
  EXPECT_NE(message.find("weft: unsupported operation"), std::string::npos) << message;
}

TEST(PaddleProgramErrors, RejectsDamagedFiles) {
  const std::string folder = testing::TempDir() + "/paddle_program";
  fs::create_directories(folder);
  fs::remove(folder + "/y.pdiparams");
  const std::string text = read(kFolder + "pictures_program.pdmodel");
  write(folder + "/y.pdmodel", text);
  EXPECT_NE(message_of(folder + "/y.pdmodel").find("y.pdiparams: no such file"), std::string::npos);
  fs::copy_file(kFolder + "steps_pir.pdiparams", folder + "/y.pdiparams",
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(message_of(folder + "/y.pdmodel").substr(0, 2), "5 ");
  for (const size_t size : {size_t{0}, size_t{1}, text.size() / 2, text.size() - 1}) {
    write(folder + "/y.pdmodel", text.substr(0, size));
    EXPECT_EQ(message_of(folder + "/y.pdmodel").substr(0, 2), "5 ") << size;
  }
  for (const char* json : {"", "{}", "[]", "{\"base_code\": {\"magic\": \"pir\"}}"}) {
    write(folder + "/y.json", json);
    EXPECT_EQ(message_of(folder + "/y.json").substr(0, 2), "5 ") << json;
  }
}

using Operation = formats::PaddleOperation;

Operation operation(const std::string& type, std::vector<std::string> inputs,
                    std::vector<std::string> outputs) {
  Operation out;
  out.type = type;
  out.inputs = {{"X", std::move(inputs)}};
  out.outputs = {{"Out", std::move(outputs)}};
  return out;
}

std::vector<std::string> types_of(const formats::PaddleProgram& program) {
  std::vector<std::string> out;
  for (const Operation& each : program.blocks[0].operations) out.push_back(each.type);
  return out;
}

// Decay and clipping are operations like those of the forward pass; the gradient of a square root
// reads the loss.
TEST(TrainingPrograms, KeepTheForwardPass) {
  formats::PaddleProgram program;
  program.is_pir = true;
  program.variables["w"].is_parameter = program.variables["rate"].is_parameter = true;
  auto& operations = program.blocks.emplace_back().operations;
  operations = {operation("data", {}, {"velocity"}),
                operation("data", {}, {"x"}),
                operation("matmul", {"x", "w"}, {"h"}),
                operation("dropout", {"h"}, {"d", "mask"}),
                operation("mean", {"d"}, {"m"}),
                operation("sqrt", {"m"}, {"loss"}),
                operation("full", {}, {"one"}),
                operation("full_like", {"loss", "one"}, {"g0"}),
                operation("sqrt_grad", {"loss", "g0"}, {"g1"}),
                operation("matmul_grad", {"x", "w", "g1"}, {"g2"}),
                operation("scale", {"w"}, {"decay"}),
                operation("add", {"g2", "decay"}, {"g3"}),
                operation("squared_l2_norm", {"g3"}, {"norm"}),
                operation("multiply", {"g3", "norm"}, {"g4"}),
                operation("momentum_", {"w", "g4", "velocity", "rate"}, {"w1", "velocity1"})};
  operations[3].attributes["is_test"].integers = {0};
  const auto before = types_of(program);
  formats::PaddleProgram other = program;
  other.blocks[0].operations.pop_back();
  keep_forward(other);
  EXPECT_EQ(types_of(other), std::vector<std::string>(before.begin(), before.end() - 1));

  keep_forward(program);
  EXPECT_EQ(types_of(program),
            (std::vector<std::string>{"data", "matmul", "dropout", "mean", "sqrt", "fetch"}));
  EXPECT_EQ(operations.back().inputs[0].second, std::vector<std::string>{"loss"});
  EXPECT_EQ(operations[2].attributes["is_test"].integers, std::vector<int64_t>{1});
  EXPECT_EQ(program.parameters(), std::vector<std::string>{"w"});
}

// A block that contains itself, as a damaged file may state it.
TEST(TrainingPrograms, EndOnBlocksWithinThemselves) {
  formats::PaddleProgram program;
  auto& operations = program.blocks.emplace_back().operations;
  operations = {operation("while", {"x"}, {"y"}), operation("while", {"y"}, {"z"}),
                operation("sgd", {"z"}, {"w"})};
  operations[0].blocks = operations[1].blocks = {0, 7};
  keep_forward(program);
  EXPECT_LE(operations.size(), 5u);
}

}  // namespace
}  // namespace paddle::paddle_program
