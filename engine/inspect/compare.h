#pragma once
// Comparing an array with a reference, and saying in one line how they differ.

#include <optional>
#include <string>

#include "tensor/tensor.h"

namespace paddle::inspect {

struct Tolerance {
  double relative = 1e-5;
  double absolute = 1e-6;
};

/// "" if the shapes and dtypes agree and every element is within absolute + relative * |expected|;
/// integers and booleans must be equal, NaN equals NaN, and an infinity itself. bfloat16 compares
/// with the float32 that holds it. Otherwise what differs.
std::string difference(const Array& found, const Array& expected, const Tolerance& tolerance);

/// The values of a comparison that failed, for reports.
struct Mismatch {
  std::string text;  ///< how the comparison says it
  std::string found, expected;
  double tolerance = 0;  ///< how far they might be apart
};
/// Keeps the values of the last comparison that failed in this process, as `difference` does.
void note_mismatch(Mismatch mismatch);
/// The last one whose text is in a message.
std::optional<Mismatch> mismatch_of(const std::string& message);

}  // namespace paddle::inspect
