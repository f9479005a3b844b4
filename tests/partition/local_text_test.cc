// The local function of a rank as text: where collectives are, and local shapes.

#include <gtest/gtest.h>

#include "partition/factor_text.h"
#include "partition/partition.h"
#include "runtime/execute.h"

namespace paddle::partition {
namespace {

std::string local_text(const std::string& text, const PartitionOptions& options) {
  runtime::register_backends();
  const ir::Module module = ir::parse(text, "test.ir");
  const Partitioned local = partition(*module.functions[0], options);
  ir::verify(*local.function);
  std::string printed = ir::print(*local.function);
  for (size_t at; (at = printed.find(", \n")) != std::string::npos;) printed.erase(at + 1, 1);
  // Placements have a test of their own.
  for (size_t at; (at = printed.find(" split[")) != std::string::npos;)
    printed.erase(at, printed.find(']', at) + 1 - at);
  return printed;
}

PartitionOptions mesh(int data, int tensor, int rank) {
  PartitionOptions options;
  options.mesh = Mesh({{"data", data}, {"tensor", tensor}});
  options.rank = rank;
  options.batch_inputs = {"x"};
  return options;
}

// A hidden layer: the columns of the first weight and the rows of the second are split without
// being told, the bias of the second is added after the sum.
TEST(Partition, TwoLinearLayersOverTensor) {
  const std::string text = R"(module 'm' {
  parameter 'w1' : float32[8, 6] = ''
  parameter 'b1' : float32[6] = ''
  parameter 'w2' : float32[6, 8] = ''
  parameter 'b2' : float32[8] = ''
  func 'f'(
      %0 : float32[4, 8] 'x',
      %1 : float32[8, 6] parameter 'w1',
      %2 : float32[6] parameter 'b1',
      %3 : float32[6, 8] parameter 'w2',
      %4 : float32[8] parameter 'b2') {
    %5 = linear(%0, %1, %2) : float32[4, 6]
    %6 = relu(%5) : float32[4, 6]
    %7 = linear(%6, %3, %4) : float32[4, 8]
    %8, %9, %10 = layer_norm(%7, _, _) {normalized_shape = [8]} : float32[4, 8], float32[4], float32[4]
    return %8 'y'
  }
}
)";
  const std::string wanted = R"(  func 'f'(
      %0 : float32[4, 8] 'x',
      %1 : float32[8, 3] parameter 'w1',
      %2 : float32[3] parameter 'b1',
      %3 : float32[3, 8] parameter 'w2',
      %4 : float32[8] parameter 'b2') {
    %5 = linear(%0, %1, %2) : float32[4, 3]
    %6 = relu(%5) : float32[4, 3]
    %7 = linear(%6, %3, _) : float32[4, 8]
    %8 = comm.all_reduce([%7]) {ranks = [0, 1]} : float32[4, 8]
    %9 = reshape(%4) {shape = [1, 8]} : float32[1, 8]
    %10 = add(%8, %9) : float32[4, 8]
    %11, %12, %13 = layer_norm(%10, _, _) {normalized_shape = [8]} : float32[4, 8], float32[4], float32[4]
    return %11 'y'
  }
)";
  EXPECT_EQ(local_text(text, mesh(1, 2, 1)), wanted);
}

// The batch of five rows is split into two and three; the mean is over all five.
TEST(Partition, MeanOverAnUnevenBatch) {
  const std::string text = R"(module 'm' {
  func 'f'(
      %0 : float32[5, 3] 'x') {
    %1 = mean(%0) : float32[]
    return %1 'y'
  }
}
)";
  EXPECT_EQ(local_text(text, mesh(2, 1, 1)), R"(  func 'f'(
      %0 : float32[3, 3] 'x') {
    %3 = constant float32[] [15.0]
    %1 = sum(%0) {axis = [0, 1]} : float32[]
    %2 = comm.all_reduce([%1]) {ranks = [0, 1]} : float32[]
    %4 = divide(%2, %3) : float32[]
    return %4 'y'
  }
)");
}

