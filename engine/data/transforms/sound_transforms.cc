// Transforms of sounds: the logarithm of a mel spectrogram, and SpecAugment (Park et al., 2019).

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "data/transforms.h"

namespace paddle::data {
namespace {

/// Slaney's scale: linear up to 1000 Hz, logarithmic above.
constexpr double kLinearStep = 200.0 / 3, kBreak = 1000;
const double kLogStep = std::log(6.4) / 27;

double mel_of(double hertz) {
  return hertz < kBreak ? hertz / kLinearStep
                        : kBreak / kLinearStep + std::log(hertz / kBreak) / kLogStep;
}

double hertz_of(double mel) {
  constexpr double kBreakMel = kBreak / kLinearStep;
  return mel < kBreakMel ? mel * kLinearStep : kBreak * std::exp(kLogStep * (mel - kBreakMel));
}

/// The power spectrum of frames of a power of two samples.
class PowerSpectrum {
 public:
  explicit PowerSpectrum(size_t size) : size_(size) {
    for (size_t k = 0; k < size / 2; ++k)
      roots_.push_back(std::polar(
          1.0, -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(size)));
  }
  size_t size() const { return size_; }
  /// |X_k|^2 for k = 0 … size / 2; `frame` is overwritten.
  void compute(std::vector<std::complex<double>>& frame, std::vector<double>& power) const {
    for (size_t i = 1, j = 0; i < size_; ++i) {  // bit reversal
      size_t bit = size_ >> 1;
      for (; j & bit; bit >>= 1) j ^= bit;
      j ^= bit;
      if (i < j) std::swap(frame[i], frame[j]);
    }
    for (size_t length = 2; length <= size_; length *= 2) {
      const size_t step = size_ / length;
      for (size_t begin = 0; begin < size_; begin += length)
        for (size_t k = 0; k < length / 2; ++k) {
          const auto odd = frame[begin + k + length / 2] * roots_[k * step];
          const auto even = frame[begin + k];
          frame[begin + k] = even + odd;
          frame[begin + k + length / 2] = even - odd;
        }
    }
    power.resize(size_ / 2 + 1);
    for (size_t k = 0; k < power.size(); ++k) power[k] = std::norm(frame[k]);
  }

 private:
  size_t size_;
  std::vector<std::complex<double>> roots_;
};

class LogMel final : public Transform {
 public:
  explicit LogMel(const TransformOptions& options)
      : options_(options), spectrum_(size_for(options)) {
    const double nyquist = static_cast<double>(options.sample_rate) / 2;
    const double high = options.high_frequency > 0 ? options.high_frequency : nyquist;
    if (options.mels < 1 || options.hop < 1)
      fail(ErrorCode::kConfig, "log_mel: mels and hop are at least 1");
    if (!(options.low_frequency >= 0 && options.low_frequency < high && high <= nyquist))
      fail(ErrorCode::kConfig, "log_mel: frequencies from ", options.low_frequency, " to ", high,
           " Hz, expected rising ones up to half the sample rate, ", nyquist);
    for (int64_t i = 0; i < options.window; ++i)
      hann_.push_back(0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) /
                                           static_cast<double>(options.window)));
    make_filters(mel_of(options.low_frequency), mel_of(high));
  }
  Field infer(const Field& in) const override {
    if (in.shape.size() != 1 || (in.dtype != DType::kF32 && in.dtype != DType::kF64))
      fail(ErrorCode::kConfig, "log_mel: expected audio float32[samples], found ", in.text());
    Field out = in;
    out.dtype = DType::kF32;
    out.shape = {in.shape[0] < 0 ? -1 : frames_of(in.shape[0]), options_.mels};
    if (in.max_length > 0) out.max_length = frames_of(in.max_length);
    return out;
  }
  void apply(const Value& in, Value& out, FieldKind, RandomSequence) const override {
    const int64_t samples = in.size(), frames = frames_of(samples);
    out.reset(DType::kF32, Dims{frames, options_.mels});
    std::vector<std::complex<double>> frame(spectrum_.size());
    std::vector<double> power;
    for (int64_t t = 0; t < frames; ++t) {
      std::fill(frame.begin(), frame.end(), 0);
      const int64_t begin = t * options_.hop - options_.window / 2;
      for (int64_t i = 0; i < options_.window; ++i) {
        const int64_t at = begin + i;
        if (at >= 0 && at < samples)
          frame[static_cast<size_t>(i)] = in.number(at) * hann_[static_cast<size_t>(i)];
      }
      spectrum_.compute(frame, power);
      float* row = out.data<float>() + t * options_.mels;
      for (const Filter& filter : filters_) {
        double sum = 0;
        for (size_t k = 0; k < filter.weights.size(); ++k)
          sum += filter.weights[k] * power[filter.first + k];
        *row++ = static_cast<float>(std::log(std::max(sum, kMin)));
      }
    }
  }

