#pragma once
// IDX files, the format of MNIST (http://yann.lecun.com/exdb/mnist): an element type, up to 255
// sizes, and big-endian elements. Plain files of bytes are mapped; gzip files are inflated.

#include <string>

#include "tensor/tensor.h"

namespace paddle::formats {

/// Reads a plain or gzip file (told apart by content). The declared sizes must fill the file
/// exactly; they are checked before any memory is taken.
Array read_idx(const std::string& path);

}  // namespace paddle::formats
