#include "data/transforms.h"

#include <cmath>
#include <cstring>
#include <set>

#include <gtest/gtest.h>

namespace paddle::data {
namespace {

Field field_of(DType dtype, Dims shape) {
  Field field;
  field.name = "x";
  field.dtype = dtype;
  field.shape = std::move(shape);
  return field;
}

template <class T>
Value value_of(const std::vector<T>& numbers, Dims shape) {
  Value value;
  value.reset(dtype_of<T>(), shape);
  std::copy(numbers.begin(), numbers.end(), value.data<T>());
  return value;
}

/// Applies one transform and checks that the declared result is the one that comes.
Value apply(TransformOptions options, const Value& value, uint64_t epoch = 0, int64_t index = 0) {
  options.fields = {"x"};
  const Pipeline pipeline({field_of(value.dtype(), value.shape())}, {options});
  Sample sample = {value};
  Value scratch;
  pipeline.apply(sample, index, {1, epoch}, scratch);
  EXPECT_EQ(sample[0].dtype(), pipeline.fields()[0].dtype);
  EXPECT_EQ(sample[0].shape(), pipeline.fields()[0].shape);
  return sample[0];
}

std::vector<double> numbers(const Value& value) {
  std::vector<double> out;
  for (int64_t i = 0; i < value.size(); ++i) out.push_back(value.number(i));
  return out;
}

template <class Call>
std::string error_of(Call&& call, ErrorCode code = ErrorCode::kConfig) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.message();
  }
  ADD_FAILURE() << "no error";
  return "";
}

using Kind = TransformKind;

TEST(Transforms, CastClampsIntegersToo) {
  TransformOptions cast;
  cast.kind = Kind::kCast;
  cast.dtype = DType::kU8;
  const auto cast_of = [&](const Value& value) { return numbers(apply(cast, value)); };
  const std::vector<double> clamped = {0, 255, 255, 7};
  EXPECT_EQ(cast_of(value_of<int64_t>({-1, 256, 1 << 20, 7}, {4})), clamped);
  EXPECT_EQ(cast_of(value_of<float>({-0.5f, 255.7f, 1e9f, 7.9f}, {4})), clamped);
  cast.dtype = DType::kI32;
  EXPECT_EQ(cast_of(value_of<uint64_t>({~uint64_t{0}, 5}, {2})),
            (std::vector<double>{2147483647, 5}));
  error_of([&] { cast_of(value_of<float>({1, NAN}, {2})); }, ErrorCode::kData);
}

TEST(Transforms, FillValuesMustBeValuesOfTheType) {
  for (const Kind kind : {Kind::kPad, Kind::kRandomRotation}) {
    TransformOptions options;
    options.kind = kind;
    options.pad = {1};
    const Value image = value_of<uint8_t>({1, 2, 3, 4}, {1, 2, 2});
    for (const double bad : {256.0, -1.0, 0.5}) {
      options.value = bad;
      EXPECT_NE(error_of([&] { apply(options, image); }).find("uint8"), std::string::npos);
    }
    options.value = 255;
    apply(options, image);
  }
}

TEST(Transforms, CastScaleNormalize) {
  const Value bytes = value_of<uint8_t>({0, 128, 255, 1}, {2, 2});
  EXPECT_EQ(numbers(apply({.kind = Kind::kCast, .dtype = DType::kI64}, bytes)),
            (std::vector<double>{0, 128, 255, 1}));
  EXPECT_EQ(numbers(apply({.kind = Kind::kCast, .dtype = DType::kU8},
                          value_of<float>({-3, 1.7f, 300, -0.5f}, {4}))),
            (std::vector<double>{0, 1, 255, 0}));
  EXPECT_EQ(numbers(apply({.kind = Kind::kScale, .factor = 2, .offset = 1}, bytes)),
            (std::vector<double>{1, 257, 511, 3}));
  EXPECT_EQ(numbers(apply({.kind = Kind::kNormalize, .mean = {0, 1}, .deviation = {1, 2}}, bytes)),
            (std::vector<double>{0, 128, 127, 0}));
  EXPECT_EQ(numbers(apply({.kind = Kind::kNormalize, .mean = {128}}, bytes))[0], -128);
  error_of([&] { apply({.kind = Kind::kNormalize, .mean = {0, 1, 2}}, bytes); });
  error_of([&] { apply({.kind = Kind::kNormalize, .deviation = {0}}, bytes); });
  error_of([&] { apply({.kind = Kind::kCast}, bytes); });
}

