#pragma once
// The C interface of the module that reads and resamples sounds (libpaddle_sound.so). The engine
// loads the module on first use, and the module does not depend on the engine.

#include <cstddef>
#include <cstdint>

/// Grows with each change of this interface.
#define PADDLE_SOUND_VERSION 1

extern "C" {

/// PADDLE_SOUND_VERSION of the module (base/module.h).
int paddle_module_version();

typedef struct {
  int64_t rate;  ///< samples a second
  int64_t channels;
  int64_t frames;   ///< samples of each channel, as the header states or as the file was scanned
  int is_estimate;  ///< `frames` may differ from what the file holds (MPEG)
} paddle_sound_info;

/// Opens a sound file in memory, which must stay until it is closed; null with the reason in
/// `message`, truncated.
void* paddle_sound_open(const void* bytes, size_t size, paddle_sound_info* info, char* message,
                        size_t message_size);
void paddle_sound_close(void* sound);
/// The next `frames` frames, channels next to each other, -1 … 1 for integer samples. The number of
/// frames read: fewer at the end, or at damage.
int64_t paddle_sound_read(void* sound, double* to, int64_t frames);

/// Resamples one channel of `count` samples to `out_count` ones: the low frequencies that both
/// rates can hold are kept. 0, or 1 with the reason in `message`.
int paddle_sound_resample(const float* samples, size_t count, double rate, float* out,
                          size_t out_count, double out_rate, char* message, size_t message_size);
}
