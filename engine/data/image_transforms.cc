#include "data/image_transforms.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace paddle::data {
namespace {

constexpr int64_t kMaxSide = 1 << 16;

/// The last two axes of an image, and how many planes there are.
struct Frame {
  int64_t planes, height, width;
};

Frame frame_of(const Value& image) {
  const Dims& shape = image.shape();
  const int64_t height = shape[shape.size() - 2], width = shape.back();
  int64_t planes = 1;
  for (size_t i = 0; i + 2 < shape.size(); ++i) planes *= shape[i];
  return {planes, height, width};
}

Dims with_size(Dims shape, int64_t height, int64_t width) {
  shape[shape.size() - 2] = height;
  shape.back() = width;
  return shape;
}

class ImageTransform : public Transform {
 public:
  explicit ImageTransform(const TransformOptions& options) : options_(options) {}
  Field infer(const Field& in) const override {
    if (in.shape.size() < 2 || in.shape.size() > 3)
      fail(ErrorCode::kConfig, name_of(options_.kind),
           ": an image [channels, height, width] is needed, not ", in.text());
    Field out = in;
    int64_t& height = out.shape[out.shape.size() - 2];
    infer_size(height, out.shape.back());
    return out;
  }

 protected:
  virtual void infer_size(int64_t& height, int64_t& width) const = 0;
  void need_size() const {
    if (options_.height < 1 || options_.width < 1 || options_.height > kMaxSide ||
        options_.width > kMaxSide)
      fail(ErrorCode::kConfig, name_of(options_.kind), ": size [", options_.height, ", ",
           options_.width, "] must be from 1 to ", kMaxSide);
  }
  TransformOptions options_;
};

/// Which inputs an output pixel is made of, along one axis, and their shares.
struct Taps {
  struct Pixel {
    int64_t first;
    size_t begin, count;
  };
  std::vector<Pixel> pixels;
  std::vector<float> weights;
};

/// Bilinear with half-pixel centres; when shrinking the triangle widens by the factor, so that
/// every input pixel counts (as Pillow does it).
Taps taps_of(int64_t from, int64_t to, bool nearest) {
  Taps taps;
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(scale, 1.0);
  for (int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const size_t begin = taps.weights.size();
    if (nearest) {
      const int64_t at = std::min(static_cast<int64_t>(centre), from - 1);
      taps.pixels.push_back({at, begin, 1});
      taps.weights.push_back(1);
      continue;
    }
    const int64_t first = std::max<int64_t>(0, static_cast<int64_t>(centre - support + 0.5));
    const int64_t last = std::min<int64_t>(from, static_cast<int64_t>(centre + support + 0.5));
    double total = 0;
    for (int64_t j = first; j < last; ++j) {
      const double distance = std::abs((static_cast<double>(j) + 0.5 - centre) / support);
      const double weight = std::max(0.0, 1 - distance);
      taps.weights.push_back(static_cast<float>(weight));
      total += weight;
    }
    for (size_t j = begin; j < taps.weights.size(); ++j)
      taps.weights[j] /= static_cast<float>(total);
    taps.pixels.push_back({first, begin, taps.weights.size() - begin});
  }
  return taps;
}

class Resize : public ImageTransform {
 public:
  explicit Resize(const TransformOptions& options) : ImageTransform(options) { need_size(); }
  void infer_size(int64_t& height, int64_t& width) const override {
    height = options_.height, width = options_.width;
  }
  void apply(const Value& in, Value& out, RandomSequence) const override {
    const Frame from = frame_of(in);
    out.reset(in.dtype(), with_size(in.shape(), options_.height, options_.width));
    if (from.height == 0 || from.width == 0) fail(ErrorCode::kData, "resize: the image is empty");
    const Taps columns = taps_of(from.width, options_.width, options_.nearest);
    const Taps rows = taps_of(from.height, options_.height, options_.nearest);
    std::vector<float> middle(static_cast<size_t>(from.height * options_.width));
    visit_dtype(in.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t plane = 0; plane < from.planes; ++plane) {
        const T* source = in.data<T>() + plane * from.height * from.width;
        T* target = out.data<T>() + plane * options_.height * options_.width;
        for (int64_t y = 0; y < from.height; ++y)
          for (int64_t x = 0; x < options_.width; ++x) {
            const Taps::Pixel& pixel = columns.pixels[static_cast<size_t>(x)];
            float sum = 0;
            for (size_t k = 0; k < pixel.count; ++k)
              sum += columns.weights[pixel.begin + k] *
                     static_cast<float>(
                         source[y * from.width + pixel.first + static_cast<int64_t>(k)]);
            middle[static_cast<size_t>(y * options_.width + x)] = sum;
          }
        for (int64_t y = 0; y < options_.height; ++y) {
          const Taps::Pixel& pixel = rows.pixels[static_cast<size_t>(y)];
          for (int64_t x = 0; x < options_.width; ++x) {
            float sum = 0;
            for (size_t k = 0; k < pixel.count; ++k)
              sum += rows.weights[pixel.begin + k] *
                     middle[static_cast<size_t>(
                         (pixel.first + static_cast<int64_t>(k)) * options_.width + x)];
            if constexpr (std::is_integral_v<T>) sum = std::round(sum);
            target[y * options_.width + x] = static_cast<T>(sum);
          }
        }
      }
    });
  }
};

