// Datasets that are split by what samples hold, mixtures, Parquet, HDF5, time series and
// conversations.

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "base/files.h"
#include "data/loader.h"
#include "data/options.h"

namespace paddle::data {
namespace {

class Sources : public testing::Test {
 protected:
  Sources() { std::filesystem::create_directories(folder_); }
  ~Sources() override { std::filesystem::remove_all(folder_); }
  std::string put(const std::string& name, const std::string& content) const {
    write_file_atomically(folder_ + "/" + name, content);
    return folder_ + "/" + name;
  }
  /// 60 rows of 20 patients, two in three of class a, in falling order of time.
  DatasetOptions patients() const {
    std::string text = "x,label,patient,day\n";
    for (int i = 0; i < 60; ++i)
      text += str(i, ",", i % 3 == 0 ? "b" : "a", ",p", i / 3, ",", 100 - i / 2, "\n");
    CsvFileOptions csv;
    csv.path = put("patients.csv", text);
    CsvField x, label;
    x.name = "x", x.scalar = true;
    label.name = "label", label.kind = ColumnKind::kCategorical, label.scalar = true;
    csv.fields = {x, label};
    DatasetOptions out;
    out.source = csv;
    return out;
  }
  static Sample read(const DatasetPtr& data, int64_t index) {
    Sample sample;
    data->read(index, {}, sample);
    return sample;
  }
  static std::set<int64_t> rows(const DatasetOptions& options) {
    const DatasetPtr data = make_dataset(options);
    std::set<int64_t> out;
    for (int64_t i = 0; i < data->size(); ++i)
      out.insert(static_cast<int64_t>(read(data, i)[0].number(0)));
    EXPECT_EQ(static_cast<int64_t>(out.size()), data->size());
    return out;
  }
  template <class Call>
  static std::string error_of(Call&& call, ErrorCode code) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "no error";
    return "";
  }
  std::string folder_ = str("/tmp/sources_test_", getpid());
};

void expect_partition(const std::vector<std::set<int64_t>>& parts, size_t size) {
  std::set<int64_t> all;
  size_t sum = 0;
  for (const auto& part : parts) {
    all.insert(part.begin(), part.end());
    sum += part.size();
  }
  EXPECT_EQ(all.size(), size);
  EXPECT_EQ(sum, size);
}

TEST_F(Sources, StratifiedSplitsKeepTheShareOfEachClass) {
  DatasetOptions o = patients();
  o.split = {{"train", 0.7}, {"valid", 0.3}};
  o.split_stratify = "label";
  o.part = "train";
  const auto train = rows(o);
  o.part = "valid";
  const auto valid = rows(o);
  expect_partition({train, valid}, 60);
  const auto rare = [](const std::set<int64_t>& part) {
    return std::count_if(part.begin(), part.end(), [](int64_t i) { return i % 3 == 0; });
  };
  EXPECT_EQ(train.size(), 42u);
  EXPECT_EQ(rare(train), 14);
  EXPECT_EQ(rare(valid), 6);
  o.split_seed = 1;
  EXPECT_NE(rows(o), valid);
}

TEST_F(Sources, GroupsStayTogether) {
  DatasetOptions o = patients();
  o.split = {{"train", 0.5}, {"valid", 0.3}, {"test", 0.2}};
  o.split_group = "patient";  // a column that no field reads
  std::vector<std::set<int64_t>> parts;
  std::map<int64_t, size_t> part_of;
  for (const char* name : {"train", "valid", "test"}) {
    o.part = name;
    parts.push_back(rows(o));
    for (const int64_t i : parts.back()) {
      const auto [at, is_new] = part_of.emplace(i / 3, parts.size());
      EXPECT_EQ(at->second, parts.size()) << "patient " << i / 3;
    }
  }
  expect_partition(parts, 60);
  EXPECT_NEAR(static_cast<double>(parts[0].size()), 30, 3);
}

TEST_F(Sources, SplitsByTimeKeepOneTimeTogether) {
  DatasetOptions o = patients();
  o.split = {{"train", 0.75}, {"valid", 0.25}};
  o.split_time = "day";
  o.part = "valid";
  const auto valid = rows(o);
  // The latest days are those of the first rows.
  EXPECT_EQ(*valid.begin(), 0);
  EXPECT_EQ(*valid.rbegin(), static_cast<int64_t>(valid.size()) - 1);
  EXPECT_EQ(valid.size() % 2, 0u);
  EXPECT_NEAR(static_cast<double>(valid.size()), 15, 1);
}

TEST_F(Sources, FoldsPartitionTheData) {
  for (const char* stratify : {"", "label"}) {
    DatasetOptions o = patients();
    o.folds = 5;
    o.split_stratify = stratify;
    std::vector<std::set<int64_t>> folds;
    for (o.fold = 0; o.fold < 5; ++o.fold) {
      o.part = "valid";
      folds.push_back(rows(o));
      o.part = "train";
      expect_partition({folds.back(), rows(o)}, 60);
      EXPECT_EQ(folds.back().size(), 12u);
    }
    expect_partition(folds, 60);
  }
}

TEST_F(Sources, RejectsSplitsThatContradictThemselves) {
  DatasetOptions o = patients();
  o.split = {{"train", 0.5}, {"valid", 0.5}};
  o.part = "train";
  o.split_group = "patience";
  EXPECT_NE(error_of([&] { make_dataset(o); }, ErrorCode::kConfig).find("no column"),
            std::string::npos);
  o.split_group = "patient", o.split_time = "day";
  EXPECT_NE(error_of([&] { make_dataset(o); }, ErrorCode::kConfig).find("give one of"),
            std::string::npos);
  o = patients();
  o.folds = 5, o.fold = 5, o.part = "train";
  EXPECT_NE(error_of([&] { make_dataset(o); }, ErrorCode::kConfig).find("0 to 4"),
            std::string::npos);
  o.fold = 0, o.part = "test";
  EXPECT_NE(error_of([&] { make_dataset(o); }, ErrorCode::kConfig).find("train or valid"),
            std::string::npos);
}

TEST_F(Sources, AMixtureDrawsByItsWeights) {
  const auto source = [&](const char* name, int begin, int count) {
    std::string text = "x\n";
    for (int i = begin; i < begin + count; ++i) text += str(i, "\n");
    CsvFileOptions csv;
    csv.path = put(name, text);
    DatasetOptions out;
    out.source = csv;
    return std::make_shared<const DatasetOptions>(out);
  };
  MixtureOptions mixture;
  mixture.sources = {{"small", source("a.csv", 0, 10)}, {"large", source("b.csv", 1000, 300)}};
  DatasetOptions options;
  options.source = mixture;
  DatasetPtr data = make_dataset(options);
  EXPECT_EQ(data->size(), 310);
  EXPECT_EQ(read(data, 10)[0].number(0), 1000);
  EXPECT_EQ(data->location(10), folder_ + "/b.csv:2");
  EXPECT_TRUE(mixture_weights(options, *data).empty());

  mixture.weights = {3, 1};
  options.source = mixture;
  data = make_dataset(options);
  LoaderOptions loader_options;
  loader_options.batch_size = 100, loader_options.shuffle = true, loader_options.epochs = 1;
  loader_options.weights = mixture_weights(options, *data);
  loader_options.epoch_samples = 4000;
  Loader loader(data, loader_options);
  int64_t small = 0, all = 0;
  while (const auto batch = loader.next())
    for (int64_t i = 0; i < batch->samples; ++i, ++all)
      small += batch->arrays[0].data<float>()[i] < 500;
  EXPECT_EQ(all, 4000);
  EXPECT_NEAR(static_cast<double>(small), 3000, 100);

  CsvFileOptions other;
  other.path = put("c.csv", "y\n1\n");
  DatasetOptions different;
  different.source = other;
  mixture.sources.emplace_back("odd", std::make_shared<const DatasetOptions>(different));
  options.source = mixture;
  EXPECT_NE(error_of([&] { make_dataset(options); }, ErrorCode::kConfig).find("source 'odd'"),
            std::string::npos);
}

/// Checks the values that make_parquet.py writes into row i.
void expect_row(const Sample& sample, int64_t i) {
  const auto number = static_cast<double>(i);
  const bool is_empty = i % 7 == 3;
  EXPECT_EQ(sample[0].number(0), i % 3 == 0);
  EXPECT_EQ(sample[1].number(0), static_cast<double>(i % 11 - 5));
  EXPECT_EQ(sample[2].number(0), 4e9 + number);
  EXPECT_EQ(sample[3].number(0), is_empty ? -1 : number * 1e12 - 5);
  EXPECT_EQ(sample[4].number(0), number / 8);
  EXPECT_EQ(sample[5].number(0), is_empty ? -1 : number / 10);
  // The vocabulary is sorted: the empty text, then the words.
  EXPECT_EQ(sample[6].number(0), is_empty ? 0 : static_cast<double>(1 + i % 5));
}

DatasetOptions parquet(const std::string& name) {
  CsvFileOptions records;
  records.format = "parquet";
  records.path = "tests/data/parquet/" + name + ".parquet";
  for (const char* column : {"flag", "small", "unsigned", "big", "single", "double"}) {
    CsvField field;
    field.name = column;
    field.scalar = true;
    field.dtype = DType::kF64;
    field.missing = MissingPolicy::kFill;
    field.fill = -1;
    records.fields.push_back(field);
  }
  CsvField word;
  word.name = "word", word.kind = ColumnKind::kCategorical, word.scalar = true;
  records.fields.push_back(word);
  DatasetOptions out;
  out.source = records;
  return out;
}

TEST_F(Sources, ParquetOfEveryCodecAndPage) {
  for (const char* name : {"none", "snappy", "gzip", "zstd", "plain", "version2"}) {
    SCOPED_TRACE(name);
    const DatasetPtr data = make_dataset(parquet(name));
    ASSERT_EQ(data->size(), 300);
    for (int64_t i = 0; i < 300; ++i) expect_row(read(data, i), i);
  }
  DatasetOptions o = parquet("snappy");
  o.split = {{"train", 0.9}, {"valid", 0.1}};
  o.split_time = "day", o.part = "valid";
  const DatasetPtr late = make_dataset(o);
  EXPECT_EQ(late->source_index(0), 270);
}

TEST_F(Sources, ParquetThatIsRejected) {
  CsvFileOptions records;
  records.format = "parquet";
  records.path = "tests/data/parquet/nested.parquet";
  DatasetOptions o;
  o.source = records;
  const DatasetPtr flat = make_dataset(o);  // what can be read
  EXPECT_EQ(flat->fields().size(), 1u);
  for (const char* name : {"list", "pair"}) {
    CsvField field;
    field.name = name;
    records.fields = {field};
    o.source = records;
    EXPECT_NE(error_of([&] { make_dataset(o); }, ErrorCode::kData)
                  .find(str("column '", name, "' is a list or a struct")),
              std::string::npos);
  }
  records.fields.clear();
  records.path = "tests/data/parquet/delta.parquet";
  o.source = records;
  EXPECT_NE(error_of([&] { make_dataset(o); }, ErrorCode::kData).find("encoding 5"),
            std::string::npos);
  records.path = put("x.parquet", "PAR1 no parquet at all PAR1");
  o.source = records;
  error_of([&] { make_dataset(o); }, ErrorCode::kData);
  // Every cut and every changed byte ends in an error or in numbers.
  const std::string whole = read_file("tests/data/parquet/version2.parquet");
  for (size_t i = 0; i < whole.size(); i += 97) {
    std::string broken = whole;
    broken[i] = static_cast<char>(broken[i] ^ 0x55);
    records.path = put("x.parquet", broken);
    o.source = records;
    try {
      make_dataset(o);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kData) << error.what();
    }
  }
}

