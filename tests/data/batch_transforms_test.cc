// Transforms of batches: mixup, CutMix and mosaic, and what the loader makes of them.

#include "data/transforms/batch_transforms.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "data/loader.h"

namespace paddle::data {
namespace {

constexpr int64_t kSide = 8, kClasses = 3;

/// Image i is full of i + 1, its label is one-hot, its mask is i; with boxes, one in each corner.
class Pictures : public Dataset {
 public:
  explicit Pictures(bool boxes = false) {
    const auto add = [&](const char* name, DType dtype, Dims shape, FieldKind kind) {
      Field field;
      field.name = name, field.dtype = dtype, field.shape = std::move(shape), field.kind = kind;
      fields_.push_back(field);
    };
    add("image", DType::kF32, {1, kSide, kSide}, FieldKind::kImage);
    add("label", DType::kF32, {kClasses}, FieldKind::kPlain);
    add("mask", DType::kI64, {kSide, kSide}, FieldKind::kMask);
    if (!boxes) return;
    add("boxes", DType::kF32, {-1, 4}, FieldKind::kBoxes);
    add("labels", DType::kI64, {-1}, FieldKind::kPerBox);
    fields_[3].max_length = fields_[4].max_length = 5;
  }
  int64_t size() const override { return 37; }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(int64_t index, const ReadContext&, Sample& out) const override {
    if (index == bad) fail(ErrorCode::kData, "broken");
    out.resize(fields_.size());
    out[0].reset(DType::kF32, Dims{1, kSide, kSide});
    std::fill_n(out[0].data<float>(), kSide * kSide, static_cast<float>(index + 1));
    out[1].reset(DType::kF32, Dims{kClasses});
    for (int64_t c = 0; c < kClasses; ++c)
      out[1].data<float>()[c] = index % kClasses == c ? 1.0f : 0.0f;
    out[2].reset(DType::kI64, Dims{kSide, kSide});
    std::fill_n(out[2].data<int64_t>(), kSide * kSide, index);
    if (fields_.size() == 3) return;
    out[3].reset(DType::kF32, Dims{2, 4});
    const float corners[] = {0, 0, 4, 4, 4, 4, 8, 8};
    std::copy_n(corners, 8, out[3].data<float>());
    out[4].reset(DType::kI64, Dims{2});
    out[4].data<int64_t>()[0] = index, out[4].data<int64_t>()[1] = 100 + index;
  }
  std::string location(int64_t index, int64_t, int64_t) const override {
    return str("picture ", index);
  }
  int64_t bad = -1;

