#include "data/transforms.h"

#include <algorithm>
#include <cmath>

#include "data/transforms/box_geometry.h"
#include "data/transforms/image_transforms.h"
#include "data/transforms/narrow.h"

namespace paddle::data {
namespace {

struct KindName {
  TransformKind kind;
  const char* name;
};
constexpr KindName kNames[] = {{TransformKind::kCast, "cast"},
                               {TransformKind::kScale, "scale"},
                               {TransformKind::kNormalize, "normalize"},
                               {TransformKind::kOneHot, "one_hot"},
                               {TransformKind::kReshape, "reshape"},
                               {TransformKind::kResize, "resize"},
                               {TransformKind::kCenterCrop, "center_crop"},
                               {TransformKind::kRandomCrop, "random_crop"},
                               {TransformKind::kRandomResizedCrop, "random_resized_crop"},
                               {TransformKind::kRandomRotation, "random_rotation"},
                               {TransformKind::kHorizontalFlip, "horizontal_flip"},
                               {TransformKind::kVerticalFlip, "vertical_flip"},
                               {TransformKind::kPad, "pad"},
                               {TransformKind::kRandomAffine, "random_affine"},
                               {TransformKind::kColorJitter, "color_jitter"},
                               {TransformKind::kGrayscale, "grayscale"},
                               {TransformKind::kGaussianBlur, "gaussian_blur"},
                               {TransformKind::kGaussianNoise, "gaussian_noise"},
                               {TransformKind::kCutout, "cutout"},
                               {TransformKind::kRandAugment, "rand_augment"},
                               {TransformKind::kTrivialAugment, "trivial_augment"},
                               {TransformKind::kLogMel, "log_mel"},
                               {TransformKind::kSpecAugment, "spec_augment"}};

/// Calls `f(const T* in, auto* out)` over the element types of two values.
template <class F>
void visit_two(const Value& in, Value& out, F&& f) {
  visit_dtype(in.dtype(), [&](auto in_tag) {
    using In = typename decltype(in_tag)::type;
    visit_dtype(out.dtype(), [&](auto out_tag) {
      using Out = typename decltype(out_tag)::type;
      f(in.data<In>(), out.data<Out>());
    });
  });
}

DType floating(DType dtype) { return dtype == DType::kF64 ? DType::kF64 : DType::kF32; }

class Cast : public Transform {
 public:
  explicit Cast(const TransformOptions& options) {
    if (!options.dtype) fail(ErrorCode::kConfig, "cast: dtype is missing");
    dtype_ = *options.dtype;
    if (!info(dtype_).has_kernels)
      fail(ErrorCode::kConfig, "cast: samples cannot be cast to ", text(dtype_));
  }
  Field infer(const Field& in) const override {
    Field out = in;
    out.dtype = dtype_;
    return out;
  }
  void apply(const Value& in, Value& out, FieldKind, RandomSequence) const override {
    out.reset(dtype_, in.shape());
    visit_two(in, out, [&](const auto* from, auto* to) {
      using To = std::decay_t<decltype(*to)>;
      using From = std::decay_t<decltype(*from)>;
      constexpr bool kMayBeNan = std::is_integral_v<To> && !std::is_integral_v<From>;
      for (int64_t i = 0; i < in.size(); ++i) {
        if constexpr (kMayBeNan)
          if (std::isnan(static_cast<double>(from[i])))
            fail(ErrorCode::kData, "cast: element ", i, " is NaN, which ", text(dtype_),
                 " does not have");
        to[i] = clamped<To>(from[i]);
      }
    });
  }

