// schedule_updates_early on devices: updates wait for each other, and those of one kind are
// neighbors, so that one kernel can compute them. tests/passes has its output for the CPU.

#include <gtest/gtest.h>

#include "compiler/passes/passes.h"

namespace paddle {
namespace {

/// The operations of a function after the pass, by name; updates with the type of their gradient.
std::vector<std::string> scheduled(const std::string& operations, Device device) {
  const ir::Module module = ir::parse(
      "module 'm' {\n  parameter 'a' : float32[4] = ''\n  parameter 'b' : float32[4] = ''\n"
      "  parameter 'c' : float32[4] = ''\n  parameter 'd' : float32[4] = ''\n"
      "  func 'step'(%0 : float32[4] parameter 'a', %1 : float32[4] parameter 'b', "
      "%2 : float32[4] parameter 'c', %3 : float32[4] parameter 'd', "
      "%4 : float32[4] 'x', %5 : bfloat16[4] 'y', %6 : float32[] 'lr') {\n" +
          operations + "  }\n}\n",
      "test.txt");
  ir::Function& f = *module.functions[0];
  f.target.device = device;
  passes::schedule_updates_early(f);
  std::vector<std::string> out;
  for (const auto& o : f.body.operations) {
    out.emplace_back(o->op->name());
    if (o->op->has(kOptimizerUpdate)) out.back() += " " + text(o->operands[1]->type.dtype);
  }
  return out;
}

constexpr Device kDevice{.kind = 1};

TEST(ScheduleUpdates, OfOneKindAreNeighborsOnDevices) {
  const std::string step =
      "    %7 = tanh(%5) : bfloat16[4]\n"
      "    %8 = multiply(%7, %7) : bfloat16[4]\n"
      "    %9 = sgd_update(%0, %7, _, %6, _, _) : float32[4]\n"
      "    %10 = sgd_update(%1, %4, _, %6, _, _) : float32[4]\n"
      "    %11 = sgd_update(%2, %8, _, %6, _, _) : float32[4]\n"
      "    return %9 parameter 'a', %10 parameter 'b', %11 parameter 'c', %3 parameter 'd'\n";
  EXPECT_EQ(scheduled(step, Device::cpu()),
            (std::vector<std::string>{"sgd_update float32", "tanh", "multiply",
                                      "sgd_update bfloat16", "sgd_update bfloat16"}));
  EXPECT_EQ(scheduled(step, kDevice),
            (std::vector<std::string>{"tanh", "multiply", "sgd_update float32",
                                      "sgd_update bfloat16", "sgd_update bfloat16"}));
}

TEST(ScheduleUpdates, ThatShareTensorsKeepTheirOrder) {
  // The third update continues the first, and the second has another kind.
  EXPECT_EQ(
      scheduled(
          "    %7 = sgd_update(%0, %4, _, %6, _, _) : float32[4]\n"
          "    %8 = sgd_update(%1, %5, _, %6, _, _) : float32[4]\n"
          "    %9 = sgd_update(%7, %4, _, %6, _, _) : float32[4]\n"
          "    return %9 parameter 'a', %8 parameter 'b', %2 parameter 'c', %3 parameter 'd'\n",
          kDevice),
      (std::vector<std::string>{"sgd_update float32", "sgd_update bfloat16",
                                "sgd_update float32"}));
}

}  // namespace
}  // namespace paddle
