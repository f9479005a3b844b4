// The search for schedules: what it records of a plan, and the table that later plans read.

#include "tune/schedule_search.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/execute.h"

namespace paddle::tune {
namespace {

/// A group that is compiled where code is generated at all: tanh(x) + y.
FusedRequest request(int64_t rows) {
  FusedRequest out;
  out.shape = {rows, 4096};
  out.operands = {Layout::contiguous(DType::kF32, out.shape),
                  Layout::contiguous(DType::kF32, {4096})};
  out.results = {Layout::contiguous(DType::kF32, out.shape)};
  out.steps = {{&get_op("tanh"), {}, {0}, DType::kF32}, {&get_op("add"), {}, {2, 1}, DType::kF32}};
  out.result_values = {3};
  return out;
}

TEST(ScheduleSearch, RecordsGroupsAndKeepsWhatIsFaster) {
  runtime::register_backends();
  GroupRecorder recorder;
  {
    const codegen::ScheduleHookScope scope(&recorder);
    for (const int64_t rows : {64, 64, 65}) {
      const auto kernel = prepare_fused(request(rows));
      ASSERT_TRUE(kernel);
      if (!kernel->implementation().starts_with("codegen"))
        GTEST_SKIP() << "built without LLVM, or no AVX2";
    }
  }
  const std::vector<GroupProblem> problems = recorder.problems();
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0].uses + problems[1].uses, 3);
  ScheduleSearch search;
  int saved = 0;
  Budget budget{.seconds = 60};
  budget.save = [&] { ++saved; };
  const std::string name = search.find(problems, budget);
  EXPECT_EQ(saved, 2);
  codegen::ScheduleHook* const hook = search.hook(name);
  EXPECT_EQ(hook == nullptr, name.empty());  // what is faster depends on the machine
  for (const GroupProblem& p : problems)
    if (const auto schedule = hook ? hook->choose(p.request, p.group) : std::nullopt) {
      EXPECT_NE(*schedule, codegen::Schedule{});
    }
  EXPECT_EQ(search.find(problems, budget), name);  // all are known
  EXPECT_EQ(saved, 2);
}

TEST(Findings, LaterOnesMakeAnotherTable) {
  Findings findings("kernels", ".txt");
  EXPECT_EQ(findings.collect(), "");
  findings.add("a", "fast");
  findings.add("b", "");
  EXPECT_EQ(findings.collect(), "kernels.txt");
  findings.add("c", "");
  EXPECT_EQ(findings.collect(), "kernels.txt");
  findings.add("d", "direct");
  EXPECT_EQ(findings.collect(), "kernels_2.txt");
  ASSERT_NE(findings.table("kernels_2.txt"), nullptr);
  EXPECT_EQ(*findings.table("kernels_2.txt"), (Findings::Table{{"a", "fast"}, {"d", "direct"}}));
  EXPECT_EQ(*findings.table("kernels.txt"), (Findings::Table{{"a", "fast"}}));
  EXPECT_EQ(findings.table(""), nullptr);
  EXPECT_TRUE(findings.knows("b"));
  EXPECT_FALSE(findings.knows("e"));
}

}  // namespace
}  // namespace paddle::tune
