// Steps that are cut into stages: the jobs together compute what the whole function computes, with
// its bits, and only what the next stages need crosses between them.

#include "partition/stages.h"

#include <gtest/gtest.h>

#include <cmath>

#include "comm/simulation.h"
#include "partition/stage_update.h"
#include "runtime/compile.h"
#include "runtime/execute.h"

namespace paddle::partition {
namespace {

/// Three products with a tied first and last weight, a mask that all layers read, their gradients,
/// and sums of gradients.
constexpr const char* kStep = R"(module 'm' {
  parameter 'w1' : float64[4, 4] = ''
  parameter 'w2' : float64[4, 4] = ''
  state 'gradient/w1' : float64[4, 4] = ''
  state 'gradient/w2' : float64[4, 4] = ''
  func 'f'(
      %0 : float64[3, 4] 'x',
      %1 : float64[4, 4] parameter 'w1',
      %2 : float64[4, 4] parameter 'w2',
      %3 : float64[4, 4] state 'gradient/w1',
      %4 : float64[4, 4] state 'gradient/w2') {
    %5 = sign(%0) : float64[3, 4]
    %6 = matmul(%0, %1) : float64[3, 4]
    %7 = multiply(%6, %6) : float64[3, 4]
    %8 = matmul(%7, %2) : float64[3, 4]
    %9 = multiply(%8, %5) : float64[3, 4]
    %10 = transpose(%1) {perm = [1, 0]} : float64[4, 4]
    %11 = matmul(%9, %10) : float64[3, 4]
    %12 = sum(%11) : float64[]
    %13 = matmul(%5, %1) : float64[3, 4]
    %14 = matmul(%9, %13) {transpose_x = true} : float64[4, 4]
    %15 = multiply(%13, %5) : float64[3, 4]
    %16 = matmul(%7, %15) {transpose_x = true} : float64[4, 4]
    %17 = matmul(%15, %2) {transpose_y = true} : float64[3, 4]
    %18 = multiply(%17, %6) : float64[3, 4]
    %19 = matmul(%0, %18) {transpose_x = true} : float64[4, 4]
    %20 = add(%14, %19) : float64[4, 4]
    %21 = add(%3, %20) : float64[4, 4]
    %22 = add(%4, %16) : float64[4, 4]
    return %12 'loss', %21 state 'gradient/w1', %22 state 'gradient/w2'
  }
}
)";

Array drawn(const TensorType& type, double seed) {
  Array out = Array::zeros(type.dtype, concrete(type.shape));
  for (int64_t i = 0; i < out.size(); ++i)
    out.data<double>()[i] = std::sin(seed + 1.7 * static_cast<double>(i));
  return out;
}

/// Runs all jobs of a micro-batch, stage after stage; gives the function's results.
std::map<int, Array> run_jobs(const ir::Function& f, const StageCut& cut, int stages, bool split,
                              std::vector<Array>& inputs) {
  std::map<int, Array> values, results;
  const auto run = [&](JobKind kind, int stage) {
    StageFunction part = cut.function(kind, stage);
    if (!part.function) return;
    ir::verify(*part.function);
    const auto executable =
        runtime::compile(std::shared_ptr<ir::Function>(std::move(part.function)), {.exact = true});
    std::vector<Array> arguments;
    for (const auto& source : part.inputs)
      arguments.push_back(source.port >= 0 ? inputs[static_cast<size_t>(source.port)]
                                           : values.at(source.value));
    const std::vector<Array>& out = executable->run(arguments);
    for (size_t i = 0; i < part.outputs.size(); ++i) {
      if (part.outputs[i].value >= 0)
        values[part.outputs[i].value] = runtime::copied(out[i]);
      else if (f.outputs[static_cast<size_t>(part.outputs[i].port)].kind == ir::PortKind::kValue)
        results[part.outputs[i].port] = runtime::copied(out[i]);
    }
  };
  for (int s = 0; s < stages; ++s) run(JobKind::kForward, s);
  for (int s = stages - 1; s >= 0; --s) run(JobKind::kBackward, s);
  for (int s = 0; split && s < stages; ++s) run(JobKind::kWeights, s);
  return results;
}

