#include "onnx/graph/partitions.h"

#include <unistd.h>

#include <filesystem>
#include <set>

#include <gtest/gtest.h>

#include "base/files.h"
#include "support/onnx_bytes.h"

namespace paddle::onnx {
namespace {

using namespace testing_support;

struct Model {
  std::unique_ptr<Session> session;
  std::shared_ptr<std::set<std::string>> functions = std::make_shared<std::set<std::string>>();
};

Model model_of(const std::string& graph, Mode mode) {
  const std::string path =
      testing::TempDir() + "/paddle_sections_" + std::to_string(::getpid()) + ".onnx";
  write_file_atomically(path, onnx_model(graph));
  Model out;
  SessionOptions options{.mode = mode};
  options.observe.stage = [names = out.functions](const ir::Function& f, const std::string&) {
    names->insert(f.name);
  };
  out.session = std::make_unique<Session>(path, options);
  std::filesystem::remove(path);
  return out;
}

/// Outputs of a run as text.
std::string result(const Model& model, const Values& inputs) {
  std::string out;
  for (const Value& v : model.session->run(inputs)) out += text(v.tensor().array().contiguous());
  return out;
}

Value floats(const std::vector<float>& values, const Dims& shape) {
  return Value(Tensor(Array::from<float>(values, shape)));
}

Value integer(int64_t value) { return Value(Tensor(Array::scalar<int64_t>(value))); }

/// Runs each input once, then all again, with and without partitions. `made`: partitions in the
/// end.
void expect_same(const std::string& graph, const std::vector<Values>& inputs, size_t made) {
  const Model eager = model_of(graph, Mode::kEager);
  for (const Mode mode : {Mode::kPartitions, Mode::kAutomatic}) {
    const Model model = model_of(graph, mode);
    for (int turn = 0; turn < 3; ++turn)
      for (const Values& x : inputs) EXPECT_EQ(result(model, x), result(eager, x));
    if (mode == Mode::kPartitions) {
      EXPECT_EQ(model.functions->size(), made);
    }
  }
  EXPECT_TRUE(eager.functions->empty());
}

const std::string kX = value_info("x", 1, {"m", "n"});
const std::string kY = value_info("y", 1, {"k"});

TEST(OnnxPartitions, SurroundDataDependentNodes) {
  // The elements above zero; their number is data-dependent.
  const std::string graph =
      onnx_graph({onnx_node("Relu", {"x"}, {"a"}), onnx_node("Add", {"a", "a"}, {"b"}),
                  onnx_node("NonZero", {"b"}, {"where"}),
                  onnx_node("Transpose", {"where"}, {"at"}, {ints_attribute("perm", {1, 0})}),
                  onnx_node("GatherND", {"b", "at"}, {"c"}), onnx_node("Mul", {"c", "c"}, {"d"}),
                  onnx_node("Sub", {"d", "c"}, {"y"})},
                 {kX}, {kY});
  expect_same(graph,
              {{floats({1, -2, 3, -4, 5, 6}, {2, 3})}, {floats({-1, -2, 3, -4, -5, 6}, {2, 3})}},
              3);  // before, and after for 4 and for 2 elements
}

TEST(OnnxPartitions, AreGuardedByShapes) {
  // The second partition sees six elements each time; the shape of x, a guard, decides their
  // layout.
  const std::string graph =
      onnx_graph({onnx_node("Shape", {"x"}, {"s"}), onnx_node("Reshape", {"x", "six"}, {"flat"}),
                  onnx_node("Reshape", {"flat", "to"}, {"cut"}),
                  onnx_node("Mul", {"cut", "cut"}, {"a"}), onnx_node("Reshape", {"a", "s"}, {"y"})},
                 {kX, value_info("to", 7, {"1"})}, {value_info("y", 1, {"m", "n"})},
                 {onnx_int64s("six", {6})});
  const Value to(Tensor(Array::from<int64_t>({6}, {1})));
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  expect_same(graph, {{floats(x, {2, 3}), to}, {floats(x, {3, 2}), to}}, 4);
}

TEST(OnnxPartitions, CompileLoopBodies) {
  // v = (v + v) * x, n times; v of each iteration is a scan output.
  const std::string body = onnx_graph(
      {onnx_node("Identity", {"go"}, {"on"}), onnx_node("Add", {"v", "v"}, {"twice"}),
       onnx_node("Mul", {"twice", "x"}, {"next"}), onnx_node("Identity", {"next"}, {"seen"})},
      {value_info("i", 7, {}), value_info("go", 9, {}), value_info("v", 1, {"2"})},
      {value_info("on", 9, {}), value_info("next", 1, {"2"}), value_info("seen", 1, {"2"})});
  const std::string graph = onnx_graph(
      {onnx_node("Loop", {"n", "", "x"}, {"last", "y"}, {graph_attribute("body", body)})},
      {value_info("x", 1, {"2"}), value_info("n", 7, {})},
      {value_info("last", 1, {"2"}), value_info("y", 1, {"k", "2"})});
  expect_same(graph,
              {{floats({1, 2}, {2}), integer(6)},
               {floats({3, -1}, {2}), integer(5)},
               {floats({3, -1}, {2}), integer(0)}},
              1);
}

}  // namespace
}  // namespace paddle::onnx
