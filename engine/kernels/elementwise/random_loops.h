#pragma once
// Many random numbers at a time, for the best instruction set of the machine. They are those that
// tensor/random.h gives element by element, bit for bit.

#include <cstdint>

#include "tensor/random.h"

namespace paddle::cpu {

/// `count` words from word `first` on; word w is Random::bits32(w). Words 2 i and 2 i + 1 are the
/// low and high half of Random::bits64(i).
void random_words(const Random& random, uint64_t first, int64_t count, uint32_t* out);

/// mean + deviation * Random::normal(i) for `count` numbers from i = `first` on.
void random_normals(const Random& random, uint64_t first, int64_t count, double mean,
                    double deviation, double* out);

/// low + span * Random::to_float(word), and `low` where rounding reaches `end`.
void uniform_floats(const uint32_t* words, int64_t count, float low, float span, float end,
                    float* out);

/// 0 where Random::to_float(word) is below `probability`, from 0 to 1, else 1.
void dropout_floats(const uint32_t* words, int64_t count, double probability, float* out);

/// Elements `first`, `first` + 1, … of a permutation.
void permutation_elements(const Permutation& order, uint64_t first, int64_t count, int64_t* out);

}  // namespace paddle::cpu
