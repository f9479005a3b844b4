// Every differentiable operation under mixed precision of level O2, where nearly all of them are
// handed 16-bit tensors, and its gradient: against float64 on the same numbers.

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "inspect/both_modes.h"
#include "inspect/numeric.h"
#include "inspect/op_call.h"
#include "ops/core/operators.h"
#include "ops/generated/ops.h"
#include "runtime/execute.h"

namespace paddle::inspect {
namespace {

/// Numbers between -1 and 1, as what flows back into the results.
Tensor cotangent_of(const Tensor& x) {
  const Tensor ramp = ops::cumsum(ones_like(ops::flatten(ops::cast(x, DType::kF64))), int64_t{0});
  return ops::cast(ops::reshape(ops::cos(ramp * 1.3), x.shape()), x.dtype());
}

struct Found {
  std::vector<std::optional<Array>> results, gradients;
};

Found run_at(DType dtype, const NamedCall& call, const std::vector<size_t>& varied, Mode mode) {
  std::vector<Array> inputs = call.inputs();
  for (Array& x : inputs)
    if (x.dtype == DType::kF64) x = x.cast(dtype == DType::kF64 ? dtype : DType::kF32);
  autograd::AutocastOptions options;
  options.low = dtype;
  options.all_low = true;
  size_t results = 0;
  const auto all = run(
      mode,
      [&](const Tensors& x) {
        Tensors out, floats, cotangents, wanted;
        {
          autograd::Autocast autocast(options);
          std::optional<InterpreterScope> casting;
          if (dtype != DType::kF64) casting.emplace(autocast);
          out = call(x);
        }
        results = out.size();
        for (const Tensor& t : out) {
          if (!t.defined() || !is_float(t.dtype())) continue;
          floats.push_back(t);
          cotangents.push_back(cotangent_of(t));
        }
        for (const size_t i : varied) wanted.push_back(x[i]);
        if (floats.empty()) return out;
        for (const Tensor& g : autograd::grad(floats, wanted, cotangents)) out.push_back(g);
        return out;
      },
      inputs);
  return {{all.begin(), all.begin() + static_cast<ptrdiff_t>(results)},
          {all.begin() + static_cast<ptrdiff_t>(results), all.end()}};
}

std::string compare(const std::vector<std::optional<Array>>& low,
                    const std::vector<std::optional<Array>>& full, double tolerance) {
  if (low.size() != full.size()) return "another number of results";
  for (size_t k = 0; k < low.size(); ++k) {
    if (low[k].has_value() != full[k].has_value()) return str("result ", k, " is missing");
    if (!low[k] || !is_float(full[k]->dtype)) continue;
    if (low[k]->shape != full[k]->shape) return str("result ", k, " has another shape");
    double largest = 1;
    for (int64_t i = 0; i < full[k]->size(); ++i)
      if (std::isfinite(full[k]->number(i)))
        largest = std::max(largest, std::abs(full[k]->number(i)));
    for (int64_t i = 0; i < full[k]->size(); ++i) {
      const double a = low[k]->number(i), b = full[k]->number(i);
      if (!(std::abs(a - b) <= tolerance * largest) && !(std::isnan(a) && std::isnan(b)) && a != b)
        return str("result ", k, " at ", i, ": ", a, ", float64 gives ", b);
    }
  }
  return "";
}

class LowPrecision : public testing::TestWithParam<DType> {};

TEST_P(LowPrecision, EveryOperationTakesIt) {
  runtime::register_backends();
  const DType dtype = GetParam();
  const double tolerance = dtype == DType::kF16 ? 1e-2 : 6e-2;
  // Those that jump, that are random, whose sample's numbers do not belong together, or that lose
  // all digits near a point (the variance of a continuous Bernoulli variable at 1/2).
  static const std::set<std::string_view> kNotComparable = {"remainder",
                                                            "frexp",
                                                            "gumbel_softmax",
                                                            "rrelu",
                                                            "thresholded_relu",
                                                            "softmax_cross_entropy_grad",
                                                            "fused_dconv_drelu_dbn",
                                                            "distribution_rsample",
                                                            "distribution_variance"};
  int checked = 0;
  for (const Op* op : all_ops()) {
    if (!op->differentiable() || op->has(kRandom) || op->has(kControlFlow) ||
        kNotComparable.contains(op->name()))
      continue;
    for (const std::string& sample : samples_of(*op)) {
      std::vector<std::string> words;
      for (const std::string& word : split(sample, ' '))
        if (!word.empty()) words.push_back(word);
      try {
        NamedCall call = parse_call(*op, words);
        std::vector<Array> exact = call.inputs();
        std::vector<size_t> varied;
        for (size_t i = 0; i < exact.size(); ++i)
          if (exact[i].dtype == DType::kF64 && call.varies(i)) varied.push_back(i);
        if (varied.empty()) continue;
        for (const Mode mode : {Mode::kEager, Mode::kCompiled}) {
          const Found full = run_at(DType::kF64, call, varied, Mode::kEager);
          const Found low = run_at(dtype, call, varied, mode);
          std::string bad = compare(low.results, full.results, tolerance);
          if (bad.empty()) {
            bad = compare(low.gradients, full.gradients, 4 * tolerance);
            if (!bad.empty()) bad = "gradient: " + bad;
          }
          EXPECT_EQ(bad, "") << op->name() << " " << text(mode) << "  [" << sample << "]";
          ++checked;
        }
      } catch (const Error& error) {
        ADD_FAILURE() << op->name() << ": " << error.what() << "  [" << sample << "]";
      }
    }
  }
  EXPECT_GT(checked, 300);
}

INSTANTIATE_TEST_SUITE_P(Types, LowPrecision, testing::Values(DType::kF16, DType::kBF16),
                         [](const auto& info) { return text(info.param); });

}  // namespace
}  // namespace paddle::inspect