TEST(StageCut, JobsTogetherComputeTheStep) {
  runtime::register_backends();
  const ir::Module module = ir::parse(kStep, "step.ir");
  ir::verify(module);
  const ir::Function& f = *module.functions[0];
  const auto make_inputs = [&] {
    std::vector<Array> inputs;
    for (size_t i = 0; i < f.inputs.size(); ++i)
      inputs.push_back(drawn(f.body.arguments[i]->type, static_cast<double>(i)));
    return inputs;
  };
  std::vector<Array> wanted = make_inputs();
  const double loss = runtime::compile(ir::parse(kStep, "step.ir").functions[0], {.exact = true})
                          ->run(wanted)[0]
                          .number();
  const LeafStages leaves = assign_leaves(f, 2);
  EXPECT_EQ(leaves, (LeafStages{{"w1", 0}, {"w2", 1}}));
  for (const bool split : {false, true}) {
    const StageCut cut(f, leaves, 2, true, split);
    std::vector<Array> found = make_inputs();
    const auto results = run_jobs(f, cut, 2, split, found);
    EXPECT_EQ(results.at(0).number(), loss);
    for (const size_t state : {3u, 4u})
      for (int64_t i = 0; i < found[state].size(); ++i)
        EXPECT_EQ(found[state].number(i), wanted[state].number(i)) << state << " " << i;
    // The tied weight is used in both stages and owned by the first one.
    EXPECT_EQ(cut.readers().at("w1"), (std::set<int>{0, 1}));
    EXPECT_EQ(cut.readers().at("w2"), (std::set<int>{1}));
    EXPECT_EQ(cut.stage_of_output(0), 1);
    EXPECT_EQ(cut.stage_of_output(1), 0);
    EXPECT_EQ(cut.stage_of_output(2), 1);
    // Forward: the value between the stages. Backward: its gradient, and that of the tied weight.
    int forward = 0, backward = 0;
    for (const Transfer& t : cut.transfers()) (t.from < t.to ? forward : backward) += 1;
    EXPECT_EQ(forward, 1);
    EXPECT_EQ(backward, 2);
  }
}

// A dropped value is computed again in the backward job of its stage, from what is kept.
TEST(StageCut, DroppedValuesAreComputedAgain) {
  runtime::register_backends();
  const ir::Module module = ir::parse(kStep, "step.ir");
  const ir::Function& f = *module.functions[0];
  std::vector<Array> wanted, found;
  for (size_t i = 0; i < f.inputs.size(); ++i) {
    wanted.push_back(drawn(f.body.arguments[i]->type, static_cast<double>(i)));
    found.push_back(drawn(f.body.arguments[i]->type, static_cast<double>(i)));
  }
  const double loss = runtime::compile(ir::parse(kStep, "step.ir").functions[0], {.exact = true})
                          ->run(wanted)[0]
                          .number();
  // The first product, and the hidden value of the last stage.
  std::unordered_set<const ir::Value*> dropped;
  for (const auto& operation : f.body.operations)
    if (const int id = operation->results[0]->id; id == 6 || id == 9)
      dropped.insert(operation->results[0]);
  ASSERT_EQ(dropped.size(), 2u);
  const LeafStages leaves = assign_leaves(f, 2);
  for (const bool split : {false, true}) {
    const StageCut kept(f, leaves, 2, true, split), cut(f, leaves, 2, true, split, dropped);
    for (const ir::Value* v : cut.values()) EXPECT_FALSE(dropped.contains(v)) << v->id;
    EXPECT_LT(cut.values().size(), kept.values().size());
    std::vector<Array> inputs;
    for (const Array& input : found) inputs.push_back(runtime::copied(input));
    const auto results = run_jobs(f, cut, 2, split, inputs);
    EXPECT_EQ(results.at(0).number(), loss);
    for (const size_t state : {3u, 4u})
      for (int64_t i = 0; i < inputs[state].size(); ++i)
        EXPECT_EQ(inputs[state].number(i), wanted[state].number(i)) << state << " " << i;
  }
}

