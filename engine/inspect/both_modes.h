#pragma once
// Running a function of tensors on arrays in either mode: eagerly under a tape, or traced,
// simplified, planned and executed. Checks use it to hold both modes to the same reference.

#include <optional>
#include <string>
#include <vector>

#include "tensor/interpreter.h"

namespace paddle::inspect {

enum class Mode : uint8_t { kEager, kCompiled };
std::string text(Mode mode);

/// Results are copies on the host that own their memory; nullopt where `fn` gave an undefined
/// tensor. Random operations draw from a fixed seed, the same in both modes.
std::vector<std::optional<Array>> run(Mode mode, const TensorFn& fn,
                                      const std::vector<Array>& inputs, Device device = {});

/// A contiguous copy with memory of its own.
Array own_copy(const Array& array);
/// The same elements, but with the last axis outermost in memory (itself below two axes).
Array strided_copy(const Array& array);

}  // namespace paddle::inspect