 private:
  std::vector<Field> fields_;
};

BatchTransformOptions mixup() {
  BatchTransformOptions o;
  o.kind = BatchTransformKind::kMixup;
  o.fields = {"image", "label"};
  return o;
}
BatchTransformOptions cutmix() {
  BatchTransformOptions o;
  o.kind = BatchTransformKind::kCutmix;
  o.fields = {"image", "label", "mask"};
  return o;
}
BatchTransformOptions mosaic() {
  BatchTransformOptions o;
  o.kind = BatchTransformKind::kMosaic;
  o.fields = {"image", "mask"};
  o.value = -1;
  return o;
}

LoaderOptions options_of(std::vector<BatchTransformOptions> transforms) {
  LoaderOptions o;
  o.batch_size = 8;
  o.shuffle = true;
  o.epochs = 2;
  o.seed = 5;
  o.batch_transforms = std::move(transforms);
  return o;
}

/// All bytes of all batches.
std::vector<std::vector<std::byte>> bytes_of(const DatasetPtr& data, LoaderOptions options) {
  Loader loader(data, std::move(options));
  std::vector<std::vector<std::byte>> out;
  while (const auto batch = loader.next())
    for (const Array& array : batch->arrays) {
      const auto* from = static_cast<const std::byte*>(array.raw());
      const int64_t size = array.size() * item_size(array.dtype);
      out.emplace_back(from, from + size);
    }
  return out;
}

TEST(BatchTransforms, MixupMixesImageAndLabelAlike) {
  Loader loader(std::make_shared<Pictures>(), options_of({mixup()}));
  std::set<float> values;
  double sum = 0;
  while (const auto batch = loader.next())
    for (int64_t i = 0; i < batch->samples; ++i) {
      const float* image = batch->arrays[0].data<float>() + i * kSide * kSide;
      const float* label = batch->arrays[1].data<float>() + i * kClasses;
      EXPECT_NEAR(label[0] + label[1] + label[2], 1, 1e-6);
      EXPECT_EQ(image[0], image[kSide * kSide - 1]);
      // The image is share * (i + 1) + (1 - share) * (j + 1) for another sample j of the batch.
      const auto index = static_cast<double>(batch->indices[static_cast<size_t>(i)]);
      const double share = static_cast<double>(label[batch->indices[static_cast<size_t>(i)] % 3]);
      bool explained = false;
      for (const int64_t j : batch->indices) {
        const double own = j % 3 == static_cast<int64_t>(index) % 3 ? -1 : share;
        if (own < 0)
          explained = explained || share > 1 - 1e-6;  // both of one class: any share
        else
          explained =
              explained || std::abs(own * (index + 1) + (1 - own) * (static_cast<double>(j) + 1) -
                                    static_cast<double>(image[0])) < 1e-3;
      }
      EXPECT_TRUE(explained) << index << " " << image[0];
      values.insert(image[0]);
      sum += static_cast<double>(image[0]);
    }
  EXPECT_GT(values.size(), 60u);   // of 74: nearly all are mixed, by different shares
  EXPECT_NEAR(sum / 74, 19, 2.5);  // the mean of the data
}

TEST(BatchTransforms, CutmixPastesTheSameRectangle) {
  Loader loader(std::make_shared<Pictures>(), options_of({cutmix()}));
  int64_t mixed = 0;
  while (const auto batch = loader.next())
    for (int64_t i = 0; i < batch->samples; ++i) {
      const int64_t index = batch->indices[static_cast<size_t>(i)];
      const float* image = batch->arrays[0].data<float>() + i * kSide * kSide;
      const int64_t* mask = batch->arrays[2].data<int64_t>() + i * kSide * kSide;
      const float* label = batch->arrays[1].data<float>() + i * kClasses;
      int64_t own = 0, other = index;
      for (int64_t p = 0; p < kSide * kSide; ++p) {
        EXPECT_EQ(static_cast<int64_t>(image[p]), mask[p] + 1);
        own += mask[p] == index;
        if (mask[p] != index) other = mask[p];
      }
      mixed += other != index;
      if (other % 3 == index % 3) continue;
      EXPECT_NEAR(label[index % 3], static_cast<double>(own) / (kSide * kSide), 1e-6);
      EXPECT_NEAR(label[other % 3], 1 - static_cast<double>(own) / (kSide * kSide), 1e-6);
    }
  EXPECT_GT(mixed, 50);
}

TEST(BatchTransforms, MosaicMovesBoxesAndMasks) {
  Loader loader(std::make_shared<Pictures>(true), options_of({mosaic()}));
  std::set<int64_t> counts;
  while (const auto batch = loader.next())
    for (int64_t i = 0; i < batch->samples; ++i) {
      const float* image = batch->arrays[0].data<float>() + i * kSide * kSide;
      const int64_t* mask = batch->arrays[2].data<int64_t>() + i * kSide * kSide;
      std::set<int64_t> there;
      for (int64_t p = 0; p < kSide * kSide; ++p)
        if (mask[p] >= 0) there.insert(mask[p]);
      EXPECT_GE(there.size(), 2u);
      EXPECT_LE(there.size(), 4u);
      const int64_t room = batch->arrays[3].shape[1];
      EXPECT_LE(room, 5);
      const float* boxes = batch->arrays[3].data<float>() + i * room * 4;
      const int64_t* labels = batch->arrays[4].data<int64_t>() + i * room;
      const auto* valid = batch->arrays[5].data<bool>() + i * room;
      int64_t count = 0;
      for (int64_t b = 0; b < room; ++b) {
        if (!valid[b]) continue;
        ++count;
        const float* box = boxes + b * 4;
        EXPECT_LT(box[0], box[2]);
        EXPECT_GE(box[0], 0);
        EXPECT_LE(box[3], kSide);
        // The middle of a box shows its image.
        const auto y = static_cast<int64_t>((box[1] + box[3]) / 2),
                   x = static_cast<int64_t>((box[0] + box[2]) / 2);
        EXPECT_EQ(mask[y * kSide + x], labels[b] % 100);
        EXPECT_NEAR(image[y * kSide + x], static_cast<float>(labels[b] % 100 + 1), 1e-4);
      }
      counts.insert(count);
    }
  EXPECT_GT(counts.size(), 1u);
}

TEST(BatchTransforms, WorkersRanksAndResumingChangeNothing) {
  const auto data = std::make_shared<Pictures>();
  const std::vector<BatchTransformOptions> all = {mosaic(), cutmix()};
  const auto expected = bytes_of(data, options_of(all));
  LoaderOptions workers = options_of(all);
  workers.workers = 3;
  EXPECT_EQ(bytes_of(data, workers), expected);
  // Two ranks have the halves of each batch.
  std::vector<std::vector<std::byte>> joined;
  std::vector<std::vector<std::vector<std::byte>>> halves;
  for (const int64_t rank : {0, 1}) {
    LoaderOptions o = options_of(all);
    o.rank = rank, o.ranks = 2;
    halves.push_back(bytes_of(data, o));
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    std::vector<std::byte> both = halves[0][i];
    both.insert(both.end(), halves[1][i].begin(), halves[1][i].end());
    EXPECT_EQ(both, expected[i]);
  }
  Loader resumed(data, options_of(all));
  resumed.seek({1, 16});
  const auto batch = resumed.next();
  const auto* raw = static_cast<const std::byte*>(batch->arrays[0].raw());
  // Five batches of three arrays in the first epoch, two in the second before this one.
  const std::vector<std::byte>& wanted = expected[(5 + 2) * 3];
  EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), raw));
}

