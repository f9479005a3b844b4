// Cells of tables as people write them: missing numbers, decimal commas, times.

#include "data/cells.h"

#include <cmath>

#include <gtest/gtest.h>

namespace paddle::data {
namespace {

TEST(Cells, WordsForMissingNumbers) {
  for (const char* cell : {"", "  ", "NA", "n/a", "#N/A", "<NA>", "NULL", "null", "None", " NA "})
    EXPECT_TRUE(is_missing(cell)) << cell;
  for (const char* cell : {"0", "nan", "-", "nap", "no", "naïve", "NA1"})
    EXPECT_FALSE(is_missing(cell)) << cell;
}

TEST(Cells, DecimalMarks) {
  double number = 0;
  EXPECT_TRUE(cell_number("24048,07", ',', number));
  EXPECT_EQ(number, 24048.07);
  EXPECT_TRUE(cell_number("-1,5e3", ',', number));
  EXPECT_EQ(number, -1500);
  EXPECT_TRUE(cell_number("12", ',', number));
  EXPECT_FALSE(cell_number("1.234,5", ',', number));
  EXPECT_FALSE(cell_number("1.5", ',', number));
  EXPECT_FALSE(cell_number("1,5", '.', number));
  EXPECT_FALSE(cell_number("1,2,3", ',', number));
}

// Seconds since 1970 as GNU date says them (date -u -d TIME +%s).
TEST(Cells, Times) {
  const auto iso = [](const char* cell) { return parse_time(cell, TimeForm::kIso).value_or(-1); };
  EXPECT_EQ(iso("1970-01-01"), 0);
  EXPECT_EQ(iso("2023-10-27"), 1698364800);
  EXPECT_EQ(iso("2023/10/27 09:30"), 1698399000);
  EXPECT_EQ(iso("2023-10-27T09:30:15Z"), 1698399015);
  EXPECT_EQ(iso("2023-10-27T09:30:15+02:00"), 1698391815);
  EXPECT_EQ(iso("2023-10-27 09:30:15.25"), 1698399015.25);
  EXPECT_EQ(iso("20231027"), 1698364800);
  EXPECT_EQ(iso("2000-02-29"), 951782400);
  EXPECT_EQ(iso("1969-12-31 23:00"), -3600);
  for (const char* wrong : {"2023-13-01", "2023-02-29", "2023-10-27 25:00", "2023-10-27x", "2023",
                            "23-10-27", "", "12:30"})
    EXPECT_FALSE(parse_time(wrong, TimeForm::kIso)) << wrong;
  EXPECT_EQ(parse_time("27.10.2023", TimeForm::kDayFirst), 1698364800);
  EXPECT_EQ(parse_time("27/10/2023 9:30 pm", TimeForm::kDayFirst), 1698442200);
  EXPECT_EQ(parse_time("10/27/2023", TimeForm::kMonthFirst), 1698364800);
  EXPECT_FALSE(parse_time("10/27/2023", TimeForm::kDayFirst));
}

TEST(Cells, FormsOfTimes) {
  const auto form = [](std::initializer_list<const char*> cells) {
    TimeFormDetector detector;
    for (const char* cell : cells) detector.observe(cell);
    return detector.form();
  };
  EXPECT_EQ(form({"2023-10-27", "2023-10-28 10:00"}), TimeForm::kIso);
  EXPECT_EQ(form({"01/02/2023", "13/02/2023"}), TimeForm::kDayFirst);
  EXPECT_EQ(form({"01/02/2023", "02/13/2023"}), TimeForm::kMonthFirst);
  EXPECT_EQ(form({"964982703", "5.5"}), TimeForm::kNumber);
  EXPECT_EQ(form({"2023-10-27", "27.10.2023"}), TimeForm::kNone);
  EXPECT_EQ(form({"north", "south"}), TimeForm::kNone);
  EXPECT_EQ(form({}), TimeForm::kNone);
}

}  // namespace
}  // namespace paddle::data
