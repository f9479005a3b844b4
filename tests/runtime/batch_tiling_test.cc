// Batch tiling: which operations are tiled, and that results equal those of whole batches, with
// guarded memory.

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/batch_tiling.h"
#include "runtime/compile.h"
#include "runtime/executable.h"
#include "runtime/execute.h"
#include "support/numbers.h"

namespace paddle {
namespace {

ir::Module module_of(const std::string& inputs, const std::string& body) {
  return ir::parse("module 'm' {\n  func 'f'(\n" + inputs + ") {\n" + body + "  }\n}\n",
                   "batch_tiling_test.txt");
}

/// The operations of each tiled run and its number of tiles: "relu relu /4".
std::vector<std::string> runs(const ir::Module& module, int64_t batch, int64_t cache) {
  const SymbolLookup symbols = [&](const std::string& name) {
    return name == "batch" ? std::optional<int64_t>(batch) : std::nullopt;
  };
  std::vector<std::string> out;
  for (const auto& run : runtime::find_batch_tilings(module.functions[0]->body, symbols, cache)) {
    std::string text;
    for (const ir::Operation* o : run.operations) text += str(o->op->name(), " ");
    out.push_back(text + str("/", run.tiles));
  }
  return out;
}

const char* const kX = "      %0 : float32[batch, 8, 8] 'x'";  // 256 bytes per sample
using Texts = std::vector<std::string>;

TEST(BatchTiling, UsesTheFewestTilesThatFit) {
  const ir::Module m = module_of(kX,
                                 "    %1 = relu(%0) : float32[batch, 8, 8]\n"
                                 "    %2 = exp(%1) : float32[batch, 8, 8]\n"
                                 "    return %2 'y'\n");
  EXPECT_EQ(runs(m, 12, 12 * 512), Texts{});  // all of it fits
  EXPECT_EQ(runs(m, 12, 12 * 512 - 1), Texts{"relu exp /2"});
  EXPECT_EQ(runs(m, 12, 4 * 512), Texts{"relu exp /3"});
  EXPECT_EQ(runs(m, 12, 3 * 512 - 1), Texts{"relu exp /6"});
  EXPECT_EQ(runs(m, 7, 2 * 512), Texts{"relu exp /7"});
  EXPECT_EQ(runs(m, 12, 511), Texts{});  // not even one sample fits
  EXPECT_EQ(runs(m, 12, 0), Texts{});
}

TEST(BatchTiling, EndsWhereSamplesDependOnEachOther) {
  const std::string begin =
      "    %1 = relu(%0) : float32[batch, 8, 8]\n"
      "    %2 = exp(%1) : float32[batch, 8, 8]\n";
  const auto with = [&](const std::string& rest) {
    return runs(module_of(kX, begin + rest), 8, 1024);
  };
  const Texts two = {"relu exp /4"};
  EXPECT_EQ(with("    %3 = sum(%2) {axis = [0]} : float32[8, 8]\n    return %3 'y'\n"), two);
  EXPECT_EQ(with("    %3 = softmax(%2) {axis = 0} : float32[batch, 8, 8]\n    return %3 'y'\n"),
            two);
  EXPECT_EQ(with("    %3 = flip(%2) {axis = [0]} : float32[batch, 8, 8]\n    return %3 'y'\n"),
            two);
  EXPECT_EQ(with("    %3 = matmul(%2, %2) : float32[batch, 8, 8]\n    return %3 'y'\n"), two);
  // Sums within samples do not end a run.
  EXPECT_EQ(with("    %3 = sum(%2) {axis = [1, 2]} : float32[batch]\n    return %3 'y'\n"),
            Texts{"relu exp sum /4"});
  EXPECT_EQ(with("    %3 = sum(%2) {axis = [-1], keepdim = true} : float32[batch, 8, 1]\n"
                 "    %4 = sub(%2, %3) : float32[batch, 8, 8]\n    return %4 'y'\n"),
            Texts{"relu exp sum subtract /8"});
}

TEST(BatchTiling, FollowsViewsThatKeepTheBatch) {
  const auto with = [&](const std::string& view, const std::string& type) {
    return runs(module_of(kX, "    %1 = relu(%0) : float32[batch, 8, 8]\n    %2 = " + view + " : " +
                                  type + "\n    %3 = exp(%2) : " + type + "\n    return %3 'y'\n"),
                8, 1024);
  };
  EXPECT_EQ(with("transpose(%1) {perm = [0, 2, 1]}", "float32[batch, 8, 8]"),
            Texts{"relu transpose exp /4"});
  EXPECT_EQ(with("reshape(%1) {shape = [batch, 64]}", "float32[batch, 64]"),
            Texts{"relu reshape exp /4"});
  // With a batch of 8 these have a first axis of 8 as well, which is not the batch.
  EXPECT_EQ(with("transpose(%1) {perm = [1, 0, 2]}", "float32[8, batch, 8]"), Texts{});
  EXPECT_EQ(with("reshape(%1) {shape = [64, batch]}", "float32[64, batch]"), Texts{});
  EXPECT_EQ(with("reshape(%1) {shape = [8, batch, 8]}", "float32[8, batch, 8]"),
            Texts{"relu reshape exp /4"});  // for these sizes it changes nothing
}

TEST(BatchTiling, ReadsWeightsWholeAndWithinTheCache) {
  const ir::Module m = module_of(
      "      %0 : float32[batch, 4, 4, 4] 'x',\n      %1 : float32[4, 4, 3, 3] 'w'",  // 576 bytes
      "    %2 = conv2d(%0, %1, _) {padding = 1} : float32[batch, 4, 4, 4]\n"
      "    %3 = conv2d(%2, %1, _) {padding = 1} : float32[batch, 4, 4, 4]\n"
      "    %4 = conv2d(%3, %1, _) {padding = 1} : float32[batch, 4, 4, 4]\n"
      "    return %4 'y'\n");
  EXPECT_EQ(runs(m, 6, 1800), Texts{"conv2d conv2d conv2d /2"});
  EXPECT_EQ(runs(m, 8, 1200), Texts{"conv2d conv2d /4"});
  // The statistics of a batch norm in training depend on all samples.
  EXPECT_EQ(runs(module_of("      %0 : float32[batch, 4, 4, 4] 'x',\n      %1 : float32[4] 'm',\n"
                           "      %2 : float32[4] 'v'",
                           "    %3 = relu(%0) : float32[batch, 4, 4, 4]\n"
                           "    %4, %5, %6, %7, %8 = batch_norm(%3, %1, %2, _, _) {training = "
                           "true} : float32[batch, 4, 4, 4], float32[4], float32[4], float32[4], "
                           "float32[4]\n    return %4 'y'\n"),
                 8, 600),
            Texts{});
}

Array values(const Dims& shape, double scale) {
  Array a = Array::empty(DType::kF32, shape);
  for (int64_t i = 0; i < a.size(); ++i)
    a.data<float>()[i] = static_cast<float>(scale * std::sin(static_cast<double>(i) * 0.7 + 0.1));
  return a;
}

/// Residual blocks as they look before the passes. %8, %12 and the input are read again by what
/// follows; the last lines mix the images.
const char* const kNet =
    "    %4 = conv2d(%0, %1, %3) {padding = 1} : float32[batch, 16, 10, 6]\n"
    "    %5 = relu(%4) : float32[batch, 16, 10, 6]\n"
    "    %6 = conv2d(%5, %2, _) {padding = 1} : float32[batch, 16, 10, 6]\n"
    "    %7 = add(%6, %5) : float32[batch, 16, 10, 6]\n"
    "    %8 = relu(%7) : float32[batch, 16, 10, 6]\n"
    "    %9 = conv2d(%8, %2, %3) {padding = 1} : float32[batch, 16, 10, 6]\n"
    "    %10 = add(%9, %8) : float32[batch, 16, 10, 6]\n"
    "    %11, %19 = max_pool2d(%10) {kernel_size = 2} : float32[batch, 16, 5, 3], int32[batch, 16, "
    "5, 3]\n"
    "    %12 = reshape(%11) {shape = [batch, 240]} : float32[batch, 240]\n"
    "    %13 = tanh(%12) : float32[batch, 240]\n"
    "    %14 = mean(%13) {axis = [0], keepdim = true} : float32[1, 240]\n"
    "    %15 = sub(%12, %14) : float32[batch, 240]\n"
    "    %16 = mean(%8) {axis = [2, 3]} : float32[batch, 16]\n"
    "    return %15 'y', %16 'z', %0 'same', %12 'rows'\n";
const char* const kNetInputs =
    "      %0 : float32[batch, 3, 10, 6] 'x',\n"
    "      %1 : float32[16, 3, 3, 3] 'w1',\n"
    "      %2 : float32[16, 16, 3, 3] 'w2',\n"
    "      %3 : float32[16] 'bias'";

TEST(BatchTiling, GivesTheResultsOfWholeBatches) {
  for (const bool passes : {false, true})
    for (const bool check : {true, false}) {
      ir::Module cut = module_of(kNetInputs, kNet), whole = module_of(kNetInputs, kNet);
      if (passes)
        for (const ir::Module* m : {&cut, &whole}) runtime::optimize(*m->functions[0]);
      const runtime::ExecutableOptions parts{
          8, {.check_memory = check, .profile = nullptr, .tile_bytes = 24000}};
      runtime::Executable a(cut.functions[0], parts), b(whole.functions[0]);
      for (const int64_t batch : {12, 1, 7, 16, 12}) {
        const std::vector<Array> inputs = {values({batch, 3, 10, 6}, 1), values({16, 3, 3, 3}, 0.3),
                                           values({16, 16, 3, 3}, 0.1), values({16}, 0.5)};
        size_t runs = 0;
        for (const auto& i : a.plan({Layout::of(inputs[0]), Layout::of(inputs[1]),
                                     Layout::of(inputs[2]), Layout::of(inputs[3])})
                                 .instructions())
          runs += i.kind == runtime::Instruction::Kind::kTiles ? 1 : 0;
        EXPECT_EQ(runs > 0, batch > 1);
        for (int turn = 0; turn < 2; ++turn) {
          const std::vector<Array> ya = a.run(inputs), yb = b.run(inputs);
          ASSERT_EQ(ya.size(), yb.size());
          for (size_t i = 0; i < ya.size(); ++i)
            EXPECT_LE(testing_support::largest_difference(ya[i], yb[i]), 2e-6)
                << "batch " << batch << ", result " << i << (passes ? ", after passes" : "");
        }
      }
    }
}

TEST(BatchTiling, CountsTheSameWorkInLessMemory) {
  const ir::Module m = module_of(kNetInputs, kNet);
  const auto plan = [&](int64_t bytes) {
    return runtime::Plan(
        *m.functions[0],
        {Layout::contiguous(DType::kF32, {16, 3, 10, 6}),
         Layout::contiguous(DType::kF32, {16, 3, 3, 3}),
         Layout::contiguous(DType::kF32, {16, 16, 3, 3}), Layout::contiguous(DType::kF32, {16})},
        {.tile_bytes = bytes});
  };
  EXPECT_EQ(plan(0).flops(), plan(24000).flops());
  EXPECT_LT(plan(24000).memory().arena, plan(0).memory().arena);
}

TEST(BatchTiling, AreNotMadeOfAStepThatWritesParameters) {
  ir::Module m = module_of("      %0 : float32[batch, 64] 'x',\n      %1 : float32[] parameter 'w'",
                           "    %2 = relu(%0) : float32[batch, 64]\n"
                           "    %3 = mul(%2, %1) : float32[batch, 64]\n"
                           "    %4 = sum(%3) : float32[]\n"
                           "    return %3 'y', %4 parameter 'w'\n");
  const runtime::Plan plan(
      *m.functions[0],
      {Layout::contiguous(DType::kF32, {16, 64}), Layout::contiguous(DType::kF32, {})},
      {.tile_bytes = 2048});
  for (const auto& i : plan.instructions()) EXPECT_NE(i.kind, runtime::Instruction::Kind::kTiles);
}

}  // namespace
}  // namespace paddle
