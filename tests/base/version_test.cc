#include "base/version.h"

#include <gtest/gtest.h>

namespace paddle {
namespace {

TEST(Version, ComparesNumbersOneByOne) {
  EXPECT_TRUE(is_older_version("1.2", "1.10"));
  EXPECT_TRUE(is_older_version("1.2.9", "1.3"));
  EXPECT_FALSE(is_older_version("1.2.0", "1.2"));
  EXPECT_FALSE(is_older_version("2", "1.9.9"));
}

TEST(Version, KnowsItsForm) {
  for (const char* good : {"1", "0.2", "1.2.3", "1.2.3.4"}) EXPECT_TRUE(is_version(good)) << good;
  for (const char* bad : {"", "1.", ".1", "1.a", "v1", "1.2.3.4.5", "1234567890"})
    EXPECT_FALSE(is_version(bad)) << bad;
}

}  // namespace
}  // namespace paddle
