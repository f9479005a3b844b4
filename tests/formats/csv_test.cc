#include "formats/csv.h"

#include <cmath>

#include <gtest/gtest.h>

namespace paddle::formats {
namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows parse(std::string_view text, CsvOptions options = {}) {
  const CsvParser parser(text, "t.csv", options);
  Rows rows;
  std::vector<std::string_view> fields;
  std::string scratch;
  for (const CsvRecord& record : parser.index()) {
    parser.fields(record, fields, scratch);
    rows.emplace_back(fields.begin(), fields.end());
  }
  return rows;
}

TEST(Csv, Fields) {
  EXPECT_EQ(parse("a,b\n1,2\n"), (Rows{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(parse("a,b\r\n1,\r\n"), (Rows{{"a", "b"}, {"1", ""}}));
  EXPECT_EQ(parse("\xef\xbb\xbf"
                  "a\n\n\nb"),
            (Rows{{"a"}, {"b"}}));
  EXPECT_EQ(parse(",,"), (Rows{{"", "", ""}}));
  EXPECT_EQ(parse(""), Rows{});
  EXPECT_EQ(parse("a\tb c", {.delimiter = '\t'}), (Rows{{"a", "b c"}}));
}

TEST(Csv, Quotes) {
  EXPECT_EQ(parse("\"a,b\",c\n"), (Rows{{"a,b", "c"}}));
  EXPECT_EQ(parse("\"say \"\"hi\"\"\",\"\"\n"), (Rows{{"say \"hi\"", ""}}));
  EXPECT_EQ(parse("\"two\nlines\",x\r\n1,2"), (Rows{{"two\nlines", "x"}, {"1", "2"}}));
  EXPECT_EQ(parse("5\" pipe,b\n"), (Rows{{"5\" pipe", "b"}}));
  EXPECT_EQ(parse("\"a\"\r\n"), (Rows{{"a"}}));
  EXPECT_EQ(parse("\"a", {.quote = '\0'}), (Rows{{"\"a"}}));
}

TEST(Csv, LinesCountQuotedBreaks) {
  const std::string text = "a\n\"x\ny\"\n\nz\n";
  const auto records = CsvParser(text, "t.csv").index();
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[1].line, 2);
  EXPECT_EQ(records[2].line, 5);
}

TEST(Csv, Errors) {
  for (const char* text : {"a\n\"b", "a\n\"b\"c,d\n"}) {
    try {
      parse(text);
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kData);
      EXPECT_EQ(error.location().line, 2);
    }
  }
}

TEST(Csv, Numbers) {
  double d = 0;
  EXPECT_TRUE(parse_number(" -1.5e3 ", d));
  EXPECT_EQ(d, -1500);
  EXPECT_TRUE(parse_number("+2", d));
  EXPECT_TRUE(parse_number("nan", d));
  EXPECT_TRUE(std::isnan(d));
  EXPECT_TRUE(parse_number("1e999", d));
  EXPECT_TRUE(std::isinf(d));
  EXPECT_TRUE(parse_number("1e-999", d));
  EXPECT_EQ(d, 0);
  for (const char* bad : {"", "x", "1x", "1 2", "--1"}) EXPECT_FALSE(parse_number(bad, d)) << bad;
  int64_t i = 0;
  EXPECT_TRUE(parse_integer("12", i));
  EXPECT_TRUE(parse_integer("-3.0", i));
  EXPECT_EQ(i, -3);
  for (const char* bad : {"1.5", "nan", "1e30", "", "99999999999999999999"})
    EXPECT_FALSE(parse_integer(bad, i)) << bad;
}

TEST(Csv, QuoteRoundTrip) {
  for (const std::string text : {"a", "a,b", "a\"b", "two\nlines", ""})
    EXPECT_EQ(parse(csv_quote(text) + ",x\n")[0][0], text);
}

}  // namespace
}  // namespace paddle::formats
