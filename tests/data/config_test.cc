#include "data/data_config.h"

#include <gtest/gtest.h>

#include "data/named_dataset.h"
#include "data/open_data.h"

namespace paddle::data {
namespace {

/// Reads a `data:` section given in YAML, with a seed of 5.
DataConfig read(const std::string& yaml) {
  config::Node document = config::parse_document(yaml, "data.yaml");
  config::Diagnostics diagnostics;
  expand_datasets(document, diagnostics);
  data_schema().resolve(document, "data", diagnostics);
  diagnostics.raise();
  DataConfig config = read_data(config::Section(document), 5, diagnostics);
  diagnostics.raise();
  return config;
}

Error error_of(const std::string& yaml) {
  try {
    read(yaml);
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorCode::kInternal, "");
}

const std::string kDigits = "train: {kind: digits}\n";

TEST(DataConfig, DefaultsOfTheLoader) {
  const DataConfig c = read(kDigits + "valid: digits\n");
  EXPECT_EQ(c.loader.batch_size, 32);
  EXPECT_TRUE(c.loader.shuffle);
  EXPECT_FALSE(c.loader.drop_last);
  EXPECT_EQ(c.loader.seed, 5u);
  EXPECT_EQ(c.loader.workers, 1);
  EXPECT_EQ(c.loader.on_bad_sample, BadSamplePolicy::kError);
  EXPECT_EQ(c.loader.nan, NanPolicy::kError);
  EXPECT_EQ(c.loader.epochs, 0);
  ASSERT_TRUE(c.valid);
  EXPECT_FALSE(c.valid_loader.shuffle);
  EXPECT_EQ(c.valid_loader.epochs, 1);
  EXPECT_EQ(c.valid_loader.batch_size, 32);
}

TEST(DataConfig, EveryLoaderOption) {
  const DataConfig c = read(kDigits + R"(
batch_size: 48
valid_batch_size: 7
shuffle: false
drop_last: true
workers: 3
prefetch_bytes: 1000
on_bad_sample: skip
max_bad_rate: 0.25
nan: keep
)");
  EXPECT_EQ(c.loader.batch_size, 48);
  EXPECT_EQ(c.valid_loader.batch_size, 7);
  EXPECT_FALSE(c.loader.shuffle);
  EXPECT_TRUE(c.loader.drop_last);
  EXPECT_FALSE(c.valid_loader.drop_last);
  EXPECT_EQ(c.loader.workers, 3);
  EXPECT_EQ(c.loader.prefetch_bytes, 1000u);
  EXPECT_EQ(c.loader.on_bad_sample, BadSamplePolicy::kSkip);
  EXPECT_EQ(c.loader.max_bad_rate, 0.25);
  EXPECT_EQ(c.loader.nan, NanPolicy::kKeep);
  EXPECT_FALSE(c.valid);
}

TEST(DataConfig, RangeAndSplit) {
  const DataConfig c = read(R"(
train:
  kind: digits
  size: 100
  seed: 3
  image_field: x
  label_field: y
  range: [10, -5]
  split: {a: 0.75, b: 0.25}
  part: b
  split_in_order: true
  split_seed: 9
)");
  const auto& digits = std::get<DigitsOptions>(c.train.source);
  EXPECT_EQ(digits.size, 100);
  EXPECT_EQ(digits.seed, 3u);
  EXPECT_EQ(digits.image_field, "x");
  EXPECT_EQ(digits.label_field, "y");
  EXPECT_EQ(c.train.begin, 10);
  EXPECT_EQ(c.train.end, -5);
  ASSERT_EQ(c.train.split.size(), 2u);
  EXPECT_EQ(c.train.split[0], (std::pair<std::string, double>("a", 0.75)));
  EXPECT_EQ(c.train.part, "b");
  EXPECT_TRUE(c.train.split_in_order);
  EXPECT_EQ(c.train.split_seed, 9u);
}

TEST(DataConfig, ImageDepth) {
  const DataConfig c = read(R"(
train: {kind: images, path: /d/a, dtype: uint16}
valid: {kind: images, path: /d/b, reduce_16_bit: true}
)");
  EXPECT_EQ(std::get<ImageFolderOptions>(c.train.source).dtype, DType::kU16);
  EXPECT_FALSE(std::get<ImageFolderOptions>(c.train.source).reduce_16_bit);
  EXPECT_EQ(std::get<ImageFolderOptions>(c.valid->source).dtype, DType::kU8);
  EXPECT_TRUE(std::get<ImageFolderOptions>(c.valid->source).reduce_16_bit);
}

TEST(OpenData, ReportsValidationSamplesThatAreTrainedOn) {
  const auto warnings_of = [](const std::string& train, const std::string& valid) {
    const std::string head = "{kind: digits, size: 100, split: {a: 0.8, b: 0.2}, ";
    const DataConfig c = read("train: " + head + train + "}\nvalid: " + head + valid + "}\n");
    return open_data(config::Node(), c).warnings;
  };
  EXPECT_TRUE(warnings_of("part: a", "part: b").empty());
  EXPECT_TRUE(warnings_of("part: a", "part: a, seed: 1").empty());
  const auto same = warnings_of("part: a", "part: a");
  ASSERT_EQ(same.size(), 1u);
  EXPECT_NE(same[0].find("80 of 80 samples of digits of seed 0"), std::string::npos) << same[0];
  const auto other_seed = warnings_of("part: a", "part: b, split_seed: 1");
  ASSERT_EQ(other_seed.size(), 1u);
  EXPECT_NE(other_seed[0].find(" of 20 samples"), std::string::npos) << other_seed[0];
}

TEST(DataConfig, Idx) {
  const DataConfig c =
      read("train: {kind: idx, images: /d/i.gz, labels: /d/l.gz, classes: [a, b]}\n");
  const auto& idx = std::get<IdxOptions>(c.train.source);
  EXPECT_EQ(idx.images, "/d/i.gz");
  EXPECT_EQ(idx.labels, "/d/l.gz");
  EXPECT_EQ(idx.classes, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(idx.image_field, "image");
}

TEST(DataConfig, Csv) {
  const DataConfig c = read(R"(
train:
  kind: csv
  path: /d/t.csv
  delimiter: tab
  quote: "'"
  header: false
  column_names: [p, q]
  fields:
    - {name: n, columns: I1..I13, missing: fill, fill: 2, log: true, scaling: standard, dtype: float64}
    - {name: m, columns: [p], missing: nan, scaling: min_max, scalar: true, shift: [1], factor: [0.5]}
    - {name: c, columns: "C*", kind: categorical, buckets: 10, per_column: true}
    - {name: v, kind: categorical, vocabulary: [x, y], unknown_is_zero: true}
    - {name: f, kind: categorical, vocabulary_file: /d/words.txt}
)");
  const auto& csv = std::get<CsvFileOptions>(c.train.source);
  EXPECT_EQ(csv.path, "/d/t.csv");
  EXPECT_EQ(csv.delimiter, '\t');
  EXPECT_EQ(csv.quote, '\'');
  EXPECT_FALSE(csv.header);
  EXPECT_EQ(csv.column_names, (std::vector<std::string>{"p", "q"}));
  ASSERT_EQ(csv.fields.size(), 5u);
  const CsvField& n = csv.fields[0];
  EXPECT_EQ(n.columns, (std::vector<std::string>{"I1..I13"}));
  EXPECT_EQ(n.missing, MissingPolicy::kFill);
  EXPECT_EQ(n.fill, 2);
  EXPECT_TRUE(n.log);
  EXPECT_EQ(n.scaling, Scaling::kStandard);
  EXPECT_EQ(n.dtype, DType::kF64);
  const CsvField& m = csv.fields[1];
  EXPECT_TRUE(m.scalar);
  EXPECT_EQ(m.missing, MissingPolicy::kNan);
  EXPECT_EQ(m.scaling, Scaling::kMinMax);
  EXPECT_EQ(m.shift, (std::vector<double>{1}));
  EXPECT_EQ(m.factor, (std::vector<double>{0.5}));
  EXPECT_EQ(csv.fields[2].kind, ColumnKind::kCategorical);
  EXPECT_EQ(csv.fields[2].buckets, 10);
  EXPECT_TRUE(csv.fields[2].per_column);
  EXPECT_EQ(csv.fields[3].vocabulary, (std::vector<std::string>{"x", "y"}));
  EXPECT_TRUE(csv.fields[3].unknown_is_zero);
  EXPECT_EQ(csv.fields[4].vocabulary_file, "/d/words.txt");
}

TEST(DataConfig, TextAndImagesAndArraysAndRandom) {
  const auto text = std::get<TextOptions>(
      read("train: {kind: text, path: /d/t.txt, level: bytes, context: 8, windows: consecutive, "
           "samples: 5, stride: 4, token_field: a, target_field: b}\n")
          .train.source);
  EXPECT_EQ(text.level, TextLevel::kBytes);
  EXPECT_EQ(text.windows, TextWindows::kConsecutive);
  EXPECT_EQ(text.context, 8);
  EXPECT_EQ(text.samples, 5);
  EXPECT_EQ(text.stride, 4);
  EXPECT_EQ(text.token_field, "a");
  EXPECT_EQ(text.target_field, "b");
  const auto images = std::get<ImageFolderOptions>(
      read("train: {kind: images, files: [/d/a.png, /d/b.png], channels: 1}\n").train.source);
  EXPECT_EQ(images.files, (std::vector<std::string>{"/d/a.png", "/d/b.png"}));
  EXPECT_EQ(images.channels, 1);
  const auto npy =
      std::get<NpyOptions>(read("train: {kind: npy, files: {x: /d/x.npy}}\n").train.source);
  EXPECT_EQ(npy.files[0].second, "/d/x.npy");
  const auto npz = std::get<NpzOptions>(
      read("train: {kind: npz, path: /d/a.npz, arrays: {x: images}}\n").train.source);
  EXPECT_EQ(npz.arrays[0], (std::pair<std::string, std::string>("x", "images")));
  const auto random = std::get<RandomOptions>(
      read("train: {kind: random, size: 4, seed: 2, fields: [{name: t, dtype: int64, shape: [3], "
           "low: 0, high: 7}]}\n")
          .train.source);
  EXPECT_EQ(random.size, 4);
  EXPECT_EQ(random.fields[0].dtype, DType::kI64);
  EXPECT_EQ(random.fields[0].shape, (Dims{3}));
  EXPECT_EQ(random.fields[0].high, 7);
}

TEST(DataConfig, EveryTransformAndWhereItApplies) {
  const DataConfig c = read(kDigits + R"(
augment:
  - random_resized_crop: {fields: image, height: 20, width: 24, area: [0.5, 1], ratio: [1, 2], mode: nearest}
  - random_rotation: {fields: image, degrees: 15, value: 3}
  - horizontal_flip: {fields: [image], probability: 0.25}
  - random_crop: {fields: image, height: 3, width: 4}
transforms:
  - cast: {fields: label, dtype: int32}
  - scale: {fields: image, factor: 0.5, offset: -1}
  - normalize: {fields: image, mean: 0.1, std: [0.2]}
  - one_hot: {fields: label, classes: 10}
  - reshape: {fields: image, shape: [-1]}
  - resize: {fields: image, height: 5, width: 6}
  - pad: {fields: image, pad: [1, 2, 3, 4], value: 9}
)");
  using K = TransformKind;
  std::vector<K> kinds;
  for (const auto& t : c.loader.transforms) kinds.push_back(t.kind);
  EXPECT_EQ(kinds, (std::vector<K>{K::kRandomResizedCrop, K::kRandomRotation, K::kHorizontalFlip,
                                   K::kRandomCrop, K::kCast, K::kScale, K::kNormalize, K::kOneHot,
                                   K::kReshape, K::kResize, K::kPad}));
  EXPECT_EQ(c.valid_loader.transforms.size(), 7u);  // nothing random in validation
  const auto& t = c.loader.transforms;
  EXPECT_EQ(t[0].area, (std::vector<double>{0.5, 1}));
  EXPECT_EQ(t[0].ratio, (std::vector<double>{1, 2}));
  EXPECT_TRUE(t[0].nearest);
  EXPECT_EQ(t[1].degrees, 15);
  EXPECT_EQ(t[1].value, 3);
  EXPECT_EQ(t[2].probability, 0.25);
  EXPECT_EQ(t[4].dtype, DType::kI32);
  EXPECT_EQ(t[5].factor, 0.5);
  EXPECT_EQ(t[5].offset, -1);
  EXPECT_EQ(t[6].mean, (std::vector<double>{0.1}));
  EXPECT_EQ(t[6].deviation, (std::vector<double>{0.2}));
  EXPECT_EQ(t[10].pad, (std::vector<int64_t>{1, 2, 3, 4}));
}

TEST(DataConfig, ErrorsHavePlacesAndSuggestions) {
  Error e = error_of("train: {kind: digit}\n");
  EXPECT_EQ(e.code(), ErrorCode::kConfig);
  EXPECT_NE(std::string(e.what()).find("data.yaml:1:15"), std::string::npos) << e.what();
  EXPECT_NE(std::string(e.what()).find("did you mean 'digits'"), std::string::npos) << e.what();
  e = error_of(kDigits + "transforms:\n  - resise: {fields: image}\n  - cast: {fields: image}\n");
  EXPECT_NE(
      std::string(e.what()).find(
          "data.yaml:3:5: 'data.transforms.0': unknown transform 'resise' (did you mean 'resize'"),
      std::string::npos)
      << e.what();
  EXPECT_NE(std::string(e.what()).find("'dtype' is missing"), std::string::npos) << e.what();
  e = error_of("train: {kind: images}\n");
  EXPECT_NE(std::string(e.what()).find("either path or files"), std::string::npos);
  e = error_of("train: {kind: csv, path: a.csv, delimiter: ab}\n");
  EXPECT_NE(std::string(e.what()).find("one character"), std::string::npos);
}

TEST(DataConfig, TransformsAreCheckedByTheSchema) {
  const auto rejected = [](const std::string& transforms, const std::string& text) {
    const Error e = error_of(kDigits + transforms);
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("data.yaml:2"), std::string::npos) << e.what();
  };
  rejected("augment: [{horizontal_flip: {fields: image, probabilty: 1}}]",
           "unknown key 'probabilty' in 'data.augment.0.horizontal_flip' (did you mean");
  rejected("transforms: [{resize: {fields: image, height: 5}}]", "'width' is missing");
  rejected("transforms: [{pad: {fields: image, pad: -1}}]", "'data.transforms.0.pad.pad'");
  rejected("transforms: [resize]", "'data.transforms.0': a transform reads `- name: {key: value}`");
  rejected("batch_augment: [{mixupp: {fields: image}}]",
           "'data.batch_augment.0': unknown transform of batches 'mixupp'");
}

TEST(DataConfig, DatasetsThatAreLikeOthers) {
  const DataConfig like = read(
      "train: {kind: digits, size: 100, split: {train: 0.8, valid: 0.2}, part: train}\n"
      "valid: {like: train}\ntest: {like: valid, size: 50, part: train}\n");
  EXPECT_EQ(like.train.part, "train");
  EXPECT_EQ(like.valid->part, "valid");
  EXPECT_EQ(like.valid->split.size(), 2u);
  EXPECT_EQ(std::get<DigitsOptions>(like.valid->source).size, 100);
  EXPECT_EQ(like.test->part, "train");
  EXPECT_EQ(std::get<DigitsOptions>(like.test->source).size, 50);

  const DataConfig split = read(
      "train: {kind: digits, size: 100, split_seed: 3}\n"
      "split: {train: 0.7, valid: 0.2, test: 0.1}\ntest: {like: train, size: 30}\n");
  EXPECT_EQ(split.train.part, "train");
  EXPECT_EQ(split.valid->part, "valid");
  EXPECT_EQ(split.valid->split_seed, 3u);
  EXPECT_EQ(split.test->part, "test");
  EXPECT_EQ(std::get<DigitsOptions>(split.test->source).size, 30);

  const auto rejected = [](const std::string& yaml, const std::string& text) {
    const Error e = error_of(yaml);
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  };
  rejected(kDigits + "valid: {like: training}\n", "data.valid.like: expected train, valid or test");
  rejected(kDigits + "valid: {like: test}\n", "data.valid.like: data.test is missing or not a map");
  rejected(kDigits + "valid: {like: test}\ntest: {like: valid}\n", "cannot be like itself");
  rejected(kDigits + "valid: {like: train, sample: 3}\n", "unknown key 'sample'");
  rejected(kDigits + "split: {train: 0.9, dev: 0.1}\n",
           "data.split: expected train, valid or test");
  rejected(kDigits + "split: {valid: 0.1}\n", "data.split: has no share train");
  rejected(kDigits + "split: {train: 0.9, valid: 0.1}\nvalid: digits\n", "a dataset of its own");
  rejected("train: {kind: digits, folds: 5, part: train}\nsplit: {train: 0.9, valid: 0.1}\n",
           "data.train has shares of its own");
}

TEST(DataConfig, WeightsOfAMixtureNeedAShuffle) {
  const std::string mixture =
      "{kind: mixture, sources: {a: digits, b: digits}, weights: {a: 1, b: 3}}\n";
  EXPECT_EQ(std::get<MixtureOptions>(read("train: " + mixture).train.source).weights.size(), 2u);
  Error e = error_of("train: " + mixture + "shuffle: false\n");
  EXPECT_NE(std::string(e.what()).find("data.train.weights: have no effect with shuffle: false"),
            std::string::npos)
      << e.what();
  e = error_of(kDigits + "valid: " + mixture);
  EXPECT_NE(std::string(e.what()).find("data.valid.weights: have no effect"), std::string::npos)
      << e.what();
}

}  // namespace
}  // namespace paddle::data