TEST_F(Sources, SeriesWindows) {
  std::string text = "shop,sales,price,holiday\n";
  for (int i = 0; i < 20; ++i)
    for (const int shop : {1, 2})
      if (shop == 1 || i < 10)
        text += str("s", shop, ",", shop * 100 + i, ",", i * 2, ",", i % 5 == 0 ? 1 : 0, "\n");
  SeriesOptions s;
  s.file.path = put("sales.csv", text);
  s.targets = {"sales"}, s.covariates = {"price"}, s.known = {"holiday"};
  s.group = "shop";
  s.history = 4, s.horizon = 2;
  DatasetOptions o;
  o.source = s;
  o.split = {{"train", 0.6}, {"valid", 0.4}};
  o.part = "train";
  const DatasetPtr train = make_dataset(o);
  // 12 rows of the first shop, 6 of the second.
  EXPECT_EQ(train->size(), 7 + 1);
  const Sample first = read(train, 0);
  EXPECT_EQ(first[0].shape(), (Dims{4, 3}));
  EXPECT_EQ(first[0].number(3), 101);
  EXPECT_EQ(first[0].number(4), 2);
  EXPECT_EQ(first[1].shape(), (Dims{2, 1}));
  EXPECT_EQ(first[1].number(0), 104);
  EXPECT_EQ(first[1].number(1), 105);
  EXPECT_EQ(first[2].number(0), 0);
  EXPECT_EQ(first[2].number(1), 1);
  EXPECT_EQ(read(train, 7)[1].number(1), 205);
  o.part = "valid";
  const DatasetPtr valid = make_dataset(o);
  // Targets from row 12 of the first shop and from row 6 of the second; histories before them.
  EXPECT_EQ(valid->size(), 7 + 3);
  EXPECT_EQ(read(valid, 0)[1].number(0), 112);
  EXPECT_EQ(read(valid, 0)[0].number(0), 108);
  const auto a = train->used_sources(), b = valid->used_sources();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_FALSE(a[i] && b[i]);

  s.scaling = Scaling::kStandard;
  o.source = s, o.part = "train";
  const DatasetPtr scaled = make_dataset(o);
  const auto fitted = scaled->fitted();
  ASSERT_EQ(fitted.size(), 3u);
  EXPECT_NEAR(fitted[0].shift[0], (12 * 105.5 + 6 * 202.5) / 18, 1e-9);
  EXPECT_EQ(fitted[1].shift.size(), 1u);
  o.part = "valid";
  apply_fitted(o, fitted);
  const DatasetPtr applied = make_dataset(o);
  EXPECT_NEAR(read(applied, 0)[1].number(0), (112 - fitted[0].shift[0]) * fitted[0].factor[0],
              1e-6);

  s.history = 30;
  o.source = s;
  EXPECT_NE(error_of([&] { make_dataset(o); }, ErrorCode::kData).find("long enough"),
            std::string::npos);
  s.history = 4, s.targets = {"sale"};
  o.source = s;
  EXPECT_NE(error_of([&] { make_dataset(o); }, ErrorCode::kData).find("did you mean 'sales'"),
            std::string::npos);
}

