// The text of origins, and spans.

#include <gtest/gtest.h>

#include <thread>

#include "base/source_location.h"
#include "base/span.h"

namespace paddle {
namespace {

TEST(Origin, TextReadsBack) {
  for (const Origin& origin :
       {Origin{"models/m.yaml:6:5", "encoder.0.linear", true}, Origin{"m.yaml:6:5", "", false},
        Origin{"", "/layer1/conv/Conv", false}, Origin{"m.yaml:1:1", "", true}, Origin{}}) {
    const Origin read = parse_origin(text(origin));
    EXPECT_EQ(read.place, origin.place);
    EXPECT_EQ(read.layer, origin.layer);
    EXPECT_EQ(read.gradient, origin.gradient);
  }
}

TEST(Origin, PlaceIsFoundBesideTheLayer) {
  const SourceLocation at = parse_source_location("a b/m.yaml:12:5 @block.conv2d (gradient)");
  EXPECT_EQ(at.file, "a b/m.yaml");
  EXPECT_EQ(at.line, 12);
  EXPECT_EQ(at.column, 5);
  EXPECT_EQ(parse_source_location(" @conv1").line, 0);
}

TEST(Span, RecordsOnlyWhileThereIsARecorder) {
  { const Span ignored("before"); }
  SpanRecorder recorder;
  {
    const Span outer("outer");
    std::thread([] { const Span inner("inner"); }).join();
  }
  const auto records = recorder.records();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_STREQ(records[0].name, "inner");
  EXPECT_STREQ(records[1].name, "outer");
  EXPECT_NE(records[0].thread, records[1].thread);
  EXPECT_LE(records[1].begin, records[0].begin);
  EXPECT_GE(records[1].end, records[0].end);
}

}  // namespace
}  // namespace paddle
