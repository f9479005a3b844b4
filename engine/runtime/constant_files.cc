#include "runtime/constant_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/files.h"
#include "base/hash.h"
#include "formats/safetensors.h"

namespace paddle::runtime {
namespace {

constexpr const char* kFolder = "constants/";
constexpr const char* kEnding = ".safetensors";
constexpr const char* kTensor = "value";

std::string name_of(const Array& packed) {
  const std::string_view bytes(static_cast<const char*>(packed.raw()),
                               static_cast<size_t>(storage_bytes(packed.dtype, packed.size())));
  const uint64_t shape = fnv1a(str(text(packed.dtype), packed.shape));
  const std::string digits = fmt::format("{:016x}{:016x}", static_cast<unsigned long>(fnv1a(bytes)),
                                         static_cast<unsigned long>(shape));
  return str(kFolder, digits, kEnding);
}

/// Only what `put` names is read: no other folders.
bool is_name(std::string_view name) {
  if (!name.starts_with(kFolder) || !name.ends_with(kEnding)) return false;
  name.remove_prefix(std::string_view(kFolder).size());
  name.remove_suffix(std::string_view(kEnding).size());
  return name.size() == 32 && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::string ConstantFiles::put(const Array& array) {
  if (!formats::safetensors_has(array.dtype)) return "";
  auto& [storage, name] = written_[{array.raw(), str(text(array.dtype), array.shape)}];
  const Array packed = array.contiguous();
  if (storage.lock() == array.storage && !name.empty() && packed.storage == array.storage)
    return name;
  name = name_of(packed);
  storage = array.storage;
  const std::string path = (std::filesystem::path(folder_) / name).string();
  if (file_exists(path)) return name;
  ensure_directory((std::filesystem::path(folder_) / kFolder).string());
  formats::write_safetensors(path, {{kTensor, packed}});
  return name;
}

Array ConstantFiles::get(const std::string& name) const {
  const std::string path = (std::filesystem::path(folder_) / name).string();
  if (!is_name(name)) fail(ErrorCode::kModel, "'", name, "' is not the file of a constant");
  if (!file_exists(path)) fail(ErrorCode::kModel, path, ": the file of a constant is missing");
  return formats::SafetensorsReader(path).read(kTensor);
}

}  // namespace paddle::runtime
