#ifndef PADDLE_PLUGIN_DATA_H
#define PADDLE_PLUGIN_DATA_H
/* Readers: kinds of dataset, `data.train: {kind: PLUGIN.NAME, …}`. A dataset has a fixed number of
 * samples, and each is a function of its number, the seed and the epoch: that is what makes
 * shuffling, splits, several loading threads and resuming exact. A reader of a stream gives samples
 * one after another instead. */

#include "paddle/plugin/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Takes the fields of a sample. */
typedef struct paddle_sample {
  uint32_t struct_size;
  uint32_t field_count;
  void* context; /* for the host */
  /* Memory for field `field`, in the order of `describe`, of this shape, to be filled with packed
   * elements before `read` returns; once for each. Null if the shape is not one of the field's:
   * then `read` returns PADDLE_DATA, and the host knows the reason. */
  void* (*field)(void* context, uint32_t field, const int64_t* shape, int32_t rank);
} paddle_sample;

typedef struct paddle_reader {
  uint32_t struct_size;
  uint32_t reserved;
  const char* name; /* a word */
  const char* doc;  /* a line; may be null */
  /* The keys of the config, besides those of all kinds (`range`, `split`, …), as paddle_options
   * says. May be null. */
  const char* keys;

  /* Opens the data and checks it: PADDLE_DATA for a damaged file. May be called several times, and
   * states are used at the same time. */
  paddle_status (*open)(paddle_call* call, const paddle_options* options, void** state);
  /* The fields, one a line: "image: uint8[3, -1, -1]", where -1 is a size that differs by sample;
   * "label: int64[] classes 10" is a number of a class. Valid until `close`. */
  const char* (*describe)(void* state);
  int64_t (*size)(void* state); /* samples; null for a stream */
  /* Null for a stream. Reads a sample. Called from several threads at once. A damaged sample is
   * PADDLE_DATA, by host->fail_at with its place. */
  paddle_status (*read)(void* state, paddle_call* call, int64_t index, uint64_t seed,
                        uint64_t epoch, const paddle_sample* sample);
  void (*close)(void* state);

  /* From here on functions may be null, and the struct may end before them. */

  /* Writes where a sample is, such as "rows.txt:17", as at most `capacity` bytes with the end. From
   * several threads at once. */
  void (*location)(void* state, int64_t index, char* text, size_t capacity);
  /* A number that differs for other data, such as a hash of sizes and times. */
  uint64_t (*fingerprint)(void* state);

#if PADDLE_PLUGIN_TARGET_MINOR >= 4
  /* Since 1.4. A stream has `next` instead of `size` and `read`. Its samples come in one order and
   * their number need not be known; the config says how many make an epoch. `location` is called
   * after `next`, for the sample that it gave. */

  /* Reads the next sample: PADDLE_DECLINED at the end of the stream, PADDLE_DATA for a damaged one,
   * after which the next call gives the next one. One thread at a time for each state. A stream
   * that is opened again gives the same samples. */
  paddle_status (*next)(void* state, paddle_call* call, const paddle_sample* sample);
  /* Gives the place before the next sample, by host->write: at most 4096 bytes. `seek` continues
   * from such a place, also in a later process. Both may be null: the engine then reads from the
   * beginning to where a run was interrupted. */
  paddle_status (*position)(void* state, paddle_call* call);
  paddle_status (*seek)(void* state, paddle_call* call, const char* position);
#endif
} paddle_reader;

#ifdef __cplusplus
}
#endif
#endif
