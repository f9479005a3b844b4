// Rules of audio.yaml. Constants are computed in float64.

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/audio/windows.h"
#include "ops/core/compose.h"
#include "ops/generated/audio.h"
#include "ops/generated/audio_rules.h"
#include "ops/generated/complex.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/generated/signal.h"
#include "tensor/complex.h"

namespace paddle::rules {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 28;

Tensor constant(const std::vector<double>& values, Dims shape, DType dtype) {
  return ops::cast(Tensor(Array::from(values, std::move(shape))), dtype);
}

/// Slaney's scale is linear up to 1000 Hz and logarithmic above, HTK's logarithmic.
constexpr double kLinear = 200.0 / 3, kBreak = 1000, kBreakMel = kBreak / kLinear;
const double kLogStep = std::log(6.4) / 27;

double mel_of(double hertz, bool htk) {
  if (htk) return 2595 * std::log10(1 + hertz / 700);
  return hertz >= kBreak ? kBreakMel + std::log(hertz / kBreak) / kLogStep : hertz / kLinear;
}
double hertz_of(double mel, bool htk) {
  if (htk) return 700 * (std::pow(10, mel / 2595) - 1);
  return mel >= kBreakMel ? kBreak * std::exp(kLogStep * (mel - kBreakMel)) : kLinear * mel;
}

void check_count(std::string_view op, const char* name, int64_t count) {
  if (count < 1 || count > kMaxElements) reject(op, name, " must be positive, not ", count);
}

std::vector<double> mel_frequencies(int64_t count, double low, double high, bool htk) {
  const double first = mel_of(low, htk), last = mel_of(high, htk);
  std::vector<double> out;
  for (int64_t i = 0; i < count; ++i) {
    const double part = count > 1 ? static_cast<double>(i) / static_cast<double>(count - 1) : 0;
    out.push_back(hertz_of(first + (last - first) * part, htk));
  }
  return out;
}

std::vector<double> fft_frequencies(int64_t rate, int64_t n_fft) {
  std::vector<double> out;
  const int64_t last = n_fft / 2;
  for (int64_t i = 0; i <= last; ++i)
    out.push_back(last == 0 ? 0
                            : static_cast<double>(rate) / 2 * static_cast<double>(i) /
                                  static_cast<double>(last));
  return out;
}

struct MelFilters {
  int64_t rate, n_fft, count;
  double low;
  std::optional<double> high;
  bool htk;
  AttrValue norm;
};

Tensor filter_matrix(std::string_view op, const MelFilters& f, DType dtype) {
  check_count(op, "n_fft", f.n_fft);
  check_count(op, "n_mels", f.count);
  check_count(op, "sr", f.rate);
  const std::vector<double> bins = fft_frequencies(f.rate, f.n_fft);
  const auto columns = static_cast<int64_t>(bins.size());
  constexpr int64_t kMaxFilters = int64_t{1} << 24;  // numbers of all filters
  if (f.count > kMaxFilters / columns) reject(op, "the filters would be too large");
  const std::vector<double> edges =
      mel_frequencies(f.count + 2, f.low, f.high.value_or(static_cast<double>(f.rate) / 2), f.htk);
  std::vector<double> out;
  for (size_t m = 0; m < static_cast<size_t>(f.count); ++m) {
    std::vector<double> row;
    for (const double bin : bins) {
      const double rising = (bin - edges[m]) / (edges[m + 1] - edges[m]);
      const double falling = (edges[m + 2] - bin) / (edges[m + 2] - edges[m + 1]);
      row.push_back(std::max(0.0, std::min(rising, falling)));
    }
    double scale = 1;
    if (f.norm.is_string()) {
      if (f.norm.as_string() != "slaney")
        reject(op, "norm '", f.norm.as_string(), "' is neither 'slaney' nor a number");
      scale = 2 / (edges[m + 2] - edges[m]);
    } else if (!f.norm.is_none()) {
      const double p = f.norm.as_double();
      double sum = 0;
      for (const double v : row) sum += std::pow(v, p);
      scale = 1 / std::max(std::pow(sum, 1 / p), 1e-12);
    }
    for (const double v : row) out.push_back(v * scale);
  }
  return constant(out, {f.count, columns}, dtype);
}

Tensor dct_matrix(std::string_view op, int64_t coefficients, int64_t mels,
                  const std::optional<std::string>& norm, DType dtype) {
  check_count(op, "n_mfcc", coefficients);
  check_count(op, "n_mels", mels);
  if (coefficients > kMaxElements / mels) reject(op, "the matrix would be too large");
  if (norm && *norm != "ortho") reject(op, "norm '", *norm, "' is neither 'ortho' nor none");
  const auto size = static_cast<double>(mels);
  std::vector<double> out;
  for (int64_t n = 0; n < mels; ++n)
    for (int64_t k = 0; k < coefficients; ++k) {
      const double value = std::cos(std::numbers::pi / size * (static_cast<double>(n) + 0.5) *
                                    static_cast<double>(k));
      const double scale = !norm ? 2 : std::sqrt((k == 0 ? 1 : 2) / size);
      out.push_back(value * scale);
    }
  return constant(out, {mels, coefficients}, dtype);
}

Tensor decibels(std::string_view op, const Tensor& x, double reference, double least,
                const std::optional<double>& top) {
  if (!(least > 0)) reject(op, "amin must be positive, not ", least);
  if (!(reference > 0)) reject(op, "ref_value must be positive, not ", reference);
  if (top && !(*top >= 0)) reject(op, "top_db must not be negative, not ", *top);
  const Tensor log = ops::log10(ops::maximum(x, number(least))) * 10.0 -
                     10 * std::log10(std::max(reference, least));
  return top ? ops::maximum(log, ops::max(log) - *top) : log;
}

struct Spectrum {
  int64_t n_fft;
  std::optional<int64_t> hop, length;
  AttrValue window;
  double power;
  bool center;
  std::string pad_mode;
};

template <class Attrs>
Spectrum spectrum_of(const Attrs& a) {
  return {a.n_fft, a.hop_length, a.win_length, a.window, a.power, a.center, a.pad_mode};
}

Tensor spectrogram(std::string_view op, const Tensor& x, const Spectrum& s, DType dtype) {
  if (!(s.power > 0)) reject(op, "power must be positive, not ", s.power);
  const int64_t length = s.length.value_or(s.n_fft);
  const std::vector<double> window = window_of(op, s.window, length, true);
  const Tensor spectrum = ops::stft(ops::cast(x, dtype), s.n_fft, s.hop, s.length,
                                    constant(window, {length}, dtype), s.center, s.pad_mode);
  if (s.power == 2) return ops::square(ops::real(spectrum)) + ops::square(ops::imag(spectrum));
  const Tensor size = ops::abs(spectrum);
  return s.power == 1 ? size : ops::pow(size, number(s.power));
}

template <class Attrs>
Tensor mel_spectrogram(std::string_view op, const Tensor& x, const Attrs& a,
                       const AttrValue& norm) {
  const Tensor filters =
      filter_matrix(op, {a.sr, a.n_fft, a.n_mels, a.f_min, a.f_max, a.htk, norm}, a.dtype);
  return ops::matmul(filters, spectrogram(op, x, spectrum_of(a), a.dtype));
}

}  // namespace

