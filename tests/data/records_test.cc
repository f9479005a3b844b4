// Records of every file kind, and fields that are files or lists.

#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/files.h"
#include "data/loading/sampler.h"
#include "data/options.h"
#include "data/transforms.h"
#include "formats/image.h"

namespace paddle::data {
namespace {

class Records : public testing::Test {
 protected:
  Records() { std::filesystem::create_directories(folder_); }
  ~Records() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  std::string put(const std::string& name, const std::string& content) const {
    write_file_atomically(file(name), content);
    return file(name);
  }
  static DatasetPtr make(CsvFileOptions options, std::vector<CsvField> fields) {
    options.fields = std::move(fields);
    DatasetOptions all;
    all.source = std::move(options);
    return make_dataset(all);
  }
  DatasetPtr jsonl(const std::string& content, std::vector<CsvField> fields) const {
    CsvFileOptions options;
    options.format = "jsonl";
    options.path = put("records.jsonl", content);
    return make(options, std::move(fields));
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
  static CsvField field(const std::string& name, ColumnKind kind,
                        std::vector<std::string> columns = {}) {
    CsvField out;
    out.name = name;
    out.kind = kind;
    out.columns = std::move(columns);
    return out;
  }
  std::string folder_ = testing::TempDir() + "/paddle_records_" + std::to_string(::getpid());
};

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(Records, JsonLines) {
  const auto data = jsonl(
      "{\"x\": 1.5, \"meta\": {\"kind\": \"a\"}, \"ok\": true}\n\n"
      "{\"ok\": false, \"meta\": {\"kind\": \"b\\u00e9\"}, \"x\": -2}\n",
      {field("x", ColumnKind::kNumeric), field("kind", ColumnKind::kCategorical, {"meta.kind"}),
       field("ok", ColumnKind::kNumeric)});
  ASSERT_EQ(data->size(), 2);
  EXPECT_EQ(read(data, 0)[0].number(0), 1.5);
  EXPECT_EQ(read(data, 1)[0].number(0), -2);
  EXPECT_EQ(read(data, 1)[1].number(0), 1);
  EXPECT_EQ(read(data, 0)[2].number(0), 1);
  EXPECT_HAS(data->location(1, -1, -1), "records.jsonl:3");
}

TEST_F(Records, KeysOfAll64Bits) {
  CsvFileOptions options;
  options.path = put("keys.csv", "key\n0\n9223372036854775808\n+18446744073709551615\n-1\n1e20\n");
  CsvField key = field("key", ColumnKind::kNumeric);
  key.dtype = DType::kU64;
  key.scalar = true;
  const auto data = make(options, {key});
  EXPECT_EQ(read(data, 0)[0].data<uint64_t>()[0], 0u);
  EXPECT_EQ(read(data, 1)[0].data<uint64_t>()[0], uint64_t{1} << 63);
  EXPECT_EQ(read(data, 2)[0].data<uint64_t>()[0], UINT64_MAX);
  EXPECT_HAS(error_of([&] { read(data, 3); }), "-1 does not fit uint64");
  EXPECT_HAS(error_of([&] { read(data, 4); }), "column 'key'");
}

TEST_F(Records, DamagedJsonLines) {
  EXPECT_HAS(error_of([&] { jsonl("{\"lable\": 1}\n", {field("label", ColumnKind::kNumeric)}); }),
             "did you mean 'lable'");
  const auto data = jsonl("{\"x\": 1}\n{\"x\": \n[1]\n", {field("x", ColumnKind::kNumeric)});
  EXPECT_HAS(error_of([&] { read(data, 1); }), "records.jsonl:2");
  EXPECT_HAS(error_of([&] { read(data, 2); }), "expected a JSON object, found array");
  const std::string deep(5000, '[');
  const auto nested = jsonl("{\"x\": 1}\n{\"x\": " + deep, {field("x", ColumnKind::kNumeric)});
  EXPECT_HAS(error_of([&] { read(nested, 1); }), "records.jsonl:2");
}

TEST_F(Records, SeveralFilesAreOne) {
  put("part-1.csv", "a,b\n1,2\n3,4\n");
  put("part-2.csv", "b,a\n6,5\n");
  put("other.csv", "c\n7\n");
  CsvFileOptions options;
  options.path = file("part-*.csv");
  const auto data = make(options, {field("a", ColumnKind::kNumeric)});
  ASSERT_EQ(data->size(), 3);
  EXPECT_EQ(read(data, 2)[0].number(0), 5);
  EXPECT_HAS(data->location(2, -1, -1), "part-2.csv:2");
  EXPECT_EQ(data->paths().size(), 2u);
  options.more_paths = {file("other.csv")};
  EXPECT_HAS(error_of([&] { make(options, {field("a", ColumnKind::kNumeric)}); }), "no column 'a'");
  options.path = file("none-*.csv");
  EXPECT_HAS(error_of([&] { make(options, {}); }), "no file matches");
}

TEST_F(Records, ParallelTexts) {
  CsvFileOptions options;
  options.format = "lines";
  options.line_files = {{"de", put("a.de", "ein Haus\nzwei\n")},
                        {"en", put("a.en", "a house\ntwo")}};
  const auto data =
      make(options, {field("source", ColumnKind::kText, {"de"}), field("en", ColumnKind::kText)});
  ASSERT_EQ(data->size(), 2);
  EXPECT_EQ(read(data, 0)[0].size(), 2);
  EXPECT_EQ(read(data, 1)[1].size(), 1);
  options.line_files[1].second = put("b.en", "one\n");
  EXPECT_HAS(error_of([&] { make(options, {field("en", ColumnKind::kText)}); }), "has 1 lines");
}

TEST_F(Records, SlotFiles) {
  CsvFileOptions options;
  options.format = "slots";
  options.column_names = {"click", "dense", "user", "tags"};
  options.path = file("part-*");
  put("part-1", "1 1 2 0.5 -2 1 u7 3 a b a\n1 0  2 1e3 4 1 u8 0 \r\n");
  put("part-2", "1 1 2 3 4 1 u7 1 c");
  CsvField label = field("label", ColumnKind::kNumeric, {"click"});
  label.scalar = true;
  CsvField dense = field("dense", ColumnKind::kNumbers);
  dense.shape = {2}, dense.separator = " ";
  CsvField tags = field("tags", ColumnKind::kText);
  tags.tokens = TokenKind::kSpaces;
  const auto data = make(options, {label, dense, field("user", ColumnKind::kCategorical), tags});
  ASSERT_EQ(data->size(), 3);
  EXPECT_EQ(read(data, 0)[0].number(0), 1);
  EXPECT_EQ(read(data, 0)[1].number(1), -2);
  EXPECT_EQ(read(data, 1)[1].number(0), 1000);
  EXPECT_EQ(read(data, 0)[2].number(0), read(data, 2)[2].number(0));
  EXPECT_NE(read(data, 0)[2].number(0), read(data, 1)[2].number(0));
  EXPECT_EQ(read(data, 0)[3].size(), 3);
  EXPECT_EQ(read(data, 1)[3].size(), 0);
  EXPECT_HAS(data->location(2, -1, -1), "part-2:1");
}

TEST_F(Records, DamagedSlotFiles) {
  CsvFileOptions options;
  options.format = "slots";
  options.column_names = {"a", "b"};
  options.path = put("slots",
                     "1 2 1 3\n1 2\n1 2 3 4\n1 2 1 3 4\nx 2 1 3\n-1 1 3\n\n"
                     "9223372036854775807 1\n1 2 1 3\n");
  const auto data =
      make(options, {field("a", ColumnKind::kNumeric), field("b", ColumnKind::kNumeric)});
  ASSERT_EQ(data->size(), 9);
  const std::pair<int64_t, const char*> wrong[] = {
      {1, "slots:2: the line ends before slot 'b', 1 of 2 slots are there"},
      {2, "slots:3: slot 'b' should have 3 values, the line ends after 1"},
      {3, "slots:4: unexpected text '4' after the last slot, 'b'"},
      {4, "slot 'a': expected the number of its values, found 'x'"},
      {5, "found '-1'"},
      {6, "the line ends before slot 'a'"},
      {7, "should have 9223372036854775807 values"}};
  for (const auto& [row, why] : wrong) EXPECT_HAS(error_of([&, at = row] { read(data, at); }), why);
  EXPECT_EQ(read(data, 8)[1].number(0), 3);
  options.path = put("none", "\n \n");
  EXPECT_HAS(error_of([&] { make(options, {}); }), "the file is empty");
  options.column_names = {"a", "a"};
  EXPECT_HAS(error_of([&] { make(options, {}); }, ErrorCode::kConfig), "named twice");
}

TEST_F(Records, ImagesThatAColumnNames) {
  formats::Image image{.height = 2, .width = 3, .channels = 3};
  for (uint8_t i = 0; i < 18; ++i) image.pixels.push_back(i);
  std::filesystem::create_directories(file("pictures"));
  formats::write_png(file("pictures/one.png"), image);
  CsvFileOptions options;
  options.path = put("list.csv", "file,tags\npictures/one.png,red|big\nnone.png,blue\n");
  CsvField picture = field("image", ColumnKind::kImage, {"file"});
  const auto data = make(options, {picture, field("tags", ColumnKind::kMultiLabel)});
  const Sample sample = read(data, 0);
  EXPECT_EQ(sample[0].shape(), (Dims{3, 2, 3}));
  EXPECT_EQ(sample[0].number(6), 1);  // green of the first pixel
  EXPECT_EQ(data->fields()[1].classes, (std::vector<std::string>{"big", "blue", "red"}));
  EXPECT_EQ(sample[1].number(0), 1);
  EXPECT_EQ(sample[1].number(1), 0);
  EXPECT_EQ(sample[1].number(2), 1);
  EXPECT_HAS(error_of([&] { read(data, 1); }), "none.png");
}

TEST_F(Records, MasksMapTheirValues) {
  formats::Image image{.height = 1, .width = 4, .channels = 1};
  image.pixels = {0, 255, 128, 0};
  formats::write_png(file("mask.png"), image);
  CsvFileOptions options;
  options.path = put("list.csv", "mask\nmask.png\n");
  CsvField mask = field("mask", ColumnKind::kMask);
  mask.values = {{0, "background"}, {255, "road"}};
  mask.ignored = {128};
  const Sample sample = read(make(options, {mask}), 0);
  EXPECT_EQ(sample[0].shape(), (Dims{1, 4}));
  EXPECT_EQ(sample[0].number(1), 1);
  EXPECT_EQ(sample[0].number(2), -100);
  mask.ignored = {};
  EXPECT_HAS(error_of([&] { read(make(options, {mask}), 0); }), "the value 128 at row 0, column 2");
}

std::string wav(int rate, const std::vector<int16_t>& samples) {
  const auto number = [](uint32_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
    return out;
  };
  const auto bytes = static_cast<uint32_t>(samples.size() * 2);
  std::string out = "RIFF" + number(36 + bytes, 4) + "WAVEfmt " + number(16, 4) + number(1, 2) +
                    number(1, 2) + number(static_cast<uint32_t>(rate), 4) +
                    number(static_cast<uint32_t>(rate) * 2, 4) + number(2, 2) + number(16, 2) +
                    "data" + number(bytes, 4);
  for (const int16_t s : samples) out += number(static_cast<uint16_t>(s), 2);
  return out;
}

TEST_F(Records, Sounds) {
  put("a.wav", wav(8000, {0, 16384, -32768}));
  put("b.wav", wav(16000, {1, 2, 3, 4}));
  CsvFileOptions options;
  options.path = put("list.csv", "file\na.wav\nb.wav\n");
  CsvField sound = field("sound", ColumnKind::kAudio, {"file"});
  sound.sample_rate = 8000;
  sound.max_length = 100;
  const auto data = make(options, {sound});
  const Sample sample = read(data, 0);
  ASSERT_EQ(sample[0].size(), 3);
  EXPECT_EQ(sample[0].number(1), 0.5);
  EXPECT_EQ(sample[0].number(2), -1);
  EXPECT_EQ(read(data, 1)[0].size(), 2);  // 4 samples at twice the rate
}

TEST_F(Records, LengthsOfSoundsComeFromTheirHeaders) {
  put("long.wav", wav(8000, std::vector<int16_t>(500, 7)));
  put("short.wav", wav(8000, {1, 2, 3}));
  for (const char* name : {"tone.flac", "tone.wav", "stereo.flac", "stereo.wav"})
    std::filesystem::copy_file(str("tests/formats/data/", name), file(name));
  put("none.flac", "fLaC");
  CsvFileOptions options;
  options.path = put("s.csv",
                     "file\nlong.wav\nshort.wav\nnone.flac\nmissing.wav\n"
                     "tone.flac\ntone.wav\nstereo.flac\nstereo.wav\n");
  CsvField sound = field("sound", ColumnKind::kAudio, {"file"});
  sound.sample_rate = 8000, sound.max_length = 80000;
  const auto data = make(options, {sound});
  EXPECT_EQ(data->length_of(0), 500);
  EXPECT_EQ(data->length_of(1), 3);
  EXPECT_EQ(data->length_of(2), 0);
  EXPECT_EQ(data->length_of(3), 0);
  for (const int64_t row : {4, 6}) {  // the same sound twice
    EXPECT_GT(data->length_of(row), 0);
    EXPECT_EQ(data->length_of(row), data->length_of(row + 1));
  }
  sound.max_length = 100;
  EXPECT_EQ(make(options, {sound})->length_of(0), 100);
  EXPECT_EQ(read(make(options, {sound}), 0)[0].shape(), (Dims{100}));
}

TEST_F(Records, BoxesOnImagesOfSixteenBits) {
  std::filesystem::create_directories(file("images"));
  std::filesystem::create_directories(file("labels"));
  std::filesystem::copy_file("tests/data/formats/sixteen_bit.png", file("images/a.png"));
  put("labels/a.txt", "0 0.5 0.5 0.2 0.4\n");
  BoxOptions options{.format = BoxOptions::Format::kYolo,
                     .images = file("images"),
                     .classes = {"thing"},
                     .channels = 1};
  EXPECT_HAS(error_of([&] { read(make_dataset({.source = options}), 0); }), "reduce_16_bit");
  options.reduce_16_bit = true;
  const Sample reduced = read(make_dataset({.source = options}), 0);
  options.dtype = DType::kU16;
  EXPECT_HAS(error_of([&] { make_dataset({.source = options}); }, ErrorCode::kConfig),
             "`reduce_16_bit` has no effect with `dtype: uint16`");
  options.reduce_16_bit = false;
  const auto data = make_dataset({.source = options});
  EXPECT_EQ(data->fields()[0].dtype, DType::kU16);
  const Sample wide = read(data, 0);
  EXPECT_EQ(wide[0].dtype(), DType::kU16);
  ASSERT_EQ(wide[0].size(), reduced[0].size());
  for (int64_t i = 0; i < wide[0].size(); ++i)
    EXPECT_NEAR(wide[0].number(i) / 257, reduced[0].number(i), 0.5 + 1e-9);
}

TEST_F(Records, ListsOfNumbers) {
  CsvField numbers = field("n", ColumnKind::kNumbers);
  numbers.shape = {2, 2};
  const auto data = jsonl("{\"n\": [[1, 2], [3, 4.5]]}\n{\"n\": [1]}\n", {numbers});
  EXPECT_EQ(read(data, 0)[0].number(3), 4.5);
  EXPECT_HAS(error_of([&] { read(data, 1); }), "has 1 numbers, 4 are expected");
}

/// A member of a tar archive.
std::string tar_member(const std::string& name, const std::string& content) {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  char size[12];
  std::snprintf(size, sizeof size, "%011o", static_cast<unsigned>(content.size()));
  header.replace(124, 11, size);
  header.replace(148, 8, "        ");
  header[156] = '0';
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  char check[8];
  std::snprintf(check, sizeof check, "%06o", sum);
  header.replace(148, 6, check);
  header[154] = '\0';
  std::string out = header + content;
  out.resize((out.size() + 511) / 512 * 512, '\0');
  return out;
}

TEST_F(Records, TarShards) {
  CsvFileOptions options;
  options.format = "tar";
  const std::string shard = tar_member("x/1.txt", "one two") + tar_member("x/1.cls", "3") +
                            tar_member("x/2.cls", "4") + tar_member("x/2.txt", "three") +
                            std::string(1024, '\0');
  options.path = put("shard.tar", shard);
  CsvField label = field("label", ColumnKind::kNumeric, {"cls"});
  label.scalar = true;
  const auto data = make(options, {label, field("text", ColumnKind::kText, {"txt"})});
  ASSERT_EQ(data->size(), 2);
  EXPECT_EQ(read(data, 1)[0].number(0), 4);
  EXPECT_EQ(read(data, 0)[1].size(), 2);
  EXPECT_HAS(data->location(1, -1, -1), "shard.tar: x/2");
  options.path = put("cut.tar", shard.substr(0, 600));
  EXPECT_HAS(error_of([&] { make(options, {label}); }), "cut short");
  options.path = put("not.tar", std::string(600, 'x'));
  EXPECT_HAS(error_of([&] { make(options, {label}); }), "not a tar archive");
}

TEST_F(Records, KeysOfJsonInTarShards) {
  CsvFileOptions options;
  options.format = "tar";
  const auto shard = [](const std::string& second) {
    return tar_member("1.json", R"({"label": 3, "about": {"text": "one two", "good": true}})") +
           tar_member("1.cls", "7") + tar_member("2.json", second) + tar_member("2.cls", "8") +
           tar_member("3.cls", "9") + std::string(1024, '\0');
  };
  options.path = put("keys.tar", shard(R"({"about": {"text": "three"}, "label": 4})"));
  CsvField label = field("label", ColumnKind::kNumeric, {"json.label"}),
           good = field("good", ColumnKind::kNumeric, {"json.about.good"}),
           number = field("number", ColumnKind::kNumeric, {"cls"});
  label.scalar = good.scalar = number.scalar = true;
  label.missing = good.missing = MissingPolicy::kFill;
  label.fill = good.fill = -1;
  const auto text = field("text", ColumnKind::kText, {"json.about.text"});
  const auto data = make(options, {label, text, good, number});
  ASSERT_EQ(data->size(), 3);
  EXPECT_EQ(read(data, 0)[0].number(0), 3);
  EXPECT_EQ(read(data, 0)[1].size(), 2);
  EXPECT_EQ(read(data, 0)[2].number(0), 1);
  EXPECT_EQ(read(data, 1)[0].number(0), 4);
  EXPECT_EQ(read(data, 1)[1].size(), 1);
  EXPECT_EQ(read(data, 1)[2].number(0), -1);
  EXPECT_EQ(read(data, 1)[3].number(0), 8);
  EXPECT_EQ(read(data, 2)[0].number(0), -1);
  const auto wrong = field("label", ColumnKind::kNumeric, {"json.labl"});
  EXPECT_HAS(error_of([&] { make(options, {wrong}); }),
             "no .json has the key 'labl' (did you mean 'label'?)");
  options.path = put("broken.tar", shard("[1, 2]"));
  const auto broken = make(options, {label});
  EXPECT_HAS(error_of([&] { read(broken, 1); }), "expected a JSON object, found array");
}

TEST_F(Records, CocoBoxes) {
  formats::Image image{.height = 10, .width = 20, .channels = 3};
  image.pixels.resize(600);
  formats::write_png(file("a.png"), image);
  BoxOptions options;
  options.annotations = put("boxes.json", R"({
    "images": [{"id": 7, "file_name": "a.png", "width": 20, "height": 10}],
    "categories": [{"id": 3, "name": "cat"}, {"id": 9, "name": "dog"}],
    "annotations": [
      {"id": 1, "image_id": 7, "category_id": 9, "bbox": [2, 1, 4, 5]},
      {"id": 2, "image_id": 7, "category_id": 3, "bbox": [15, 0, 10, 10]},
      {"id": 3, "image_id": 7, "category_id": 3, "bbox": [1, 1, 0, 3]},
      {"id": 4, "image_id": 8, "category_id": 3, "bbox": [1, 1, 2, 3]}]})");
  DatasetOptions all;
  all.source = options;
  const auto data = make_dataset(all);
  const Sample sample = read(data, 0);
  EXPECT_EQ(sample[1].shape(), (Dims{2, 4}));
  EXPECT_EQ(sample[1].number(2), 6);
  EXPECT_EQ(sample[1].number(6), 20);  // clipped
  EXPECT_EQ(sample[2].number(0), 1);
  EXPECT_EQ(sample[2].number(1), 0);
  EXPECT_EQ(data->skipped_files().size(), 2u);

