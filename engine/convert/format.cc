#include "convert/format.h"

#include <iterator>

#include "base/error.h"
#include "base/files.h"

namespace paddle::convert {
namespace {

constexpr const char* kNames[] = {"safetensors", "sharded", "npz",    "folder", "gguf",
                                  "onnx",        "torch",   "paddle", "hdf5"};

}  // namespace

std::string text(Format format) { return kNames[static_cast<size_t>(format)]; }

std::vector<std::string> format_names() { return {std::begin(kNames), std::end(kNames)}; }

Format format_of(const std::string& path, const std::string& given) {
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (given == kNames[i]) return static_cast<Format>(i);
  if (!given.empty())
    fail(ErrorCode::kUsage, "there is no format '", given, "'", did_you_mean(given, format_names()),
         "; expected ", join(format_names(), ", "));
  if (is_directory(path)) return Format::kFolder;
  if (path.ends_with(".index.json")) return Format::kSharded;
  if (path.ends_with(".safetensors")) return Format::kSafetensors;
  if (path.ends_with(".npz")) return Format::kNpz;
  if (path.ends_with(".onnx")) return Format::kOnnx;
  if (path.ends_with(".gguf")) return Format::kGguf;
  for (const char* suffix : {".pt", ".pth"})
    if (path.ends_with(suffix)) return Format::kTorch;
  for (const char* suffix : {".h5", ".hdf5"})
    if (path.ends_with(suffix)) return Format::kHdf5;
  for (const char* suffix : {".pdparams", ".pdopt", ".pdiparams", ".pdmodel", ".json"})
    if (path.ends_with(suffix)) return Format::kPaddle;
  fail(ErrorCode::kUsage, path, ": the name does not tell the format; expected .safetensors, ",
       ".safetensors.index.json, .npz, .onnx, .gguf, .pt, .pth, .pdparams, .pdmodel, .h5 or a "
       "folder "
       "(or say --from, --to)");
}

}  // namespace paddle::convert
