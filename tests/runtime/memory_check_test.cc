// The mode that watches a plan's memory finds kernels that write where they must not.

#include <gtest/gtest.h>

#include "ir/tracer.h"
#include "ops/core/backend.h"
#include "ops/generated/ops.h"
#include "runtime/executable.h"
#include "runtime/execute.h"

namespace paddle {
namespace {

enum class Fault : uint8_t { kNone, kBefore, kBeyond, kScratch };
Fault fault = Fault::kNone;

/// relu of a backend that only these tests ask for.
std::unique_ptr<Kernel> prepare_faulty(const KernelRequest& request) {
  if (!request.prepare.backend_pinned) return nullptr;
  const int64_t n = request.results[0].size();
  return make_kernel(
      [n](const RunContext& context, void* const* operands, void* const* results) {
        const auto* x = static_cast<const float*>(operands[0]);
        auto* y = static_cast<float*>(results[0]);
        for (int64_t i = 0; i < n; ++i) y[i] = std::max(0.0f, x[i]);
        if (fault == Fault::kBefore) y[-1] = 1;
        if (fault == Fault::kBeyond) y[n] = 1;
        if (fault == Fault::kScratch) context.scratch[8] = std::byte{1};
      },
      8, "faulty");
}

std::string outcome(Fault wanted, bool check) {
  runtime::register_backends();
  static const bool registered = [] {
    register_backend({.name = "faulty"});
    register_kernel("relu", "faulty", prepare_faulty);
    return true;
  }();
  (void)registered;
  const BackendScope backend("faulty");
  auto function = std::make_shared<ir::Function>("f");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    const Tensor x = tracer.input({ir::PortKind::kValue, "x"}, {DType::kF32, {Dim(5)}});
    tracer.output({ir::PortKind::kValue, "y"}, ops::cumsum(ops::relu(ops::cumsum(x, 0)), 0));
  }
  runtime::Executable executable(function, {1, {.check_memory = check, .profile = nullptr}});
  fault = wanted;
  try {
    const Array y = executable.run({Array::from<float>({1, 2, -4, 1, 2}, {5})})[0];
    EXPECT_EQ(y.number(4), 6);
    return "done";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInternal);
    return error.message();
  }
}

TEST(MemoryCheck, FindsWritesOutsideOfResults) {
  EXPECT_EQ(outcome(Fault::kNone, true), "done");
  EXPECT_EQ(outcome(Fault::kNone, false), "done");
  // relu is computed in place, in the buffer of cumsum.
  EXPECT_EQ(outcome(Fault::kBefore, true), "relu (faulty) wrote before 'cumsum'");
  EXPECT_EQ(outcome(Fault::kBeyond, true), "relu (faulty) wrote beyond 'cumsum'");
  EXPECT_EQ(outcome(Fault::kScratch, true), "relu (faulty) wrote beyond 'scratch'");
}

}  // namespace
}  // namespace paddle
