#include "data/dataset.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "base/files.h"
#include "data/options.h"
#include "data/report.h"
#include "data/target_scale.h"
#include "formats/image.h"
#include "formats/npz.h"
#include "support/real_data.h"

namespace paddle::data {
namespace {

std::string scratch(const std::string& name) {
  return testing::TempDir() + "/paddle_data_" + std::to_string(::getpid()) + "_" + name;
}

template <class Source>
DatasetPtr make(Source source) {
  DatasetOptions options;
  options.source = std::move(source);
  return make_dataset(options);
}

Sample read(const Dataset& dataset, int64_t index, ReadContext context = {}) {
  Sample sample;
  dataset.read(index, context, sample);
  return sample;
}

template <class Call>
Error error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.message().find('\n'), std::string::npos);
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorCode::kInternal, "");
}

bool mentions(const Error& error, const std::string& words) {
  return std::string(error.what()).find(words) != std::string::npos;
}

TEST(Digits, AreAFunctionOfSeedAndIndex) {
  const auto a = make(DigitsOptions{.size = 100, .seed = 1});
  const auto b = make(DigitsOptions{.size = 50, .seed = 1});
  const auto c = make(DigitsOptions{.size = 50, .seed = 2});
  EXPECT_EQ(a->fields()[0].shape, (Dims{1, 28, 28}));
  EXPECT_EQ(a->fields()[1].class_count, 10);
  int same = 0;
  std::set<int64_t> labels;
  for (int64_t i = 0; i < 50; ++i) {
    const Sample x = read(*a, i), y = read(*b, i), z = read(*c, i);
    const auto equal = [](const Value& p, const Value& q) {
      return std::equal(p.raw(), p.raw() + p.bytes(), q.raw());
    };
    EXPECT_TRUE(equal(x[0], y[0]));
    EXPECT_TRUE(equal(x[1], y[1]));
    same += equal(x[0], z[0]);
    labels.insert(x[1].data<int64_t>()[0]);
    // Ink, framed as MNIST frames it: a margin, and the mass in the middle.
    double mass = 0, mx = 0, my = 0;
    for (int64_t at = 0; at < 784; ++at) {
      const double ink = x[0].number(at);
      mass += ink, mx += ink * static_cast<double>(at % 28),
          my += ink * static_cast<double>(at / 28);
    }
    EXPECT_GT(mass, 255 * 15);
    EXPECT_NEAR(mx / mass, 13.5, 0.75);
    EXPECT_NEAR(my / mass, 13.5, 0.75);
  }
  EXPECT_EQ(same, 0);
  EXPECT_EQ(labels.size(), 10u);
}

TEST(IdxDataset, ImagesAndLabels) {
  const std::string labels = scratch("labels.idx");
  write_file_atomically(labels, std::string("\0\0\x08\x01\0\0\0\x03\x02\x00\x01", 11));
  const auto data =
      make(IdxOptions{.images = "tests/data/formats/images.idx.gz", .labels = labels});
  EXPECT_EQ(data->size(), 3);
  EXPECT_EQ(data->fields()[0].shape, (Dims{1, 4, 5}));
  EXPECT_EQ(data->fields()[1].class_count, 3);
  const Sample sample = read(*data, 1);
  EXPECT_EQ(sample[0].number(0), 20);
  EXPECT_EQ(sample[1].shape(), Dims{});
  EXPECT_EQ(read(*data, 0)[1].data<int64_t>()[0], 2);
  write_file_atomically(labels, std::string("\0\0\x08\x01\0\0\0\x02\x02\x00", 10));
  const Error error = error_of(
      [&] { make(IdxOptions{.images = "tests/data/formats/images.idx.gz", .labels = labels}); });
  EXPECT_TRUE(mentions(error, "2 samples")) << error.what();
  std::filesystem::remove(labels);
}

TEST(IdxDataset, Mnist) {
  const auto images = real_data("mnist/t10k-images-idx3-ubyte.gz");
  const auto labels = real_data("mnist/t10k-labels-idx1-ubyte.gz");
  if (!images || !labels) GTEST_SKIP() << missing_data("mnist");
  DatasetOptions options;
  options.source = IdxOptions{.images = *images, .labels = *labels};
  options.begin = 8000;
  const auto data = make_dataset(options);
  EXPECT_EQ(data->size(), 2000);
  options.begin = -2000;
  EXPECT_EQ(make_dataset(options)->location(0), data->location(0));
  EXPECT_EQ(data->fields()[1].class_count, 10);
}

