// recompute: values inside of layers are computed again by the backward pass, with the same bits
// and less memory.

#include "compiler/passes/schedule/recompute.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"
#include "runtime/compile.h"

namespace paddle {
namespace {

constexpr int kLayers = 6;

/// Layers of a product and a tanh, and a chain that reads their values in the opposite order.
std::string module_text() {
  std::string text =
      "module 'm' {\n  func 'f'(%0 : float32[64, 96] 'x', %1 : float32[96, 96] 'w') {\n";
  int last = 0, next = 2;
  std::vector<std::pair<int, int>> layers;
  for (int i = 0; i < kLayers; ++i) {
    const std::string at = str("  // m.yaml:1:1 @layer.", i, ".linear\n");
    text += str("    %", next, " = matmul(%", last, ", %1) : float32[64, 96]", at);
    text += str("    %", next + 1, " = sort_pairs(%", next,
                ") {axis = 1, descending = false} : "
                "float32[64, 96], int64[64, 96]",
                at);
    text.replace(text.rfind(str("%", next + 1, " =")), str("%", next + 1, " =").size(),
                 str("%", next + 1, ", %", next + 2, " ="));
    text += str("    %", next + 3, " = tanh(%", next + 1, ") : float32[64, 96]", at);
    layers.emplace_back(next + 1, next + 3);
    last = next + 3;
    next += 4;
  }
  text += str("    %", next, " = sum(%", last, ") : float32[]\n");
  const int loss = next++;
  int gradient = last;
  for (auto it = layers.rbegin(); it != layers.rend(); ++it) {
    const std::string at = "  // m.yaml:1:1 @layer (gradient)\n";
    text +=
        str("    %", next, " = multiply(%", gradient, ", %", it->first, ") : float32[64, 96]", at);
    text += str("    %", next + 1, " = matmul(%", next, ", %1) : float32[64, 96]", at);
    text += str("    %", next + 2, " = subtract(%", next + 1, ", %", it->second,
                ") : float32[64, 96]", at);
    gradient = next + 2;
    next += 3;
  }
  return text + str("    return %", loss, " 'loss', %", gradient, " 'g'\n  }\n}\n");
}

struct Found {
  std::vector<float> values;
  size_t arena = 0;
};

Found run(const std::optional<passes::RecomputeOptions>& recompute) {
  compiler::CompileOptions options;
  options.recompute = recompute;
  const auto executable = runtime::compile(ir::parse(module_text(), "m.ir").functions[0], options);
  const auto drawn = [](const Dims& shape) {
    Array a = Array::zeros(DType::kF32, shape);
    for (int64_t i = 0; i < a.size(); ++i)
      a.data<float>()[i] = 0.2f * std::sin(1.3f * static_cast<float>(i));
    return a;
  };
  Found found;
  const std::vector<Array> inputs = {drawn({64, 96}), drawn({96, 96})};
  for (const Array& a : executable->run(inputs))
    found.values.insert(found.values.end(), a.data<float>(), a.data<float>() + a.size());
  found.arena = executable->prepare(inputs).memory().arena;
  return found;
}

passes::Recomputed rewrite(const passes::RecomputeOptions& options) {
  ir::Module module = ir::parse(module_text(), "m.ir");
  const passes::Recomputed found = passes::recompute(*module.functions[0], options);
  ir::verify(module);
  return found;
}

TEST(Recompute, KeepsBitsAndSavesMemory) {
  const Found plain = run(std::nullopt), full = run(passes::RecomputeOptions{});
  EXPECT_EQ(full.values, plain.values);
  EXPECT_LT(full.arena, plain.arena);
  const Found half = run(passes::RecomputeOptions{{}, kLayers / 2});
  EXPECT_EQ(half.values, plain.values);
  EXPECT_LT(half.arena, plain.arena);
}

TEST(Recompute, FindsLayers) {
  // A layer's last value is read by the next one and kept; the last layer's value by the loss.
  EXPECT_EQ(rewrite({}).layers, kLayers);
  EXPECT_EQ(rewrite({}).operations, 2 * kLayers);
  EXPECT_EQ(rewrite({{"layer.1*"}, -1}).layers, 1);
  EXPECT_EQ(rewrite({{"layer.1*"}, -1}).operations, 2);
  EXPECT_EQ(rewrite({{"*.linear"}, -1}).layers, kLayers);
  EXPECT_EQ(rewrite({{}, 2}).operations, 4);
  EXPECT_EQ(rewrite({{}, 0}).operations, 0);
  EXPECT_EQ(rewrite({{"none.*"}, -1}).layers, 0);
}

TEST(Recompute, CutsFunctionsWithoutLayersIntoParts) {
  std::string text = module_text();
  for (size_t at; (at = text.find("@layer")) != std::string::npos;) text.replace(at, 6, "@line");
  for (int i = 0; i < kLayers; ++i)
    for (size_t at; (at = text.find(str("@line.", i, "."))) != std::string::npos;)
      text.replace(at, 8, "@line.");
  ir::Module module = ir::parse(text, "m.ir");
  const passes::Recomputed found = passes::recompute(*module.functions[0], {});
  ir::verify(module);
  EXPECT_EQ(found.layers, 4);  // sqrt of 3 operations a layer and the sum
  EXPECT_GT(found.operations, 0);
}

}  // namespace
}  // namespace paddle
