// Datasets without files: random fields, and the digits that we draw.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <vector>

#include "data/datasets/digits.h"
#include "data/datasets/sources.h"
#include "data/transforms/narrow.h"

namespace paddle::data {
namespace {

class RandomDataset : public Dataset {
 public:
  explicit RandomDataset(const RandomOptions& options) : options_(options) {
    if (options.size < 1) fail(ErrorCode::kConfig, "random: size is ", options.size);
    for (const RandomField& from : options.fields) {
      if (!info(from.dtype).has_kernels)
        fail(ErrorCode::kConfig, "random: field '", from.name, "': type ", text(from.dtype),
             " cannot be drawn");
      if (from.low.value_or(0) > from.high.value_or(HUGE_VAL))
        fail(ErrorCode::kConfig, "random: field '", from.name, "': low is above high");
      if (!is_value_of(std::floor(from.low.value_or(0)), from.dtype) ||
          !is_value_of(std::ceil(from.high.value_or(2)) - 1, from.dtype))
        fail(ErrorCode::kConfig, "random: field '", from.name, "': low and high are not in ",
             paddle::text(from.dtype));
      Field field;
      field.name = from.name;
      field.dtype = from.dtype;
      field.shape = from.shape;
      element_count(std::span<const int64_t>(from.shape));
      if (is_integer(from.dtype) && from.low.value_or(0) == 0)
        field.class_count = static_cast<int64_t>(from.high.value_or(2));
      fields_.push_back(std::move(field));
    }
  }
  int64_t size() const override { return options_.size; }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(int64_t index, const ReadContext&, Sample& out) const override {
    out.resize(fields_.size());
    for (size_t f = 0; f < fields_.size(); ++f) {
      const RandomField& from = options_.fields[f];
      Value& value = out[f];
      value.reset(from.dtype, from.shape);
      const Random random(options_.seed, stream_of(from.name), static_cast<uint64_t>(index));
      const bool normal = !from.low && !from.high && is_float(from.dtype);
      const double low = from.low.value_or(0),
                   high = from.high.value_or(is_float(from.dtype) ? 1 : 2);
      visit_dtype(from.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        T* to = value.data<T>();
        for (int64_t i = 0; i < value.size(); ++i) {
          const auto at = static_cast<uint64_t>(i);
          double number;
          if (normal) {
            number = random.normal(at);
          } else {
            number = low + (high - low) * static_cast<double>(random.uniform_float(at));
            if constexpr (std::is_integral_v<T>) number = std::floor(number);
          }
          if constexpr (std::is_integral_v<T>)
            to[i] = static_cast<T>(number);
          else
            to[i] = T(static_cast<float>(number));
        }
      });
    }
  }
  std::string location(int64_t index, int64_t, int64_t) const override {
    return str("random sample ", index);
  }

 private:
  RandomOptions options_;
  std::vector<Field> fields_;
};

class DigitsDataset : public Dataset {
 public:
  explicit DigitsDataset(const DigitsOptions& options) : options_(options) {
    if (options.size < 1) fail(ErrorCode::kConfig, "digits: size is ", options.size);
    Field image;
    image.name = options.image_field;
    image.dtype = DType::kU8;
    image.shape = {1, kDigitSide, kDigitSide};
    image.kind = FieldKind::kImage;
    Field label;
    label.name = options.label_field;
    label.dtype = DType::kI64;
    label.class_count = 10;
    for (int i = 0; i < 10; ++i) label.classes.push_back(std::to_string(i));
    fields_ = {std::move(image), std::move(label)};
    if (options.size <= kKept) kept_ = std::make_unique<Kept[]>(static_cast<size_t>(options.size));
  }
  int64_t size() const override { return options_.size; }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(int64_t index, const ReadContext&, Sample& out) const override {
    out.resize(2);
    out[0].reset(DType::kU8, fields_[0].shape);
    out[1].reset(DType::kI64, fields_[1].shape);
    RandomSequence random(Random(options_.seed, kStream, static_cast<uint64_t>(index)));
    const auto label = static_cast<int>(random.below(10));
    out[1].data<int64_t>()[0] = label;
    const Image image(out[0].data<uint8_t>(), kPixels);
    Kept* const kept = kept_ ? &kept_[static_cast<size_t>(index)] : nullptr;
    if (kept && kept->state.load(std::memory_order_acquire) == State::kDrawn) {
      std::ranges::copy(kept->pixels, image.begin());
      return;
    }
    draw_digit(label, random, image);
    State none = State::kNone;
    if (kept && kept->state.compare_exchange_strong(none, State::kCopying)) {
      kept->pixels.assign(image.begin(), image.end());
      kept->state.store(State::kDrawn, std::memory_order_release);
    }
  }
  std::optional<int64_t> class_of(int64_t index, int64_t field) const override {
    if (field != 1) return std::nullopt;
    RandomSequence random(Random(options_.seed, kStream, static_cast<uint64_t>(index)));
    return static_cast<int64_t>(random.below(10));
  }
  std::string location(int64_t index, int64_t, int64_t) const override {
    return str("digit ", index);
  }
  std::string source() const override { return str("digits of seed ", options_.seed); }

 private:
  static constexpr size_t kPixels = kDigitSide * kDigitSide;
  using Image = std::span<uint8_t, kPixels>;
  /// Drawing costs more than a small net's step: what an epoch has drawn, the next ones take.
  enum class State : uint8_t { kNone, kCopying, kDrawn };
  struct Kept {
    std::atomic<State> state = State::kNone;
    std::vector<uint8_t> pixels;
  };
  static constexpr int64_t kKept = 1 << 16;  ///< digits, 52 MB

  inline static const uint64_t kStream = stream_of("digits");
  DigitsOptions options_;
  std::vector<Field> fields_;
  std::unique_ptr<Kept[]> kept_;
};

}  // namespace

DatasetPtr make_random(const RandomOptions& options) {
  return std::make_shared<RandomDataset>(options);
}

DatasetPtr make_digits(const DigitsOptions& options) {
  return std::make_shared<DigitsDataset>(options);
}

}  // namespace paddle::data