 private:
  static constexpr double kMin = 1e-10;
  struct Filter {
    size_t first = 0;
    std::vector<double> weights;
  };

  static size_t size_for(const TransformOptions& options) {
    if (options.window < 2 || options.sample_rate < 1)
      fail(ErrorCode::kConfig, "log_mel: window is at least 2 and sample_rate at least 1");
    size_t size = 2;
    while (size < static_cast<size_t>(options.window)) size *= 2;
    return size;
  }
  int64_t frames_of(int64_t samples) const { return 1 + samples / options_.hop; }

  /// Triangles between neighboring points of the scale, of equal area.
  void make_filters(double low, double high) {
    const auto hertz = [&](int64_t i) {
      return hertz_of(low + (high - low) * static_cast<double>(i) /
                                static_cast<double>(options_.mels + 1));
    };
    const double step =
        static_cast<double>(options_.sample_rate) / static_cast<double>(spectrum_.size());
    for (int64_t m = 0; m < options_.mels; ++m) {
      const double left = hertz(m), middle = hertz(m + 1), right = hertz(m + 2);
      Filter& filter = filters_.emplace_back();
      for (size_t k = 0; k <= spectrum_.size() / 2; ++k) {
        const double f = static_cast<double>(k) * step;
        const double weight =
            std::max(0.0, std::min((f - left) / (middle - left), (right - f) / (right - middle)));
        if (weight <= 0 && filter.weights.empty()) continue;
        if (weight <= 0) break;
        if (filter.weights.empty()) filter.first = k;
        filter.weights.push_back(weight * 2 / (right - left));
      }
    }
  }

  TransformOptions options_;
  PowerSpectrum spectrum_;
  std::vector<double> hann_;
  std::vector<Filter> filters_;
};

class SpecAugment final : public Transform {
 public:
  explicit SpecAugment(const TransformOptions& options) : options_(options) {
    constexpr int64_t kMaxMasks = 4;
    for (const int64_t masks : {options.time_masks, options.frequency_masks})
      if (masks < 0 || masks > kMaxMasks)
        fail(ErrorCode::kConfig, "spec_augment: there are 0 to ", kMaxMasks,
             " masks along each axis");
  }
  Field infer(const Field& in) const override {
    if (in.shape.size() != 2 || in.dtype != DType::kF32)
      fail(ErrorCode::kConfig,
           "spec_augment: expected a spectrogram float32[frames, bands], found ", in.text());
    return in;
  }
  void apply(const Value& in, Value& out, FieldKind, RandomSequence random) const override {
    out.reset(in.dtype(), in.shape());
    std::copy_n(in.raw(), in.bytes(), out.raw());
    const int64_t frames = in.shape()[0], bands = in.shape()[1];
    const auto fill = [&](int64_t t0, int64_t t1, int64_t b0, int64_t b1) {
      for (int64_t t = t0; t < t1; ++t)
        std::fill(out.data<float>() + t * bands + b0, out.data<float>() + t * bands + b1,
                  static_cast<float>(options_.value));
    };
    const auto range = [&](int64_t size, int64_t widest) {
      const auto width =
          static_cast<int64_t>(random.below(static_cast<uint64_t>(std::min(size, widest) + 1)));
      const auto begin =
          static_cast<int64_t>(random.below(static_cast<uint64_t>(size - width + 1)));
      return std::pair(begin, begin + width);
    };
    for (int64_t i = 0; i < options_.time_masks; ++i) {
      const auto [begin, end] = range(frames, options_.time_width);
      fill(begin, end, 0, bands);
    }
    for (int64_t i = 0; i < options_.frequency_masks; ++i) {
      const auto [begin, end] = range(bands, options_.frequency_width);
      fill(0, frames, begin, end);
    }
  }

 private:
  TransformOptions options_;
};

}  // namespace

std::unique_ptr<Transform> make_sound_transform(const TransformOptions& options) {
  if (options.kind == TransformKind::kLogMel) return std::make_unique<LogMel>(options);
  return std::make_unique<SpecAugment>(options);
}

}  // namespace paddle::data