TEST(NpzDataset, FieldsAndPlaces) {
  const std::string path = scratch("set.npz");
  formats::write_npz(path, {{"x", Array::from<float>({1, 2, 3, 4, 5, 6}, {3, 2})},
                            {"y", Array::from<int32_t>({7, 8, 9}, {3})}});
  auto data = make(NpzOptions{.path = path});
  EXPECT_EQ(data->size(), 3);
  EXPECT_EQ(read(*data, 2)[0].number(1), 6);
  EXPECT_EQ(read(*data, 2)[1].data<int32_t>()[0], 9);
  EXPECT_TRUE(data->location(2, 0, 1).find("sample 2") != std::string::npos);
  data = make(NpzOptions{.path = path, .arrays = {{"target", "y"}}});
  EXPECT_EQ(data->fields()[0].name, "target");
  EXPECT_TRUE(mentions(error_of([&] {
                         make(NpzOptions{.path = path, .arrays = {{"t", "z"}}});
                       }),
                       "no array 'z'"));
  formats::write_npz(
      path, {{"x", Array::from<float>({1, 2}, {2})}, {"y", Array::from<float>({1, 2, 3}, {3})}});
  EXPECT_TRUE(mentions(error_of([&] { make(NpzOptions{.path = path}); }), "3 samples"));
  formats::write_npz(path, {{"x", Array::empty(DType::kF32, {0, 3})}});
  EXPECT_TRUE(mentions(error_of([&] { make(NpzOptions{.path = path}); }), "empty"));
  std::filesystem::remove(path);
}

TEST(RandomDataset, RangesAndTypes) {
  const auto data = make(RandomOptions{
      .size = 20,
      .seed = 3,
      .fields = {{.name = "x", .dtype = DType::kF32, .shape = {100}, .low = {}, .high = {}},
                 {.name = "y", .dtype = DType::kI64, .shape = {}, .low = 0.0, .high = 5.0},
                 {.name = "z", .dtype = DType::kU8, .shape = {3, 2}, .low = 10.0, .high = 12.0}}});
  std::set<int64_t> seen;
  double sum = 0;
  for (int64_t i = 0; i < 20; ++i) {
    const Sample sample = read(*data, i);
    seen.insert(sample[1].data<int64_t>()[0]);
    for (int64_t k = 0; k < 100; ++k) sum += sample[0].number(k);
    for (int64_t k = 0; k < 6; ++k)
      EXPECT_EQ(sample[2].number(k), std::clamp(sample[2].number(k), 10.0, 11.0));
  }
  EXPECT_EQ(*seen.rbegin(), 4);
  EXPECT_NEAR(sum / 2000, 0, 0.1);
  EXPECT_EQ(data->fields()[1].class_count, 5);
}

TEST(TextDataset, WindowsAndTargets) {
  const std::string path = scratch("t.txt");
  write_file_atomically(path, "hello w\xc3\xb6rld\n");
  TextOptions text{.path = path, .context = 4, .windows = TextWindows::kConsecutive};
  auto data = make(text);
  EXPECT_EQ(data->size(), 2);  // 12 characters: starts 0 and 4 leave room for the last target
  const Vocabulary vocabulary = *data->vocabulary(0);
  EXPECT_EQ(vocabulary.size(), 10);
  const auto decode = [&](const Value& value) {
    return vocabulary.decode({value.data<int64_t>(), value.data<int64_t>() + value.size()});
  };
  EXPECT_EQ(decode(read(*data, 0)[0]), "hell");
  EXPECT_EQ(decode(read(*data, 0)[1]), "ello");
  EXPECT_EQ(decode(read(*data, 1)[1]), " w\xc3\xb6r");
  text.level = TextLevel::kBytes;
  EXPECT_EQ(make(text)->fields()[0].class_count, 256);

  text = {.path = path, .context = 4, .windows = TextWindows::kRandom, .samples = 200};
  data = make(text);
  std::set<std::string> seen;
  for (int64_t i = 0; i < 200; ++i) seen.insert(decode(read(*data, i, {5, 1})[0]));
  EXPECT_EQ(seen.size(), 8u);  // every start from 0 to 7
  const auto first = [&](ReadContext context) { return decode(read(*data, 0, context)[0]); };
  bool differs = false;
  for (uint64_t epoch = 0; epoch < 8; ++epoch)
    differs = differs || first({5, epoch}) != first({5, 0});
  EXPECT_TRUE(differs);

  text.context = 12;
  EXPECT_TRUE(mentions(error_of([&] { make(text); }), "too few"));
  text.context = 4;
  text.vocabulary = {"h", "e"};
  const Error error = error_of([&] { make(text); });
  EXPECT_TRUE(mentions(error, ":1:3: character 'l'")) << error.what();
  write_file_atomically(path, "");
  text.vocabulary.clear();
  EXPECT_EQ(error_of([&] { make(text); }).code(), ErrorCode::kData);
  std::filesystem::remove(path);
}

