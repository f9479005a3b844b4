#pragma once
// Sound files: WAV (PCM of 8 to 32 bits, float, not A-law or mu-law) and FLAC, decoded to one
// channel of floats. Sizes are checked against the file before memory is allocated.

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
inline bool has_sound_ending(std::string_view name) {
  return name.ends_with(".wav") || name.ends_with(".flac");
}

/// WAV or FLAC, detected by content. kData, with `name`, for damaged files and other formats.
Sound decode_sound(std::span<const std::byte> content, const std::string& name);

/// One of them.
Sound decode_wav(std::span<const std::byte> content, const std::string& name);
Sound decode_flac(std::span<const std::byte> content, const std::string& name);

}  // namespace paddle::formats
