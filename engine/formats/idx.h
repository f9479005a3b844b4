#pragma once
// IDX files, the format of MNIST (http://yann.lecun.com/exdb/mnist): element type, up to 255 sizes,
// big-endian elements. Plain byte files are mapped; gzip files are inflated.

#include <string>

#include "tensor/tensor.h"

namespace paddle::formats {

/// Reads a plain or gzip file (detected by content). The declared sizes must match the file
/// exactly; they are checked before memory is allocated.
Array read_idx(const std::string& path);

}  // namespace paddle::formats
