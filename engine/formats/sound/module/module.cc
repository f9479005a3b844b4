// The module that reads sound files, by libsndfile, and resamples them, by the SoX resampler.

#include <sndfile.h>
#include <soxr.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include "formats/sound/module/interface.h"

namespace {

/// A file in memory, as libsndfile reads it.
struct Content {
  const char* bytes;
  sf_count_t size, at = 0;
};

sf_count_t length_of(void* user) { return static_cast<Content*>(user)->size; }

sf_count_t seek(sf_count_t offset, int whence, void* user) {
  Content& content = *static_cast<Content*>(user);
  const sf_count_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? content.at : content.size;
  sf_count_t to = 0;
  if (__builtin_add_overflow(base, offset, &to)) return -1;
  content.at = std::clamp<sf_count_t>(to, 0, content.size);
  return content.at;
}

sf_count_t read(void* to, sf_count_t count, void* user) {
  Content& content = *static_cast<Content*>(user);
  const sf_count_t there = std::clamp<sf_count_t>(count, 0, content.size - content.at);
  std::memcpy(to, content.bytes + content.at, static_cast<size_t>(there));
  content.at += there;
  return there;
}

sf_count_t tell(void* user) { return static_cast<Content*>(user)->at; }

struct Sound {
  Content content;
  std::unique_ptr<SNDFILE, int (*)(SNDFILE*)> file{nullptr, sf_close};
};

void report(char* message, size_t message_size, const char* text) {
  if (message_size > 0) std::snprintf(message, message_size, "%s", text);
}

}  // namespace

#pragma GCC visibility push(default)

int paddle_module_version() { return PADDLE_SOUND_VERSION; }

void* paddle_sound_open(const void* bytes, size_t size, paddle_sound_info* info, char* message,
                        size_t message_size) {
  auto sound = std::make_unique<Sound>();
  sound->content = {static_cast<const char*>(bytes), static_cast<sf_count_t>(size)};
  SF_VIRTUAL_IO io{length_of, seek, read, nullptr, tell};
  SF_INFO found{};
  sound->file.reset(sf_open_virtual(&io, SFM_READ, &found, &sound->content));
  if (!sound->file) {
    report(message, message_size, sf_strerror(nullptr));
    return nullptr;
  }
  const int container = found.format & SF_FORMAT_TYPEMASK;
  *info = {found.samplerate, found.channels, found.frames, container == SF_FORMAT_MPEG};
  return sound.release();
}

void paddle_sound_close(void* sound) { delete static_cast<Sound*>(sound); }

int64_t paddle_sound_read(void* sound, double* to, int64_t frames) {
  return sf_readf_double(static_cast<Sound*>(sound)->file.get(), to, frames);
}

int paddle_sound_resample(const float* samples, size_t count, double rate, float* out,
                          size_t out_count, double out_rate, char* message, size_t message_size) {
  const soxr_io_spec_t io = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
  const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
  const soxr_runtime_spec_t one_thread = soxr_runtime_spec(1);
  size_t done = 0;
  const soxr_error_t error = soxr_oneshot(rate, out_rate, 1, samples, count, nullptr, out,
                                          out_count, &done, &io, &quality, &one_thread);
  if (error) {
    report(message, message_size, error);
    return 1;
  }
  std::fill(out + done, out + out_count, 0.0f);
  return 0;
}

#pragma GCC visibility pop