  // Boxes follow a flip, and a crop leaves one of them out.
  const Pipeline pipeline(
      data->fields(),
      {{.kind = TransformKind::kHorizontalFlip, .fields = {"image"}, .probability = 1},
       {.kind = TransformKind::kCenterCrop, .fields = {"image"}, .height = 10, .width = 8}});
  Sample moved = sample;
  Value scratch;
  pipeline.apply(moved, 0, {}, scratch);
  EXPECT_EQ(moved[0].shape(), (Dims{3, 10, 8}));
  EXPECT_EQ(moved[1].shape(), (Dims{0, 4}));  // [14, 18) and [0, 5) are outside of [6, 14)
  EXPECT_EQ(moved[2].shape(), (Dims{0}));
  const Pipeline flip(
      data->fields(),
      {{.kind = TransformKind::kHorizontalFlip, .fields = {"image"}, .probability = 1}});
  moved = sample;
  flip.apply(moved, 0, {}, scratch);
  EXPECT_EQ(moved[1].number(0), 14);
  EXPECT_EQ(moved[1].number(2), 18);
  EXPECT_THROW(
      Pipeline(data->fields(), {{.kind = TransformKind::kTrivialAugment, .fields = {"image"}}}),
      Error);
}

TEST_F(Records, YoloBoxes) {
  formats::Image image{.height = 10, .width = 20, .channels = 3};
  image.pixels.resize(600);
  std::filesystem::create_directories(file("images"));
  std::filesystem::create_directories(file("labels"));
  formats::write_png(file("images/a.png"), image);
  put("labels/a.txt", "1 0.5 0.5 0.2 0.4\n");
  BoxOptions options;
  options.format = BoxOptions::Format::kYolo;
  options.images = file("images");
  options.classes = {"cat", "dog"};
  DatasetOptions all;
  all.source = options;
  const Sample sample = read(make_dataset(all), 0);
  EXPECT_NEAR(sample[1].number(0), 8, 1e-5);
  EXPECT_NEAR(sample[1].number(3), 7, 1e-5);
  EXPECT_EQ(sample[2].number(0), 1);
  put("labels/a.txt", "2 0.5 0.5 0.2 0.4\n");
  EXPECT_HAS(error_of([&] { read(make_dataset(all), 0); }), "a.txt:1");
}

TEST_F(Records, WeightsOfClasses) {
  CsvFileOptions options;
  options.path = put("d.csv", "y,w\n0,1\n0,0\n0,2\n1,1\n");
  CsvField y = field("y", ColumnKind::kNumeric), w = field("w", ColumnKind::kNumeric);
  y.scalar = true, y.dtype = DType::kI64;
  const auto data = make(options, {y, w});
  EXPECT_EQ(class_weights(*data, {.field = "y"}), (std::vector<double>{4.0 / 6, 2}));
  EXPECT_EQ(sample_weights(*data, {.kind = SamplerOptions::Kind::kWeighted, .field = "w"}),
            (std::vector<double>{1, 0, 2, 1}));
  const WeightedDraw draw(
      sample_weights(*data, {.kind = SamplerOptions::Kind::kBalanced, .field = "y"}));
  EXPECT_EQ(draw(0), 0);
  EXPECT_EQ(draw(0.49), 2);
  EXPECT_EQ(draw(0.51), 3);
  EXPECT_EQ(draw(0.999999), 3);
  const WeightedDraw weighted({1, 0, 2, 1, 0});
  EXPECT_EQ(weighted(0.25), 2);
  EXPECT_EQ(weighted(1.0), 3);
  EXPECT_HAS(error_of([&] { class_weights(*data, {.field = "z"}); }, ErrorCode::kConfig),
             "no field 'z'");
}

}  // namespace
}  // namespace paddle::data