TEST(TextDataset, SplitCutsTheTextInOrder) {
  const std::string path = scratch("s.txt");
  std::string content;
  for (int i = 0; i < 100; ++i) content += static_cast<char>('a' + i % 26);
  write_file_atomically(path, content);
  DatasetOptions options;
  options.source = TextOptions{.path = path, .context = 5, .windows = TextWindows::kConsecutive};
  options.split = {{"train", 0.9}, {"valid", 0.1}};
  options.part = "valid";
  const auto valid = make_dataset(options);
  EXPECT_EQ(valid->size(), 1);
  EXPECT_EQ(read(*valid, 0)[0].data<int64_t>()[0], 90 % 26);
  EXPECT_EQ(valid->vocabulary(0)->size(), 26);
  std::filesystem::remove(path);
}

TEST(Vocabulary, JsonRoundTrip) {
  const std::string path = scratch("v.json");
  const Vocabulary vocabulary({"a", "\n", "\xc3\xb6", "\""});
  write_file_atomically(path, vocabulary.json());
  EXPECT_EQ(Vocabulary::read(path).tokens(), vocabulary.tokens());
  write_file_atomically(path, "x\ny\n");
  EXPECT_EQ(Vocabulary::read(path).size(), 2);
  EXPECT_THROW(Vocabulary({"a", "a"}), Error);
  EXPECT_THROW(vocabulary.encode("abc"), Error);
  std::filesystem::remove(path);
}

TEST(ImageFolder, ClassesFromSubFolders) {
  const std::string root = scratch("images");
  formats::Image image{2, 3, 3, std::vector<uint8_t>(18)};
  std::iota(image.pixels.begin(), image.pixels.end(), uint8_t{0});
  for (const char* name : {"dog", "cat"}) {
    ensure_directory(root + "/" + name);
    formats::write_png(root + "/" + name + "/1.png", image);
  }
  write_file_atomically(root + "/dog/broken.JPG", "\xff\xd8\xff nonsense");
  write_file_atomically(root + "/dog/notes.txt", "");
  const auto data = make(ImageFolderOptions{.path = root});
  ASSERT_EQ(data->size(), 3);
  EXPECT_EQ(data->fields()[1].classes, (std::vector<std::string>{"cat", "dog"}));
  const Sample sample = read(*data, 0);
  EXPECT_EQ(sample[0].shape(), (Dims{3, 2, 3}));
  EXPECT_EQ(sample[0].number(1), 3);  // [channel 0, row 0, column 1]
  EXPECT_EQ(sample[0].number(6), 1);  // channel 1 of the first pixel
  EXPECT_EQ(sample[1].number(0), 0);
  const Error error = error_of([&] { read(*data, 2); });
  EXPECT_TRUE(mentions(error, "broken.JPG")) << error.what();
  EXPECT_NE(check_data(*data).text().find("bad: "), std::string::npos);
  EXPECT_EQ(make(ImageFolderOptions{.path = root + "/cat"})->fields().size(), 1u);
  ensure_directory(root + "/none");
  EXPECT_TRUE(
      mentions(error_of([&] { make(ImageFolderOptions{.path = root + "/none"}); }), "no .jpg"));
  std::filesystem::remove_all(root);
}

