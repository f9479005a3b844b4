// A planted error in an exported graph is found at its node.
#include "exporter/bisect.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "program/traced_model.h"
#include "tensor/random.h"

namespace paddle::exporter {
namespace {

class Bisect : public testing::Test {
 protected:
  Bisect() : traced_(program::trace_model("models/lenet.yaml", {})) {
    exported_ = onnx::export_function(*traced_.function, traced_.weight, {});
    Array image = Array::empty(DType::kF32, {2, 1, 28, 28});
    const Random random(1, 2);
    for (int64_t i = 0; i < image.size(); ++i)
      image.data<float>()[i] = static_cast<float>(random.uniform(static_cast<uint64_t>(i)));
    inputs_["image"] = image;
  }
  std::optional<NodeDifference> find() const {
    return first_difference(
        exported_, traced_.weight, inputs_,
        [](const Array&) {
          return inspect::Tolerance{1e-3, 1e-4};
        },
        [](const std::string& path) { return program::load_model(path, {}); },
        testing::TempDir() + "/paddle_bisect.onnx");
  }

  program::TracedModel traced_;
  onnx::ExportedModel exported_;
  std::map<std::string, Array> inputs_;
};

TEST_F(Bisect, FindsNothingInACorrectFile) { EXPECT_FALSE(find().has_value()); }

TEST_F(Bisect, FindsEachPlantedError) {
  size_t planted = 0;
  for (size_t i = 0; i < exported_.model.graph.nodes.size(); ++i) {
    auto& node = exported_.model.graph.nodes[i];
    const auto before = node;
    if (node.op_type == "Relu") {
      node.op_type = "Sigmoid";
    } else if (node.op_type == "Gemm") {
      formats::onnx::Attribute& alpha = node.attributes.emplace_back();
      alpha.name = "alpha";
      alpha.kind = formats::onnx::AttributeKind::kFloat;
      alpha.f = 0.5f;
    } else {
      continue;
    }
    ++planted;
    const auto found = find();
    ASSERT_TRUE(found.has_value()) << before.name;
    EXPECT_EQ(found->node, before.name);
    EXPECT_EQ(found->op_type, node.op_type);
    EXPECT_NE(found->source.find("lenet.yaml:"), std::string::npos) << found->source;
    EXPECT_FALSE(found->difference.empty());
    EXPECT_NE(found->text().find(before.name), std::string::npos);
    node = before;
  }
  EXPECT_GE(planted, 6u);
  EXPECT_FALSE(std::filesystem::exists(testing::TempDir() + "/paddle_bisect.onnx"));
}

}  // namespace
}  // namespace paddle::exporter
