#include "convert/format.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "formats/paddle_program.h"
#include "formats/zip.h"

namespace paddle::convert {
namespace {

constexpr const char* kNames[] = {"safetensors", "sharded", "npz",    "folder", "gguf",
                                  "onnx",        "torch",   "paddle", "hdf5"};

/// The format that the name shows.
std::optional<Format> named_format(const std::string& path) {
  if (is_directory(path)) return Format::kFolder;
  if (path.ends_with(".index.json")) return Format::kSharded;
  if (path.ends_with(".safetensors")) return Format::kSafetensors;
  if (path.ends_with(".npz")) return Format::kNpz;
  if (path.ends_with(".onnx")) return Format::kOnnx;
  if (path.ends_with(".gguf")) return Format::kGguf;
  for (const char* suffix : {".pt", ".pth"})
    if (path.ends_with(suffix)) return Format::kTorch;
  for (const char* suffix : {".h5", ".hdf5", ".hdf", ".keras"})
    if (path.ends_with(suffix)) return Format::kHdf5;
  for (const char* suffix : {".pdparams", ".pdopt", ".pdiparams", ".pdmodel", ".json"})
    if (path.ends_with(suffix)) return Format::kPaddle;
  return std::nullopt;
}

/// The format that the first bytes show; nullopt where they show none.
std::optional<Format> format_in(const std::string& path) {
  if (!file_exists(path) || is_directory(path)) return std::nullopt;
  const std::string head = read_beginning(path, 16, ErrorCode::kModel);
  const auto begins = [&](std::string_view bytes) { return head.starts_with(bytes); };
  if (begins("GGUF")) return Format::kGguf;
  if (begins("\x89HDF\r\n\x1a\n")) return Format::kHdf5;
  // A pickle begins with its protocol.
  if (head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) return Format::kTorch;
  // The size of the header, then JSON.
  if (head.size() > 8 && head[8] == '{') {
    uint64_t size = 0;
    std::memcpy(&size, head.data(), sizeof size);
    if (size > 1 && size <= file_size(path, ErrorCode::kModel)) return Format::kSafetensors;
  }
  if (!begins("PK\x03\x04")) return std::nullopt;
  try {
    const formats::ZipReader zip(path, ErrorCode::kModel);
    for (const formats::ZipEntry& entry : zip.entries()) {
      if (entry.name == "data.pkl" || entry.name.ends_with("/data.pkl")) return Format::kTorch;
      if (entry.name == "model.weights.h5") return Format::kHdf5;
      if (entry.name.ends_with(".npy")) return Format::kNpz;
    }
  } catch (const Error&) {
    // A damaged archive is read by its name, which gives the error.
  }
  return std::nullopt;
}

}  // namespace

std::string text(Format format) { return kNames[static_cast<size_t>(format)]; }

std::vector<std::string> format_names() { return {std::begin(kNames), std::end(kNames)}; }

Format input_format(const std::string& path, const std::string& given) {
  if (!given.empty()) return format_of(path, given);
  if (formats::is_paddle_program(path)) return Format::kPaddle;
  if (const auto found = format_in(path)) {
    // Pickles of PyTorch and PaddlePaddle are read alike.
    const bool pickle = *found == Format::kTorch && named_format(path) == Format::kPaddle;
    return pickle ? Format::kPaddle : *found;
  }
  return format_of(path, given);
}

Format format_of(const std::string& path, const std::string& given) {
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (given == kNames[i]) return static_cast<Format>(i);
  if (!given.empty())
    fail(ErrorCode::kUsage, "there is no format '", given, "'", did_you_mean(given, format_names()),
         "; expected ", join(format_names(), ", "));
  if (const auto named = named_format(path)) return *named;
  fail(ErrorCode::kUsage, path, ": the name does not tell the format; expected .safetensors, ",
       ".safetensors.index.json, .npz, .onnx, .gguf, .pt, .pth, .pdparams, .pdmodel, .h5 or a "
       "folder "
       "(or say --from, --to)");
}

}  // namespace paddle::convert
