// Training steps on the device `mirror`: how often they copy from and to the host, how many of
// their kernels are recorded, and that neither changes a bit.

#include <gtest/gtest.h>

#include <cstring>

#include "comm/simulation.h"
#include "kernels/mirror/mirror.h"
#include "runtime/execute.h"
#include "runtime/plan_graphs.h"
#include "tensor/device_functions.h"
#include "train/config/run_config.h"
#include "train/session/session.h"

namespace paddle::train {
namespace {

constexpr int kSteps = 6;

struct Case {
  std::string config;
  std::vector<std::string> overrides;
  std::vector<FieldType> fields;
  std::vector<Array> batch;
};

Array random_array(DType dtype, Dims shape, int64_t end) {
  Array out = Array::empty(dtype, std::move(shape));
  for (int64_t i = 0; i < out.size(); ++i) {
    const int64_t value = i * 7919 % 104729 % end;
    if (dtype == DType::kI64)
      out.data<int64_t>()[i] = value;
    else
      out.data<float>()[i] = static_cast<float>(value) / static_cast<float>(end) - 0.5f;
  }
  return out;
}

Case lenet() {
  const Dim batch = Dim::symbol("batch");
  return {"configs/bench/lenet.yaml",
          {},
          {{"image", {DType::kF32, {batch, 1, 28, 28}}}, {"label", {DType::kI64, {batch}}}},
          {random_array(DType::kF32, {64, 1, 28, 28}, 1000), random_array(DType::kI64, {64}, 10)}};
}

Case gpt() {
  const Dim batch = Dim::symbol("batch"), length = Dim::symbol("length");
  return {"configs/bench/char_gpt_384.yaml",
          {"params={layers: 2, heads: 2, width: 32, vocab_size: 65, positions: 64}"},
          {{"tokens", {DType::kI64, {batch, length}}}, {"targets", {DType::kI64, {batch, length}}}},
          {random_array(DType::kI64, {4, 64}, 65), random_array(DType::kI64, {4, 64}, 64)}};
}

struct Outcome {
  std::vector<double> losses;
  std::map<std::string, Array> parameters;
  uint64_t copies_in = 0, copies_out = 0;  ///< of the last step
  uint64_t launches = 0, graph_launches = 0;
};

Outcome train(const Case& c, Device device, compiler::GraphMode graphs,
              std::shared_ptr<comm::Communicator> communicator = nullptr) {
  RunConfig config = read_config(c.config, c.overrides);
  StepDefinition definition;
  definition.models = config.models;
  definition.loss = std::move(config.loss);
  for (const OptimizerConfig& each : config.optimizers)
    definition.optimizers.push_back({each.name, std::make_shared<optim::Optimizer>(each.options)});
  SessionOptions options;
  options.compile = config.compile;
  options.compile.target.device = device;
  options.compile.graphs = graphs;
  options.mesh = config.parallel.mesh();
  options.bucket_bytes = config.parallel.bucket_bytes;
  options.overlap = communicator && communicator->size() > 1;
  if (options.mesh.size() > 1)  // functions are for the dims of a batch
    for (const Array& field : c.batch) options.shapes.push_back(field.shape);
  options.communicator = std::move(communicator);
  program::ParameterStore store;
  store.seed = 1;
  Session session(std::make_shared<Step>(std::move(definition)), c.fields, store, options);
  session.prepare();
  constexpr double kWhole = 1;
  const double rate = 1e-3;
  Outcome out;
  paddle_device_statistics before{}, after{};
  for (int64_t step = 1; step <= kSteps; ++step) {
    before = device_statistics(device);
    StartedStep started = session.start({&c.batch, 1}, {&kWhole, 1}, {step, {&rate, 1}});
    Session::finish(started);
    after = device_statistics(device);
    out.losses.push_back(started.loss);
  }
  session.check_device_errors();
  out.copies_in = after.copies_to_device - before.copies_to_device;
  out.copies_out = after.copies_to_host - before.copies_to_host;
  out.launches = after.launches - before.launches;
  out.graph_launches = after.graph_launches - before.graph_launches;
  for (const auto& [name, parameter] : store.parameters)
    out.parameters[name] = parameter.value.on_host();
  return out;
}

void expect_same(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.losses, b.losses);
  ASSERT_EQ(a.parameters.size(), b.parameters.size());
  for (const auto& [name, value] : a.parameters) {
    const Array& other = b.parameters.at(name);
    ASSERT_EQ(value.shape, other.shape) << name;
    EXPECT_EQ(std::memcmp(value.raw(), other.raw(),
                          static_cast<size_t>(storage_bytes(value.dtype, value.size()))),
              0)
        << name;
  }
}

void check(const Case& c) {
  runtime::register_backends();
  const Device mirror = parse_device("mirror");
  const Outcome on_cpu = train(c, Device::cpu(), compiler::GraphMode::kAuto);
  const Outcome off = train(c, mirror, compiler::GraphMode::kOff);
  const runtime::GraphReport before = runtime::all_graphs();
  const Outcome on = train(c, mirror, compiler::GraphMode::kOn);
  const runtime::GraphReport after = runtime::all_graphs();
  EXPECT_LT(on_cpu.losses.back(), on_cpu.losses.front());
  expect_same(on_cpu, off);
  expect_same(off, on);
  for (const Outcome* each : {&off, &on}) {
    EXPECT_EQ(each->copies_in, 1u) << "fields, rate and step number";
    EXPECT_EQ(each->copies_out, 1u) << "the loss";
  }
  EXPECT_GT(off.launches, 0u);
  EXPECT_EQ(off.graph_launches, 0u);
  EXPECT_GT(on.graph_launches, 0u);
  const int64_t captured = after.captured - before.captured,
                all = after.instructions - before.instructions;
  EXPECT_GE(captured * 100, all * 95) << captured << " of " << all;
  EXPECT_LE(on.launches, static_cast<uint64_t>(all - captured));
}

TEST(DeviceSteps, OfLenet) { check(lenet()); }
TEST(DeviceSteps, OfGpt) { check(gpt()); }

// Two ranks that share the device, with small buckets whose sums overlap the backward pass.
TEST(DeviceSteps, OfTwoRanks) {
  runtime::register_backends();
  Case c = gpt();
  c.overrides.insert(c.overrides.end(), {"parallel.data=2", "parallel.bucket=16 KiB"});
  const auto train_ranks = [&](Device device) {
    Outcome root;
    comm::simulate(2, [&](const std::shared_ptr<comm::Communicator>& communicator) {
      Outcome out = train(c, device, compiler::GraphMode::kAuto, communicator);
      if (communicator->is_root()) root = std::move(out);
    });
    return root;
  };
  const Outcome on_cpu = train_ranks(Device::cpu());
  EXPECT_LT(on_cpu.losses.back(), on_cpu.losses.front());
  expect_same(on_cpu, train_ranks(parse_device("mirror")));
}

TEST(DeviceSteps, RanksNeedKernelsOfCollectives) {
  runtime::register_backends();
  mirror::set_missing_kernels({"comm.all_reduce"});
  try {
    comm::simulate(2, [](const std::shared_ptr<comm::Communicator>& communicator) {
      train(lenet(), parse_device("mirror"), compiler::GraphMode::kOff, communicator);
    });
    ADD_FAILURE() << "expected an error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    EXPECT_EQ(e.message(),
              "mirror has no kernel of comm.all_reduce, which runs of several ranks need");
  }
  mirror::set_missing_kernels({});
}

}  // namespace
}  // namespace paddle::train
