// The checks of operations themselves: comparison with a reference, isolation of jobs that crash or
// never end, the words of a call, and tables of cases.

#include <gtest/gtest.h>

#include <unistd.h>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "inspect/check.h"
#include "inspect/compare.h"
#include "inspect/op_call.h"
#include "inspect/run_op.h"

namespace paddle::inspect {
namespace {

TEST(Compare, ToleratesWhatItShould) {
  const double nan = std::nan(""), infinity = INFINITY;
  const Array expected =
      Array::from<float>({1.0f, 0.0f, static_cast<float>(nan), static_cast<float>(infinity)}, {4});
  Array found = Array::from<float>(
      {1.000001f, 1e-7f, static_cast<float>(nan), static_cast<float>(infinity)}, {4});
  EXPECT_EQ(difference(found, expected, {1e-5, 1e-6}), "");
  found.data<float>()[0] = 1.1f;
  EXPECT_EQ(difference(found, expected, {1e-5, 1e-6}),
            "1 of 4 elements differ, most at [0]: 1.100000023841858, expected 1");
  found.data<float>()[0] = static_cast<float>(infinity);
  EXPECT_NE(difference(found, expected, {1e-5, 1e-6}), "");
}

TEST(Compare, HoldsShapesAndDtypes) {
  const Array x = Array::zeros(DType::kF32, {2, 3});
  EXPECT_EQ(difference(x, Array::zeros(DType::kF32, {3, 2}), {}), "shape [2, 3], expected [3, 2]");
  EXPECT_EQ(difference(x, Array::zeros(DType::kF64, {2, 3}), {}), "float32, expected float64");
  EXPECT_EQ(difference(Array::zeros(DType::kBF16, {2}), Array::zeros(DType::kF32, {2}), {}), "");
  EXPECT_NE(difference(Array::from<int64_t>({1}, {1}), Array::from<int64_t>({2}, {1}), {1, 1}), "");
}

TEST(Isolation, ACrashIsOneFailure) {
  std::vector<std::string> results(100, "?");
  run_isolated(
      results.size(),
      [](size_t i) -> std::string {
        if (i == 3) {
          ::signal(SIGSEGV, SIG_DFL);  // a sanitizer's report of it may take longer than a second
          ::kill(::getpid(), SIGSEGV);
        }
        if (i == 40) _exit(0);
        if (i == 70)
          for (;;) ::pause();
        if (i == 99) throw std::runtime_error("two\nlines");
        return i % 2 ? "" : "even";
      },
      [&](size_t i, const std::string& line) { results[i] = line; }, {2, 1});
  EXPECT_TRUE(results[3].starts_with("crashed: ")) << results[3];
  EXPECT_EQ(results[40], "crashed: exit status 0");
  EXPECT_EQ(results[70], "not done after 1 seconds");
  EXPECT_EQ(results[99], "two lines");
  EXPECT_EQ(results[4], "even");
  EXPECT_EQ(results[5], "");
}

TEST(Calls, AreReadFromWords) {
  const NamedCall call = parse_call(get_op("concat"), {"x=[f32[2,3],f32[1,3]]", "axis=0"});
  ASSERT_EQ(call.inputs().size(), 2u);
  EXPECT_EQ(call.inputs()[1].shape, (Dims{1, 3}));
  EXPECT_EQ(call.input_name(1), "x[1]");
  const auto results =
      run_named(parse_call(get_op("cumsum"), {"x=f64(1,2,3)", "axis=0"}), Mode::kCompiled, true);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].second.number(2), 6);
  EXPECT_EQ(results[1].first, "grad_x");
  EXPECT_EQ(results[1].second.number(0), 3);
  for (const char* wrong : {"x", "=1", "x=f32[2", "x=f32[-1]", "x=f32[1000000,1000000]",
                            "x=f32[2]{0}", "x=f32[2](1)", "x=f32[2]y"})
    EXPECT_THROW(parse_call(get_op("exp"), {wrong}), Error) << wrong;
}

TEST(Tables, CountFailuresAndUnknownOperations) {
  const std::string folder =
      (std::filesystem::temp_directory_path() / str("inspect_", getpid())).string();
  std::filesystem::create_directories(folder);
  formats::write_npz(folder + "/t.npz", {{"x", Array::from<float>({1, 4}, {2})},
                                         {"y", Array::from<float>({1, 2}, {2})}});
  std::ofstream(folder + "/t.jsonl")
      << R"({"name": "good", "op": "sqrt", "args": {"x": {"array": "x"}}, "outputs": ["y"]}
{"name": "bad", "op": "exp", "args": {"x": {"array": "x"}}, "outputs": ["y"]}
{"name": "unknown", "op": "sqroot", "args": {}, "outputs": []}
{"name": "missing", "op": "sqrt", "args": {"x": {"array": "z"}}, "outputs": ["y"]}
{"name": "rejected", "op": "sqrt", "args": {"x": {"array": "x"}, "axis": 1}, "error": true}
{"name": "accepted", "op": "sqrt", "args": {"x": {"array": "x"}}, "error": true}
)";
  std::vector<std::string> lines;
  const auto result =
      check_table(folder + "/t.jsonl", {}, [&](const std::string& l) { lines.push_back(l); });
  EXPECT_EQ(result.passed, 2);
  EXPECT_EQ(result.failed, 4);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_TRUE(lines[0].starts_with("bad: eager: output 0: ")) << lines[0];
  EXPECT_EQ(lines[1], "unknown: unknown operation 'sqroot' (did you mean 'sqrt'?)");
  EXPECT_EQ(lines[3], "accepted: eager: not rejected");
  std::ofstream(folder + "/t.jsonl") << "{\"op\": \"sqrt\"}\nnonsense\n";
  EXPECT_THROW(check_table(folder + "/t.jsonl", {}, [](const std::string&) {}), Error);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace paddle::inspect