// A cumulative sum along the batch needs all of it.
TEST(Partition, WhatCannotWorkOnPartsIsGathered) {
  const std::string text = R"(module 'm' {
  func 'f'(
      %0 : float32[4, 3] 'x') {
    %1 = cumsum(%0) {axis = 0} : float32[4, 3]
    %2 = relu(%1) : float32[4, 3]
    return %2 'y'
  }
}
)";
  runtime::register_backends();
  const ir::Module module = ir::parse(text, "test.ir");
  const Partitioned local = partition(*module.functions[0], mesh(2, 1, 0));
  ASSERT_EQ(local.gathered.size(), 1u);
  EXPECT_EQ(local.gathered[0].operation, "cumsum");
  EXPECT_TRUE(local.gathered[0].has_rule);
  EXPECT_EQ(local.gathered[0].bytes, 48);
  EXPECT_NE(
      ir::print(*local.function)
          .find("comm.all_gather(%0) {ranks = [0, 1], axis = 0, sizes = [2, 2]} : float32[4, 3]"),
      std::string::npos)
      << ir::print(*local.function);
}

// Values keep their names and say which part of the whole they are; the text form holds both.
TEST(Partition, ValuesSayWhatPartTheyAre) {
  const std::string text = R"(module 'm' {
  parameter 'w' : float32[3, 6] = ''
  func 'f'(
      %0 : float32[4, 3] 'x',
      %1 : float32[3, 6] parameter 'w') {
    %2 'hidden' = matmul(%0, %1) : float32[4, 6]
    %3 'total' = sum(%2) {axis = [1]} : float32[4]
    return %3 'y'
  }
}
)";
  runtime::register_backends();
  const ir::Module module = ir::parse(text, "test.ir");
  PartitionOptions options = mesh(2, 2, 1);
  options.place = {{.match = {"w"}, .shard = {{1, "tensor"}}}};
  const Partitioned local = partition(*module.functions[0], options);
  const std::string printed = ir::print(*local.function);
  for (const char* wanted :
       {"%0 : float32[2, 3] split[0: 1x4 over 0] 'x'",
        "%1 : float32[3, 3] split[1: 1x6 over 1] parameter 'w'",
        " 'hidden' = matmul(%0, %1) : float32[2, 3] split[0: 1x4 over 0; 1: 1x6 over 1]",
        " 'total' = comm.all_reduce("})
    EXPECT_NE(printed.find(wanted), std::string::npos) << wanted << " in\n" << printed;
}

// Outputs of a group stay parts of the rows if all of them have rows, else all are whole.
TEST(Partition, GroupsOfOutputsStayPartsOfTheBatch) {
  const std::string text = R"(module 'm' {
  func 'f'(
      %0 : float32[5, 3] 'x') {
    %1 = relu(%0) : float32[5, 3]
    %2 = sum(%1) {axis = [1]} : float32[5]
    %3 = mean(%1) : float32[]
    %4 = transpose(%1) {perm = [1, 0]} : float32[3, 5]
    return %3 'loss', %1 'a', %2 'b', %2 'c', %4 'd', %1 'e'
  }
}
)";
  runtime::register_backends();
  const ir::Module module = ir::parse(text, "test.ir");
  PartitionOptions options = mesh(2, 1, 1);
  options.row_outputs = {{1, 2}, {3, 4}, {0}};
  const Partitioned local = partition(*module.functions[0], options);
  const Placement rows = {{.axis = 0, .dim = 0, .outer = 1, .units = 5}};
  const std::vector<Placement> wanted = {{}, rows, rows, {}, {}, {}};
  EXPECT_EQ(local.outputs, wanted);
  const auto& results = local.function->body.results;
  EXPECT_EQ(results[1]->type.text(), "float32[3, 3]");  // rows 2 to 4
  EXPECT_EQ(results[2]->type.text(), "float32[3]");
  EXPECT_EQ(results[3]->type.text(), "float32[5]");
  EXPECT_EQ(results[4]->type.text(), "float32[3, 5]");
  EXPECT_EQ(results[5]->type.text(), "float32[5, 3]");
}

// No operation connects a constant to the batch; an output of it that is split as an input is has
// the rows of this rank.
TEST(Partition, ConstantOutputsAreSplitAsTheInputsThatTheyAreFor) {
  const std::string text = R"(module 'm' {
  func 'f'(
      %0 : float32[5, 3] 'x') {
    %1 = mean(%0) : float32[]
    %2 = full() {shape = [5, 3], fill_value = 0.1, dtype = float32} : float32[5, 3]
    return %1 'loss', %2 'gradient', %2 'whole'
  }
}
)";
  runtime::register_backends();
  const ir::Module module = ir::parse(text, "test.ir");
  PartitionOptions options = mesh(2, 1, 1);
  options.row_outputs = {{1}};
  EXPECT_EQ(partition(*module.functions[0], options).outputs[1], Placement{});
  options.outputs_like_inputs = {{1, 0}};
  const Partitioned local = partition(*module.functions[0], options);
  const Placement rows = {{.axis = 0, .dim = 0, .outer = 1, .units = 5}};
  EXPECT_EQ(local.outputs[1], rows);
  const auto& results = local.function->body.results;
  EXPECT_EQ(results[1]->type.text(), "float32[3, 3]");  // rows 2 to 4
  EXPECT_EQ(results[2]->type.text(), "float32[5, 3]");
}