 private:
  DType dtype_;
};

/// x * factor[c] + offset[c], where c is the first axis, or one pair for all.
class Affine : public Transform {
 public:
  Affine(std::string name, std::vector<double> factor, std::vector<double> offset)
      : name_(std::move(name)), factor_(std::move(factor)), offset_(std::move(offset)) {}
  Field infer(const Field& in) const override {
    if (factor_.size() > 1 &&
        (in.shape.empty() || in.shape[0] != static_cast<int64_t>(factor_.size())))
      fail(ErrorCode::kConfig, name_, ": ", factor_.size(), " values are given for ", in.text());
    Field out = in;
    out.dtype = floating(in.dtype);
    out.class_count = 0;
    return out;
  }
  void apply(const Value& in, Value& out, FieldKind, RandomSequence) const override {
    out.reset(floating(in.dtype()), in.shape());
    const auto parts = static_cast<int64_t>(factor_.size());
    const int64_t plane = in.size() / parts;
    visit_dtype(in.dtype(), [&](auto in_tag) {
      using In = typename decltype(in_tag)::type;
      visit_dtype(out.dtype(), [&](auto out_tag) {
        using Out = typename decltype(out_tag)::type;
        if constexpr (std::is_same_v<Out, float> || std::is_same_v<Out, double>) {
          for (int64_t c = 0; c < parts; ++c) {
            const In* from = in.data<In>() + c * plane;
            Out* to = out.data<Out>() + c * plane;
            const auto factor = static_cast<Out>(factor_[static_cast<size_t>(c)]);
            const auto offset = static_cast<Out>(offset_[static_cast<size_t>(c)]);
            for (int64_t i = 0; i < plane; ++i) to[i] = clamped<Out>(from[i]) * factor + offset;
          }
        }
      });
    });
  }

 private:
  std::string name_;
  std::vector<double> factor_, offset_;
};

std::unique_ptr<Transform> make_normalize(const TransformOptions& options) {
  const size_t count = std::max(options.mean.size(), options.deviation.size());
  if (count == 0) fail(ErrorCode::kConfig, "normalize: mean and std are missing");
  std::vector<double> factor(count, 1), offset(count, 0);
  for (size_t c = 0; c < count; ++c) {
    const auto pick = [&](const std::vector<double>& list, double otherwise) {
      if (list.size() > 1 && list.size() != count)
        fail(ErrorCode::kConfig, "normalize: mean has ", options.mean.size(), " values, std ",
             options.deviation.size());
      return list.empty() ? otherwise : list.size() == 1 ? list[0] : list[c];
    };
    const double mean = pick(options.mean, 0), deviation = pick(options.deviation, 1);
    if (!(deviation > 0)) fail(ErrorCode::kConfig, "normalize: std is ", deviation);
    factor[c] = 1 / deviation;
    offset[c] = -mean / deviation;
  }
  return std::make_unique<Affine>("normalize", std::move(factor), std::move(offset));
}

class OneHot : public Transform {
 public:
  explicit OneHot(const TransformOptions& options)
      : classes_(options.classes), dtype_(options.dtype.value_or(DType::kF32)) {}
  Field infer(const Field& in) const override {
    if (!is_integer(in.dtype))
      fail(ErrorCode::kConfig, "one_hot: class numbers are integers, ", in.text(), " is not");
    if (classes_ == 0) classes_ = in.class_count;
    if (classes_ < 1) fail(ErrorCode::kConfig, "one_hot: say how many classes ", in.text(), " has");
    Field out = in;
    out.dtype = dtype_;
    out.shape.push_back(classes_);
    out.class_count = 0;
    out.kind = FieldKind::kPlain;
    return out;
  }
  void apply(const Value& in, Value& out, FieldKind, RandomSequence) const override {
    Dims shape = in.shape();
    shape.push_back(classes_);
    out.reset(dtype_, shape);
    std::fill_n(out.raw(), out.bytes(), std::byte{0});
    visit_two(in, out, [&](const auto* from, auto* to) {
      using To = std::decay_t<decltype(*to)>;
      for (int64_t i = 0; i < in.size(); ++i) {
        const auto at = clamped<int64_t>(from[i]);
        if (at < 0 || at >= classes_)
          fail(ErrorCode::kData, "one_hot: class ", at, " is outside 0..", classes_ - 1);
        to[i * classes_ + at] = clamped<To>(1);
      }
    });
  }

