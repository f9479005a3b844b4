// Collective operations as kernels: they use the collectives of their run context, eagerly and in
// plans, on the host and on a device whose kernels run in another thread.

#include <gtest/gtest.h>

#include <algorithm>

#include "comm/communicator.h"
#include "comm/simulation.h"
#include "ir/tracer.h"
#include "ops/generated/comm.h"
#include "runtime/compile.h"
#include "runtime/execute.h"
#include "tensor/interpreter.h"

namespace paddle::io_kernels {
namespace {

using Peers = std::shared_ptr<comm::Communicator>;

std::vector<double> numbers(const Array& array) {
  const Array host = array.to(Device::cpu());
  std::vector<double> out;
  for (int64_t i = 0; i < host.size(); ++i) out.push_back(host.number(i));
  return out;
}

Tensor mine(const Peers& communicator) {
  const float first = static_cast<float>(10 * communicator->rank());
  return Tensor(Array::from<float>({first, first + 1}, {2}));
}

TEST(CollectiveOperations, RunEagerly) {
  comm::simulate(3, [](const Peers& communicator) {
    runtime::EagerExecutor executor({}, {}, &communicator->collectives());
    const InterpreterScope scope(executor);
    const std::vector<int64_t> ranks = {0, 1, 2};
    const Tensor sum = ops::comm_all_reduce({mine(communicator)}, ranks)[0];
    EXPECT_EQ(numbers(sum.array()), (std::vector<double>{30, 33}));
    const Tensor before = ops::comm_permute(mine(communicator), ranks);
    const double from = 10 * ((communicator->rank() + 2) % 3);
    EXPECT_EQ(numbers(before.array()), (std::vector<double>{from, from + 1}));
    const Tensor after = ops::comm_permute(mine(communicator), ranks, -1);
    const double next = 10 * ((communicator->rank() + 1) % 3);
    EXPECT_EQ(numbers(after.array()), (std::vector<double>{next, next + 1}));
  });
}

TEST(CollectiveOperations, SendAndReceive) {
  comm::simulate(3, [](const Peers& communicator) {
    runtime::EagerExecutor executor({}, {}, &communicator->collectives());
    const InterpreterScope scope(executor);
    if (communicator->rank() == 0) {
      ops::comm_send(mine(communicator), 2, 4);
    } else if (communicator->rank() == 1) {
      EXPECT_EQ(ops::comm_send(mine(communicator), 2, 4).array().size(), 0);
    } else {
      const Tensor second = ops::comm_recv({2}, DType::kF32, 1, 4);
      const Tensor first = ops::comm_recv({1, 2}, DType::kF32, 0, 4);
      EXPECT_EQ(numbers(first.array()), (std::vector<double>{0, 1}));
      EXPECT_EQ(first.array().shape, (Dims{1, 2}));
      EXPECT_EQ(numbers(second.array()), (std::vector<double>{10, 11}));
    }
  });
}

/// y = the x of the rank before this one in the sums of two ranks.
std::vector<double> run_plan(Device device, comm::Collectives& collectives, const Array& x) {
  runtime::register_backends();
  const TargetInfo target{.device = device};
  auto function = std::make_shared<ir::Function>("f", target);
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    const Tensor in = tracer.input({ir::PortKind::kValue, "x"}, {DType::kF32, {2}});
    const Tensor sum = ops::comm_all_reduce({in}, {0, 1})[0];
    tracer.output({ir::PortKind::kValue, "y"}, ops::comm_permute(sum, {0, 1}));
  }
  const auto executable =
      runtime::compile(function, {.target = target}, {.plan = {.collectives = &collectives}});
  return numbers(executable->run({x})[0]);
}

TEST(CollectiveOperations, RunInPlans) {
  comm::simulate(2, [&](const Peers& communicator) {
    EXPECT_EQ(run_plan(Device::cpu(), communicator->collectives(), mine(communicator).array()),
              (std::vector<double>{10, 12}));
  });
}

/// The collectives of two ranks that have the same tensors.
class Twin final : public comm::Collectives {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  void all_reduce(std::span<const comm::ReduceBuffer> tensors, DType, comm::Reduction,
                  const comm::CollectiveCall&) override {
    for (const comm::ReduceBuffer& tensor : tensors)
      for (int64_t i = 0; i < tensor.count; ++i)
        static_cast<float*>(tensor.out)[i] = 2 * static_cast<const float*>(tensor.in)[i];
  }
  void permute(std::span<const std::byte> in, std::span<std::byte> out, int64_t,
               const comm::CollectiveCall&) override {
    std::copy(in.begin(), in.end(), out.begin());
  }
  void reduce_scatter(const void*, void*, std::span<const int64_t>, DType, comm::Reduction,
                      const comm::CollectiveCall&) override {
    unexpected();
  }
  void all_gather(const void*, void*, std::span<const size_t>,
                  const comm::CollectiveCall&) override {
    unexpected();
  }
  void all_to_all(const void*, std::span<const size_t>, void*, std::span<const size_t>,
                  const comm::CollectiveCall&) override {
    unexpected();
  }
  void send(std::span<const std::byte>, int, uint32_t, paddle_stream) override { unexpected(); }
  void recv(std::span<std::byte>, int, uint32_t, paddle_stream) override { unexpected(); }
  void start_all_reduce(std::span<const comm::ReduceBuffer>, DType, comm::Reduction,
                        const comm::CollectiveCall&) override {
    unexpected();
  }
  void start_reduce_scatter(const void*, void*, std::span<const int64_t>, DType, comm::Reduction,
                            const comm::CollectiveCall&) override {
    unexpected();
  }
  void start_all_gather(const void*, void*, std::span<const size_t>, const comm::CollectiveCall&,
                        std::function<void(paddle_stream)>) override {
    unexpected();
  }
  void wait(paddle_stream) override { unexpected(); }

 private:
  static void unexpected() { fail(ErrorCode::kInternal, "another collective"); }
};

// The mirror device runs kernels on a thread of its own, which knows nothing of the run.
TEST(CollectiveOperations, ReachTheKernelsOfADevice) {
  runtime::register_backends();
  Twin twin;
  EXPECT_EQ(run_plan(parse_device("mirror"), twin, Array::from<float>({3, 4}, {2})),
            (std::vector<double>{6, 8}));
}

TEST(CollectiveOperations, NeedARunOfSeveralRanks) {
  runtime::EagerExecutor executor;
  const InterpreterScope scope(executor);
  const Tensor x(Array::from<float>({1, 2}, {2}));
  const auto error = [](const auto& f) -> std::string {
    try {
      f();
    } catch (const Error& e) {
      return e.message();
    }
    return "";
  };
  EXPECT_NE(error([&] { ops::comm_permute(x, {0, 1}); }).find("parallel run"), std::string::npos);
  EXPECT_NE(error([&] { ops::comm_send(x, 1); }).find("not another rank"), std::string::npos);
  EXPECT_NE(error([&] { ops::comm_recv({2}, DType::kF32, -1); }).find("ranks are numbers"),
            std::string::npos);
  EXPECT_NE(error([&] { ops::comm_recv({-2}, DType::kF32, 1); }).find("negative"),
            std::string::npos);
  EXPECT_NE(error([&] { ops::comm_send(x, 1, 1 << 16); }).find("tags are"), std::string::npos);
}

}  // namespace
}  // namespace paddle::io_kernels
