#include "base/duration.h"

#include <gtest/gtest.h>

namespace paddle {
namespace {

TEST(Duration, IsReadInSeconds) {
  EXPECT_EQ(parse_duration("90"), 90);
  EXPECT_EQ(parse_duration("1.5"), 1.5);
  EXPECT_EQ(parse_duration("250ms"), 0.25);
  EXPECT_EQ(parse_duration("90s"), 90);
  EXPECT_EQ(parse_duration("30m"), 1800);
  EXPECT_EQ(parse_duration("1h30m"), 5400);
  EXPECT_EQ(parse_duration("1m 500ms"), 60.5);
  EXPECT_EQ(parse_duration(" 2d "), 172800);
  EXPECT_EQ(parse_duration("0"), 0);
  EXPECT_EQ(parse_duration("5min"), 300);
  EXPECT_EQ(parse_duration("20 min"), 1200);
  EXPECT_EQ(parse_duration("1 day 2 hours"), 93600);
}

TEST(Duration, OtherTextIsNone) {
  for (const char* text :
       {"", " ", "soon", "m", "-1", "1x", "1h30", "30 m 5", "1e400", "nan", "1.2.3", "5mins", "s"})
    EXPECT_FALSE(parse_duration(text)) << text;
}

}  // namespace
}  // namespace paddle