 private:
  mutable int64_t classes_;
  DType dtype_;
};

class Reshape : public Transform {
 public:
  explicit Reshape(const TransformOptions& options) : shape_(options.shape) {
    for (const int64_t d : shape_)
      if (d < -1) fail(ErrorCode::kConfig, "reshape: size ", d);
    if (std::count(shape_.begin(), shape_.end(), -1) > 1)
      fail(ErrorCode::kConfig, "reshape: only one size may be -1");
  }
  Field infer(const Field& in) const override {
    Field out = in;
    const bool known = std::find(in.shape.begin(), in.shape.end(), -1) == in.shape.end();
    out.shape = shape_;
    out.kind = FieldKind::kPlain;
    if (known) out.shape = resolve(element_count(std::span<const int64_t>(in.shape)));
    return out;
  }
  void apply(const Value& in, Value& out, FieldKind, RandomSequence) const override {
    out.reset(in.dtype(), resolve(in.size()));
    std::copy_n(in.raw(), in.bytes(), out.raw());
  }

 private:
  Dims resolve(int64_t count) const {
    Dims shape = shape_;
    int64_t rest = 1;
    for (const int64_t d : shape)
      if (d >= 0) rest = checked_multiply(rest, d);
    for (int64_t& d : shape)
      if (d < 0 && rest > 0) d = count / rest, rest *= d;
    if (rest != count)
      fail(ErrorCode::kConfig, "reshape: ", count, " elements do not fit shape ", str(shape_));
    return shape;
  }
  Dims shape_;
};

}  // namespace

std::string name_of(TransformKind kind) {
  for (const KindName& each : kNames)
    if (each.kind == kind) return each.name;
  return "";
}

std::string name_of(const TransformOptions& options) {
  return options.kind == TransformKind::kOwn ? options.own->name : name_of(options.kind);
}

std::optional<TransformKind> parse_transform(const std::string& name) {
  for (const KindName& each : kNames)
    if (each.name == name) return each.kind;
  return std::nullopt;
}

std::vector<std::string> transform_names() {
  std::vector<std::string> names;
  for (const KindName& each : kNames) names.emplace_back(each.name);
  return names;
}

std::unique_ptr<Transform> make_transform(const TransformOptions& options) {
  switch (options.kind) {
    case TransformKind::kCast:
      return std::make_unique<Cast>(options);
    case TransformKind::kScale:
      return std::make_unique<Affine>("scale", std::vector{options.factor},
                                      std::vector{options.offset});
    case TransformKind::kNormalize:
      return make_normalize(options);
    case TransformKind::kOneHot:
      return std::make_unique<OneHot>(options);
    case TransformKind::kReshape:
      return std::make_unique<Reshape>(options);
    case TransformKind::kColorJitter:
    case TransformKind::kGrayscale:
    case TransformKind::kGaussianBlur:
    case TransformKind::kGaussianNoise:
    case TransformKind::kCutout:
      return make_color_transform(options);
    case TransformKind::kRandAugment:
    case TransformKind::kTrivialAugment:
      return make_augmentation(options);
    case TransformKind::kLogMel:
    case TransformKind::kSpecAugment:
      return make_sound_transform(options);
    case TransformKind::kOwn:
      return options.own->make();
    default:
      return make_image_transform(options);
  }
}

namespace {

/// Whether a transform is for values of any kind; others are for images or sounds.
bool is_for_any_values(const TransformOptions& options) {
  const TransformKind kind = options.kind;
  if (kind == TransformKind::kOwn) return options.own->is_for_any_values;
  return kind == TransformKind::kCast || kind == TransformKind::kScale ||
         kind == TransformKind::kNormalize || kind == TransformKind::kOneHot ||
         kind == TransformKind::kReshape;
}

/// Whether a transform that moves pixels does so by random numbers.
bool moves_at_random(const TransformOptions& options) {
  switch (options.kind) {
    case TransformKind::kHorizontalFlip:
    case TransformKind::kVerticalFlip:
      return options.probability > 0 && options.probability < 1;
    case TransformKind::kResize:
    case TransformKind::kCenterCrop:
    case TransformKind::kPad:
      return false;
    case TransformKind::kOwn:
      return options.own->is_random;
    default:
      return true;
  }
}

}  // namespace

Pipeline::Pipeline(std::vector<Field> fields, const std::vector<TransformOptions>& transforms)
    : fields_(std::move(fields)) {
  for (size_t f = 0; f < fields_.size(); ++f) {
    if (fields_[f].kind == FieldKind::kImage && !image_) image_ = f;
    if (fields_[f].kind == FieldKind::kBoxes) boxes_.push_back(f);
    if (fields_[f].kind == FieldKind::kPerBox) per_box_.push_back(f);
  }
  std::string changed_boxes;  // by this transform they are no longer in pixels
  for (size_t t = 0; t < transforms.size(); ++t) {
    const TransformOptions& options = transforms[t];
    Stage stage;
    stage.name = name_of(options);
    stage.transform = make_transform(options);
    stage.stream = stream_of(str("transform ", t));
    stage.is_random = stage.transform->moves() && moves_at_random(options);
    std::vector<std::string> names;
    for (const Field& field : fields_) names.push_back(field.name);
    if (options.fields.empty())
      fail(ErrorCode::kConfig, stage.name,
           ": say which fields it is for; there are: ", join(names, ", "));
    for (const std::string& name : options.fields) {
      const auto at = std::find(names.begin(), names.end(), name);
      if (at == names.end())
        fail(ErrorCode::kConfig, stage.name, ": no field '", name, "'", did_you_mean(name, names),
             "; there are: ", join(names, ", "));
      stage.fields.push_back(static_cast<size_t>(at - names.begin()));
    }
    follow_image(transforms, t, stage);
    follow_boxes(options, stage);
    for (const size_t f : stage.fields) {
      if (!boxes_.empty() && f == image_ && stage.transform->moves()) stage.moves_boxes = true;
      fields_[f] = stage.transform->infer(fields_[f]);
      const bool are_boxes = std::find(boxes_.begin(), boxes_.end(), f) != boxes_.end();
      if (are_boxes && options.kind != TransformKind::kCast) changed_boxes = stage.name;
    }
    if (stage.moves_boxes && !changed_boxes.empty())
      fail(ErrorCode::kConfig, stage.name, ": moves boxes in pixels, and ", changed_boxes,
           " before it has changed their unit; put it after the transforms that move pixels");
    if (stage.moves_boxes && !stage.transform->placement(1, 1, RandomSequence(Random(0))))
      fail(ErrorCode::kConfig, stage.name, ": moves pixels in a way that boxes cannot follow; use ",
           "other transforms for images with boxes");
    stages_.push_back(std::move(stage));
  }
}

void Pipeline::follow_image(const std::vector<TransformOptions>& transforms, size_t number,
                            Stage& stage) {
  const auto lists = [](const auto& fields, const auto& field) {
    return std::find(fields.begin(), fields.end(), field) != fields.end();
  };
  if (!image_ || !lists(stage.fields, *image_) || !stage.transform->moves()) return;
  const std::string& image = fields_[*image_].name;
  std::vector<size_t> left;
  for (size_t f = 0; f < fields_.size(); ++f) {
    if (fields_[f].kind != FieldKind::kMask || lists(stage.fields, f)) continue;
    const auto apart = std::find_if(transforms.begin(), transforms.end(), [&](const auto& other) {
      return name_of(other) == stage.name && lists(other.fields, fields_[f].name) &&
             !lists(other.fields, image);
    });
    if (apart == transforms.end())
      left.push_back(f);
    else if (moves_at_random(transforms[number]))
      fail(ErrorCode::kConfig, stage.name, ": '", image, "' and '", fields_[f].name,
           "' are in different transforms, which draw different random numbers; list both in the "
           "`fields` of one");
  }
  if (left.size() == 1) stage.fields.push_back(left[0]);
  if (left.size() < 2) return;
  std::vector<std::string> names;
  for (const size_t f : left) names.push_back("'" + fields_[f].name + "'");
  fail(ErrorCode::kConfig, stage.name, ": moves the pixels of '", image,
       "', but not those of the masks ", join(names, ", "), "; list them in `fields`");
}

/// Boxes have the rank of an image, but are none: where they are listed next to their image, they
/// move with it as they do in any case.
void Pipeline::follow_boxes(const TransformOptions& options, Stage& stage) const {
  if (is_for_any_values(options)) return;
  const auto lists = [&](size_t f) {
    return std::find(stage.fields.begin(), stage.fields.end(), f) != stage.fields.end();
  };
  const bool moves_image = image_ && lists(*image_) && stage.transform->moves();
  for (const size_t f : boxes_) {
    if (!lists(f)) continue;
    if (!moves_image)
      fail(ErrorCode::kConfig, stage.name, ": '", fields_[f].name,
           "' are boxes, not an image; they follow what moves the pixels of their image");
    std::erase(stage.fields, f);
  }
}

bool Pipeline::changes(size_t field) const {
  return std::any_of(stages_.begin(), stages_.end(), [&](const Stage& stage) {
    return std::find(stage.fields.begin(), stage.fields.end(), field) != stage.fields.end();
  });
}

void Pipeline::apply(Sample& sample, int64_t index, const ReadContext& context,
                     Value& scratch) const {
  for (const Stage& stage : stages_) {
    // Sixteen numbers for each sample are more than any transform draws.
    const Random random(context.seed, stage.stream, context.epoch);
    const RandomSequence sequence(random, static_cast<uint64_t>(index) * 16);
    if (stage.moves_boxes) {
      const Dims& shape = sample[*image_].shape();
      move_boxes(*stage.transform->placement(shape[shape.size() - 2], shape.back(), sequence),
                 sample);
    }
    for (const size_t field : stage.fields) {
      stage.transform->apply(sample[field], scratch, fields_[field].kind, sequence);
      std::swap(sample[field], scratch);
    }
  }
}

std::optional<Placement> Pipeline::placement(int64_t height, int64_t width) const {
  if (!image_) return std::nullopt;
  Placement all;
  all.height = height, all.width = width;
  for (const Stage& stage : stages_) {
    if (!stage.transform->moves() ||
        std::find(stage.fields.begin(), stage.fields.end(), *image_) == stage.fields.end())
      continue;
    const auto next = stage.is_random ? std::nullopt
                                      : stage.transform->placement(all.height, all.width,
                                                                   RandomSequence(Random(0)));
    if (!next) return std::nullopt;
    const Placement before = std::exchange(all, *next);
    all.xx = next->xx * before.xx + next->xy * before.yx;
    all.xy = next->xx * before.xy + next->xy * before.yy;
    all.x0 = next->xx * before.x0 + next->xy * before.y0 + next->x0;
    all.yx = next->yx * before.xx + next->yy * before.yx;
    all.yy = next->yx * before.xy + next->yy * before.yy;
    all.y0 = next->yx * before.x0 + next->yy * before.y0 + next->y0;
  }
  return all;
}

void Pipeline::move_boxes(const Placement& p, Sample& sample) const {
  const Visible all{0, 0, static_cast<double>(p.width), static_cast<double>(p.height)};
  for (const size_t f : boxes_) {
    const int64_t count = sample[f].shape()[0];
    const std::vector<int64_t> kept = data::move_boxes(p, all, sample[f]);
    if (static_cast<int64_t>(kept.size()) == count) continue;
    for (const size_t other : per_box_) keep_rows(kept, sample[other]);
  }
}

}  // namespace paddle::data
