// Tables of kernel choices: their text, what is rejected, and that a plan follows them.

#include "runtime/kernel_table.h"

#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "base/timing_conditions.h"
#include "runtime/execute.h"

namespace paddle::runtime {
namespace {

/// A convolution of few channels, for which there are several algorithms.
struct Convolution {
  const Op& op = get_op("conv2d");
  Attrs attrs{op.defaults, {}};
  std::vector<Layout> operands = {Layout::contiguous(DType::kF32, {64, 1, 28, 28}),
                                  Layout::contiguous(DType::kF32, {6, 1, 3, 3}), Layout{}};
  std::vector<Layout> results = {Layout::contiguous(DType::kF32, {64, 6, 26, 26})};

  Convolution() {
    register_backends();
    operands[2].present = false;
  }
  KernelRequest request(KernelChoices* choices = nullptr) const {
    return {op, attrs, operands, results, {}, {.choices = choices}};
  }
};

/// The algorithms that apply, in the default order.
std::vector<std::string> algorithms(const Convolution& conv) {
  struct Names final : KernelChoices {
    std::vector<std::string> algorithms;
    std::string choose(const KernelRequest&, ChoiceLevel level,
                       std::span<const std::string> names) override {
      if (level == ChoiceLevel::kAlgorithm) algorithms.assign(names.begin(), names.end());
      return "";
    }
  } names;
  prepare_kernel(conv.request(&names));
  return names.algorithms;
}

TEST(KernelTable, ReadsBackAndIsFollowed) {
  const Convolution conv;
  const std::string usual = prepare_kernel(conv.request())->implementation();
  const std::vector<std::string> names = algorithms(conv);
  ASSERT_GE(names.size(), 2u);
  const std::string& other = names.back();
  KernelTable table;
  table.set(problem_text(conv.request(), ChoiceLevel::kAlgorithm), other);
  KernelTable read = KernelTable::parse(table.text(), "t", timing_conditions());
  EXPECT_EQ(read.size(), 1u);
  const std::string chosen = prepare_kernel(conv.request(&read))->implementation();
  EXPECT_NE(chosen, usual);
  EXPECT_NE(chosen.find(other), std::string::npos) << chosen;
  KernelTable unknown;
  unknown.set(problem_text(conv.request(), ChoiceLevel::kAlgorithm), "no such algorithm");
  EXPECT_EQ(prepare_kernel(conv.request(&unknown))->implementation(), usual);
}

TEST(KernelTable, OtherMachinesAndDamagedFilesAreIgnoredAndSaid) {
  const auto path =
      std::filesystem::temp_directory_path() / ("kernels_" + std::to_string(::getpid()) + ".txt");
  const auto problem_of = [&](const std::string& text) {
    std::ofstream(path) << text;
    std::string problem;
    EXPECT_EQ(open_kernel_table(path.string(), problem), nullptr);
    return problem;
  };
  EXPECT_NE(problem_of("hello\n").find(":1: is not a table of kernel choices"), std::string::npos);
  EXPECT_NE(problem_of("paddle-kernels 1\nAnother processor\n").find("was timed on"),
            std::string::npos);
  EXPECT_NE(problem_of("paddle-kernels 1\n" + timing_conditions() + "\nlonely\n").find(":3:"),
            std::string::npos);
  std::filesystem::remove(path);
  std::string problem;
  EXPECT_EQ(open_kernel_table(path.string(), problem), nullptr);
  EXPECT_NE(problem.find("the table is ignored"), std::string::npos);
}

}  // namespace
}  // namespace paddle::runtime
