// ARFF files: attributes of every type, dense and sparse records, quotes and comments; and damaged
// ones, whose errors name the line.

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "data/dataset_kind.h"

namespace paddle::data {
namespace {

constexpr const char* kWeather = R"(% A comment.
@RELATION weather

@attribute outlook {sunny, 'partly cloudy', rainy}
@attribute "air temperature" NUMERIC
@attribute humidity real   % in percent
@ATTRIBUTE day date 'yyyy-MM-dd'
@attribute note string
@attribute play {yes,no}

@data
sunny, 85, 85.5, 2024-03-01, 'it\'s "hot"', no
'partly cloudy',64,?,'1970-01-02',"a, b",yes
% Between records.
rainy	7e1	96 1969-12-31 x yes  % tabs and blanks separate, too
{1 3, 5 no}
{0 rainy, 2 0.5, 3 2000-02-29, 4 'some text'}
)";

class Arff : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  void write(const std::string& text) const {
    std::ofstream(path_, std::ios::binary) << text;  // many small files, which need not be synced
  }
  RecordSourcePtr open() const { return open_records({.format = "arff", .path = path_}); }
  static std::vector<std::string> row(const RecordSource& source, int64_t record) {
    std::vector<std::string_view> cells;
    std::string scratch;
    source.cells(record, cells, scratch);
    return {cells.begin(), cells.end()};
  }
  /// The error of opening a file or of reading its first record, without the folder.
  std::string error_of(const std::string& text) const {
    write(text);
    try {
      row(*open(), 0);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kData);
      const std::string what = error.what();
      EXPECT_EQ(what.find('\n'), what.npos);
      EXPECT_EQ(what.find(path_), 0u) << what;
      return what.substr(std::min(what.size(), path_.size()));
    }
    return "";
  }
  std::string path_ = (std::filesystem::temp_directory_path() / str("arff-", getpid())).string();
};

using Row = std::vector<std::string>;

TEST_F(Arff, HasCellsOfEveryType) {
  write(kWeather);
  const RecordSourcePtr source = open();
  EXPECT_EQ(source->names(),
            (Row{"outlook", "air temperature", "humidity", "day", "note", "play"}));
  ASSERT_EQ(source->size(), 5);
  EXPECT_EQ(row(*source, 0), (Row{"sunny", "85", "85.5", "1709251200", "it's \"hot\"", "no"}));
  EXPECT_EQ(row(*source, 1), (Row{"partly cloudy", "64", "", "86400", "a, b", "yes"}));
  EXPECT_EQ(row(*source, 2), (Row{"rainy", "7e1", "96", "-86400", "x", "yes"}));
  EXPECT_EQ(row(*source, 3), (Row{"sunny", "3", "0", "", "", "no"}));
  EXPECT_EQ(row(*source, 4), (Row{"rainy", "0", "0.5", "951782400", "some text", "yes"}));
  EXPECT_EQ(source->location(2).line, 15);
}

TEST_F(Arff, MakesFieldsOfItsAttributes) {
  write(kWeather);
  DatasetOptions options;
  options.source = CsvFileOptions{.format = "arff", .path = path_};
  options.begin = 0, options.end = 1;
  const DatasetPtr data = make_dataset(options);
  ASSERT_EQ(data->fields().size(), 6u);
  EXPECT_EQ(data->fields()[0].classes, (Row{"sunny", "partly cloudy", "rainy"}));
  EXPECT_EQ(data->fields()[5].classes, (Row{"yes", "no"}));
  EXPECT_EQ(data->fields()[1].dtype, DType::kF32);
  Sample sample;
  data->read(0, {}, sample);
  EXPECT_EQ(sample[0].number(0), 0);
  EXPECT_EQ(sample[2].number(0), 85.5);
  EXPECT_EQ(sample[5].number(0), 1);
}

TEST_F(Arff, MissingNominalValuesAreACategoryOfInputs) {
  write("@attribute a {x,y}\n@attribute b {u,v}\n@data\nx,v\n?,u\ny,?\n");
  CsvFileOptions records{.format = "arff", .path = path_};
  CsvField input, target;
  input.name = "a", input.kind = ColumnKind::kCategorical;
  target.name = "b", target.kind = ColumnKind::kCategorical;
  target.missing = MissingPolicy::kError;
  records.fields = {input, target};
  DatasetOptions options;
  options.source = records;
  const DatasetPtr data = make_dataset(options);
  EXPECT_EQ(data->fields()[0].class_count, 3);
  EXPECT_EQ(data->fields()[1].class_count, 2);
  Sample sample;
  data->read(1, {}, sample);
  EXPECT_EQ(sample[0].number(0), 2);
  EXPECT_THROW(data->read(2, {}, sample), Error);
}

