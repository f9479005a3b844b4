// FLAC files against the WAV files with the same samples (make_sounds.py), compressed ones against
// the formula they were made by, damaged ones, and resampling.

#include "formats/sound/sound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

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

double tone(double seconds) { return 0.5 * std::sin(2 * std::numbers::pi * 440 * seconds); }

/// The largest difference from the tone, which begins at sample `first`, away from both ends.
double distance(const Sound& sound, double first) {
  double out = 0;
  const size_t margin = sound.samples.size() / 8;
  for (size_t i = margin; i + margin < sound.samples.size(); ++i)
    out = std::max(out, std::abs(sound.samples[i] - tone((static_cast<double>(i) - first) /
                                                         static_cast<double>(sound.rate))));
  return out;
}

TEST(Sound, LossyFilesAreNearTheTone) {
  const Sound ogg = decode(content_of("lossy.ogg")), mp3 = decode(content_of("lossy.mp3"));
  EXPECT_EQ(ogg.rate, 22050);
  EXPECT_EQ(ogg.samples.size(), 4410u);
  EXPECT_LT(distance(ogg, 0), 0.02);
  EXPECT_EQ(mp3.rate, 22050);
  EXPECT_GE(mp3.samples.size(), 4410u);
  double best = 1;  // encoders add samples in front
  for (int delay = 0; delay < 2500; ++delay) best = std::min(best, distance(mp3, delay));
  EXPECT_LT(best, 0.03);
}

TEST(Sound, ResampledTonesStayTones) {
  for (const int64_t from : {8000, 22050, 44100, 48000})
    for (const int64_t to : {8000, 16000, 44100}) {
      Sound sound{from, 1, std::vector<float>(static_cast<size_t>(from))};
      for (size_t i = 0; i < sound.samples.size(); ++i)
        sound.samples[i] =
            static_cast<float>(tone(static_cast<double>(i) / static_cast<double>(from)));
      resample(sound, to, "tone");
      EXPECT_EQ(sound.rate, to);
      EXPECT_EQ(std::ssize(sound.samples), to);
      EXPECT_LT(distance(sound, 0), 1e-4) << from << " to " << to;
    }
}

TEST(Sound, ResamplingLeavesOutWhatTheRateCannotHold) {
  Sound sound{48000, 1, std::vector<float>(48000)};
  for (size_t i = 0; i < sound.samples.size(); ++i)
    sound.samples[i] =
        static_cast<float>(std::sin(2 * std::numbers::pi * 6000 * static_cast<double>(i) / 48000));
  resample(sound, 8000, "tone");
  for (size_t i = 1000; i < 7000; ++i) EXPECT_LT(std::abs(sound.samples[i]), 1e-4);
  EXPECT_THROW(resample(sound, int64_t{1} << 50, "tone"), Error);
}

}  // namespace
}  // namespace paddle::formats
