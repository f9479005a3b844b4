// Products with what follows them in one kernel, on the stand-in for an NVIDIA GPU: float32 results
// have the bits of separate kernels, and sums of columns are near those of the CPU.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "ir/tracer.h"
#include "ops/core/call.h"
#include "ops/core/operators.h"
#include "ops/generated/ops.h"
#include "runtime/compile.h"
#include "support/cuda/stand_in.h"

namespace paddle {
namespace {

struct Sizes {
  int64_t m, k, n;
};

Array numbers(const Dims& shape, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values(static_cast<size_t>(element_count(std::span<const int64_t>(shape))));
  for (float& value : values) value = std::normal_distribution<float>()(random);
  return Array::from(values, shape);
}

/// Products with all that can follow them: an activation of a value that is also a result, a
/// residual, a transposed operand, and the sum of columns.
std::vector<std::vector<float>> results(Device device, const Sizes& s, bool fusion) {
  auto function = std::make_shared<ir::Function>("f");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    const auto input = [&](const char* name, const Dims& shape) {
      return tracer.input({ir::PortKind::kValue, name},
                          {DType::kF32, Shape(shape.begin(), shape.end())});
    };
    const Tensor x = input("x", {2, s.m, s.k}), w = input("w", {s.k, s.n}), b = input("b", {s.n}),
                 residual = input("r", {2, s.m, s.n}), v = input("v", {s.n, s.k});
    const Tensor before = ops::linear(x, w, b), y = ops::gelu(before) + residual;
    const Tensor z = ops::tanh(ops::matmul(x, v, false, true)) * b;
    tracer.output({ir::PortKind::kValue, "before"}, before);
    tracer.output({ir::PortKind::kValue, "y"}, y);
    tracer.output({ir::PortKind::kValue, "z"}, z);
    tracer.output({ir::PortKind::kValue, "sum"}, ops::sum(z, std::vector<int64_t>{0, 1}));
  }
  const auto executable =
      runtime::compile(function, {.fusion = fusion, .target = {.device = device}});
  std::vector<std::vector<float>> out;
  for (const Array& each :
       executable->run({numbers({2, s.m, s.k}, 1), numbers({s.k, s.n}, 2), numbers({s.n}, 3),
                        numbers({2, s.m, s.n}, 4), numbers({s.n, s.k}, 5)}))
    out.emplace_back(each.data<float>(), each.data<float>() + each.size());
  return out;
}

bool have_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(CudaProducts, GroupsHaveTheBitsOfSeparateKernels) {
  const auto device = cuda_stand_in();
  if (!device) GTEST_SKIP() << "no stand-ins";
  // Tiles that are full, cut in both directions, and divided along k.
  for (const Sizes& s : {Sizes{32, 16, 64}, Sizes{1, 3, 5}, Sizes{35, 20, 66}, Sizes{3, 300, 8},
                         Sizes{70, 520, 12}, Sizes{5, 1, 1}}) {
    SCOPED_TRACE(str(s.m, " x ", s.k, " x ", s.n));
    const auto fused = results(*device, s, true), apart = results(*device, s, false),
               host = results(Device{}, s, true);
    for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(have_same_bits(fused[i], apart[i])) << i;
    for (size_t i = 0; i < 4; ++i)
      for (size_t at = 0; at < host[i].size(); ++at)
        ASSERT_NEAR(fused[i][at], host[i][at], 2e-4 * (1 + std::abs(host[i][at])))
            << i << " at " << at;
  }
}

}  // namespace
}  // namespace paddle
