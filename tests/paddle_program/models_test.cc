// Programs that PaddlePaddle saved in both forms (make_models.py): families of operations, control
// flow, and whole models. Their outputs are those of PaddlePaddle's own run of the program.
#include <filesystem>

#include <gtest/gtest.h>

#include "formats/npz.h"
#include "onnx/graph/session.h"
#include "paddle_program/register.h"
#include "runtime/execute.h"

namespace paddle::paddle_program {
namespace {

class SavedProgram : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(SavedProgram, ComputesWhatPaddlePaddleDoes) {
  runtime::register_backends();
  register_programs();
  const auto& [name, form] = GetParam();
  const std::string stem = "tests/paddle_program/data/" + name + "_" + form;
  const formats::NpzReader expected(stem + ".npz");
  onnx::Session session(stem + (form == "pir" ? ".json" : ".pdmodel"), {});
  onnx::Values inputs;
  for (const auto& input : session.inputs()) inputs.emplace_back(Tensor(expected.read(input.name)));
  const onnx::Values found = session.run(inputs);
  ASSERT_GE(found.size(), 1u);
  for (size_t i = 0; i < found.size(); ++i) {
    const Array wanted = expected.read("out" + std::to_string(i)), got = found[i].tensor().array();
    ASSERT_EQ(got.dtype, wanted.dtype) << "output " << i;
    ASSERT_EQ(got.shape, wanted.shape) << "output " << i;
    for (int64_t k = 0; k < wanted.size(); ++k) {
      const double number = wanted.number(k);
      ASSERT_NEAR(got.number(k), number, 2e-5 * std::max(1.0, std::abs(number)))
          << "output " << i << ", element " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    , SavedProgram,
    testing::Combine(testing::Values("elementwise", "reductions", "shapes", "indices", "products",
                                     "layers", "detection", "signals", "losses", "edges",
                                     "transducer", "choices", "counted", "shown", "turns", "growth",
                                     "gpt", "swin", "translation"),
                     testing::Values("pir", "program")),
    [](const auto& param) { return std::get<0>(param.param) + "_" + std::get<1>(param.param); });

/// Operations of GPUs, by their formulas (make_fused.py).
INSTANTIATE_TEST_SUITE_P(Fused, SavedProgram,
                         testing::Values(std::tuple<std::string, std::string>("fused", "pir")));

/// Programs that only one version of PaddlePaddle writes (make_versions.py).
INSTANTIATE_TEST_SUITE_P(Versions, SavedProgram,
                         testing::Values(std::tuple<std::string, std::string>("before3", "program"),
                                         std::tuple<std::string, std::string>("since33", "pir")));

/// Operations that no function of PaddlePaddle makes any more.
INSTANTIATE_TEST_SUITE_P(Older, SavedProgram,
                         testing::Values(std::tuple<std::string, std::string>("older", "program")));

}  // namespace
}  // namespace paddle::paddle_program