// The same with the stages on two ranks, whose jobs exchange messages: their text has them, and
// what no later job of the rank reads is not kept.
TEST(StageCut, JobsOfTwoRanksExchangeMessages) {
  runtime::register_backends();
  const ir::Module module = ir::parse(kStep, "step.ir");
  const ir::Function& f = *module.functions[0];
  const auto make_inputs = [&] {
    std::vector<Array> inputs;
    for (size_t i = 0; i < f.inputs.size(); ++i)
      inputs.push_back(drawn(f.body.arguments[i]->type, static_cast<double>(i)));
    return inputs;
  };
  std::vector<Array> wanted = make_inputs();
  const double loss = runtime::compile(ir::parse(kStep, "step.ir").functions[0], {.exact = true})
                          ->run(wanted)[0]
                          .number();
  const LeafStages leaves = assign_leaves(f, 2);
  constexpr int64_t kFirstTag = 40;
  for (const bool split : {false, true}) {
    std::vector<std::string> texts(2);
    std::vector<std::vector<Array>> found = {make_inputs(), make_inputs()};
    std::vector<double> losses(2, 0);
    comm::simulate(2, [&](const std::shared_ptr<comm::Communicator>& communicator) {
      const auto rank = static_cast<size_t>(communicator->rank());
      const StageCut cut(f, leaves, 2, true, split);
      StageMessages messages{.ranks = {0, 1}, .here = communicator->rank(), .first_tag = kFirstTag};
      messages.kept = cut.kept_values(messages);
      std::map<int, Array> values;
      std::vector<JobKind> kinds = {JobKind::kForward, JobKind::kBackward};
      if (split) kinds.push_back(JobKind::kWeights);
      for (const JobKind kind : kinds) {
        StageFunction part = cut.function(kind, communicator->rank(), &messages);
        if (!part.function) continue;
        ir::verify(*part.function);
        texts[rank] += ir::print(*part.function);
        const auto executable =
            runtime::compile(std::shared_ptr<ir::Function>(std::move(part.function)),
                             {.exact = true}, {4, {.collectives = &communicator->collectives()}});
        std::vector<Array> arguments;
        for (const auto& source : part.inputs)
          arguments.push_back(source.port >= 0 ? found[rank][static_cast<size_t>(source.port)]
                                               : values.at(source.value));
        const std::vector<Array>& out = executable->run(arguments);
        for (size_t i = 0; i < part.outputs.size(); ++i) {
          if (part.outputs[i].value >= 0) values[part.outputs[i].value] = runtime::copied(out[i]);
          if (part.outputs[i].port == 0) losses[rank] = out[i].number();
        }
      }
      for (const auto& [value, array] : values) EXPECT_TRUE(messages.kept.contains(value));
    });
    EXPECT_EQ(losses[1], loss);
    for (int64_t i = 0; i < wanted[3].size(); ++i) {
      EXPECT_EQ(found[0][3].number(i), wanted[3].number(i)) << i;
      EXPECT_EQ(found[1][4].number(i), wanted[4].number(i)) << i;
    }
    // Forward a value, backward its gradient and that of the tied weight.
    const auto count = [&](size_t rank, const char* operation) {
      size_t n = 0;
      for (size_t at = texts[rank].find(operation); at != std::string::npos;
           at = texts[rank].find(operation, at + 1))
        ++n;
      return n;
    };
    EXPECT_EQ(count(0, "comm.send("), 1u) << texts[0];
    EXPECT_EQ(count(0, "comm.recv("), 2u) << texts[0];
    EXPECT_EQ(count(1, "comm.send("), 2u) << texts[1];
    EXPECT_EQ(count(1, "comm.recv("), 1u) << texts[1];
  }
}

TEST(StageCut, TooManyStagesAreRejected) {
  const ir::Module module = ir::parse(kStep, "step.ir");
  try {
    assign_leaves(*module.functions[0], 3);
    FAIL() << "expected an error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kConfig);
    EXPECT_NE(e.message().find("at most 2 stages, 3 are wanted"), std::string::npos) << e.message();
  }
}

}  // namespace
}  // namespace paddle::partition
