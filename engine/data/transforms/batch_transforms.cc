#include "data/transforms/batch_transforms.h"

#include <algorithm>
#include <cmath>

#include "data/transforms/box_geometry.h"
#include "data/transforms/resample.h"

namespace paddle::data {
namespace {

struct KindName {
  BatchTransformKind kind;
  const char* name;
};
constexpr KindName kNames[] = {{BatchTransformKind::kMixup, "mixup"},
                               {BatchTransformKind::kCutmix, "cutmix"},
                               {BatchTransformKind::kMosaic, "mosaic"}};

/// A number of the distribution Beta(alpha, alpha).
double symmetric_beta(double alpha, RandomSequence& random) {
  while (true) {
    if (alpha <= 1) {  // Jöhnk's rejection
      const double u = std::pow(random.uniform(), 1 / alpha),
                   v = std::pow(random.uniform(), 1 / alpha);
      if (u + v <= 1 && u + v > 0) return u / (u + v);
    } else {  // the density relative to its largest value, at 1/2
      const double x = random.uniform();
      if (random.uniform() <= std::pow(4 * x * (1 - x), alpha - 1)) return x;
    }
  }
}

bool is_mixable(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF64; }

void check_same_shape(const char* name, const Field& field, const Value& a, const Value& b) {
  if (a.shape() != b.shape())
    fail(ErrorCode::kData, name, ": field '", field.name, "' has shape ", str(a.shape()), " and ",
         str(b.shape()), " in samples of one batch; give all the same size (transform resize, ",
         "crop or pad)");
}

/// share * value + (1 - share) * other
void mix_values(const Value& other, double share, Value& value) {
  const auto mixed = [&]<class T>(T) {
    const auto a = static_cast<T>(share), b = static_cast<T>(1 - share);
    T* to = value.data<T>();
    const T* from = other.data<T>();
    for (int64_t i = 0; i < value.size(); ++i) to[i] = a * to[i] + b * from[i];
  };
  if (value.dtype() == DType::kF32)
    mixed(float());
  else
    mixed(double());
}

/// Copies a rectangle of the last two axes.
void copy_window(const Value& from, const Window& window, Value& to) {
  const Frame frame = frame_of(to);
  const auto size = static_cast<size_t>(item_size(to.dtype()));
  for (int64_t plane = 0; plane < frame.planes; ++plane)
    for (int64_t y = window.top; y < window.top + window.height; ++y) {
      const auto at = static_cast<size_t>((plane * frame.height + y) * frame.width + window.left);
      std::copy_n(from.raw() + at * size, static_cast<size_t>(window.width) * size,
                  to.raw() + at * size);
    }
}

/// Appends the rows of a value to another one.
void append_rows(const Value& more, Value& value) {
  Value out;
  Dims shape = value.shape();
  shape[0] += more.shape()[0];
  out.reset(value.dtype(), shape);
  std::copy_n(value.raw(), value.bytes(), out.raw());
  std::copy_n(more.raw(), more.bytes(), out.raw() + value.bytes());
  std::swap(value, out);
}

}  // namespace

std::string name_of(BatchTransformKind kind) {
  for (const KindName& each : kNames)
    if (each.kind == kind) return each.name;
  return "";
}

std::optional<BatchTransformKind> parse_batch_transform(const std::string& name) {
  for (const KindName& each : kNames)
    if (each.name == name) return each.kind;
  return std::nullopt;
}

std::vector<std::string> batch_transform_names() {
  std::vector<std::string> out;
  for (const KindName& each : kNames) out.emplace_back(each.name);
  return out;
}

BatchPipeline::BatchPipeline(const std::vector<Field>& fields,
                             const std::vector<BatchTransformOptions>& transforms)
    : fields_(fields) {
  std::vector<std::string> names;
  for (size_t f = 0; f < fields_.size(); ++f) {
    names.push_back(fields_[f].name);
    if (fields_[f].kind == FieldKind::kBoxes && !boxes_) boxes_ = f;
    if (fields_[f].kind == FieldKind::kPerBox) per_box_.push_back(f);
  }
  for (size_t t = 0; t < transforms.size(); ++t) {
    Stage stage{.options = transforms[t], .stream = stream_of(str("batch transform ", t))};
    const BatchTransformOptions& o = stage.options;
    const std::string name = name_of(o.kind);
    if (o.fields.empty())
      fail(ErrorCode::kConfig, name,
           ": say which fields it is for; there are: ", join(names, ", "));
    if (!(o.alpha > 0) || o.zoom.size() != 2 || !(o.zoom[0] > 0) || o.zoom[0] > o.zoom[1])
      fail(ErrorCode::kConfig, name, ": alpha is above 0 and zoom is [smallest, largest] above 0");
    for (const std::string& field_name : o.fields) {
      const auto at = std::find(names.begin(), names.end(), field_name);
      if (at == names.end())
        fail(ErrorCode::kConfig, name, ": no field '", field_name, "'",
             did_you_mean(field_name, names), "; there are: ", join(names, ", "));
      const auto f = static_cast<size_t>(at - names.begin());
      const Field& field = fields_[f];
      const bool is_pasted = o.kind != BatchTransformKind::kMixup && field.shape.size() >= 2 &&
                             field.kind != FieldKind::kBoxes;
      if (is_pasted) {
        stage.pasted.push_back(f);
        continue;
      }
      if (!is_mixable(field.dtype) || field.max_length > 0)
        fail(ErrorCode::kConfig, name, ": mixes fields of float32 or float64 of one size, ",
             field.text(), " is not; put `one_hot` (for classes), `cast` or `scale` into ",
             "data.transforms");
      stage.mixed.push_back(f);
    }
    if (o.kind != BatchTransformKind::kMixup && stage.pasted.empty())
      fail(ErrorCode::kConfig, name, ": no field is an image [channels, height, width]");
    if (o.kind != BatchTransformKind::kMosaic && boxes_)
      fail(ErrorCode::kConfig, name, ": is not defined for images with boxes; use mosaic");
    stages_.push_back(std::move(stage));
  }
}

void BatchPipeline::apply(std::vector<Sample>& samples, std::span<const int64_t> indices,
                          const ReadContext& context, int64_t first) const {
  const size_t count = samples.size();
  if (count < 2) return;
  std::vector<bool> is_mixed(count);
  for (const Stage& stage : stages_) {
    const Random random(context.seed, stage.stream, context.epoch);
    // Numbers of samples begin at multiples of 4096; those of batches are after all of them.
    const uint64_t batch_at = (uint64_t{1} << 62) + static_cast<uint64_t>(first) * 4;
    const auto other = [&](size_t i, uint64_t which) -> size_t {
      const uint64_t shift = 1 + random.below(batch_at + which, count - 1);
      return (i + shift) % count;
    };
    const std::vector<Sample> before = samples;
    for (size_t i = 0; i < count; ++i) {
      RandomSequence sequence(random, static_cast<uint64_t>(indices[i]) * 4096);
      const bool chosen = sequence.chance(stage.options.probability);
      if (!chosen) continue;
      if (stage.options.kind == BatchTransformKind::kMosaic) {
        std::vector<const Sample*> tiles = {&before[i]};
        for (uint64_t k = 0; k < 3; ++k) tiles.push_back(&before[other(i, k)]);
        tile(stage, tiles, sequence, samples[i]);
        continue;
      }
      if (is_mixed[i]) continue;
      is_mixed[i] = true;
      const Sample& partner = before[other(i, 0)];
      double share = symmetric_beta(stage.options.alpha, sequence);
      if (stage.options.kind == BatchTransformKind::kCutmix)
        share = paste(stage, partner, share, sequence, samples[i]);
      mix(stage, partner, share, samples[i]);
    }
  }
}

void BatchPipeline::mix(const Stage& stage, const Sample& other, double share,
                        Sample& sample) const {
  for (const size_t f : stage.mixed) {
    check_same_shape(name_of(stage.options.kind).c_str(), fields_[f], sample[f], other[f]);
    mix_values(other[f], share, sample[f]);
  }
}

/// Pastes a rectangle of 1 - share of the area; the result is the share that remains after clipping
/// it to the image.
double BatchPipeline::paste(const Stage& stage, const Sample& other, double share,
                            RandomSequence& random, Sample& sample) const {
  const Frame frame = frame_of(sample[stage.pasted[0]]);
  const double side = std::sqrt(1 - share);
  const auto place = [&](int64_t size) {
    const auto length = static_cast<double>(size);
    const double center = random.uniform() * length, half = side * length / 2;
    const auto begin = static_cast<int64_t>(std::clamp(std::round(center - half), 0.0, length)),
               end = static_cast<int64_t>(std::clamp(std::round(center + half), 0.0, length));
    return std::pair(begin, end);
  };
  const auto [left, right] = place(frame.width);
  const auto [top, bottom] = place(frame.height);
  for (const size_t f : stage.pasted) {
    check_same_shape("cutmix", fields_[f], sample[f], other[f]);
    const Frame own = frame_of(sample[f]);
    if (own.height != frame.height || own.width != frame.width)
      fail(ErrorCode::kData, "cutmix: the fields '", fields_[stage.pasted[0]].name, "' and '",
           fields_[f].name, "' have different heights or widths");
    copy_window(other[f], {top, left, bottom - top, right - left}, sample[f]);
  }
  return 1 - static_cast<double>((bottom - top) * (right - left)) /
                 static_cast<double>(frame.height * frame.width);
}

/// Puts four images around a random point, each with a corner there.
void BatchPipeline::tile(const Stage& stage, const std::vector<const Sample*>& tiles,
                         RandomSequence& random, Sample& out) const {
  constexpr double kNearest = 0.25;  // of the point to the edges
  const Frame frame = frame_of((*tiles[0])[stage.pasted[0]]);
  const auto width = static_cast<double>(frame.width), height = static_cast<double>(frame.height);
  const auto column =
                 static_cast<int64_t>(std::round(random.uniform(kNearest, 1 - kNearest) * width)),
             row =
                 static_cast<int64_t>(std::round(random.uniform(kNearest, 1 - kNearest) * height));
  std::vector<double> zooms, shares;
  std::vector<Window> windows;
  for (size_t k = 0; k < 4; ++k) {
    zooms.push_back(random.uniform(stage.options.zoom[0], stage.options.zoom[1]));
    const bool is_right = k % 2 == 1, is_low = k >= 2;
    windows.push_back({is_low ? row : 0, is_right ? column : 0, is_low ? frame.height - row : row,
                       is_right ? frame.width - column : column});
    shares.push_back(static_cast<double>(windows[k].height * windows[k].width) / (width * height));
  }
  // Where tile k puts the points of its image.
  const auto placement = [&](size_t k) {
    const double zoom = zooms[k];
    Placement p{.height = frame.height, .width = frame.width};
    p.xx = p.yy = zoom;
    p.x0 = static_cast<double>(column) - (k % 2 == 1 ? 0 : zoom * width);
    p.y0 = static_cast<double>(row) - (k >= 2 ? 0 : zoom * height);
    return p;
  };
  for (const size_t f : stage.pasted) {
    Value picture = (*tiles[0])[f], moved;
    for (size_t k = 0; k < 4; ++k) {
      check_same_shape("mosaic", fields_[f], (*tiles[k])[f], (*tiles[0])[f]);
      const Placement p = placement(k);
      // Pixel centers: output u + 1/2 comes from (u + 1/2 - x0) / zoom.
      const double cx = (width - 1) / 2, cy = (height - 1) / 2;
      Map map{.xx = 1 / p.xx, .yy = 1 / p.yy};
      map.x0 = (cx + 0.5 - p.x0) / p.xx - 0.5 - cx;
      map.y0 = (cy + 0.5 - p.y0) / p.yy - 0.5 - cy;
      const bool is_mask = fields_[f].kind == FieldKind::kMask;
      constexpr double kNoClass = -100;
      warp((*tiles[k])[f], map, is_mask, is_mask ? kNoClass : stage.options.value, moved);
      copy_window(moved, windows[k], picture);
    }
    out[f] = std::move(picture);
  }
  for (const size_t f : stage.mixed) {
    Value sum = (*tiles[0])[f];
    double seen = shares[0];
    for (size_t k = 1; k < 4; ++k) {
      check_same_shape("mosaic", fields_[f], (*tiles[k])[f], sum);
      seen += shares[k];
      mix_values((*tiles[k])[f], seen > 0 ? (seen - shares[k]) / seen : 1, sum);
    }
    out[f] = std::move(sum);
  }
  if (!boxes_) return;
  Sample gathered(fields_.size());
  for (size_t k = 0; k < 4; ++k) {
    const Window& w = windows[k];
    const auto left = static_cast<double>(w.left), top = static_cast<double>(w.top);
    Value boxes = (*tiles[k])[*boxes_];
    const auto kept = move_boxes(
        placement(k),
        {left, top, left + static_cast<double>(w.width), top + static_cast<double>(w.height)},
        boxes);
    const auto add = [&](size_t f, const Value& value) {
      if (k == 0)
        gathered[f] = value;
      else
        append_rows(value, gathered[f]);
    };
    add(*boxes_, boxes);
    for (const size_t f : per_box_) {
      Value value = (*tiles[k])[f];
      keep_rows(kept, value);
      add(f, value);
    }
  }
  // The batch has room for max_length boxes.
  const int64_t most = fields_[*boxes_].max_length, there = gathered[*boxes_].shape()[0];
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < std::min(there, most > 0 ? most : there); ++i) rows.push_back(i);
  const auto finish = [&](size_t f) {
    keep_rows(rows, gathered[f]);
    out[f] = std::move(gathered[f]);
  };
  finish(*boxes_);
  for (const size_t f : per_box_) finish(f);
}

}  // namespace paddle::data
