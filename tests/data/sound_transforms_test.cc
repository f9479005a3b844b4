// Mel spectrograms against values of numpy (sound/make_log_mel.py), and SpecAugment.

#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "data/transforms.h"
#include "formats/npz.h"

namespace paddle::data {
namespace {

Field sound_of(int64_t length, int64_t max_length = 0) {
  Field field;
  field.name = "x";
  field.shape = {length};
  field.max_length = max_length;
  return field;
}

TransformOptions log_mel() {
  TransformOptions o;
  o.kind = TransformKind::kLogMel;
  o.fields = {"x"};
  o.sample_rate = 8000, o.mels = 12, o.window = 200, o.hop = 80;
  o.low_frequency = 60, o.high_frequency = 3800;
  return o;
}

TEST(SoundTransforms, LogMelIsThatOfNumpy) {
  const formats::NpzReader file("tests/data/sound/log_mel.npz");
  const Array sound = file.read("sound"), expected = file.read("expected");
  Sample sample(1);
  sample[0].reset(DType::kF32, sound.shape);
  std::copy_n(sound.data<float>(), sound.size(), sample[0].data<float>());
  const Pipeline pipeline({sound_of(sound.shape[0])}, {log_mel()});
  EXPECT_EQ(pipeline.fields()[0].shape, expected.shape);
  Value scratch;
  pipeline.apply(sample, 0, {}, scratch);
  ASSERT_EQ(sample[0].shape(), expected.shape);
  for (int64_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(sample[0].data<float>()[i], expected.data<float>()[i], 2e-5);
}

TEST(SoundTransforms, SoundsOfDifferentLengthsStayPadded) {
  const Pipeline pipeline({sound_of(-1, 800)}, {log_mel()});
  EXPECT_EQ(pipeline.fields()[0].shape, (Dims{-1, 12}));
  EXPECT_EQ(pipeline.fields()[0].max_length, 11);
  Sample sample(1);
  sample[0].reset(DType::kF32, Dims{0});
  Value scratch;
  pipeline.apply(sample, 0, {}, scratch);
  EXPECT_EQ(sample[0].shape(), (Dims{1, 12}));
  EXPECT_NEAR(sample[0].data<float>()[0], std::log(1e-10), 1e-4);
}

TEST(SoundTransforms, RejectsWrongFrequenciesAndFields) {
  TransformOptions o = log_mel();
  o.high_frequency = 4001;
  EXPECT_THROW(make_transform(o), Error);
  o.high_frequency = 50;
  EXPECT_THROW(make_transform(o), Error);
  Field image = sound_of(4);
  image.shape = {3, 4, 4};
  EXPECT_THROW(Pipeline({image}, {log_mel()}), Error);
}

TEST(SoundTransforms, SpecAugmentMasksBands) {
  TransformOptions o;
  o.kind = TransformKind::kSpecAugment;
  o.fields = {"x"};
  o.time_masks = 1, o.time_width = 6, o.frequency_masks = 1, o.frequency_width = 4;
  o.value = -3;
  Field field = sound_of(20);
  field.shape = {20, 10};
  const Pipeline pipeline({field}, {o});
  std::set<int64_t> times, bands;
  for (int64_t index = 0; index < 50; ++index) {
    Sample sample(1);
    sample[0].reset(DType::kF32, Dims{20, 10});
    std::fill_n(sample[0].data<float>(), 200, 1.0f);
    Value scratch;
    pipeline.apply(sample, index, {7, 0}, scratch);
    const float* x = sample[0].data<float>();
    int64_t whole_rows = 0, whole_columns = 0;
    for (int64_t t = 0; t < 20; ++t)
      whole_rows += std::all_of(x + t * 10, x + t * 10 + 10, [](float v) { return v == -3; });
    for (int64_t b = 0; b < 10; ++b) {
      bool all = true;
      for (int64_t t = 0; t < 20; ++t) all = all && x[t * 10 + b] == -3;
      whole_columns += all;
    }
    // Masks cover whole rows and columns.
    int64_t masked = 0;
    for (int64_t i = 0; i < 200; ++i) masked += x[i] == -3;
    EXPECT_EQ(masked, whole_rows * 10 + whole_columns * 20 - whole_rows * whole_columns);
    times.insert(whole_rows), bands.insert(whole_columns);
  }
  EXPECT_EQ(times, (std::set<int64_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(bands, (std::set<int64_t>{0, 1, 2, 3, 4}));
}

}  // namespace
}  // namespace paddle::data
