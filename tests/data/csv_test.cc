#include <unistd.h>

#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/files.h"
#include "data/loader.h"
#include "data/options.h"
#include "data/report.h"
#include "support/real_data.h"

namespace paddle::data {
namespace {

class CsvDatasetTest : public testing::Test {
 protected:
  ~CsvDatasetTest() override { std::filesystem::remove(path_); }
  DatasetPtr make(const std::string& content, std::vector<CsvField> fields,
                  CsvFileOptions options = {}) {
    write_file_atomically(path_, content);
    options.path = path_;
    options.fields = std::move(fields);
    DatasetOptions all;
    all.source = options;
    return make_dataset(all);
  }
  static Sample read(const DatasetPtr& data, int64_t index) {
    Sample sample;
    data->read(index, {}, sample);
    return sample;
  }
  template <class Call>
  static std::string error_of(Call&& call, ErrorCode code = ErrorCode::kData) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "no error";
    return "";
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
  std::string path_ = testing::TempDir() + "/paddle_csv_" + std::to_string(::getpid()) + ".csv";
};

CsvField numeric(std::string name, std::vector<std::string> columns = {}) {
  CsvField field;
  field.name = std::move(name);
  field.columns = std::move(columns);
  return field;
}

CsvField categorical(std::string name, std::vector<std::string> columns = {}) {
  CsvField field = numeric(std::move(name), std::move(columns));
  field.kind = ColumnKind::kCategorical;
  return field;
}

TEST_F(CsvDatasetTest, RunsPatternsAndScalars) {
  const std::string content = "y,I1,I2,I3,C1\n1,2,3,4,a\n0,5,6,7,b\n";
  CsvField label = numeric("y");
  label.scalar = true;
  label.dtype = DType::kI64;
  const auto data = make(
      content, {label, numeric("d", {"I1..I3"}), numeric("e", {"I*"}), categorical("c", {"C1"})});
  EXPECT_EQ(data->size(), 2);
  const Sample sample = read(data, 1);
  EXPECT_EQ(sample[0].shape(), Dims{});
  EXPECT_EQ(sample[0].data<int64_t>()[0], 0);
  EXPECT_EQ(sample[1].shape(), Dims{3});
  EXPECT_EQ(sample[1].data<float>()[2], 7);
  EXPECT_EQ(sample[2].data<float>()[1], 6);
  EXPECT_EQ(sample[3].data<int64_t>()[0], 1);
  EXPECT_EQ(data->fields()[3].classes, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(has(data->location(1, 1, 2), ":3, column 'I3'"));
}

TEST_F(CsvDatasetTest, WithoutFieldsEveryColumnIsANumber) {
  const auto data = make("a,b\n1,2\n", {});
  EXPECT_EQ(data->fields().size(), 2u);
  EXPECT_EQ(read(data, 0)[1].data<float>()[0], 2);
  CsvFileOptions plain;
  plain.header = false;
  plain.column_names = {"p", "q"};
  EXPECT_EQ(read(make("1,2\n3,4\n", {numeric("q")}, plain), 1)[0].data<float>()[0], 4);
}

TEST_F(CsvDatasetTest, MissingValuesLogAndScaling) {
  CsvField x = numeric("x");
  EXPECT_TRUE(has(error_of([&] { read(make("x\n1\n\"\"\n", {x}), 1); }), ":3: column 'x'"));
  x.missing = MissingPolicy::kNan;
  EXPECT_TRUE(std::isnan(read(make("x,z\n1,0\n,0\n", {x}), 1)[0].data<float>()[0]));
  x.missing = MissingPolicy::kFill;
  x.fill = 5;
  EXPECT_EQ(read(make("x,z\n1,0\n,0\n", {x}), 1)[0].data<float>()[0], 5);
  x.fill = 0;
  x.log = true;
  const auto logged = make("x,z\n-3,0\n,0\n", {x});
  EXPECT_FLOAT_EQ(read(logged, 0)[0].data<float>()[0], -std::log(4.f));
  EXPECT_EQ(read(logged, 1)[0].data<float>()[0], 0);
  x.log = false;
  x.scaling = Scaling::kMinMax;
  const auto scaled = make("x,z\n10,0\n20,0\n,0\n30,0\n", {x});
  EXPECT_FLOAT_EQ(read(scaled, 1)[0].data<float>()[0], 0.5);
  EXPECT_FLOAT_EQ(read(scaled, 3)[0].data<float>()[0], 1);
  x.scaling = Scaling::kStandard;
  EXPECT_NEAR(read(make("x\n1\n2\n3\n", {x}), 2)[0].data<float>()[0], std::sqrt(1.5), 1e-6);
}

TEST_F(CsvDatasetTest, Hashing) {
  CsvField c = categorical("c", {"a", "b"});
  c.buckets = 1000;
  const auto shared = make("a,b\nred,red\nred,blue\n", {c});
  const Sample first = read(shared, 0), second = read(shared, 1);
  EXPECT_EQ(first[0].data<int64_t>()[0], second[0].data<int64_t>()[0]);
  EXPECT_NE(first[0].data<int64_t>()[0], first[0].data<int64_t>()[1]);  // columns differ
  EXPECT_EQ(shared->fields()[0].class_count, 1000);
  c.per_column = true;
  const auto apart = make("a,b\nred,red\n,\n", {c});
  EXPECT_EQ(apart->fields()[0].class_count, 2000);
  for (int64_t row = 0; row < 2; ++row) {
    const Sample sample = read(apart, row);
    EXPECT_LT(sample[0].data<int64_t>()[0], 1000);
    EXPECT_GE(sample[0].data<int64_t>()[1], 1000);
  }
}

TEST_F(CsvDatasetTest, Vocabularies) {
  CsvField c = categorical("c");
  c.vocabulary = {"other", "red"};
  const auto strict = make("c\nred\ngreen\n", {c});
  EXPECT_EQ(read(strict, 0)[0].data<int64_t>()[0], 1);
  EXPECT_TRUE(has(error_of([&] { read(strict, 1); }), ":3: column 'c': 'green'"));
  c.unknown_is_zero = true;
  const auto open = make("c\nred\ngreen\nother\n", {c});
  EXPECT_EQ(read(open, 0)[0].data<int64_t>()[0], 2);
  EXPECT_EQ(read(open, 1)[0].data<int64_t>()[0], 0);  // of its own, not that of "other"
  EXPECT_EQ(read(open, 2)[0].data<int64_t>()[0], 1);
  EXPECT_EQ(open->fields()[0].class_count, 3);
  EXPECT_EQ(open->fields()[0].classes, (std::vector<std::string>{"<unknown>", "other", "red"}));
  c.unknown_shares_zero = true;  // models of older versions
  EXPECT_EQ(read(make("c\nred\n", {c}), 0)[0].data<int64_t>()[0], 1);
}

TEST_F(CsvDatasetTest, CategoriesThatAreNotUtf8AreRejectedWithTheirLine) {
  const std::string content = "c\naa\nz\xe9\nz\xea\n";
  const auto data = make(content, {categorical("c")});
  EXPECT_EQ(data->fields()[0].classes, (std::vector<std::string>{"aa"}));
  EXPECT_TRUE(has(error_of([&] { read(data, 1); }), ":3: column 'c': 'z\\xE9' is not UTF-8"));
  CsvField unknown = categorical("c");
  unknown.unknown_is_zero = true;
  EXPECT_TRUE(has(error_of([&] { read(make(content, {unknown}), 1); }), "not UTF-8"));
  CsvField hashed = categorical("c");
  hashed.buckets = 10;
  EXPECT_LT(read(make(content, {hashed}), 1)[0].data<int64_t>()[0], 10);
}

TEST_F(CsvDatasetTest, ValuesThatDoNotFitTheTypeAreRejected) {
  CsvField x = numeric("a");
  x.dtype = DType::kI8;
  const auto data = make("a\n127\n128\n-129\n", {x});
  EXPECT_EQ(read(data, 0)[0].data<int8_t>()[0], 127);
  EXPECT_TRUE(has(error_of([&] { read(data, 1); }), ":3: column 'a': 128 does not fit int8"));
  EXPECT_TRUE(has(error_of([&] { read(data, 2); }), ":4: column 'a': -129 does not fit int8"));
  x.dtype = DType::kU8;
  EXPECT_TRUE(has(error_of([&] { read(make("a\n-1\n", {x}), 0); }), "-1 does not fit uint8"));
  x.missing = MissingPolicy::kFill;
  for (const double fill : {300.0, -1.0, 0.5}) {
    x.fill = fill;
    EXPECT_TRUE(has(error_of([&] { make("a\n1\n", {x}); }, ErrorCode::kConfig), "fill is"));
  }
  x.fill = 255;
  EXPECT_EQ(read(make("a,b\n,1\n", {x}), 0)[0].data<uint8_t>()[0], 255);
  CsvField c = categorical("a");
  c.dtype = DType::kI8;
  std::string many = "a\n";
  for (int i = 0; i < 129; ++i) many += "c" + std::to_string(i) + "\n";
  EXPECT_TRUE(has(error_of([&] { make(many, {c}); }, ErrorCode::kConfig), "129 categories"));
}

TEST_F(CsvDatasetTest, OptionsWithoutEffectAreRejected) {
  const auto rejected = [&](CsvField field, const std::string& option) {
    const std::string text = error_of([&] { make("a\n1\n", {field}); }, ErrorCode::kConfig);
    EXPECT_TRUE(has(text, "`" + option + "`")) << text;
  };
  CsvField x = numeric("a");
  x.buckets = 10;
  rejected(x, "buckets");
  x = numeric("a"), x.per_column = true;
  rejected(x, "per_column");
  x = numeric("a"), x.vocabulary = {"q"};
  rejected(x, "vocabulary");
  x = numeric("a"), x.fill = 3;
  rejected(x, "fill");
  CsvField c = categorical("a");
  c.per_column = true;
  rejected(c, "per_column");
  c = categorical("a"), c.buckets = 4, c.vocabulary = {"q"};
  rejected(c, "vocabulary");
  c = categorical("a"), c.scaling = Scaling::kStandard;
  rejected(c, "scaling");
}

TEST_F(CsvDatasetTest, HeadersAndDataAreNotMistakenForEachOther) {
  EXPECT_TRUE(has(error_of([&] { make("5.1,3.5\n4.9,3.0\n", {}); }), "set `header: false`"));
  EXPECT_EQ(make("0,1\n4.9,3.0\n", {})->size(), 1);  // as pandas numbers columns
  EXPECT_EQ(make("2001,2002\n4.9,3.0\n", {numeric("x", {"2002", "2001"})})->size(), 1);
  CsvFileOptions bare;
  bare.header = false;
  bare.column_names = {"a", "b"};
  EXPECT_TRUE(has(error_of([&] { make("a,b\n1,2\n", {}, bare); }), "set `header: true`"));
  bare.column_names.clear();
  EXPECT_TRUE(has(error_of([&] { read(make("a,b\n1,2\n", {}, bare), 0); }), "`header: true`"));
}

TEST_F(CsvDatasetTest, MissingValuesAreExplainedWithOptionsThatExist) {
  EXPECT_TRUE(
      has(error_of([&] { read(make("a,b\n,1\n", {}), 0); }), "set `missing: fill` and `fill: 0`"));
}

TEST_F(CsvDatasetTest, ValidationTakesWhatTheTrainingDataLearnt) {
  CsvField x = numeric("x"), c = categorical("c");
  x.scaling = Scaling::kStandard;
  c.unknown_is_zero = true;
  const auto train = make("x,c\n1,a\n3,b\n", {x, c});
  const std::vector<Fitted> fitted = train->fitted();
  const auto valid = [&](CsvField number, CsvField category) {
    DatasetOptions options;
    options.source =
        CsvFileOptions{.path = path_, .column_names = {}, .fields = {number, category}};
    apply_fitted(options, fitted);
    return make_dataset(options);
  };
  write_file_atomically(path_, "x,c\n5,b\n5,z\n");
  // (5 - 2) / 1, whether or not the section asks for scaling; its own vocabulary has no say.
  CsvField other = categorical("c");
  other.vocabulary = {"z", "b"};
  for (const auto& data : {valid(x, c), valid(numeric("x"), categorical("c")), valid(x, other)}) {
    EXPECT_EQ(read(data, 0)[0].number(0), 3);
    EXPECT_EQ(read(data, 0)[1].number(0), 2);
    EXPECT_EQ(read(data, 1)[1].number(0), 0);
  }
  CsvField own = numeric("x");
  own.shift = {0}, own.factor = {1};
  EXPECT_EQ(read(valid(own, c), 0)[0].number(0), 5);
  CsvField plain = numeric("x");
  const auto unscaled = make("x,c\n1,a\n3,b\n", {plain, c})->fitted();
  DatasetOptions options;
  options.source = CsvFileOptions{.path = path_, .column_names = {}, .fields = {x, c}};
  EXPECT_TRUE(
      has(error_of([&] { apply_fitted(options, unscaled); }, ErrorCode::kConfig), "not scaled"));
}

TEST_F(CsvDatasetTest, LearntSurvivesItsFile) {
  Fitted scaled{.field = "x", .shift = {0.1, 2}, .factor = {1.0 / 3, 1e-300}};
  scaled.log = true;
  Fitted words{.field = "c"};
  words.tokens = {"", "\xc3\xb6", "a\"b"};
  words.unknown_is_zero = true;
  write_file_atomically(path_, fitted_json(std::vector{scaled, words}));
  const auto read_back = read_fitted(path_);
  ASSERT_EQ(read_back.size(), 2u);
  EXPECT_EQ(read_back[0].shift, scaled.shift);
  EXPECT_EQ(read_back[0].factor, scaled.factor);
  EXPECT_TRUE(read_back[0].log);
  EXPECT_EQ(read_back[1].tokens, words.tokens);
  EXPECT_TRUE(read_back[1].unknown_is_zero);
  write_file_atomically(path_, "{\"version\": 1}");
  error_of([&] { read_fitted(path_); }, ErrorCode::kModel);
}

TEST_F(CsvDatasetTest, ErrorsHaveAPlace) {
  EXPECT_TRUE(has(error_of([&] { read(make("a,b\n1,2\n3\n", {}), 1); }), ".csv:3: this row has 1"));
  EXPECT_TRUE(has(error_of([&] { read(make("a\nx\n", {}), 0); }), "'x' is not a number"));
  CsvField label = numeric("a");
  label.dtype = DType::kI64;
  EXPECT_TRUE(
      has(error_of([&] { read(make("a\n1.5\n", {label}), 0); }), "'1.5' is not an integer"));
  EXPECT_TRUE(
      has(error_of([&] { make("price\n1\n", {numeric("prise")}); }), "did you mean 'price'"));
  EXPECT_TRUE(has(error_of([&] { make("a;b\n1;2\n", {}); }), "set `delimiter: \";\"`"));
  EXPECT_TRUE(has(error_of([&] { make("a\tb\n1\t2\n", {}); }), "set `delimiter: \"tab\"`"));
  EXPECT_TRUE(has(error_of([&] { read(make("a,b\n\"1,5\",2\n", {}), 0); }),
                  "'1,5' is not a number (for decimal commas set `decimal: \",\"`)"));
  EXPECT_TRUE(has(error_of([&] { make("", {}); }), "empty"));
  EXPECT_TRUE(has(error_of([&] { make("a,b\n", {}); }), "empty"));
  error_of([&] { make("a,b\n1,2\n", {numeric("x", {"a..b"})}); }, ErrorCode::kConfig);
  CsvField scaled = numeric("a");
  scaled.dtype = DType::kI32;
  scaled.log = true;
  error_of([&] { make("a\n1\n", {scaled}); }, ErrorCode::kConfig);
}

TEST_F(CsvDatasetTest, CriteoSample) {
  const auto found = real_data("ctr/criteo_sample.txt");
  if (!found) GTEST_SKIP() << missing_data("ctr/criteo_sample.txt");
  const std::string& path = *found;
  CsvField label = numeric("label"), dense = numeric("dense", {"I1..I13"}),
           sparse = categorical("sparse", {"C1..C26"});
  label.scalar = true;
  dense.missing = MissingPolicy::kFill;
  dense.log = true;
  sparse.buckets = 1000000;
  DatasetOptions options;
  options.source =
      CsvFileOptions{.path = path, .column_names = {}, .fields = {label, dense, sparse}};
  const auto data = make_dataset(options);
  ASSERT_EQ(data->size(), 200);
  for (int64_t i = 0; i < 200; ++i) {
    const Sample sample = read(data, i);
    EXPECT_EQ(sample[1].shape(), Dims{13});
    EXPECT_EQ(sample[2].shape(), Dims{26});
    for (int64_t k = 0; k < 13; ++k) EXPECT_TRUE(std::isfinite(sample[1].number(k)));
  }
  EXPECT_NE(check_data(*data).text().find("sparse: int64[26]"), std::string::npos);
}

TEST_F(CsvDatasetTest, ScalingComesFromTheTrainingRowsAndValidationSharesIt) {
  const std::string content = "x,c\n1,b\n3,a\n5,b\n100,z\n-50,a\n";
  for (const Scaling scaling : {Scaling::kStandard, Scaling::kMinMax}) {
    CsvField x = numeric("x"), c = categorical("c");
    x.scaling = scaling;
    write_file_atomically(path_, content);
    DatasetOptions train;
    train.source = CsvFileOptions{.path = path_, .column_names = {}, .fields = {x, c}};
    train.begin = 0, train.end = 3;
    const auto data = make_dataset(train);
    // Of 1, 3, 5: mean 3 and deviation sqrt(8/3), or 1 to 5.
    const double shift = scaling == Scaling::kStandard ? 3 : 1;
    const double factor = scaling == Scaling::kStandard ? 1 / std::sqrt(8.0 / 3) : 0.25;
    for (int64_t i = 0; i < 3; ++i)
      EXPECT_NEAR(read(data, i)[0].number(0), (1 + 2 * static_cast<double>(i) - shift) * factor,
                  1e-6);
    DatasetOptions valid = train;
    valid.begin = 3, valid.end = 5;
    apply_fitted(valid, data->fitted());
    const auto held_out = make_dataset(valid);
    EXPECT_NEAR(read(held_out, 0)[0].number(0), (100 - shift) * factor, 1e-5);
    EXPECT_NEAR(read(held_out, 1)[0].number(0), (-50 - shift) * factor, 1e-5);
    // Another file with other strings keeps the numbers of the training file.
    const std::string other = path_ + ".valid.csv";
    write_file_atomically(other, "x,c\n3,z\n3,a\n");
    DatasetOptions elsewhere = train;
    elsewhere.begin.reset(), elsewhere.end.reset();
    std::get<CsvFileOptions>(elsewhere.source).path = other;
    apply_fitted(elsewhere, data->fitted());
    const auto second = make_dataset(elsewhere);
    EXPECT_NEAR(read(second, 0)[0].number(0), (3 - shift) * factor, 1e-6);
    EXPECT_EQ(read(second, 0)[1].number(0), 2);
    EXPECT_EQ(read(second, 1)[1].number(0), 0);
    std::filesystem::remove(other);
  }
}

TEST_F(CsvDatasetTest, ScalingOfARandomPartUsesThatPart) {
  std::string content = "x\n";
  for (int i = 0; i < 40; ++i) content += std::to_string(i * i) + "\n";
  CsvField x = numeric("x");
  x.scaling = Scaling::kStandard;
  write_file_atomically(path_, content);
  DatasetOptions part;
  part.source = CsvFileOptions{.path = path_, .column_names = {}, .fields = {x}};
  part.split = {{"train", 0.5}, {"valid", 0.5}};
  part.part = "train";
  const auto data = make_dataset(part);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < data->size(); ++i) {
    const double value = read(data, i)[0].number(0);
    sum += value, squares += value * value;
  }
  EXPECT_NEAR(sum / 20, 0, 1e-5);
  EXPECT_NEAR(squares / 20, 1, 1e-5);
}

TEST_F(CsvDatasetTest, StatisticsThatDoNotFitTheColumnsAreRejected) {
  CsvField x = numeric("x");
  x.shift = {1, 2}, x.factor = {1, 2};
  EXPECT_TRUE(has(error_of([&] { make("x\n1\n", {x}); }, ErrorCode::kConfig), "1 columns"));
}

TEST_F(CsvDatasetTest, TablesOfOtherPrograms) {
  // Decimal commas, and semicolons between the columns.
  CsvFileOptions european;
  european.decimal = ',';
  const auto excel = make("a;b\n24048,07;1\n-0,5;2\n", {}, european);
  EXPECT_EQ(read(excel, 0)[0].number(0), static_cast<double>(24048.07f));
  EXPECT_EQ(read(excel, 1)[0].number(0), -0.5);
  EXPECT_TRUE(
      has(error_of([&] { read(make("a;b\n1.5;1\n", {}, european), 0); }), "'1.5' is not a number"));
  CsvField scaled = numeric("a");
  scaled.scaling = Scaling::kMinMax;
  EXPECT_EQ(read(make("a;b\n0,5;1\n1,5;2\n1;3\n", {scaled}, european), 2)[0].number(0), 0.5);
  // Quotes that mean nothing.
  CsvFileOptions plain;
  plain.quote = '\0';
  const auto text = make("a,b\n1,5\" disk\n2,\"open\n", {categorical("b")}, plain);
  EXPECT_EQ(text->fields()[0].classes, (std::vector<std::string>{"\"open", "5\" disk"}));
  // Names that come twice, as pandas reads them.
  const auto twice = make("x,x,x.1, x \n1,2,3,4\n", {});
  std::vector<std::string> names;
  for (const Field& field : twice->fields()) names.push_back(field.name);
  EXPECT_EQ(names, (std::vector<std::string>{"x", "x.2", "x.1", "x.3"}));
}

TEST_F(CsvDatasetTest, SplitsByTimesInAnyForm) {
  write_file_atomically(path_, "day,x\n27.10.2023,1\n01.02.2024,2\n05.01.2023,3\n02.11.2023,4\n");
  DatasetOptions options;
  options.source = CsvFileOptions{.path = path_, .fields = {numeric("x")}};
  options.split = {{"train", 0.5}, {"valid", 0.5}};
  options.split_time = "day";
  options.part = "valid";
  const auto late = make_dataset(options);
  ASSERT_EQ(late->size(), 2);
  EXPECT_EQ(read(late, 0)[0].number(0), 2);
  EXPECT_EQ(read(late, 1)[0].number(0), 4);
}

TEST_F(CsvDatasetTest, WordsForMissingNumbers) {
  const std::string content = "a\n1\nNA\nnull\n3\nNaN\n";
  EXPECT_TRUE(has(error_of([&] { read(make(content, {}), 1); }), "the value is missing"));
  CsvField filled = numeric("a");
  filled.missing = MissingPolicy::kFill;
  filled.fill = 7;
  for (const int64_t row : {1, 2, 4}) EXPECT_EQ(read(make(content, {filled}), row)[0].number(0), 7);
  CsvField gaps = numeric("a");
  gaps.missing = MissingPolicy::kNan;
  gaps.scaling = Scaling::kStandard;
  const auto data = make(content, {gaps});
  EXPECT_EQ(read(data, 0)[0].number(0), -1);  // of 1 and 3
  EXPECT_TRUE(std::isnan(read(data, 1)[0].number(0)));
  // The policy for NaN does not apply to values that the field allows.
  Loader loader(data, {.batch_size = 5});
  EXPECT_TRUE(std::isnan(loader.next()->arrays[0].number(4)));
  CsvField whole = numeric("a");
  whole.dtype = DType::kI64;
  whole.missing = MissingPolicy::kFill;
  EXPECT_EQ(read(make(content, {whole}), 2)[0].number(0), 0);
}

}  // namespace
}  // namespace paddle::data