Tensors decompose_audio_get_window(CallContext& c) {
  const auto a = c.attrs_as<AudioGetWindowAttrs>();
  return {constant(window_of("audio_get_window", a.window, a.win_length, a.fftbins), {a.win_length},
                   a.dtype)};
}

Tensors decompose_audio_create_dct(CallContext& c) {
  const auto a = c.attrs_as<AudioCreateDctAttrs>();
  return {dct_matrix("audio_create_dct", a.n_mfcc, a.n_mels, a.norm, a.dtype)};
}

Tensors decompose_audio_compute_fbank_matrix(CallContext& c) {
  const auto a = c.attrs_as<AudioComputeFbankMatrixAttrs>();
  return {filter_matrix("audio_compute_fbank_matrix",
                        {a.sr, a.n_fft, a.n_mels, a.f_min, a.f_max, a.htk, a.norm}, a.dtype)};
}

Tensors decompose_audio_hz_to_mel(CallContext& c) {
  const Tensor& x = c.operand(0);
  if (c.attrs_as<AudioHzToMelAttrs>().htk) return {ops::log10(x / 700.0 + 1.0) * 2595.0};
  const Tensor high = ops::greater_equal(x, number(kBreak));
  const Tensor safe = ops::where(high, x, number(kBreak));
  return {ops::where(high, ops::log(safe / kBreak) / kLogStep + kBreakMel, x / kLinear)};
}

