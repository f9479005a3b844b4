// The search for kernels: what it records of a plan, and the table that it makes.

#include "tune/kernel_search.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/files.h"
#include "base/timing_conditions.h"
#include "runtime/execute.h"

namespace paddle::tune {
namespace {

/// A convolution with constant weights, for which there are several algorithms.
struct Convolution {
  const Op& op = get_op("conv2d");
  Attrs attrs{op.defaults, {}};
  Array weight = Array::from<float>(std::vector<float>(54, 0.5f), {6, 1, 3, 3});
  std::vector<Layout> operands = {Layout::contiguous(DType::kF32, {16, 1, 28, 28}),
                                  Layout::of(weight), Layout{}};
  std::vector<Layout> results = {Layout::contiguous(DType::kF32, {16, 6, 26, 26})};

  Convolution() {
    runtime::register_backends();
    operands[1].constant = weight.raw();
    operands[2].present = false;
  }
  KernelRequest request(KernelChoices& choices) const {
    return {op, attrs, operands, results, {}, {.choices = &choices}};
  }
};

TEST(KernelRecorder, KeepsProblemsBeyondTheirPlan) {
  KernelRecorder recorder;
  std::vector<KernelProblem> problems;
  {
    const Convolution conv;
    EXPECT_NE(prepare_kernel(conv.request(recorder)), nullptr);
    EXPECT_NE(prepare_kernel(conv.request(recorder)), nullptr);
    problems = recorder.problems();
    ASSERT_FALSE(problems.empty());
    for (const KernelProblem& p : problems) EXPECT_NE(p.operands[1].constant, conv.weight.raw());
  }
  for (const KernelProblem& p : problems) {
    EXPECT_EQ(p.uses, 2);
    EXPECT_GE(p.names.size(), 2u);
    EXPECT_EQ(p.prepare.choices, nullptr);
    float first = 0;
    std::memcpy(&first, p.operands[1].constant, sizeof first);
    EXPECT_EQ(first, 0.5f);
  }
}

TEST(KernelSearch, MakesATableThatReadsBack) {
  KernelRecorder recorder;
  const Convolution conv;
  prepare_kernel(conv.request(recorder));
  KernelSearch search;
  EXPECT_EQ(search.table("kernels.txt"), nullptr);
  const auto problems = recorder.problems();
  int saved = 0;
  Budget budget{.seconds = 20};
  budget.save = [&] { ++saved; };
  const std::string name = search.find(problems, budget);
  EXPECT_EQ(static_cast<size_t>(saved), problems.size());
  EXPECT_EQ(search.find(problems, budget), name);  // all are known
  EXPECT_EQ(static_cast<size_t>(saved), problems.size());
  // A later process knows them, too, but not with another number of threads.
  KernelSearch later;
  Findings schedules("searched", "");
  read_state(state_text(search.findings(), schedules), later.findings(), schedules);
  EXPECT_EQ(later.find(problems, budget), name);
  EXPECT_EQ(static_cast<size_t>(saved), problems.size());
  EXPECT_THROW(read_state("{}", later.findings(), schedules), Error);
  if (name.empty()) return;  // the default is the fastest here
  const auto folder =
      std::filesystem::temp_directory_path() / ("kernel_search_" + std::to_string(::getpid()));
  ensure_directory(folder.string());
  EXPECT_EQ(search.publish(name, folder.string()), name);
  const std::string path = (folder / name).string();
  EXPECT_FALSE(runtime::KernelTable::parse(read_file(path), path, timing_conditions()).empty());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace paddle::tune