TEST(ImageFolder, NestedFoldersUnreadFilesAndEmptyClasses) {
  const std::string root = std::filesystem::path(scratch("nested")).lexically_normal().string();
  const formats::Image image{1, 1, 3, {1, 2, 3}};
  for (const char* folder : {"cat", "cat/indoors", "cat/indoors/night", "dog"}) {
    ensure_directory(root + "/" + folder);
    formats::write_png(root + "/" + folder + "/1.png", image);
  }
  write_file_atomically(root + "/dog/2.gif", "");
  write_file_atomically(root + "/dog/3.gif", "");
  formats::write_png(root + "/loose.png", image);
  const auto data = make(ImageFolderOptions{.path = root});
  EXPECT_EQ(data->size(), 4);
  EXPECT_EQ(data->location(1), root + "/cat/indoors/1.png");
  EXPECT_EQ(data->class_of(2, 1), 0);
  EXPECT_EQ(data->class_of(3, 1), 1);
  const std::string report = check_data(*data).text();
  EXPECT_NE(report.find("samples per label: cat 3, dog 1"), std::string::npos) << report;
  EXPECT_NE(report.find("passed over: 2 files .gif not read, such as " + root + "/dog/2.gif"),
            std::string::npos)
      << report;
  EXPECT_NE(report.find("outside of class folders not read"), std::string::npos) << report;
  ensure_directory(root + "/empty");
  EXPECT_TRUE(mentions(
      error_of([&] { make(ImageFolderOptions{.path = root}); }),
      "/empty: no .jpg, .jpeg, .png, .tif, .tiff, .webp or .bmp files in this class folder"));
  EXPECT_EQ(make(ImageFolderOptions{.path = root, .classes = {"dog", "cat"}})->size(), 4);
  std::filesystem::remove_all(root);
}

TEST(ImageFolder, KnownClassesNumberTheLabels) {
  const std::string root = scratch("known");
  for (const char* folder : {"b", "c"}) {
    ensure_directory(root + "/" + folder);
    formats::write_png(root + "/" + folder + "/1.png", {1, 1, 3, {1, 2, 3}});
  }
  DatasetOptions options;
  options.source = ImageFolderOptions{.path = root, .classes = {"c"}};
  Fitted classes{.field = "label"};
  classes.tokens = {"a", "b", "c"};
  apply_fitted(options, {classes});
  const auto data = make_dataset(options);
  EXPECT_EQ(data->size(), 1);
  EXPECT_EQ(read(*data, 0)[1].number(0), 2);
  EXPECT_EQ(data->fields()[1].class_count, 3);
  std::filesystem::remove_all(root);
}

TEST(TextDataset, TextThatIsNotUtf8IsRejectedWithItsPlace) {
  const std::string path = scratch("latin1.txt");
  write_file_atomically(path,
                        "abc\nd\xe9"
                        "f abc abc\n");
  TextOptions text{.path = path, .context = 2};
  EXPECT_TRUE(mentions(error_of([&] { make(text); }), "latin1.txt:2:2: byte \\xE9 is not UTF-8"));
  text.level = TextLevel::kBytes;
  EXPECT_EQ(make(text)->fields()[0].class_count, 256);
  std::filesystem::remove(path);
}

TEST(Vocabulary, FilesWithAMarkAndRepeatedTokens) {
  const std::string path = scratch("words.txt");
  write_file_atomically(path, "\xef\xbb\xbfred\ngreen\n");
  EXPECT_EQ(Vocabulary::read(path).find("red"), 0);
  write_file_atomically(path, "red\ngreen\nred\n");
  EXPECT_TRUE(mentions(error_of([&] { Vocabulary::read(path); }), "words.txt:3: token 'red'"));
  write_file_atomically(path, "red\nz\xe9\n");
  EXPECT_TRUE(mentions(error_of([&] { Vocabulary::read(path); }), "words.txt:2: token 'z\\xE9'"));
  std::filesystem::remove(path);
}

TEST(LearntScaling, AppliesToArrays) {
  const std::string path = scratch("scaled.npz");
  formats::write_npz(path, {{"x", Array::from<float>({1, 10, 3, 30}, {2, 2})},
                            {"y", Array::from<int64_t>({7, 8}, {2})}});
  DatasetOptions options;
  options.source = NpzOptions{.path = path};
  Fitted x{.field = "x", .shift = {1, 10}, .factor = {0.5, 0.1}};
  apply_fitted(options, {x});
  const auto data = make_dataset(options);
  const Sample sample = read(*data, 1);
  EXPECT_EQ(sample[0].number(0), 1);
  EXPECT_EQ(sample[0].number(1), 2);
  EXPECT_EQ(sample[1].number(0), 8);
  x.shift = {1}, x.factor = {1};
  options.scales = {x};
  EXPECT_TRUE(mentions(error_of([&] { make_dataset(options); }), "statistics for 1"));
  std::filesystem::remove(path);
}