/// Copies a window that lies inside the image.
void copy_window(const Value& in, Value& out, int64_t top, int64_t left) {
  const Frame from = frame_of(in), to = frame_of(out);
  const auto item = static_cast<size_t>(item_size(in.dtype()));
  for (int64_t plane = 0; plane < to.planes; ++plane)
    for (int64_t y = 0; y < to.height; ++y)
      std::memcpy(
          out.raw() + static_cast<size_t>((plane * to.height + y) * to.width) * item,
          in.raw() +
              static_cast<size_t>((plane * from.height + top + y) * from.width + left) * item,
          static_cast<size_t>(to.width) * item);
}

class Crop : public ImageTransform {
 public:
  explicit Crop(const TransformOptions& options) : ImageTransform(options) { need_size(); }
  void infer_size(int64_t& height, int64_t& width) const override {
    if ((height >= 0 && height < options_.height) || (width >= 0 && width < options_.width))
      fail(ErrorCode::kConfig, name_of(options_.kind), ": an image of ", height, " x ", width,
           " has no window of ", options_.height, " x ", options_.width,
           "; pad or resize it first");
    height = options_.height, width = options_.width;
  }
  void apply(const Value& in, Value& out, RandomSequence random) const override {
    const Frame from = frame_of(in);
    const int64_t rows = from.height - options_.height, columns = from.width - options_.width;
    if (rows < 0 || columns < 0)
      fail(ErrorCode::kData, name_of(options_.kind), ": an image of ", from.height, " x ",
           from.width, " has no window of ", options_.height, " x ", options_.width,
           "; pad or resize it first");
    int64_t top = rows / 2, left = columns / 2;
    if (options_.kind == TransformKind::kRandomCrop) {
      top = static_cast<int64_t>(random.below(static_cast<uint64_t>(rows + 1)));
      left = static_cast<int64_t>(random.below(static_cast<uint64_t>(columns + 1)));
    }
    out.reset(in.dtype(), with_size(in.shape(), options_.height, options_.width));
    copy_window(in, out, top, left);
  }
};

class Flip : public ImageTransform {
 public:
  explicit Flip(const TransformOptions& options) : ImageTransform(options) {
    if (!(options.probability >= 0 && options.probability <= 1))
      fail(ErrorCode::kConfig, name_of(options.kind), ": probability is ", options.probability);
  }
  void infer_size(int64_t&, int64_t&) const override {}
  void apply(const Value& in, Value& out, RandomSequence random) const override {
    out.reset(in.dtype(), in.shape());
    if (!random.chance(options_.probability)) {
      std::copy_n(in.raw(), in.bytes(), out.raw());
      return;
    }
    const Frame frame = frame_of(in);
    const auto item = static_cast<size_t>(item_size(in.dtype()));
    const size_t row = static_cast<size_t>(frame.width) * item;
    for (int64_t plane = 0; plane < frame.planes; ++plane)
      for (int64_t y = 0; y < frame.height; ++y) {
        const bool vertical = options_.kind == TransformKind::kVerticalFlip;
        const int64_t source = plane * frame.height + (vertical ? frame.height - 1 - y : y);
        const std::byte* from = in.raw() + static_cast<size_t>(source) * row;
        std::byte* to = out.raw() + static_cast<size_t>(plane * frame.height + y) * row;
        if (vertical) {
          std::memcpy(to, from, row);
        } else {
          for (size_t x = 0; x < row; x += item) std::memcpy(to + row - item - x, from + x, item);
        }
      }
  }
};

class Pad : public ImageTransform {
 public:
  explicit Pad(const TransformOptions& options) : ImageTransform(options) {
    if (options.pad.size() != 1 && options.pad.size() != 4)
      fail(ErrorCode::kConfig, "pad: one number, or left, right, top and bottom are needed");
    for (const int64_t pixels : options.pad)
      if (pixels < 0 || pixels > kMaxSide) fail(ErrorCode::kConfig, "pad: ", pixels, " pixels");
    const auto side = [&](size_t i) {
      return options.pad.size() == 1 ? options.pad[0] : options.pad[i];
    };
    left_ = side(0), right_ = side(1), top_ = side(2), bottom_ = side(3);
  }
  void infer_size(int64_t& height, int64_t& width) const override {
    if (height >= 0) height += top_ + bottom_;
    if (width >= 0) width += left_ + right_;
  }
  void apply(const Value& in, Value& out, RandomSequence) const override {
    const Frame from = frame_of(in);
    out.reset(in.dtype(),
              with_size(in.shape(), from.height + top_ + bottom_, from.width + left_ + right_));
    visit_dtype(in.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::fill_n(out.data<T>(), out.size(), T(static_cast<float>(options_.value)));
      const Frame to = frame_of(out);
      for (int64_t plane = 0; plane < from.planes; ++plane)
        for (int64_t y = 0; y < from.height; ++y)
          std::copy_n(in.data<T>() + (plane * from.height + y) * from.width, from.width,
                      out.data<T>() + (plane * to.height + top_ + y) * to.width + left_);
    });
  }

 private:
  int64_t left_, right_, top_, bottom_;
};

}  // namespace

std::unique_ptr<Transform> make_image_transform(const TransformOptions& options) {
  switch (options.kind) {
    case TransformKind::kResize:
      return std::make_unique<Resize>(options);
    case TransformKind::kCenterCrop:
    case TransformKind::kRandomCrop:
      return std::make_unique<Crop>(options);
    case TransformKind::kHorizontalFlip:
    case TransformKind::kVerticalFlip:
      return std::make_unique<Flip>(options);
    case TransformKind::kPad:
      return std::make_unique<Pad>(options);
    default:
      fail(ErrorCode::kInternal, "no transform '", name_of(options.kind), "'");
  }
}

}  // namespace paddle::data
