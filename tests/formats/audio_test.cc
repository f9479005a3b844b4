// FLAC files against the WAV files with the same samples (make_sounds.py), and damaged ones.

#include "formats/audio.h"

#include <gtest/gtest.h>

#include "base/files.h"

namespace paddle::formats {
namespace {

std::string content_of(const std::string& name) {
  return read_file("tests/formats/data/" + name, 1 << 20);
}

Sound decode(const std::string& content) {
  return decode_sound(std::as_bytes(std::span(content.data(), content.size())), "sound");
}

TEST(Sound, FlacHasTheSamplesOfWav) {
  struct Case {
    const char* name;
    int64_t rate, channels;
    size_t samples;
  };
  for (const auto& [name, rate, channels, samples] :
       {Case{"tone", 8000, 1, 1500}, {"stereo", 44100, 2, 1500}, {"silence", 16000, 1, 1000}}) {
    const Sound flac = decode(content_of(str(name, ".flac"))),
                wav = decode(content_of(str(name, ".wav")));
    EXPECT_EQ(flac.rate, rate);
    EXPECT_EQ(flac.channels, channels);
    ASSERT_EQ(flac.samples.size(), samples) << name;
    EXPECT_EQ(flac.samples, wav.samples) << name;
  }
}

TEST(Sound, DamagedFilesAreRejected) {
  for (const char* name : {"tone.flac", "stereo.flac", "tone.wav"}) {
    const std::string good = content_of(name);
    for (size_t size = 0; size < good.size(); size += 1 + good.size() / 97)
      EXPECT_THROW(decode(good.substr(0, size)), Error) << name << " " << size;
    for (size_t at = 0; at < good.size(); at += 1 + good.size() / 211) {
      std::string changed = good;
      changed[at] = static_cast<char>(changed[at] ^ 0x55);
      try {
        decode(changed);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kData) << error.what();
      }
    }
  }
  EXPECT_THROW(decode("OggS and so on"), Error);
}

}  // namespace
}  // namespace paddle::formats
