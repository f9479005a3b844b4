#include "formats/sound/sound.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <mutex>

#include "base/module.h"
#include "formats/sound/module/interface.h"

namespace paddle::formats {
namespace {

using SoundMessage = std::array<char, 512>;

/// A function of the module.
template <class F>
F* sound_function(const char* function, const std::string& name) {
  static std::mutex mutex;
  static Module sounds{Module::default_path("sound"), PADDLE_SOUND_VERSION};
  const std::lock_guard lock(mutex);
  return sounds.require<F>(function, name + ": this installation cannot read audio files");
}

/// Chunks of RIFF state the size of the file. A recorder that was stopped leaves 0 or 4 GiB.
void check_riff_size(std::span<const std::byte> content, const std::string& name) {
  const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
  if (!text.starts_with("RIFF") || text.size() < 8) return;
  uint32_t stated = 0;
  for (size_t i = 0; i < 4; ++i)
    stated |= static_cast<uint32_t>(static_cast<unsigned char>(text[4 + i])) << (8 * i);
  if (stated > 0 && stated < 0xFFFFFF00u && stated > text.size() - 8)
    fail(ErrorCode::kData, name, ": the file is cut short: ", text.size(), " of ",
         uint64_t{stated} + 8, " bytes");
}

class SoundReader {
 public:
  SoundReader(std::span<const std::byte> content, const std::string& name) : name_(name) {
    check_riff_size(content, name);
    const auto open = sound_function<decltype(paddle_sound_open)>("paddle_sound_open", name);
    const auto close = sound_function<decltype(paddle_sound_close)>("paddle_sound_close", name);
    SoundMessage message{};
    sound_ = {open(content.data(), content.size(), &info_, message.data(), message.size()), close};
    if (!sound_) fail(ErrorCode::kData, name, ": not a sound: ", trim(message.data()));
    if (info_.rate < 1 || info_.channels < 1 || info_.frames < 0)
      fail(ErrorCode::kData, name, ": damaged sound: ", info_.channels, " channels, ", info_.rate,
           " samples a second");
    if (!info_.is_estimate && info_.frames > kMaxSoundSamples / info_.channels) reject_size();
  }
  const paddle_sound_info& info() const { return info_; }

  std::vector<float> read_mean() {
    const auto read = sound_function<decltype(paddle_sound_read)>("paddle_sound_read", name_);
    const auto channels = static_cast<size_t>(info_.channels);
    const int64_t block = std::max<int64_t>(1, 16384 / info_.channels);
    std::vector<double> frames(static_cast<size_t>(block) * channels);
    std::vector<float> out;
    // Not more is taken ahead than a header of a few bytes may claim.
    out.reserve(static_cast<size_t>(std::min(info_.frames, int64_t{1} << 20)));
    for (;;) {
      const int64_t count = read(sound_.get(), frames.data(), block);
      if (count <= 0) break;
      for (int64_t i = 0; i < count; ++i) {
        double sum = 0;
        for (size_t c = 0; c < channels; ++c) sum += frames[static_cast<size_t>(i) * channels + c];
        out.push_back(static_cast<float>(sum / static_cast<double>(channels)));
      }
      if (std::ssize(out) > kMaxSoundSamples / info_.channels) reject_size();
    }
    if (!info_.is_estimate && std::ssize(out) != info_.frames)
      fail(ErrorCode::kData, name_, ": the file is cut short or damaged: ", out.size(), " of ",
           info_.frames, " samples");
    return out;
  }

 private:
  [[noreturn]] void reject_size() {
    fail(ErrorCode::kData, name_, ": has more than ", kMaxSoundSamples, " samples");
  }

  const std::string& name_;
  paddle_sound_info info_{};
  std::unique_ptr<void, void (*)(void*)> sound_{nullptr, nullptr};
};

}  // namespace

Sound decode_sound(std::span<const std::byte> content, const std::string& name) {
  SoundReader reader(content, name);
  return {reader.info().rate, reader.info().channels, reader.read_mean()};
}

SoundHeader read_sound_header(std::span<const std::byte> content, const std::string& name) {
  const SoundReader reader(content, name);
  return {reader.info().rate, reader.info().frames};
}

void resample(Sound& sound, int64_t rate, const std::string& name) {
  if (sound.rate == rate) return;
  const double ratio = static_cast<double>(rate) / static_cast<double>(sound.rate);
  const double count = std::ceil(static_cast<double>(sound.samples.size()) * ratio);
  if (!(count <= static_cast<double>(kMaxSoundSamples)))
    fail(ErrorCode::kData, name, ": has more than ", kMaxSoundSamples, " samples at ", rate,
         " samples a second");
  std::vector<float> out(static_cast<size_t>(count));
  if (!sound.samples.empty()) {
    const auto convert =
        sound_function<decltype(paddle_sound_resample)>("paddle_sound_resample", name);
    SoundMessage message{};
    if (convert(sound.samples.data(), sound.samples.size(), static_cast<double>(sound.rate),
                out.data(), out.size(), static_cast<double>(rate), message.data(),
                message.size()) != 0)
      fail(ErrorCode::kData, name, ": cannot be resampled: ", message.data());
  }
  sound.samples = std::move(out);
  sound.rate = rate;
}

bool has_sound_ending(std::string_view name) {
  constexpr std::array kEndings = {".wav",  ".flac", ".ogg", ".oga", ".opus", ".mp3",
                                   ".aiff", ".aif",  ".au",  ".w64", ".caf"};
  std::string lower(name.substr(name.size() - std::min<size_t>(name.size(), 5)));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::any_of(kEndings.begin(), kEndings.end(),
                     [&](const char* ending) { return lower.ends_with(ending); });
}

}  // namespace paddle::formats