TEST(TargetScale, InvertsWhatWasAppliedInOrder) {
  Fitted y{.field = "y", .shift = {2}, .factor = {0.25}};
  y.log = true;
  TransformOptions scale, normalize;
  scale.kind = TransformKind::kScale;
  scale.fields = {"y"};
  scale.factor = 10, scale.offset = 1;
  normalize.kind = TransformKind::kNormalize;
  normalize.fields = {"x", "y"};
  normalize.mean = {3}, normalize.deviation = {4};
  const TargetScale units("y", std::vector{y}, std::vector{scale, normalize});
  for (const double raw : {-7.5, 0.0, 3.0, 1e4}) {
    const double seen =
        (((std::copysign(std::log1p(std::abs(raw)), raw) - 2) * 0.25 * 10 + 1) - 3) / 4;
    EXPECT_NEAR(units.restored(seen, 0), raw, 1e-9 * std::max(1.0, std::abs(raw)));
  }
  EXPECT_TRUE(TargetScale("z", std::vector{y}, std::vector{scale}).is_identity());
  const Array back = units.restored(Array::from<float>({0, 1}, {2, 1}));
  EXPECT_NEAR(back.number(0), units.restored(0, 0), 1e-3);
}

TEST(Split, TheOrderOfNamesDoesNotMatter) {
  DatasetOptions options;
  options.source = RandomOptions{
      .size = 100,
      .fields = {{.name = "x", .dtype = DType::kF32, .shape = {}, .low = {}, .high = {}}}};
  options.part = "valid";
  options.split = {{"train", 0.8}, {"valid", 0.2}};
  const auto first = make_dataset(options);
  options.split = {{"valid", 0.2}, {"train", 0.8}};
  const auto second = make_dataset(options);
  ASSERT_EQ(first->size(), 20);
  ASSERT_EQ(second->size(), 20);
  for (int64_t i = 0; i < 20; ++i) EXPECT_EQ(first->location(i), second->location(i));
  options.split.clear();
  EXPECT_TRUE(mentions(error_of([&] { make_dataset(options); }), "without `split`"));
}

TEST(Split, SharesAreDisjointAndWhole) {
  DatasetOptions options;
  options.source = RandomOptions{
      .size = 101,
      .fields = {{.name = "x", .dtype = DType::kF32, .shape = {}, .low = {}, .high = {}}}};
  options.split = {{"train", 0.8}, {"valid", 0.1}, {"test", 0.1}};
  std::set<std::string> places;
  int64_t total = 0;
  for (const char* part : {"train", "valid", "test"}) {
    options.part = part;
    const auto data = make_dataset(options);
    total += data->size();
    for (int64_t i = 0; i < data->size(); ++i) places.insert(data->location(i));
  }
  EXPECT_EQ(total, 101);
  EXPECT_EQ(places.size(), 101u);
  options.part = "train";
  EXPECT_NE(make_dataset(options)->location(0), "random sample 0");
  options.split_in_order = true;
  EXPECT_EQ(make_dataset(options)->location(0), "random sample 0");
  options.part = "tset";
  EXPECT_TRUE(mentions(error_of([&] { make_dataset(options); }), "did you mean 'test'"));
  options.part = "test";
  options.split.emplace_back("more", 0.5);
  EXPECT_TRUE(mentions(error_of([&] { make_dataset(options); }), "more than 1"));
  options.split.clear();
  options.part.clear();
  options.end = 102;
  EXPECT_TRUE(mentions(error_of([&] { make_dataset(options); }), "101 samples"));
  options.begin = 5, options.end = 5;
  EXPECT_EQ(error_of([&] { make_dataset(options); }).code(), ErrorCode::kData);
}

TEST(Report, NamesPathsFieldsAndSamples) {
  const std::string text = check_data(*make(DigitsOptions{.size = 10})).text();
  EXPECT_NE(text.find("samples: 10"), std::string::npos);
  EXPECT_NE(text.find("image: uint8[1, 28, 28]"), std::string::npos);
  EXPECT_NE(text.find("10 classes: 0, 1, 2"), std::string::npos);
  EXPECT_NE(text.find("digit 5"), std::string::npos);
}

}  // namespace
}  // namespace paddle::data