TEST(BatchTransforms, ASampleIsMixedOnce) {
  BatchTransformOptions first = mixup(), second = cutmix();
  first.probability = 0.5;
  second.fields = {"image", "label"};
  Loader loader(std::make_shared<Pictures>(), options_of({first, second}));
  int64_t flat = 0, cut = 0;
  while (const auto batch = loader.next())
    for (int64_t i = 0; i < batch->samples; ++i) {
      const float* image = batch->arrays[0].data<float>() + i * kSide * kSide;
      std::set<float> values(image, image + kSide * kSide);
      EXPECT_LE(values.size(), 2u);
      const bool is_whole = std::floor(*values.begin()) == *values.begin();
      flat += values.size() == 1 && !is_whole;
      cut += values.size() == 2;
    }
  EXPECT_GT(flat, 15);
  EXPECT_GT(cut, 15);
}

TEST(BatchTransforms, BadSamplesAreLeftOutBeforeMixing) {
  auto data = std::make_shared<Pictures>();
  data->bad = 4;
  LoaderOptions o = options_of({mixup()});
  EXPECT_THROW(bytes_of(data, o), Error);
  o.on_bad_sample = BadSamplePolicy::kSkip;
  o.max_bad_rate = 0.1;
  Loader loader(data, o);
  int64_t samples = 0;
  while (const auto batch = loader.next()) samples += batch->samples;
  EXPECT_EQ(samples, 2 * 36);
  EXPECT_EQ(loader.skipped_count(), 2);
}

std::string error_of(BatchTransformOptions o, bool boxes = false) {
  try {
    Loader loader(std::make_shared<Pictures>(boxes), options_of({std::move(o)}));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    return error.message();
  }
  return "";
}

TEST(BatchTransforms, RejectsFieldsThatDoNotSuit) {
  BatchTransformOptions o = mixup();
  o.fields = {"image", "lable"};
  EXPECT_NE(error_of(o).find("did you mean 'label'"), std::string::npos) << error_of(o);
  o.fields = {"mask"};
  EXPECT_NE(error_of(o).find("one_hot"), std::string::npos);
  o = cutmix();
  o.fields = {"label"};
  EXPECT_NE(error_of(o).find("no field is an image"), std::string::npos);
  EXPECT_NE(error_of(cutmix(), true).find("use mosaic"), std::string::npos);
  o = mixup();
  o.alpha = 0;
  EXPECT_NE(error_of(o).find("alpha"), std::string::npos);
}

}  // namespace
}  // namespace paddle::data