Tensors decompose_audio_mel_to_hz(CallContext& c) {
  const Tensor& x = c.operand(0);
  if (c.attrs_as<AudioMelToHzAttrs>().htk)
    return {(ops::pow(number(10.0), x / 2595.0) - 1.0) * 700.0};
  const Tensor high = ops::greater_equal(x, number(kBreakMel));
  const Tensor safe = ops::where(high, x, number(kBreakMel));
  return {ops::where(high, ops::exp((safe - kBreakMel) * kLogStep) * kBreak, x * kLinear)};
}

Tensors decompose_audio_mel_frequencies(CallContext& c) {
  const auto a = c.attrs_as<AudioMelFrequenciesAttrs>();
  check_count("audio_mel_frequencies", "n_mels", a.n_mels);
  return {constant(mel_frequencies(a.n_mels, a.f_min, a.f_max, a.htk), {a.n_mels}, a.dtype)};
}

Tensors decompose_audio_fft_frequencies(CallContext& c) {
  const auto a = c.attrs_as<AudioFftFrequenciesAttrs>();
  check_count("audio_fft_frequencies", "n_fft", a.n_fft);
  return {constant(fft_frequencies(a.sr, a.n_fft), {a.n_fft / 2 + 1}, a.dtype)};
}

Tensors decompose_audio_power_to_db(CallContext& c) {
  const auto a = c.attrs_as<AudioPowerToDbAttrs>();
  return {decibels("audio_power_to_db", c.operand(0), a.ref_value, a.amin, a.top_db)};
}

Tensors decompose_audio_spectrogram(CallContext& c) {
  const auto a = c.attrs_as<AudioSpectrogramAttrs>();
  return {spectrogram("audio_spectrogram", c.operand(0), spectrum_of(a), a.dtype)};
}

Tensors decompose_audio_mel_spectrogram(CallContext& c) {
  const auto a = c.attrs_as<AudioMelSpectrogramAttrs>();
  return {mel_spectrogram("audio_mel_spectrogram", c.operand(0), a, a.norm)};
}

Tensors decompose_audio_log_mel_spectrogram(CallContext& c) {
  const auto a = c.attrs_as<AudioLogMelSpectrogramAttrs>();
  const Tensor mel = mel_spectrogram("audio_log_mel_spectrogram", c.operand(0), a, a.norm);
  return {decibels("audio_log_mel_spectrogram", mel, a.ref_value, a.amin, a.top_db)};
}

Tensors decompose_audio_mfcc(CallContext& c) {
  const auto a = c.attrs_as<AudioMfccAttrs>();
  if (a.n_mfcc > a.n_mels) reject("audio_mfcc", "n_mfcc ", a.n_mfcc, " is above n_mels ", a.n_mels);
  const Tensor mel = mel_spectrogram("audio_mfcc", c.operand(0), a, a.norm_mel);
  const Tensor log = decibels("audio_mfcc", mel, a.ref_value, a.amin, a.top_db);
  return {ops::matmul(dct_matrix("audio_mfcc", a.n_mfcc, a.n_mels, a.norm, a.dtype), log, true)};
}

}  // namespace paddle::rules
