#pragma once
// The kinds of files that weights are converted between, and how a path tells which it is.

#include <string>
#include <vector>

namespace paddle::convert {

enum class Format {
  kSafetensors,  ///< one file
  kSharded,      ///< files named by a `.safetensors.index.json`
  kNpz,
  kFolder,  ///< a model folder of ours, or a folder that holds safetensors
  kGguf,    ///< block-quantized tensors are dequantized to float32
  kOnnx,    ///< the initializers of a graph; read only
  kTorch,   ///< PyTorch's .pt and .pth; read only
  kPaddle,  ///< PaddlePaddle's .pdparams, .pdopt and .pdiparams, or a program's; read only
  kHdf5     ///< datasets of numbers; read only
};

std::string text(Format format);
std::vector<std::string> format_names();

/// The format named `given`, or, where that is empty, the one that the path shows. kUsage.
Format format_of(const std::string& path, const std::string& given);
/// The same for a file that is read: where the name says nothing, or another format than the first
/// bytes of the file, its content counts.
Format input_format(const std::string& path, const std::string& given);

}  // namespace paddle::convert
