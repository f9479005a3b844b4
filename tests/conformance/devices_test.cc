// The checks of devices: the mirror of the CPU and the example in C pass them.

#include "conformance/devices.h"
#include "conformance/every_operation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/passes.h"
#include "plugin/plugin.h"
#include "tensor/device.h"

namespace paddle::conformance {
namespace {

constexpr Extent kQuick{.quick = true, .seed = 5};

void expect_device(const std::string& device, const std::vector<std::string>& lacks) {
  for (const DeviceCheck& check : device_checks()) {
    const std::string bad = check_device(device, check, kQuick);
    if (std::ranges::find(lacks, check.name) != lacks.end())
      EXPECT_EQ(bad[0], kSkip) << check.group << " " << check.name << ": " << bad;
    else
      EXPECT_EQ(bad, "") << check.group << " " << check.name;
  }
}

TEST(Devices, OfTheEngineDoWhatTheyShould) { expect_device("mirror", {}); }

TEST(Devices, InPlainCDoWhatTheyShould) {
  const plugin::Plugin& loaded = plugin::load(std::string(PADDLE_PLUGIN_CLIENTS) + "/relay.so");
  EXPECT_EQ(loaded.devices, std::vector<std::string>{"relay"});
  expect_device("relay", {"pool", "statistics", "clock", "graphs"});
}

/// The sum over all parts of what `check` gives; fails for a part that is wrong.
template <class Check>
Coverage covered(const Check& check) {
  Coverage out;
  for (size_t part = 0; part < kOperationParts; ++part) {
    const std::string line = check(part);
    EXPECT_TRUE(line.starts_with(kNote)) << line;
    const auto coverage = parse_coverage(line.substr(line.starts_with(kNote) ? 1 : 0));
    if (!coverage) continue;
    out.operations += coverage->operations;
    out.all += coverage->all;
  }
  return out;
}

TEST(Devices, ComputeEveryOperationOfTheEngine) {
  const Coverage results =
      covered([](size_t part) { return check_every_operation("mirror", part); });
  EXPECT_EQ(results.operations, results.all);
  const Coverage gradients =
      covered([](size_t part) { return check_every_gradient("mirror", part); });
  EXPECT_EQ(gradients.operations, gradients.all);
  RecordProperty("operations", text(results));
  RecordProperty("gradients", text(gradients));
  EXPECT_EQ(results.all + operations_left_out().size(), all_ops().size());
  // Those of ranks are checked by the group collectives, control flow and groups of operations by
  // modules; py_func calls another program, and read_file reads no tensors.
  EXPECT_EQ(join(operations_left_out(), " "),
            "comm.all_reduce comm.start_all_reduce comm.start_reduce_scatter comm.start_all_gather "
            "comm.wait comm.reduce_scatter comm.all_gather comm.all_to_all comm.permute comm.send "
            "comm.recv cf.if cf.while fused plugin.region py_func read_file");
}

}  // namespace
}  // namespace paddle::conformance
