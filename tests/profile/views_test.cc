// Tables of modules and memory, on costs whose sums are known by hand.

#include "profile/views.h"

#include <gtest/gtest.h>

namespace paddle::profile {
namespace {

Analysis example() {
  Analysis a;
  const auto add = [&](const char* layer, const char* phase, double seconds) {
    OperationCost c;
    c.layer = layer;
    c.phase = phase;
    c.seconds = seconds;
    a.operations.push_back(c);
  };
  add("head.linear", "forward", 0.001);
  add("block.0.conv", "forward", 0.002);
  add("block.0.conv", "backward", 0.004);
  add("block.1.conv", "forward", 0.002);
  add("", "update", 0.001);
  return a;
}

TEST(ModuleTable, ModulesIncludeTheirParts) {
  EXPECT_EQ(module_table(example(), 2, 20),
            "\n        ms   share  forward ms  backward ms  module\n"
            "    10.000  100.0%       5.000        4.000  all operations\n"
            "     8.000   80.0%       4.000        4.000    block\n"
            "     6.000   60.0%       2.000        4.000      block.0\n"
            "     2.000   20.0%       2.000        0.000      block.1\n"
            "     1.000   10.0%       1.000        0.000    head\n"
            "     1.000   10.0%       1.000        0.000      head.linear\n");
  const std::string shallow = module_table(example(), 1, 2);
  EXPECT_NE(shallow.find("    block\n  1 more\n"), std::string::npos);
  EXPECT_EQ(shallow.find("block.0"), std::string::npos);
  EXPECT_EQ(module_table(example(), 0, 20), "");
}

TEST(MemoryTable, ListsTheValuesOfThePeak) {
  Analysis a;
  EXPECT_EQ(memory_table(a, 20), "");
  a.memory.timeline.push_back({});
  a.memory.at_the_peak = {{"conv2d", "block.0", "forward", 3072}, {"sum", "", "", 1024}};
  const std::string all = memory_table(a, 20);
  EXPECT_NE(all.find(" 75.0%  conv2d  block.0  forward\n"), std::string::npos) << all;
  EXPECT_NE(all.find(" 25.0%  sum  -  -\n"), std::string::npos) << all;
  EXPECT_NE(memory_table(a, 1).find("  1 more\n"), std::string::npos);
}

TEST(MemoryKindTable, HasAShareOfThePeak) {
  Analysis a;
  EXPECT_EQ(memory_kind_table(a), "");
  a.memory.kinds = {{"parameters", 3 << 20, 3 << 20}, {"values of the update", 1 << 20, 2 << 20}};
  const std::string table = memory_kind_table(a);
  EXPECT_NE(table.find("      3 MiB   75.0%         3 MiB  parameters\n"), std::string::npos)
      << table;
  EXPECT_NE(table.find("      1 MiB   25.0%         2 MiB  values of the update\n"),
            std::string::npos)
      << table;
}

TEST(DeviceTable, HasARowForEachDevice) {
  Analysis a = example();
  a.measured.steps.resize(2);
  a.devices = {{"mirror:0", 6, 0.008, 0.001, 16e6, 5 << 20}, {"cpu", 1, 0.002, 0, 0, 0}};
  EXPECT_EQ(device_table(a),
            "\n   calls         ms   share   GFLOP/s  copying ms        memory  device\n"
            "       3      4.000   80.0%       2.0       0.500         5 MiB  mirror:0\n"
            "     0.5      1.000   20.0%       0.0       0.000           0 B  cpu\n");
  EXPECT_EQ(device_table(Analysis()), "");
}

}  // namespace
}  // namespace paddle::profile
