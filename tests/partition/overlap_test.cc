// Exchanges that begin before they are needed.

#include "partition/overlap.h"

#include <gtest/gtest.h>

#include "ir/module.h"
#include "runtime/execute.h"

namespace paddle::partition {
namespace {

/// The operations of the function in order, by the number of the value that they make or wait for.
std::string overlapped(const std::string& text) {
  runtime::register_backends();
  const ir::Module module = ir::parse(text, "test.ir", kAccessesRanks);
  ir::Function& function = *module.functions[0];
  overlap_exchanges(function);
  ir::verify(function);
  std::string out;
  for (const auto& operation : function.body.operations) {
    if (!out.empty()) out += ' ';
    out += operation->op->name();
  }
  return out;
}

/// A function of an input %0 and the parameters %1 and %2.
std::string in_function(const std::string& body, const std::string& result) {
  return R"(module 'm' {
  parameter 'a' : float32[4, 8] = ''
  parameter 'b' : float32[4, 8] = ''
  func 'f'(
      %0 : float32[4, 8] 'x',
      %1 : float32[4, 8] parameter 'a',
      %2 : float32[4, 8] parameter 'b') {
)" + body +
         "    return " + result + R"( 'y'
  }
}
)";
}

constexpr const char* kGather = " {ranks = [0, 1], axis = 1, sizes = [8, 8]} : float32[4, 16]\n";
constexpr const char* kScatter =
    " {ranks = [0, 1], position = 0, axis = 0, sizes = [2, 2], reduction = 'sum'} : float32[2, "
    "8]\n";

TEST(Overlap, AParameterTravelsWhileTheOneBeforeIsUsed) {
  EXPECT_EQ(overlapped(in_function(std::string("    %3 = comm.all_gather(%1)") + kGather +
                                       "    %4 = relu(%3) : float32[4, 16]\n" +
                                       "    %5 = comm.all_gather(%2)" + kGather +
                                       "    %6 = add(%4, %5) : float32[4, 16]\n",
                                   "%6")),
            "comm.start_all_gather comm.wait comm.start_all_gather relu comm.wait add");
}

TEST(Overlap, ASumEndsBeforeTheNextExchangeAndBeforeItIsRead) {
  EXPECT_EQ(
      overlapped(in_function(std::string("    %3 = comm.reduce_scatter(%0)") + kScatter +
                                 "    %4 = relu(%0) : float32[4, 8]\n" +
                                 "    %5 = comm.reduce_scatter(%4)" + kScatter +
                                 "    %6 = relu(%4) : float32[4, 8]\n" +
                                 "    %7 = add(%3, %5) : float32[2, 8]\n",
                             "%7")),
      "comm.start_reduce_scatter relu comm.wait comm.start_reduce_scatter relu comm.wait add");
}

TEST(Overlap, WhatIsComputedFirstDoesNotBeginEarlier) {
  EXPECT_EQ(
      overlapped(in_function(
          std::string("    %3 = relu(%0) : float32[4, 8]\n") +
              "    %4 = relu(%3) : float32[4, 8]\n" + "    %5 = relu(%4) : float32[4, 8]\n" +
              "    %6 = relu(%5) : float32[4, 8]\n" + "    %7 = comm.all_gather(%6)" + kGather,
          "%7")),
      "relu relu relu relu comm.start_all_gather comm.wait");
}

}  // namespace
}  // namespace paddle::partition