TEST(Transforms, OneHotAndReshape) {
  EXPECT_EQ(numbers(apply({.kind = Kind::kOneHot, .classes = 3}, value_of<int64_t>({2, 0}, {2}))),
            (std::vector<double>{0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(apply({.kind = Kind::kOneHot, .classes = 3}, value_of<int64_t>({1}, {})).shape(),
            Dims{3});
  error_of([] { apply({.kind = Kind::kOneHot, .classes = 3}, value_of<int64_t>({3}, {})); },
           ErrorCode::kData);
  error_of([] { apply({.kind = Kind::kOneHot}, value_of<int64_t>({0}, {})); });
  error_of([] { apply({.kind = Kind::kOneHot, .classes = 3}, value_of<float>({0}, {})); });
  EXPECT_EQ(
      apply({.kind = Kind::kReshape, .shape = {3, -1}}, value_of<float>({1, 2, 3, 4, 5, 6}, {6}))
          .shape(),
      (Dims{3, 2}));
  error_of([] { apply({.kind = Kind::kReshape, .shape = {4}}, value_of<float>({1, 2}, {2})); });
}

TEST(Transforms, CropFlipPad) {
  const Value image = value_of<uint8_t>({1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 3, 3});
  EXPECT_EQ(numbers(apply({.kind = Kind::kCenterCrop, .height = 1, .width = 3}, image)),
            (std::vector<double>{4, 5, 6}));
  EXPECT_EQ(numbers(apply({.kind = Kind::kHorizontalFlip, .probability = 1}, image)),
            (std::vector<double>{3, 2, 1, 6, 5, 4, 9, 8, 7}));
  EXPECT_EQ(numbers(apply({.kind = Kind::kVerticalFlip, .probability = 1}, image)),
            (std::vector<double>{7, 8, 9, 4, 5, 6, 1, 2, 3}));
  EXPECT_EQ(numbers(apply({.kind = Kind::kVerticalFlip, .probability = 0}, image)), numbers(image));
  const Value padded = apply({.kind = Kind::kPad, .pad = {1, 0, 0, 2}, .value = 9}, image);
  EXPECT_EQ(padded.shape(), (Dims{1, 5, 4}));
  EXPECT_EQ(padded.number(0), 9);
  EXPECT_EQ(padded.number(1), 1);
  EXPECT_EQ(padded.number(12), 9);
  EXPECT_NE(error_of([&] {
              apply({.kind = Kind::kRandomCrop, .height = 4, .width = 1}, image);
            }).find("pad or resize"),
            std::string::npos);
  error_of([&] { apply({.kind = Kind::kResize, .height = 0, .width = 1}, image); });
  error_of([&] { apply({.kind = Kind::kPad, .pad = {1, 2}}, image); });
  error_of([] { apply({.kind = Kind::kVerticalFlip}, value_of<float>({1}, {1})); });
}

TEST(Transforms, RandomOnesDependOnEpochAndIndex) {
  std::vector<float> content(100);
  for (size_t i = 0; i < 100; ++i) content[i] = static_cast<float>(i);
  const Value image = value_of<float>(content, {10, 10});
  const TransformOptions crop{.kind = Kind::kRandomCrop, .height = 2, .width = 2};
  std::vector<int> rows(9), columns(9);
  for (int64_t index = 0; index < 900; ++index) {
    const int corner = static_cast<int>(apply(crop, image, 3, index).number(0));
    ++rows[static_cast<size_t>(corner / 10)];
    ++columns[static_cast<size_t>(corner % 10)];
    EXPECT_EQ(corner, static_cast<int>(apply(crop, image, 3, index).number(0)));
  }
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_NEAR(rows[i], 100, 50);
    EXPECT_NEAR(columns[i], 100, 50);
  }
  int flips = 0;
  for (uint64_t epoch = 0; epoch < 1000; ++epoch)
    flips += apply({.kind = Kind::kHorizontalFlip}, image, epoch).number(0) == 9;
  EXPECT_NEAR(flips, 500, 80);
}

// Reference values by Pillow 13: Image.resize((width, height), BILINEAR) of the image in mode F.
TEST(Transforms, ResizeAsPillowDoes) {
  std::vector<float> content(12);
  for (size_t i = 0; i < 12; ++i) content[i] = static_cast<float>(i * i);
  const Value image = value_of<float>(content, {3, 4});
  const auto check = [&](int64_t height, int64_t width, const std::vector<double>& expected) {
    const auto got =
        numbers(apply({.kind = Kind::kResize, .height = height, .width = width}, image));
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-3) << i;
  };
  check(2, 2, {9.1429, 18.571, 56.286, 81.429});
  check(4, 6, {0,  0.5, 1.5,    3.5,    6.5, 9,  10, 13,   17.333, 22.667, 29,    34,
               34, 40,  48.333, 57.667, 68,  76, 64, 72.5, 84.167, 96.833, 110.5, 121});
  EXPECT_EQ(
      numbers(apply({.kind = Kind::kResize, .height = 1, .width = 2, .nearest = true}, image)),
      (std::vector<double>{25, 49}));
  EXPECT_EQ(apply({.kind = Kind::kResize, .height = 5, .width = 7},
                  value_of<uint8_t>(std::vector<uint8_t>(12, 200), {1, 3, 4}))
                .number(17),
            200);
}

TEST(Pipeline, UnknownFieldsAndNames) {
  EXPECT_NE(error_of([] {
              Pipeline({field_of(DType::kF32, {})}, {{.kind = Kind::kScale, .fields = {"xx"}}});
            }).find("did you mean 'x'"),
            std::string::npos);
  error_of([] { Pipeline({field_of(DType::kF32, {})}, {{.kind = Kind::kScale}}); });
  for (const std::string& name : transform_names())
    EXPECT_EQ(name_of(*parse_transform(name)), name);
  EXPECT_FALSE(parse_transform("rotate"));
}

TEST(Transforms, ARandomResizedCropOfTheWholeImageIsAResize) {
  std::vector<float> pixels;
  for (int i = 0; i < 2 * 6 * 6; ++i) pixels.push_back(static_cast<float>(i * i % 37));
  const Value image = value_of<float>(pixels, {2, 6, 6});
  const auto whole = apply(
      {.kind = Kind::kRandomResizedCrop, .height = 4, .width = 3, .area = {1, 1}, .ratio = {1, 1}},
      image);
  EXPECT_EQ(numbers(whole),
            numbers(apply({.kind = Kind::kResize, .height = 4, .width = 3}, image)));
}

TEST(Transforms, RandomResizedCropsAreWindowsOfTheAllowedAreaAndRatio) {
  // With nearest sampling and pixels that say where they lie, the window can be read off.
  std::vector<int32_t> pixels;
  for (int i = 0; i < 40 * 60; ++i) pixels.push_back(i);
  const Value image = value_of<int32_t>(pixels, {1, 40, 60});
  const TransformOptions options{.kind = Kind::kRandomResizedCrop,
                                 .height = 40,
                                 .width = 60,
                                 .nearest = true,
                                 .area = {0.2, 0.5},
                                 .ratio = {0.5, 2}};
  std::set<std::vector<double>> views;
  for (int64_t index = 0; index < 200; ++index) {
    const Value view = apply(options, image, 0, index);
    const auto first = view.data<int32_t>()[0], last = view.data<int32_t>()[40 * 60 - 1];
    const double height = last / 60 - first / 60 + 1, width = last % 60 - first % 60 + 1;
    EXPECT_GE(height, 1);
    EXPECT_GE(width, 1);
    EXPECT_NEAR(height * width / 2400, 0.35, 0.15 + 0.03);
    EXPECT_GE(width / height, 0.5 * 0.9);
    EXPECT_LE(width / height, 2 * 1.1);
    views.insert({height, width, static_cast<double>(first)});
    EXPECT_EQ(numbers(view), numbers(apply(options, image, 0, index)));
  }
  EXPECT_GT(views.size(), 100u);
  EXPECT_NE(numbers(apply(options, image, 0, 1)), numbers(apply(options, image, 1, 1)));
}

TEST(Transforms, RandomRotationTurnsAboutTheCentre) {
  std::vector<float> disc(33 * 33), ramp(33 * 33);
  for (int y = 0; y < 33; ++y)
    for (int x = 0; x < 33; ++x) {
      const double r = std::hypot(x - 16, y - 16);
      disc[static_cast<size_t>(y * 33 + x)] = static_cast<float>(std::exp(-r * r / 40));
      ramp[static_cast<size_t>(y * 33 + x)] = static_cast<float>(x - 16);
    }
  const Value round = value_of<float>(disc, {33, 33}), slope = value_of<float>(ramp, {33, 33});
  const TransformOptions options{.kind = Kind::kRandomRotation, .degrees = 30};
  double least = 90, most = -90;
  for (int64_t index = 0; index < 100; ++index) {
    const Value turned = apply(options, round, 0, index), steep = apply(options, slope, 0, index);
    for (int64_t i = 0; i < round.size(); ++i) EXPECT_NEAR(turned.number(i), round.number(i), 0.02);
    // A plane stays a plane, its slope turned: its value is 0 in the middle.
    const double dx = steep.number(16 * 33 + 17), dy = steep.number(17 * 33 + 16);
    EXPECT_NEAR(steep.number(16 * 33 + 16), 0, 1e-5);
    EXPECT_NEAR(std::hypot(dx, dy), 1, 1e-4);
    const double angle = std::atan2(dy, dx) * 180 / 3.14159265358979;
    least = std::min(least, angle), most = std::max(most, angle);
  }
  EXPECT_GE(least, -30.01);
  EXPECT_LE(most, 30.01);
  EXPECT_LT(least, -20);
  EXPECT_GT(most, 20);
  const Value still = apply({.kind = Kind::kRandomRotation, .degrees = 0}, slope);
  EXPECT_EQ(numbers(still), numbers(slope));
  error_of([&] { apply({.kind = Kind::kRandomRotation, .degrees = 181}, slope); });
  error_of([&] {
    apply({.kind = Kind::kRandomResizedCrop, .height = 2, .width = 2, .area = {0.5, 2}}, slope);
  });
}

/// An image of 2 x 4 pixels with masks of the same numbers.
struct Scene {
  std::vector<Field> fields;
  Sample sample;
  explicit Scene(const std::vector<std::string>& masks) {
    Field image{.name = "image", .dtype = DType::kU8, .shape = {1, 2, 4}};
    image.kind = FieldKind::kImage;
    fields.push_back(image);
    sample.push_back(value_of<uint8_t>({0, 1, 2, 3, 4, 5, 6, 7}, {1, 2, 4}));
    for (const std::string& name : masks) {
      Field mask{.name = name, .dtype = DType::kI64, .shape = {2, 4}};
      mask.kind = FieldKind::kMask;
      fields.push_back(mask);
      sample.push_back(value_of<int64_t>({0, 1, 2, 3, 4, 5, 6, 7}, {2, 4}));
    }
  }
  void run(const std::vector<TransformOptions>& transforms, int64_t index = 0) {
    Value scratch;
    Pipeline(fields, transforms).apply(sample, index, {1, 0}, scratch);
  }
};

TransformOptions on(Kind kind, std::vector<std::string> fields) {
  TransformOptions out;
  out.kind = kind;
  out.fields = std::move(fields);
  return out;
}

TEST(Pipeline, AMaskFollowsItsImage) {
  TransformOptions flip = on(Kind::kHorizontalFlip, {"image"});
  TransformOptions crop = on(Kind::kRandomCrop, {"image"});
  crop.height = 1, crop.width = 2;
  const TransformOptions brighter = on(Kind::kColorJitter, {"image"});
  for (int64_t index = 0; index < 20; ++index) {
    Scene scene({"mask"});
    scene.run({flip, crop}, index);
    EXPECT_EQ(scene.sample[1].shape(), (Dims{1, 2}));
    EXPECT_EQ(numbers(scene.sample[0]), numbers(scene.sample[1])) << index;
  }
  // Listed next to the image it moves once, and what does not move pixels does not change it.
  Scene listed({"mask"});
  flip.probability = 1;
  flip.fields = {"image", "mask"};
  listed.run({flip, brighter});
  EXPECT_EQ(listed.sample[1].number(0), 3);
  // A mask by itself moves by itself.
  Scene alone({"mask"});
  flip.fields = {"mask"};
  alone.run({flip});
  EXPECT_EQ(alone.sample[1].number(0), 3);
  EXPECT_EQ(alone.sample[0].number(0), 0);
}

TEST(Pipeline, MasksWithTransformsOfTheirOwn) {
  // The same transform for each of them, as for a value of its own.
  TransformOptions image = on(Kind::kPad, {"image"}), mask = on(Kind::kPad, {"mask"});
  image.pad = mask.pad = {1};
  mask.value = -100;
  Scene scene({"mask"});
  scene.run({image, mask});
  EXPECT_EQ(scene.sample[1].shape(), (Dims{4, 6}));
  // Two that draw different numbers cannot agree.
  EXPECT_EQ(error_of([] {
              Pipeline(Scene({"mask"}).fields,
                       {on(Kind::kHorizontalFlip, {"image"}), on(Kind::kHorizontalFlip, {"mask"})});
            }),
            "horizontal_flip: 'image' and 'mask' are in different transforms, which draw different "
            "random numbers; list both in the `fields` of one");
  // Of two masks it is not clear which are of the image.
  EXPECT_EQ(error_of([] {
              Pipeline(Scene({"a", "b"}).fields, {on(Kind::kVerticalFlip, {"image"})});
            }),
            "vertical_flip: moves the pixels of 'image', but not those of the masks 'a', 'b'; list "
            "them in `fields`");
  EXPECT_NO_THROW(
      Pipeline(Scene({"a", "b"}).fields, {on(Kind::kVerticalFlip, {"image", "a", "b"})}));
}

TEST(Pipeline, PlacementOfAllTogetherIsWhereBoxesGo) {
  Field image{.name = "image", .dtype = DType::kU8};
  image.shape = {3, 60, 100};
  image.kind = FieldKind::kImage;
  Field boxes{.name = "boxes"};
  boxes.shape = {-1, 4};
  boxes.max_length = 5;
  boxes.kind = FieldKind::kBoxes;
  TransformOptions pad, resize, crop, flip;
  pad.kind = TransformKind::kPad, pad.pad = {4, 2, 6, 8};
  resize.kind = TransformKind::kResize, resize.height = 40, resize.width = 200;
  flip.kind = TransformKind::kHorizontalFlip, flip.probability = 1;
  crop.kind = TransformKind::kCenterCrop, crop.height = 36, crop.width = 180;
  std::vector<TransformOptions> all = {pad, resize, flip, crop};
  for (TransformOptions& each : all) each.fields = {"image"};
  const Pipeline pipeline({image, boxes}, all);
  Sample sample(2);
  sample[0].reset(DType::kU8, Dims{3, 60, 100});
  std::memset(sample[0].raw(), 0, sample[0].bytes());
  sample[1].reset(DType::kF32, Dims{1, 4});
  const float box[] = {30, 20, 60, 44};
  std::memcpy(sample[1].raw(), box, sizeof box);
  Value scratch;
  pipeline.apply(sample, 0, {}, scratch);
  const auto p = pipeline.placement(60, 100);
  ASSERT_TRUE(p);
  EXPECT_EQ(p->height, 36);
  EXPECT_EQ(p->width, 180);
  const double left = p->xx * 60 + p->xy * 20 + p->x0, right = p->xx * 30 + p->xy * 20 + p->x0,
               top = p->yx * 30 + p->yy * 20 + p->y0, bottom = p->yx * 30 + p->yy * 44 + p->y0;
  EXPECT_NEAR(sample[1].number(0), left, 1e-4);
  EXPECT_NEAR(sample[1].number(1), top, 1e-4);
  EXPECT_NEAR(sample[1].number(2), right, 1e-4);
  EXPECT_NEAR(sample[1].number(3), bottom, 1e-4);
  all[2].probability = 0.5;
  EXPECT_FALSE(Pipeline({image, boxes}, all).placement(60, 100));
  EXPECT_FALSE(Pipeline({boxes}, {}).placement(60, 100));
}

TEST(Transforms, BoxesThatAreListedAreNoImages) {
  Field image = field_of(DType::kU8, {3, -1, -1});
  image.name = "image";
  image.kind = FieldKind::kImage;
  Field boxes{.name = "boxes"};
  boxes.shape = {-1, 4};
  boxes.max_length = 5;
  boxes.kind = FieldKind::kBoxes;
  const auto flipped = [&](TransformKind kind) {
    TransformOptions flip;
    flip.kind = kind, flip.probability = 1, flip.fields = {"image", "boxes"};
    Sample sample(2);
    sample[0].reset(DType::kU8, Dims{3, 20, 40});
    std::memset(sample[0].raw(), 0, sample[0].bytes());
    sample[1] = value_of<float>({2, 3, 12, 8, 20, 6, 28, 18}, {2, 4});
    Value scratch;
    Pipeline({image, boxes}, {flip}).apply(sample, 0, {}, scratch);
    return numbers(sample[1]);
  };
  EXPECT_EQ(flipped(TransformKind::kHorizontalFlip),
            (std::vector<double>{28, 3, 38, 8, 12, 6, 20, 18}));
  EXPECT_EQ(flipped(TransformKind::kVerticalFlip),
            (std::vector<double>{2, 12, 12, 17, 20, 2, 28, 14}));
  const auto error_of = [&](const std::vector<TransformOptions>& all) {
    try {
      Pipeline({image, boxes}, all);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  for (const TransformKind kind :
       {TransformKind::kHorizontalFlip, TransformKind::kRandomAffine, TransformKind::kCutout,
        TransformKind::kGaussianNoise, TransformKind::kSpecAugment}) {
    TransformOptions wrong;
    wrong.kind = kind, wrong.fields = {"boxes"};
    EXPECT_NE(error_of({wrong}).find("'boxes' are boxes, not an image"), std::string::npos)
        << name_of(kind) << ": " << error_of({wrong});
  }
  TransformOptions scale, flip;
  scale.kind = TransformKind::kScale, scale.factor = 0.01, scale.fields = {"boxes"};
  flip.kind = TransformKind::kHorizontalFlip, flip.fields = {"image"};
  EXPECT_EQ(error_of({flip, scale}), "");
  EXPECT_NE(error_of({scale, flip}).find("scale before it has changed their unit"),
            std::string::npos);
}

}  // namespace
}  // namespace paddle::data
