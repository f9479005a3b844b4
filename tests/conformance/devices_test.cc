// The checks of devices: the mirror of the CPU and the example in C pass them.

#include "conformance/devices.h"

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

}  // namespace
}  // namespace paddle::conformance