constexpr const char* kTokenizer = R"({"version":"1.0",
 "added_tokens":[{"id":0,"content":"<pad>","special":true,"single_word":false,"lstrip":false,"rstrip":false,"normalized":false},
  {"id":1,"content":"<u>","special":true,"single_word":false,"lstrip":false,"rstrip":false,"normalized":false},
  {"id":2,"content":"<a>","special":true,"single_word":false,"lstrip":false,"rstrip":false,"normalized":false},
  {"id":3,"content":"<e>","special":true,"single_word":false,"lstrip":false,"rstrip":false,"normalized":false}],
 "normalizer":null,"pre_tokenizer":{"type":"Whitespace"},"post_processor":null,"decoder":null,
 "model":{"type":"WordLevel","unk_token":"<pad>","vocab":{"<pad>":0,"<u>":1,"<a>":2,"<e>":3,"hi":4,"ho":5,"you":6,"me":7}}})";
constexpr const char* kTemplate =
    "{% for m in messages %}<{{ m.role[0] }}>{{ m.content }}<e>{% endfor %}"
    "{% if add_generation_prompt %}<a>{% endif %}";

TEST_F(Sources, ConversationsTrainTheAssistantAlone) {
  ChatOptions c;
  c.tokenizer.path = put("tokenizer.json", kTokenizer);
  c.chat_template = put("chat.jinja", kTemplate);
  const std::string turn =
      R"({"role":"user","content":"hi you"},{"role":"assistant","content":"ho me"})";
  c.path = put("chat.jsonl",
               str("{\"messages\":[", turn, "]}\n\n{\"messages\":[", turn, ",", turn, "]}\n"));
  c.context = 24;
  c.pack = true;
  DatasetOptions o;
  o.source = c;
  const DatasetPtr data = make_dataset(o);
  ASSERT_EQ(data->size(), 1);  // 7 + 15 inputs
  const Sample sample = read(data, 0);
  // <u> hi you <e> <a> ho me <e>
  const std::vector<int64_t> tokens = {1, 4, 6, 3, 2, 5, 7},
                             targets = {-100, -100, -100, -100, 5, 7, 3};
  for (size_t i = 0; i < 7; ++i) {
    const auto at = static_cast<int64_t>(i);
    EXPECT_EQ(sample[0].number(at), static_cast<double>(tokens[i]));
    EXPECT_EQ(sample[1].number(at), static_cast<double>(targets[i])) << i;
    EXPECT_EQ(sample[2].number(at), 1);
    EXPECT_EQ(sample[3].number(at), static_cast<double>(at));
  }
  // The second record restarts, and the last places are padding.
  EXPECT_EQ(sample[2].number(7), 2);
  EXPECT_EQ(sample[3].number(7), 0);
  EXPECT_EQ(sample[1].number(7), -100);
  EXPECT_EQ(sample[1].number(7 + 12), 5);
  EXPECT_EQ(sample[2].number(22), 0);
  EXPECT_EQ(sample[1].number(23), -100);

  // The tokenizer is kept with the template that was given.
  const std::string folder = c.path.substr(0, c.path.rfind('/')) + "/kept";
  data->fitted().at(0).tokenizer->save(folder);
  EXPECT_EQ(TextTokenizer::load(folder)->tokenizer().chat_template, kTemplate);

  c.pack = false;
  o.source = c;
  EXPECT_EQ(make_dataset(o)->size(), 2);
  c.context = 4;  // the words of the assistant are cut off
  o.source = c;
  EXPECT_NE(error_of([&] { make_dataset(o); }, ErrorCode::kData).find("no token is trained"),
            std::string::npos);
  c.context = 24;
  c.path =
      put("bad.jsonl", "{\"messages\":[" + turn + "]}\n{\"messages\":[{\"content\":\"hi\"}]}\n");
  o.source = c;
  EXPECT_NE(error_of([&] { make_dataset(o); }, ErrorCode::kData).find("bad.jsonl:2"),
            std::string::npos);
}

TEST_F(Sources, InstructionsOfTwoColumns) {
  ChatOptions c;
  c.tokenizer.path = put("tokenizer.json", kTokenizer);
  c.path = put("pairs.jsonl", "{\"question\":\"hi you\",\"answer\":\"ho me\"}\n");
  c.prompt = "question", c.completion = "answer";
  c.context = 6;
  DatasetOptions o;
  o.source = c;
  const Sample sample = read(make_dataset(o), 0);
  const std::vector<double> targets = {-100, 5, 7, -100, -100, -100};
  for (size_t i = 0; i < targets.size(); ++i)
    EXPECT_EQ(sample[1].number(static_cast<int64_t>(i)), targets[i]) << i;
}

}  // namespace
}  // namespace paddle::data
