// Operators of com.microsoft and com.microsoft.nchwc, and old versions of standard ones, against
// results of ONNX Runtime (tests/data/microsoft/make_models.py).

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "formats/npz.h"
#include "onnx/graph/session.h"
#include "support/numbers.h"

namespace paddle::onnx {
namespace {

constexpr const char* kFolder = "tests/data/microsoft/";

class ContribModel : public testing::TestWithParam<std::string> {};

std::vector<std::string> names() {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    if (entry.path().extension() == ".onnx") found.insert(entry.path().stem().string());
  return {found.begin(), found.end()};
}

TEST_P(ContribModel, MatchesOnnxRuntime) {
  const std::string path = kFolder + GetParam();
  const formats::NpzReader arrays(path + ".npz");
  for (const Mode mode : {Mode::kAutomatic, Mode::kEager}) {
    Session session(path + ".onnx", SessionOptions{.mode = mode});
    Values inputs;
    for (const auto& input : session.inputs())
      inputs.emplace_back(Tensor(arrays.read("x." + input.name)));
    const Values outputs = session.run(inputs);
    ASSERT_EQ(outputs.size(), session.outputs().size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Array wanted = arrays.read("y." + session.outputs()[i].name);
      const Array& y = outputs[i].tensor().array();
      ASSERT_EQ(y.shape, wanted.shape);
      ASSERT_EQ(y.dtype, wanted.dtype);
      // One step of the last quantize is at most 1 / 127 of the largest value; float16
      // intermediates round differently.
      EXPECT_LE(testing_support::relative_difference(y, wanted),
                GetParam().starts_with("bytes")  ? 0.016
                : GetParam().starts_with("half") ? 2e-3
                                                 : 1e-4)
          << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, ContribModel, testing::ValuesIn(names()),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace paddle::onnx