// With storage in parts over data a gradient is summed in parts, and only the part is updated. A
// small one is summed whole.
TEST(Partition, GradientsAreScatteredWhereTheyAreStoredInParts) {
  const std::string text = R"(module 'm' {
  parameter 'w' : float32[32, 40] = ''
  parameter 'b' : float32[40] = ''
  func 'f'(
      %0 : float32[4, 32] 'x',
      %1 : float32[4, 40] 'xg',
      %2 : float32[] 'rate',
      %3 : float32[32, 40] parameter 'w',
      %4 : float32[40] parameter 'b') {
    %5 = matmul(%1, %0) {transpose_x = true} : float32[40, 32]
    %6 = transpose(%5) {perm = [1, 0]} : float32[32, 40]
    %7 = sum(%1) {axis = [0]} : float32[40]
    %8 = sgd_update(%3, %6, _, %2, _, _) : float32[32, 40]
    %9 = sgd_update(%4, %7, _, %2, _, _) : float32[40]
    return %8 parameter 'w', %9 parameter 'b'
  }
}
)";
  PartitionOptions options = mesh(2, 1, 1);
  options.batch_inputs = {"x", "xg"};
  options.shards_storage = true;
  options.may_split = [](const ir::Port& port, int) {
    return port.kind != ir::PortKind::kParameter;
  };
  const std::string local = local_text(text, options);
  const auto has = [&](const char* part) { return local.find(part) != std::string::npos; };
  EXPECT_TRUE(
      has("comm.reduce_scatter(%5) {ranks = [0, 1], position = 1, axis = 0, "
          "sizes = [20, 20]} : float32[20, 32]"))
      << local;
  EXPECT_TRUE(has(": float32[32, 20]")) << local;
  EXPECT_TRUE(has(": float32[40]")) << local;
  EXPECT_TRUE(has("comm.all_gather")) << local;
  EXPECT_TRUE(has("comm.all_reduce")) << local;
}

/// A training step: two weights, the norm of their gradients, and the loss.
constexpr const char* kStep = R"(module 'm' {
  parameter 'w' : float32[32, 40] = ''
  parameter 'b' : float32[40] = ''
  func 'f'(
      %0 : float32[4, 32] 'x',
      %1 : float32[4, 40] 'xg',
      %2 : float32[] 'rate',
      %3 : float32[32, 40] parameter 'w',
      %4 : float32[40] parameter 'b') {
    %5 = mean(%1) : float32[]
    %6 = matmul(%0, %1) {transpose_x = true} : float32[32, 40]
    %7 = sum(%1) {axis = [0], keepdim = true} : float32[1, 40]
    %8 = reshape(%7) {shape = [40]} : float32[40]
    %9 = sum_of_squares(%6, _) : float64[]
    %10 = sum_of_squares(%8, _) : float64[]
    %11 = add(%9, %10) : float64[]
    %12 = sgd_update(%3, %6, _, %2, _, _) : float32[32, 40]
    %13 = sgd_update(%4, %8, _, %2, _, _) : float32[40]
    return %5 'loss', %11 'norm', %12 parameter 'w', %13 parameter 'b'
  }
}
)";

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

// Readers of a sum wait until the sums that no other depends on have been computed: loss and
// gradients travel together.
TEST(Partition, GradientsAndTheLossAreSummedTogether) {
  PartitionOptions options = mesh(2, 1, 0);
  options.batch_inputs = {"x", "xg"};
  const std::string local = local_text(kStep, options);
  EXPECT_EQ(count_of(local, "comm."), 1u) << local;
  EXPECT_EQ(count_of(local, " : float32[], float32[32, 40], float32[1, 40]"), 1u) << local;
}

