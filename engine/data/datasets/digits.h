#pragma once
// Handwritten-looking digits that we draw ourselves. Each class has several ways of writing it
// (strokes through control points, as people in Europe and America write them); a drawing picks
// one, moves its points, slants, turns, stretches and bends it, and renders it with a pen of
// random width. The result is framed as MNIST frames its digits: 28 x 28 grey, the ink in a box of
// 20 x 20, the center of mass in the middle. A model trained on them reads real digits.

#include <cstdint>
#include <span>

#include "tensor/random.h"

namespace paddle::data {

inline constexpr int kDigitSide = 28;

/// Draws digit `label` (0 to 9) into 28 x 28 bytes, 0 for paper and 255 for ink. The drawing is a
/// function of the label and the numbers that `random` draws.
void draw_digit(int label, RandomSequence& random,
                std::span<uint8_t, kDigitSide * kDigitSide> image);

}  // namespace paddle::data