TEST_F(Arff, ErrorsNameTheLine) {
  const std::string header = "@relation r\n@attribute a numeric\n@attribute b {x,'y z'}\n@data\n";
  EXPECT_EQ(error_of(header + "1,q\n"), ":5: attribute 'b' does not declare the value 'q'");
  EXPECT_EQ(error_of(header + "1\n"), ":5: this record has 1 values, 2 are declared");
  EXPECT_EQ(error_of(header + "1,x,3\n"), ":5: this record has more than 2 values");
  EXPECT_EQ(error_of(header + "1,,x\n"), ":5: value 2 is empty; a missing value is ?");
  EXPECT_EQ(error_of(header + "1,\n"), ":5: value 2 is empty; a missing value is ?");
  EXPECT_EQ(error_of(header + "1,'y z\n"), ":5: the quote of ''y z' is not closed");
  EXPECT_EQ(error_of(header + "1,x,{5}\n"), ":5: weights of records are not supported");
  EXPECT_EQ(error_of(header + "{2 1}\n"),
            ":5: expected the number of an attribute, 0 to 1, found '2'");
  EXPECT_EQ(error_of(header + "{-1 1}\n"),
            ":5: expected the number of an attribute, 0 to 1, found '-1'");
  EXPECT_EQ(error_of(header + "{0 1, 0 2}\n"), ":5: attribute 0 is given twice");
  EXPECT_EQ(error_of(header + "{0 1\n"), ":5: the sparse record is not closed by }");
  EXPECT_EQ(error_of(header + "{0}\n"), ":5: attribute 0 has no value");
  EXPECT_EQ(error_of(header), ": the file has no records after @data");
  EXPECT_EQ(error_of("@relation r\n@attribute a numeric\n"),
            ":2: expected @data, found the end of the file");
  EXPECT_EQ(error_of("@relation r\n@data\n1\n"), ":2: @data without an @attribute before it");
  EXPECT_EQ(error_of("@attribute a numeric\n@attribute a real\n"),
            ":2: attribute 'a' is declared twice");
  EXPECT_EQ(error_of("@attribute a relational\n"),
            ":1: attribute 'a': the type 'relational' is not among numeric, real, integer, string, "
            "date and {values}");
  EXPECT_EQ(error_of("@attribute a {x,y\n"), ":1: attribute 'a': the list of values is not closed");
  EXPECT_EQ(error_of("@attribute a {x,x}\n"), ":1: attribute 'a': the value 'x' is listed twice");
  EXPECT_EQ(error_of("@attribute a date 'yyyy QQ'\n"),
            ":1: date format 'yyyy QQ': 'QQ' is not among yyyy, MM, dd, HH, mm, ss, SSS");
  EXPECT_EQ(error_of("@attribute a date\n@data\n2024-02-30T00:00:00\n"),
            ":3: attribute 'a': '2024-02-30T00:00:00' is not a date of its format");
  EXPECT_EQ(error_of("@something\n"),
            ":1: expected @relation, @attribute or @data, found '@something'");
}

// Every prefix of a file, and every file with one byte changed, is read or is an error with a line.
TEST_F(Arff, DamagedFilesAreErrors) {
  const std::string whole = kWeather;
  const auto read_all = [&](const std::string& text) {
    write(text);
    try {
      const RecordSourcePtr source = open();
      for (int64_t i = 0; i < source->size(); ++i) {
        try {
          EXPECT_EQ(row(*source, i).size(), source->names().size());
        } catch (const Error& error) {
          EXPECT_GT(error.location().line, 0) << error.what();
        }
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kData) << error.what();
    }
  };
  for (size_t length = 0; length < whole.size(); ++length) read_all(whole.substr(0, length));
  for (size_t at = 0; at < whole.size(); ++at)
    for (const char changed : {'\'', '{', '?', ',', '\\', '\0', '\xff'}) {
      std::string text = whole;
      text[at] = changed;
      read_all(text);
    }
}

}  // namespace
}  // namespace paddle::data