// The norm of gradients that are stored in parts is the sum over the parts: only the small bias is
// summed whole.
TEST(Partition, NormsOfPartsAreSummed) {
  PartitionOptions options = mesh(2, 1, 0);
  options.batch_inputs = {"x", "xg"};
  options.shards_storage = true;
  const std::string local = local_text(kStep, options);
  EXPECT_EQ(count_of(local, "comm.all_gather"), 0u) << local;
  EXPECT_EQ(count_of(local, "comm.reduce_scatter"), 1u) << local;
  EXPECT_EQ(count_of(local, "comm.all_reduce"), 2u) << local;
  EXPECT_EQ(count_of(local, " : float32[32, 40]"), 1u) << local;  // the partial sum
}

constexpr const char* kMatrices = R"(module 'm' {
  func 'f'(
      %0 : float32[4, 3, 3] 'x') {
    %1 = inv(%0) : float32[4, 3, 3]
    return %1 'y'
  }
}
)";

// A plug-in's operation takes the rule that was registered for it; without one it runs whole.
TEST(Partition, RulesCanBeRegistered) {
  const ir::Module module = ir::parse(kMatrices, "test.ir");
  EXPECT_FALSE(partition(*module.functions[0], mesh(2, 1, 0)).gathered.empty());
  register_rule("inv", "[batch, _, _] -> [batch, _, _]");
  EXPECT_TRUE(partition(*module.functions[0], mesh(2, 1, 0)).gathered.empty());
}

TEST(Partition, AConfigGivesRules) {
  const ir::Module module = ir::parse(kMatrices, "test.ir");
  const auto error = [&](const char* operation, const char* rule) -> std::string {
    PartitionOptions options = mesh(2, 1, 0);
    options.rules = {{operation, parse_rule(rule), {}}};
    try {
      return partition(*module.functions[0], options).gathered.empty() ? "in parts" : "whole";
    } catch (const Error& e) {
      return e.message();
    }
  };
  EXPECT_EQ(error("inv", "[batch, ...] -> [batch, ...]"), "in parts");
  EXPECT_EQ(error("inv", "? -> [_, ...]"), "whole");
  EXPECT_NE(error("inv", "[batch, n] -> [batch, n]").find("does not fit its call"),
            std::string::npos);
  EXPECT_NE(error("inv", "[n, n, n] -> [n, n, n]").find("float32[4, 3, 3] -> float32[4, 3, 3]"),
            std::string::npos);
  EXPECT_EQ(error("det", "[...] -> [...]"), "parallel.rules: the step has no operation 'det'");
}

TEST(Partition, TextsThatAreNoRules) {
  for (const char* text :
       {"", "->", "[a]", "[a] ->", "[a] -> [b", "[a b] -> [a]", "[a],, [b] -> [a]",
        "[a] [b] -> [a]", "[..., ...] -> [...]", "[a,] -> [a]", "a -> a", "[a] -> [a],"})
    EXPECT_THROW(parse_rule(text), Error) << text;
}

TEST(Partition, PlaceRulesThatCannotBeFollowed) {
  const std::string text = R"(module 'm' {
  parameter 'w' : float32[3, 6] = ''
  func 'f'(
      %0 : float32[4, 3] 'x',
      %1 : float32[3, 6] parameter 'w') {
    %2 = matmul(%0, %1) : float32[4, 6]
    return %2 'y'
  }
}
)";
  const ir::Module module = ir::parse(text, "test.ir");
  const auto error = [&](std::vector<std::string> match, std::map<int64_t, std::string> shard,
                         int tensor) -> std::string {
    PartitionOptions options = mesh(1, tensor, 0);
    options.place = {{std::move(match), std::move(shard), {}}};
    try {
      const Partitioned local = partition(*module.functions[0], options);
      const Placement& placement = local.placements.at("w");
      return placement.empty() ? "whole"
                               : str("dim ", placement[0].dim, " in ", placement[0].units);
    } catch (const Error& e) {
      return e.message();
    }
  };
  EXPECT_NE(error({"nothing*"}, {{0, "tensor"}}, 2).find("no parameter matches nothing*"),
            std::string::npos);
  EXPECT_NE(error({"w"}, {{2, "tensor"}}, 2).find("it has no dim 2"), std::string::npos);
  EXPECT_NE(error({"w"}, {{0, "tensor"}}, 4).find("dim 0 cannot be split into 4 parts"),
            std::string::npos);
  EXPECT_EQ(error({"w"}, {{0, "tensor"}}, 3), "dim 0 in 3");
  EXPECT_EQ(error({"w"}, {}, 3), "whole");
}

}  // namespace
}  // namespace paddle::partition
