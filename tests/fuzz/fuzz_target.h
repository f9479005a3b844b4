#pragma once
// Shared by the fuzz targets: the input as a file, and which outcomes of a reader are correct.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "tensor/tensor.h"

namespace paddle::fuzz {

/// Writes the bytes to a file of this name in a folder of this process and returns its path. The
/// folder also holds `weights.bin`, 64 bytes that models may name as external data.
std::string input_file(std::span<const uint8_t> bytes, const std::string& name);

/// Runs `body`. An Error of a bad file, of wrong data or of a lack of memory is a right end, and
/// so is not an error; anything else aborts.
void expect_documented_end(const std::function<void()>& body);

/// Reads every byte of an array, so that a sanitizer sees memory that is not there.
void read_all(const Array& array);

}  // namespace paddle::fuzz
