// Samples that are broken: what makes one, what the policies do with it, and the scan that finds
// them before the first step.

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>
#include <png.h>

#include "base/files.h"
#include "config/document.h"
#include "data/datasets/bad_samples.h"
#include "data/loader.h"
#include "data/open_data.h"
#include "data/options.h"
#include "data/scan.h"

namespace paddle::data {
namespace {

class BadSamples : public testing::Test {
 protected:
  BadSamples() { std::filesystem::create_directories(folder_); }
  ~BadSamples() override { std::filesystem::remove_all(folder_); }
  std::string put(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories(
        std::filesystem::path(folder_ + "/" + name).parent_path().string());
    write_file_atomically(folder_ + "/" + name, content);
    return folder_ + "/" + name;
  }
  /// A gray PNG of 4 x 2 pixels.
  std::string put_image(const std::string& name, const std::vector<uint8_t>& pixels) const {
    const std::string path = put(name, "");
    png_image image = {};
    image.version = PNG_IMAGE_VERSION;
    image.width = 4, image.height = 2, image.format = PNG_FORMAT_GRAY;
    EXPECT_TRUE(png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), 0, nullptr));
    return path;
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
  static Sample read(const DatasetPtr& data, int64_t index) {
    Sample sample;
    data->read(index, {}, sample);
    return sample;
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
  DatasetOptions labels(const std::string& text) const {
    CsvFileOptions csv;
    csv.path = put("labels.csv", text);
    CsvField x, label;
    x.name = "x", x.scalar = true;
    label.name = "label", label.kind = ColumnKind::kCategorical, label.scalar = true;
    csv.fields = {x, label};
    return {.source = csv};
  }
  static CsvField& label_of(DatasetOptions& options) {
    return std::get<CsvFileOptions>(options.source).fields[1];
  }
  std::string folder_ = str("/tmp/bad_samples_test_", getpid());
};

TEST_F(BadSamples, AnEmptyTargetIsABadSampleUnlessMissingSaysOtherwise) {
  const std::string text = "x,label\n1,cat\n2,\n3,dog\n";
  DataConfig config;
  config.train = labels(text);
  require_targets(config, {"x"});
  DatasetPtr data = make_dataset(config.train);
  EXPECT_EQ(data->fields()[1].classes, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_TRUE(
      has(error_of([&] { read(data, 1); }), "labels.csv:3: column 'label': the value is missing"));
  EXPECT_TRUE(has(error_of([&] { data->check(1); }), "labels.csv:3: column 'label'"));
  EXPECT_EQ(read(data, 2)[1].number(0), 1);
  // An input of the model, or `missing: category`: a class of its own.
  config.train = labels(text);
  require_targets(config, {"x", "label"});
  EXPECT_EQ(make_dataset(config.train)->fields()[1].classes,
            (std::vector<std::string>{"", "cat", "dog"}));
  config.train = labels(text);
  label_of(config.train).missing = MissingPolicy::kCategory;
  require_targets(config, {"x"});
  EXPECT_EQ(read(make_dataset(config.train), 1)[1].number(0), 0);
  // So does a vocabulary that lists it, as models of older versions have.
  config.train = labels(text);
  label_of(config.train).vocabulary = {"dog", "", "cat"};
  require_targets(config, {"x"});
  EXPECT_EQ(read(make_dataset(config.train), 1)[1].number(0), 1);
  // And the policy `keep`.
  config.train = labels(text);
  EXPECT_TRUE(keep_bad_samples(config.train));
  require_targets(config, {"x"});
  EXPECT_EQ(make_dataset(config.train)->fields()[1].classes.size(), 3u);
}

TEST_F(BadSamples, AKeyThatJsonLacksIsAnEmptyTarget) {
  DataConfig config;
  config.train = labels("");
  auto& records = std::get<CsvFileOptions>(config.train.source);
  records.format = "jsonl";
  records.path =
      put("a.jsonl", "{\"x\": 1, \"label\": \"cat\"}\n{\"x\": 2}\n{\"x\": 3, \"label\": null}\n");
  require_targets(config, {"x"});
  const DatasetPtr data = make_dataset(config.train);
  EXPECT_TRUE(has(error_of([&] { read(data, 1); }), "a.jsonl:2: column 'label'"));
  EXPECT_TRUE(has(error_of([&] { read(data, 2); }), "a.jsonl:3: column 'label'"));
}

TEST_F(BadSamples, BoxesOutsideOfImages) {
  put_image("p/images/a.png", std::vector<uint8_t>(8, 1));
  put_image("p/images/b.png", std::vector<uint8_t>(8, 2));
  put_image("p/images/c.png", std::vector<uint8_t>(8, 3));
  put("p/labels/a.txt", "0 0.5 0.5 0.5 0.5\n0 1.5 0.5 0.2 0.2\n");
  put("p/labels/b.txt", "0 0.5 0.5 0.5 0.5\n1 0.5 0.5 0.5 0.5\n");  // no such class
  put("p/labels/c.txt", "0 0.9 0.5 0.5 0.5\n");
  BoxOptions options{
      .format = BoxOptions::Format::kYolo, .images = folder_ + "/p/images", .classes = {"thing"}};
  const DatasetPtr data = make_dataset({.source = options});
  EXPECT_TRUE(has(error_of([&] { read(data, 0); }), "a.png: box 1 ["));
  EXPECT_TRUE(has(error_of([&] { data->check(0); }), "is outside of the image"));
  // A line that cannot be read is the fault of its image, not of the dataset.
  EXPECT_TRUE(has(error_of([&] { read(data, 1); }), "b.txt:2: class 1, there are 1 classes"));
  EXPECT_TRUE(has(error_of([&] { data->check(1); }), "b.txt:2"));
  const Sample clipped = read(data, 2);
  EXPECT_EQ(clipped[1].number(2), 4);
  DatasetOptions keeping{.source = options};
  EXPECT_TRUE(keep_bad_samples(keeping));
  const DatasetPtr kept = make_dataset(keeping);
  EXPECT_NO_THROW(kept->check(0));
  EXPECT_EQ(read(kept, 0)[1].shape(), (Dims{1, 4}));
  EXPECT_EQ(read(kept, 0)[2].shape(), (Dims{1}));
  EXPECT_TRUE(has(kept->warnings().at(0), "it is left out"));
}

TEST_F(BadSamples, ABadBboxOfCocoIsTheFaultOfItsImage) {
  put_image("a.png", std::vector<uint8_t>(8, 1));
  put_image("b.png", std::vector<uint8_t>(8, 1));
  BoxOptions options;
  options.annotations = put("c.json", R"({"images": [{"id": 1, "file_name": "a.png"},
    {"id": 2, "file_name": "b.png", "width": 4, "height": 2}],
    "categories": [{"id": 3, "name": "x"}],
    "annotations": [{"id": 7, "image_id": 1, "category_id": 3, "bbox": [0, 0, "1", 1]},
                    {"id": 8, "image_id": 2, "category_id": 3, "bbox": [0, 0, 1, 1]},
                    {"id": 9, "image_id": 2, "category_id": 3, "bbox": [5, 0, 1, 1]}]})");
  const DatasetPtr data = make_dataset({.source = options});
  EXPECT_TRUE(has(error_of([&] { read(data, 0); }), "the annotation 7 has a bbox that is not"));
  // The size is stated, so that nothing is decoded.
  std::filesystem::remove(folder_ + "/a.png");
  EXPECT_TRUE(has(error_of([&] { data->check(1); }), "b.png: box 1 [5, 0, 6, 1] is outside"));
}

TEST_F(BadSamples, MaskValuesThatAreNotListed) {
  put_image("m.png", {0, 0, 255, 255, 7, 0, 0, 0});
  CsvFileOptions csv;
  csv.path = put("masks.csv", "mask\nm.png\nnone.png\n");
  CsvField mask;
  mask.name = "mask", mask.kind = ColumnKind::kMask;
  mask.values = {{0, "ground"}, {255, "road"}};
  csv.fields = {mask};
  DatasetOptions options{.source = csv};
  EXPECT_TRUE(has(error_of([&] { read(make_dataset(options), 0); }),
                  "the mask has the value 7 at row 1, column 0"));
  EXPECT_TRUE(has(error_of([&] { make_dataset(options)->check(1); }), "none.png"));
  EXPECT_TRUE(keep_bad_samples(options));
  const Sample kept = read(make_dataset(options), 0);
  EXPECT_EQ(kept[0].data<int64_t>()[2], 1);
  EXPECT_EQ(kept[0].data<int64_t>()[4], -100);
}

TEST_F(BadSamples, KeepIsRejectedWhereNothingCanBeKept) {
  DatasetOptions numbers{.source = CsvFileOptions{.path = put("n.csv", "x\n1\n")}};
  EXPECT_FALSE(keep_bad_samples(numbers));
  auto data = make_dataset({.source = CsvFileOptions{.path = put("n.csv", "x\nword\n")}});
  Loader loader(data, {.on_bad_sample = BadSamplePolicy::kKeep});
  EXPECT_TRUE(has(error_of([&] { loader.next(); }),
                  "'word' is not a number (`on_bad_sample: keep` cannot keep this sample)"));
}

TEST_F(BadSamples, WindowsWithBadRowsOfASeriesAreBad) {
  SeriesOptions s;
  s.file.path = put("s.csv", "sales\n1\n2\n3\nmany\n5\n6\n\n8\n9\n10\n");
  s.targets = {"sales"};
  s.history = 2, s.horizon = 1;
  s.scaling = Scaling::kMinMax;
  const DatasetPtr data = make_dataset({.source = s});
  Loader loader(data, {.epochs = 1, .on_bad_sample = BadSamplePolicy::kSkip, .max_bad_rate = 1});
  int64_t good = 0;
  while (const auto batch = loader.next()) good += batch->samples;
  // An empty line has no row: rows 1 2 3 many 5 6 8 9 10.
  EXPECT_EQ(good, data->size() - 3);
  EXPECT_TRUE(has(loader.skipped()[0].reason, "s.csv:5: column 'sales': 'many' is not a number"));
  EXPECT_EQ(read(data, 0)[0].number(0), 0);  // statistics pass over bad cells
}

ScanResult scan(const DatasetPtr& data, LoaderOptions loader = {}, ScanOptions options = {}) {
  Loader opened(data, loader);
  return scan_samples(opened, options);
}

TEST_F(BadSamples, TheScanFindsBadSamplesAnywhere) {
  std::string text = "x\n";
  for (int i = 0; i < 1000; ++i) text += i == 700 || i == 999 ? "word\n" : str(i, "\n");
  const DatasetPtr data = make_dataset({.source = CsvFileOptions{.path = put("n.csv", text)}});
  const ScanResult result = scan(data);
  EXPECT_EQ(result.extent(), "all 1000 samples were read");
  EXPECT_EQ(result.bad_count, 2);
  ASSERT_EQ(result.bad.size(), 2u);
  EXPECT_EQ(result.bad[0].index, 700);
  const std::string rejected = error_of([&] { check_bad_samples(result, {}, "train"); });
  EXPECT_TRUE(has(rejected, "n.csv:702: column 'x'")) << rejected;
  EXPECT_TRUE(has(rejected, "(and 1 more bad samples in data.train")) << rejected;
  LoaderOptions skipping{.on_bad_sample = BadSamplePolicy::kSkip};
  const std::vector<std::string> lines = check_bad_samples(scan(data, skipping), skipping, "train");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(has(lines[0], "2 of 1000 samples are bad and will be skipped")) << lines[0];
  skipping.max_bad_rate = 0.001;
  EXPECT_TRUE(has(error_of([&] { check_bad_samples(scan(data, skipping), skipping, "train"); }),
                  "2 of 1000 samples of data.train are bad, more than the rate of 0.001"));
  // The position of the loader stays where it is.
  Loader loader(data, {.batch_size = 4});
  scan_samples(loader, {});
  EXPECT_EQ(loader.next()->indices, (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST_F(BadSamples, TheScanReportsTheSameWithAnyNumberOfThreads) {
  std::string text = "x,t\n";
  for (int i = 0; i < 700; ++i) text += str(i % 90 == 7 ? "word" : str(i), ",", i % 2, "\n");
  const DatasetPtr data = make_dataset({.source = CsvFileOptions{.path = put("n.csv", text)}});
  const auto report = [&](int workers) {
    std::vector<std::string> out;
    ScanOptions options;
    options.group = 6;
    options.skips = true;
    options.batch_check = [&](const Batch& batch) {
      std::string numbers;
      for (const int64_t index : batch.indices) numbers += str(index, " ");
      out.push_back(numbers);
      std::vector<Loader::BadRow> bad;
      if (batch.indices[0] % 5 == 0) bad.push_back({0, "divisible by five"});
      return bad;
    };
    const ScanResult result =
        scan(data, {.workers = workers, .on_bad_sample = BadSamplePolicy::kSkip}, options);
    for (const BadSampleFound& bad : result.bad) out.push_back(str(bad.index, ": ", bad.reason));
    out.push_back(str(result.extent(), " ", result.bad_count, " ", result.skipped_count));
    return out;
  };
  const std::vector<std::string> serial = report(0);
  EXPECT_GT(serial.size(), 120u);
  for (const int workers : {1, 2, 5}) EXPECT_EQ(report(workers), serial) << workers;
}

/// Sample i is the number of threads that read at that moment.
class Concurrent : public Dataset {
 public:
  int64_t size() const override { return 40; }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(int64_t, const ReadContext&, Sample& out) const override {
    const int64_t now = ++reading_;
    for (int64_t before = most; before < now && !most.compare_exchange_weak(before, now);) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    --reading_;
    out.resize(1);
    out[0].reset(DType::kF32, Dims{});
    out[0].data<float>()[0] = 1;
  }
  std::string location(int64_t index, int64_t, int64_t) const override { return str(index); }
  mutable std::atomic<int64_t> most = 0;

 private:
  mutable std::atomic<int64_t> reading_ = 0;
  std::vector<Field> fields_ = {{.name = "x"}};
};

TEST_F(BadSamples, TheScanReadsOnTheThreadsOfTheLoader) {
  const auto serial = std::make_shared<Concurrent>();
  EXPECT_EQ(scan(serial).extent(), "all 40 samples were read");
  EXPECT_EQ(serial->most, 1);
  // Those of the loader itself are at their limit of batches soon.
  const auto data = std::make_shared<Concurrent>();
  EXPECT_EQ(scan(data, {.workers = 3, .prefetch_bytes = 1}).extent(), "all 40 samples were read");
  EXPECT_GE(data->most, 3);
}

TEST_F(BadSamples, AnErrorThatIsNotAboutASampleEndsTheScan) {
  class Failing : public Concurrent {
    void read(int64_t index, const ReadContext& context, Sample& out) const override {
      Concurrent::read(index, context, out);
      if (index == 30) fail(ErrorCode::kDevice, "no memory for ", index);
    }
  };
  for (const int workers : {0, 2})
    EXPECT_TRUE(has(error_of([&] { scan(std::make_shared<Failing>(), {.workers = workers}); },
                             ErrorCode::kDevice),
                    "no memory for 30"));
}

TEST_F(BadSamples, AScanThatHasNoTimeSaysWhatItLookedAt) {
  std::string text = "x\n";
  for (int i = 0; i < 1000; ++i) text += str(i, "\n");
  const DatasetPtr data = make_dataset({.source = CsvFileOptions{.path = put("n.csv", text)}});
  ScanOptions options;
  options.check_until = options.read_until = std::chrono::steady_clock::time_point::min();
  const ScanResult result = scan(data, {}, options);
  EXPECT_FALSE(result.is_complete());
  EXPECT_EQ(result.extent(), "1 of 1000 samples were checked and 1 of them read");
}

TEST_F(BadSamples, LabelsThatSkipNumbers) {
  const auto warnings = [&](const std::vector<int>& numbers, std::optional<int64_t> ignored = {},
                            bool are_labels = false) {
    std::string text = "x,label\n";
    for (const int n : numbers) text += str("1,", n, "\n");
    DatasetOptions options = labels(text);
    label_of(options).kind = ColumnKind::kNumeric;
    label_of(options).dtype = DType::kI64;
    const DatasetPtr data = make_dataset(options);
    ScanOptions how;
    how.class_fields = class_fields_of(*data, {"x"});
    EXPECT_EQ(how.class_fields, (std::vector<std::string>{"label"}));
    return join(check_contents(scan(data, {}, how), *data, are_labels, ignored, "train"), "\n");
  };
  EXPECT_EQ(warnings({0, 1, 3}), "data.train: 'label' skips numbers: no sample has 2 of 0 to 3");
  EXPECT_EQ(warnings({1, 2, 3}),
            "data.train: 'label' starts at 1, classes are numbered from 0: 0 has no samples");
  EXPECT_EQ(warnings({0, 1, 2}), "");
  EXPECT_EQ(warnings({0, 1, -100}), "");
  EXPECT_EQ(warnings({0, 1, 2, 4}, 4), "");
  EXPECT_EQ(warnings({17, 5000, 123}), "");  // amounts, not classes
  EXPECT_EQ(warnings({0, 5}, {}, true),
            "data.train: 'label' skips numbers: no sample has 1, 2, 3, 4 of 0 to 5");
}

TEST_F(BadSamples, LabelsOutsideOfWhatTheModelTakesAreFoundWithoutReadingAll) {
  std::string text = "x,label\n";
  for (int i = 0; i < 500; ++i) text += str("1,", i == 400 ? 9 : i % 3, "\n");
  DatasetOptions options = labels(text);
  label_of(options).kind = ColumnKind::kNumeric;
  label_of(options).dtype = DType::kI64;
  const DatasetPtr data = make_dataset(options);
  ScanOptions how;
  how.class_fields = {"label"};
  how.ranges = {{"label", 0, 3}};
  how.read_until = std::chrono::steady_clock::time_point::min();
  const ScanResult result = scan(data, {.ranges = how.ranges}, how);
  EXPECT_EQ(result.read, 1);
  ASSERT_EQ(result.bad_count, 1);
  EXPECT_TRUE(has(result.bad[0].reason, "labels.csv:402, column 'label': label 9 is outside 0..2"))
      << result.bad[0].reason;
}

TEST_F(BadSamples, EmptyTextsAreCounted) {
  CsvFileOptions csv;
  csv.path = put("t.csv", "x,text\n1,a word\n2,\n3,b\n4,\" \"\n");
  CsvField text;
  text.name = "text", text.kind = ColumnKind::kText;
  csv.fields = {text};
  const DatasetPtr data = make_dataset({.source = csv});
  const auto lines = check_contents(scan(data), *data, false, {}, "train");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(has(lines[0], "data.train: 2 samples with an empty 'text'; the first: ")) << lines[0];
  EXPECT_TRUE(has(lines[0], "t.csv:3")) << lines[0];
}

TEST_F(BadSamples, RowsThatABatchShowsToBeBad) {
  std::string text = "x\n";
  for (int i = 0; i < 10; ++i) text += str(i, "\n");
  const DatasetPtr data = make_dataset({.source = CsvFileOptions{.path = put("n.csv", text)}});
  const Loader::BatchCheck thirds = [](const Batch& batch) {
    std::vector<Loader::BadRow> out;
    for (int64_t row = 0; row < batch.arrays[0].shape[0]; ++row)
      if (std::fmod(batch.arrays[0].number(row), 3) == 1) out.push_back({row, "is a third"});
    return out;
  };
  for (const int workers : {0, 2}) {
    Loader skipping(data, {.batch_size = 4,
                           .workers = workers,
                           .epochs = 1,
                           .on_bad_sample = BadSamplePolicy::kSkip,
                           .max_bad_rate = 0.5});
    skipping.check_batches(thirds);
    const auto first = skipping.next();
    EXPECT_EQ(first->samples, 3);
    EXPECT_EQ(first->indices, (std::vector<int64_t>{0, 2, 3}));
    EXPECT_EQ(first->arrays[0].shape, (Dims{3}));
    EXPECT_EQ(first->arrays[0].number(2), 3);
    EXPECT_EQ(skipping.next()->indices, (std::vector<int64_t>{5, 6}));
    EXPECT_EQ(skipping.skipped_count(), 3);
    EXPECT_TRUE(has(skipping.skipped()[0].reason, "n.csv:3: is a third"));
  }
  Loader rejecting(data, {.batch_size = 4});
  rejecting.check_batches(thirds);
  EXPECT_TRUE(has(error_of([&] { rejecting.next(); }), "n.csv:3: is a third"));
  ScanOptions how;
  how.batch_check = thirds, how.group = 4;
  EXPECT_EQ(scan(data, {}, how).bad_count, 3);
  how.whole_groups = true;  // 0 to 7
  EXPECT_EQ(scan(data, {}, how).bad_count, 3);
}

TEST_F(BadSamples, TestDataThatValidatesIsReported) {
  std::string text = "x\n";
  for (int i = 0; i < 10; ++i) text += str(i, "\n");
  const auto part = [&](int64_t begin, int64_t end) {
    return DatasetOptions{
        .source = CsvFileOptions{.path = put("n.csv", text)}, .begin = begin, .end = end};
  };
  DataConfig config;
  config.train = part(0, 4);
  config.valid = part(4, 8);
  config.test = part(6, 10);
  config.loader.batch_size = config.valid_loader.batch_size = 2;
  const OpenData opened = open_data(config::parse_document("data: {}", "c.yaml"), config);
  ASSERT_EQ(opened.warnings.size(), 1u);
  EXPECT_TRUE(has(opened.warnings[0], "data.test: 2 of 4 samples of ")) << opened.warnings[0];
  EXPECT_TRUE(has(opened.warnings[0], "are also in data.valid")) << opened.warnings[0];
}

TEST_F(BadSamples, NumbersInListsThatAreNotFiniteAreNamed) {
  std::string list = "0.5";
  for (int i = 1; i < 1000; ++i) list += i == 900 ? "|nan" : "|0.5";
  CsvFileOptions csv;
  csv.path = put("list.csv", "x,y\n" + list + ",1\n");
  CsvField x;
  x.name = "values", x.columns = {"x"}, x.kind = ColumnKind::kNumbers, x.shape = {1000};
  csv.fields = {x};
  const DatasetPtr data = make_dataset({.source = csv});
  Loader loader(data, {.batch_size = 1});
  const std::string error = error_of([&] { loader.next(); });
  EXPECT_TRUE(has(error, "list.csv:2, column 'x', element 900: NaN in the data")) << error;
  Loader skipping(data, {.batch_size = 1, .epochs = 1, .max_bad_rate = 1, .nan = NanPolicy::kSkip});
  EXPECT_FALSE(skipping.next());
  EXPECT_EQ(skipping.skipped_count(), 1);
  Loader keeping(data, {.batch_size = 1, .nan = NanPolicy::kKeep});
  EXPECT_TRUE(std::isnan(keeping.next()->arrays[0].number(900)));
}

TEST_F(BadSamples, ListsOfIntegersHoldIntegers) {
  CsvFileOptions csv;
  csv.path = put("list.csv", "x\n1|2\n1|nan\n1|2.5\n1|300\n1|18446744073709551615\n");
  CsvField x;
  x.name = "x", x.kind = ColumnKind::kNumbers, x.shape = {2}, x.dtype = DType::kU8;
  csv.fields = {x};
  const DatasetPtr data = make_dataset({.source = csv});
  EXPECT_EQ(read(data, 0)[0].number(1), 2);
  EXPECT_TRUE(has(error_of([&] { read(data, 1); }), "'nan' is not an integer"));
  EXPECT_TRUE(has(error_of([&] { read(data, 2); }), "'2.5' is not an integer"));
  EXPECT_TRUE(has(error_of([&] { read(data, 3); }), "300 does not fit uint8"));
  EXPECT_TRUE(has(error_of([&] { read(data, 4); }),
                  "'18446744073709551615' is outside the range of int64"));
}

TEST_F(BadSamples, InfinityThatATransformMakesIsFound) {
  const DatasetPtr data =
      make_dataset({.source = CsvFileOptions{.path = put("n.csv", "x,y\n1,1\n70000,2\n")}});
  TransformOptions cast;
  cast.kind = TransformKind::kCast, cast.dtype = DType::kF16, cast.fields = {"x"};
  TransformOptions scale;
  scale.kind = TransformKind::kScale, scale.factor = 1e36, scale.fields = {"x"};
  for (const TransformOptions& transform : {cast, scale}) {
    LoaderOptions options{.batch_size = 1, .epochs = 1, .max_bad_rate = 1};
    options.transforms = {transform};
    Loader loader(data, options);
    EXPECT_TRUE(loader.next());
    const std::string error = error_of([&] { loader.next(); });
    EXPECT_TRUE(has(error, "n.csv:3, column 'x': infinity, which the transforms make of its value"))
        << error;
    options.nan = NanPolicy::kSkip;
    Loader skipping(data, options);
    EXPECT_EQ(skipping.next()->indices, std::vector<int64_t>{0});
    EXPECT_FALSE(skipping.next());
    EXPECT_EQ(skipping.skipped_count(), 1);
    options.nan = NanPolicy::kKeep;
    Loader keeping(data, options);
    keeping.next();
    EXPECT_TRUE(std::isinf(keeping.next()->arrays[0].number(0)));
  }
}

}  // namespace
}  // namespace paddle::data
