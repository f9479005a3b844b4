// Lists for mixed precision in a plug-in, and the parts of training that it registers.

#include <gtest/gtest.h>

#include "autograd/autocast.h"
#include "base/files.h"
#include "data/transform_info.h"
#include "metrics/metric.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "optim/optimizer_kind.h"
#include "optim/schedule.h"
#include "plugin/plugin.h"
#include "runtime/execute.h"

namespace paddle::plugin {
namespace {

/// Loads a file with this content.
const Plugin& load_text(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + name + ".plugin.yaml";
  write_file_atomically(path, str("plugin: {name: ", name, ", version: 1.0.0, abi: 1}\n", text));
  return load(path);
}

DType dtype_in_mixed_precision(const std::function<Tensor(const Tensor&)>& f) {
  runtime::EagerExecutor executor;
  const InterpreterScope below(executor);
  const autograd::AutocastOptions options;
  autograd::Autocast cast(options);
  const InterpreterScope above(cast);
  return f(Tensor(Array::from<float>({1, 2, 3, 4}, {2, 2}))).dtype();
}

TEST(TrainParts, ChangeThePrecisionOfOperations) {
  const auto product = [](const Tensor& x) { return ops::matmul(x, x); };
  const auto exponential = [](const Tensor& x) { return ops::exp(x); };
  EXPECT_EQ(dtype_in_mixed_precision(product), DType::kBF16);
  EXPECT_EQ(dtype_in_mixed_precision(exponential), DType::kF32);
  const Plugin& loaded = load_text("lists", "precision: {low: [exp, gelu], full: [matmul]}\n");
  EXPECT_EQ(loaded.precision, (std::vector<std::string>{"exp", "gelu", "matmul"}));
  EXPECT_EQ(dtype_in_mixed_precision(product), DType::kF32);
  EXPECT_EQ(dtype_in_mixed_precision(exponential), DType::kBF16);
  // The same list again is accepted, another one is an error.
  load_text("lists_again", "precision: {full: [matmul]}\n");
  try {
    load_text("lists_against", "precision: {low: [tanh, matmul]}\n");
    FAIL() << "two lists for one operation";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("'matmul' is already in the other list"),
              std::string::npos)
        << e.what();
  }
  // Nothing of the rejected list holds.
  EXPECT_EQ(dtype_in_mixed_precision([](const Tensor& x) { return ops::tanh(x); }), DType::kF32);
}

TEST(TrainParts, AreInTheRegistries) {
  const Plugin& loaded = load("plugins/train_parts/train_parts.plugin.yaml");
  EXPECT_EQ(loaded.losses, std::vector<std::string>{"train_parts.focal"});
  EXPECT_TRUE(optim::optimizer_kinds().find("train_parts.signum"));
  EXPECT_TRUE(metrics::find_metric("train_parts.f_half"));
  EXPECT_TRUE(data::transform_registry().find("train_parts.gamma"));
  const optim::Schedule schedule = optim::make_schedule("{name: train_parts.triangle, period: 10}");
  for (const auto& [step, factor] : {std::pair(0, 0.0), {5, 1.0}, {10, 0.0}, {12, 0.4}})
    EXPECT_DOUBLE_EQ(optim::schedule_factor(schedule, step, 100), factor) << step;
}

}  // namespace
}  // namespace paddle::plugin
