#include "base/cgroup.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace paddle {
namespace {

namespace fs = std::filesystem;

class Cgroup : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("paddle_cgroup_" + std::to_string(::getpid()));
    fs::remove_all(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  CgroupLimits limits() const {
    return read_cgroup_limits((root_ / "membership").string(), (root_ / "mount").string());
  }
  fs::path root_;
};

TEST_F(Cgroup, NoFilesMeanNoLimits) {
  EXPECT_FALSE(limits().cores);
  EXPECT_FALSE(limits().memory);
}

TEST_F(Cgroup, VersionTwoTakesTheSmallestUpToTheRoot) {
  write("membership", "0::/service/job\n");
  write("mount/service/job/cpu.max", "max 100000\n");
  write("mount/service/job/memory.max", "4000\n");
  write("mount/service/cpu.max", "150000 100000\n");
  write("mount/service/memory.max", "3000\n");
  write("mount/memory.max", "max\n");
  EXPECT_EQ(limits().cores, 1.5);
  EXPECT_EQ(limits().memory, 3000u);
}

TEST_F(Cgroup, VersionTwoInsideAContainer) {
  write("membership", "0::/../other/group\n");
  write("mount/cpu.max", "200000 100000\n");
  EXPECT_EQ(limits().cores, 2);
}

TEST_F(Cgroup, VersionOne) {
  write("membership", "3:cpu,cpuacct:/a\n2:memory:/a/b\n1:name=systemd:/\n");
  write("mount/cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n");
  write("mount/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  write("mount/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  write("mount/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
  write("mount/memory/a/memory.limit_in_bytes", "123456\n");
  EXPECT_EQ(limits().cores, 0.5);
  EXPECT_EQ(limits().memory, 123456u);
}

}  // namespace
}  // namespace paddle
