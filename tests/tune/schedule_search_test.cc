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
  out.compile = true;
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
  const std::vector<GroupProblem> problems = recorder.take();
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0].uses + problems[1].uses, 3);
  EXPECT_TRUE(recorder.take().empty());
  ScheduleSearch search;
  const bool found = search.find(problems, 2);
  EXPECT_TRUE(search.searched());
  EXPECT_EQ(found, search.size() > 0);  // what is faster depends on the machine
  for (const GroupProblem& p : problems)
    if (const auto schedule = search.hook()->choose(p.request, p.group)) {
      EXPECT_NE(*schedule, codegen::Schedule{});
    }
  EXPECT_EQ(search.find({}, 0), found);  // searched once
}

}  // namespace
}  // namespace paddle::tune
