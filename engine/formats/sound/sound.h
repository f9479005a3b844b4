#pragma once
// Sound files (WAV, FLAC, Ogg Vorbis and Opus, MP3, AIFF and others that libsndfile reads), decoded
// to one channel of floats, and resampling. Sizes are checked before memory is allocated.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace paddle::formats {

/// The mean of the channels, -1 … 1 for integer samples.
struct Sound {
  int64_t rate = 0;      ///< samples a second
  int64_t channels = 0;  ///< of the file
  std::vector<float> samples = {};
};

/// The most samples, of all channels together, that are decoded.
inline constexpr int64_t kMaxSoundSamples = int64_t{1} << 28;

/// Whether a file's name ends as those of sounds do.
bool has_sound_ending(std::string_view name);

/// A sound file, detected by content. kData, with `name`, for damaged files and other formats.
Sound decode_sound(std::span<const std::byte> content, const std::string& name);

struct SoundHeader {
  int64_t rate = 0;    ///< samples a second
  int64_t frames = 0;  ///< samples of each channel
};

/// Reads the header of a sound file; kData as decode_sound.
SoundHeader read_sound_header(std::span<const std::byte> content, const std::string& name);

/// Converts a sound to another rate; frequencies that it cannot hold are filtered out. kData, with
/// `name`, where the result would be too long.
void resample(Sound& sound, int64_t rate, const std::string& name);

}  // namespace paddle::formats
