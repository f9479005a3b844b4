#include "data/transforms/image_transforms.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "data/transforms/resample.h"

namespace paddle::data {
namespace {

class Resize : public ImageTransform {
 public:
  explicit Resize(const TransformOptions& options) : ImageTransform(options) { need_size(); }
  void infer_size(int64_t& height, int64_t& width) const override {
    height = options_.height, width = options_.width;
  }
  bool moves() const override { return true; }
  std::optional<Placement> placement(int64_t height, int64_t width, RandomSequence) const override {
    return placement_of(Window{0, 0, height, width}, options_.height, options_.width);
  }
  void apply(const Value& in, Value& out, FieldKind kind, RandomSequence) const override {
    const Frame from = frame_of(in);
    resize_window(in, {0, 0, from.height, from.width}, options_.height, options_.width,
                  options_.nearest || kind == FieldKind::kMask, out);
  }
};

/// Copies a window inside the image.
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
  void apply(const Value& in, Value& out, FieldKind, RandomSequence random) const override {
    const Frame from = frame_of(in);
    const int64_t rows = from.height - options_.height, columns = from.width - options_.width;
    if (rows < 0 || columns < 0)
      fail(ErrorCode::kData, name_of(options_.kind), ": an image of ", from.height, " x ",
           from.width, " has no window of ", options_.height, " x ", options_.width,
           "; pad or resize it first");
    const auto [top, left] = corner(rows, columns, random);
    out.reset(in.dtype(), with_size(in.shape(), options_.height, options_.width));
    copy_window(in, out, top, left);
  }
  bool moves() const override { return true; }
  std::optional<Placement> placement(int64_t height, int64_t width,
                                     RandomSequence random) const override {
    const auto [top, left] = corner(std::max<int64_t>(height - options_.height, 0),
                                    std::max<int64_t>(width - options_.width, 0), random);
    return placement_of(Window{top, left, options_.height, options_.width}, options_.height,
                        options_.width);
  }

 private:
  /// The top left corner of the window; `rows` and `columns` are left out around it.
  std::pair<int64_t, int64_t> corner(int64_t rows, int64_t columns, RandomSequence random) const {
    if (options_.kind != TransformKind::kRandomCrop) return {rows / 2, columns / 2};
    const auto top = static_cast<int64_t>(random.below(static_cast<uint64_t>(rows + 1)));
    return {top, static_cast<int64_t>(random.below(static_cast<uint64_t>(columns + 1)))};
  }
};

/// Copies `width` elements of `item` bytes in reverse order.
void reverse_row(const std::byte* from, std::byte* to, int64_t width, size_t item) {
  const auto reverse = [&](auto element) {
    using E = decltype(element);
    const E* begin = reinterpret_cast<const E*>(from);
    std::reverse_copy(begin, begin + width, reinterpret_cast<E*>(to));
  };
  switch (item) {
    case 1:
      return reverse(uint8_t{});
    case 2:
      return reverse(uint16_t{});
    case 4:
      return reverse(uint32_t{});
    default: {
      const size_t row = static_cast<size_t>(width) * item;
      for (size_t x = 0; x < row; x += item) std::memcpy(to + row - item - x, from + x, item);
    }
  }
}

class Flip : public ImageTransform {
 public:
  explicit Flip(const TransformOptions& options) : ImageTransform(options) {
    if (!(options.probability >= 0 && options.probability <= 1))
      fail(ErrorCode::kConfig, name_of(options.kind), ": probability is ", options.probability);
  }
  void infer_size(int64_t&, int64_t&) const override {}
  bool moves() const override { return true; }
  std::optional<Placement> placement(int64_t height, int64_t width,
                                     RandomSequence random) const override {
    Placement out{.height = height, .width = width};
    if (!random.chance(options_.probability)) return out;
    if (options_.kind == TransformKind::kVerticalFlip)
      out.yy = -1, out.y0 = static_cast<double>(height);
    else
      out.xx = -1, out.x0 = static_cast<double>(width);
    return out;
  }
  void apply(const Value& in, Value& out, FieldKind, RandomSequence random) const override {
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
        if (vertical)
          std::memcpy(to, from, row);
        else
          reverse_row(from, to, frame.width, item);
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
  bool moves() const override { return true; }
  std::optional<Placement> placement(int64_t height, int64_t width, RandomSequence) const override {
    return Placement{.x0 = static_cast<double>(left_),
                     .y0 = static_cast<double>(top_),
                     .height = height + top_ + bottom_,
                     .width = width + left_ + right_};
  }
  void apply(const Value& in, Value& out, FieldKind kind, RandomSequence) const override {
    const Frame from = frame_of(in);
    out.reset(in.dtype(),
              with_size(in.shape(), from.height + top_ + bottom_, from.width + left_ + right_));
    visit_dtype(in.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::fill_n(out.data<T>(), out.size(), clamped<T>(outside(options_, kind)));
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
      return make_random_view(options);
  }
}

}  // namespace paddle::data
