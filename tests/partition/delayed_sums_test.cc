// Sums over ranks that are left to the update: taken out of a function that adds gradients to
// states, where only these read them, and made once where the update begins.

#include "partition/delayed_sums.h"

#include <gtest/gtest.h>

#include "comm/simulation.h"
#include "runtime/compile.h"
#include "runtime/execute.h"

namespace paddle::partition {
namespace {

ir::Module parsed(const std::string& body) {
  return ir::parse(
      "module 'm' {\n  state 'gradient/w' : float64[2, 2] = ''\n"
      "  state 'gradient/t' : float64[4] = ''\n"
      "  func 'f'(\n      %0 : float64[4] 'x',\n      %1 : float64[] 'weight',\n"
      "      %2 : float64[2, 2] state 'gradient/w',\n"
      "      %3 : float64[4] state 'gradient/t') {\n" +
          body + "  }\n}\n",
      "sums.ir", kAccessesRanks);
}

/// The gradient of w is reshaped and scaled; that of the tied weight t has two parts.
constexpr const char* kGradients = R"(
    %4 = multiply(%0, %0) : float64[4]
    %5, %6, %7 = comm.all_reduce([%4, %0, %4]) {ranks = [0, 1], reduction = 'sum'} : float64[4], float64[4], float64[4]
    %8 = reshape(%5) {shape = [2, 2]} : float64[2, 2]
    %9 = multiply(%8, %1) : float64[2, 2]
    %10 = add(%2, %9) : float64[2, 2]
    %11 = sum(%6) : float64[]
    %12 = comm.all_reduce([%0]) {ranks = [0, 1], reduction = 'sum'} : float64[4]
    %13 = add(%7, %12) : float64[4]
    %14 = add(%3, %13) : float64[4]
    return %11 'loss', %10 state 'gradient/w', %14 state 'gradient/t'
)";

const auto is_gradient = [](const std::string& name) { return name.starts_with("gradient/"); };
const DelayedSums kBoth = {{"gradient/w", {{0, 1}}}, {"gradient/t", {{0, 1}}}};

/// How often an operation is in a function, with the number of its operands.
std::vector<size_t> operands_of(const ir::Function& f, const char* operation) {
  std::vector<size_t> out;
  for (const auto& o : f.body.operations)
    if (o->op->name() == operation) out.push_back(o->operands.size());
  return out;
}

TEST(DelayedSums, OnlyWhatElseReadsIsSummedInMicroBatches) {
  const ir::Module module = parsed(kGradients);
  ir::Function& f = *module.functions[0];
  EXPECT_EQ(delay_sums(f, is_gradient, 0, nullptr), kBoth);
  ir::verify(f);
  EXPECT_EQ(operands_of(f, "comm.all_reduce"), (std::vector<size_t>{1})) << ir::print(f);
}

TEST(DelayedSums, OverSeveralGroupsOneAfterTheOther) {
  const ir::Module module = parsed(R"(
    %4 = comm.all_reduce([%0]) {ranks = [0, 2], reduction = 'sum'} : float64[4]
    %5 = comm.all_reduce([%4]) {ranks = [0, 1], reduction = 'sum'} : float64[4]
    %6 = add(%3, %5) : float64[4]
    return %6 state 'gradient/t'
)");
  ir::Function& f = *module.functions[0];
  EXPECT_EQ(delay_sums(f, is_gradient, 0, nullptr),
            (DelayedSums{{"gradient/t", {{0, 2}, {0, 1}}}}));
  EXPECT_TRUE(operands_of(f, "comm.all_reduce").empty()) << ir::print(f);
}

TEST(DelayedSums, SumsThatAreReadElsewhereStay) {
  for (const char* body :
       {// by a norm
        "    %4 = comm.all_reduce([%0]) {ranks = [0, 1], reduction = 'sum'} : float64[4]\n"
        "    %5 = add(%3, %4) : float64[4]\n    %6 = sum(%4) : float64[]\n"
        "    return %6 'norm', %5 state 'gradient/t'\n",
        // by a function that is not linear
        "    %4 = comm.all_reduce([%0]) {ranks = [0, 1], reduction = 'sum'} : float64[4]\n"
        "    %5 = exp(%4) : float64[4]\n    %6 = add(%3, %5) : float64[4]\n"
        "    return %6 state 'gradient/t'\n",
        // next to a part that is whole on each rank
        "    %4 = comm.all_reduce([%0]) {ranks = [0, 1], reduction = 'sum'} : float64[4]\n"
        "    %5 = add(%4, %0) : float64[4]\n    %6 = add(%3, %5) : float64[4]\n"
        "    return %6 state 'gradient/t'\n",
        // the largest gradient
        "    %4 = comm.all_reduce([%0]) {ranks = [0, 1], reduction = 'max'} : float64[4]\n"
        "    %5 = add(%3, %4) : float64[4]\n    return %5 state 'gradient/t'\n"}) {
    const ir::Module module = parsed(body);
    ir::Function& f = *module.functions[0];
    const std::string before = ir::print(f);
    EXPECT_TRUE(delay_sums(f, is_gradient, 0, nullptr).empty()) << before;
    EXPECT_EQ(ir::print(f), before);
  }
}

// Another size of micro-batches may have a whole gradient: the first rank adds it, so that the sum
// over ranks has it once.
TEST(DelayedSums, LaterFunctionsKeepToTheFirstOne) {
  constexpr const char* kWhole =
      "    %4 = add(%3, %0) : float64[4]\n    return %2 state 'gradient/w', %4 state "
      "'gradient/t'\n";
  for (const int64_t rank : {0, 1}) {
    const ir::Module module = parsed(kWhole);
    ir::Function& f = *module.functions[0];
    delay_sums(f, is_gradient, rank, &kBoth);
    EXPECT_EQ(f.body.results[1] == f.body.arguments[3], rank == 1);
  }
  // Other states are summed in each micro-batch.
  const ir::Module module = parsed(kGradients);
  const DelayedSums none;
  EXPECT_TRUE(delay_sums(*module.functions[0], is_gradient, 0, &none).empty());
  EXPECT_EQ(operands_of(*module.functions[0], "comm.all_reduce").size(), 2u);
}

/// The function for one of two ranks.
std::unique_ptr<runtime::Executable> compiled(const ir::Module& module,
                                              comm::Communicator& communicator) {
  return runtime::compile(module.functions[0], {.exact = true},
                          {4, {.collectives = &communicator.collectives()}});
}

// Three micro-batches and the update's sums give what sums in each micro-batch give; the numbers
// are whole, so that no order of sums rounds.
TEST(DelayedSums, TheSumsAreThoseOfEachMicroBatch) {
  runtime::register_backends();
  constexpr const char* kUpdate = R"(
    %4 = multiply(%2, %1) : float64[2, 2]
    %5 = multiply(%3, %1) : float64[4]
    return %4 state 'gradient/w', %5 state 'gradient/t'
)";
  std::vector<std::vector<double>> found[2];
  for (const bool delays : {false, true}) {
    found[delays].resize(4);
    comm::simulate(2, [&](const std::shared_ptr<comm::Communicator>& communicator) {
      const int rank = communicator->rank();
      const ir::Module gradients = parsed(kGradients), update = parsed(kUpdate);
      if (delays) {
        const DelayedSums sums = delay_sums(*gradients.functions[0], is_gradient, rank, nullptr);
        sum_states(*update.functions[0], sums, 1 << 20);
        EXPECT_EQ(operands_of(*update.functions[0], "comm.all_reduce"), (std::vector<size_t>{2}));
        ir::verify(*update.functions[0]);
      }
      const auto add = compiled(gradients, *communicator), apply = compiled(update, *communicator);
      std::vector<Array> inputs = {Array::zeros(DType::kF64, {4}), Array::scalar(3.0),
                                   Array::zeros(DType::kF64, {2, 2}),
                                   Array::zeros(DType::kF64, {4})};
      for (int m = 0; m < 3; ++m) {
        for (int64_t i = 0; i < 4; ++i)
          inputs[0].data<double>()[i] = static_cast<double>(i + 2 * m + 5 * rank);
        EXPECT_EQ(add->run(inputs)[0].number(), 4 * 5 + 2 * (6 + 8 * m))
            << "the loss is that of both ranks";
      }
      apply->run(inputs);
      for (const size_t state : {2u, 3u})
        for (int64_t i = 0; i < 4; ++i)
          found[delays][static_cast<size_t>(rank) * 2 + state - 2].push_back(
              inputs[state].number(i));
    });
  }
  EXPECT_EQ(found[0], found[1]);
  EXPECT_EQ(found[1][0], found[1][2]) << "the same on both ranks";
  // 3 · 3 · (0 + 25 + 4 + 49 + 16 + 81)
  EXPECT_EQ(found[1][0][0], 1575);
}

TEST(DelayedSums, BucketsAreLimited) {
  const ir::Module module = parsed("    return %2 state 'gradient/w', %3 state 'gradient/t'\n");
  ir::Function& f = *module.functions[0];
  sum_states(f, kBoth, 40);
  EXPECT_EQ(operands_of(f, "comm.all_reduce"), (std::vector<size_t>{1, 1}));
  ir::verify(f);
}

}  // namespace
}  // namespace paddle::partition
