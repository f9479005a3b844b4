// Arrays in files, and arrays of other libraries.

#include <algorithm>
#include <memory>
#include <vector>

#include "api/access.h"
#include "formats/npz.h"
#include "formats/safetensors.h"
#include "paddle/array.h"
#include "tensor/dlpack.h"

namespace paddle::v0 {
namespace {

enum class Format { kNpz, kNpy, kSafetensors };

Format format_of(const std::string& path, const char* function) {
  if (path.ends_with(".npz")) return Format::kNpz;
  if (path.ends_with(".npy")) return Format::kNpy;
  if (path.ends_with(".safetensors")) return Format::kSafetensors;
  fail(paddle::ErrorCode::kUsage, function, ": '", path,
       "' does not end with .npz, .npy or .safetensors");
}

Array handle_of(const paddle::Array& array, const std::string& name) {
  const DType held = public_dtype(array.dtype, str("the array '", name, "'"));
  return Access::handle(engine_dtype(held) == array.dtype
                            ? array.contiguous()
                            : array.contiguous().cast(engine_dtype(held)));
}

}  // namespace

void save_arrays(const std::string& path, const std::map<std::string, Array>& arrays) {
  translated([&] {
    std::vector<std::pair<std::string, paddle::Array>> named;
    for (const auto& [name, array] : arrays) named.emplace_back(name, Access::engine(array));
    switch (format_of(path, "save_arrays")) {
      case Format::kSafetensors:
        return formats::write_safetensors(path, named, {});
      case Format::kNpy:
        if (named.size() != 1)
          fail(paddle::ErrorCode::kUsage, "save_arrays: ", path, ": holds one array, ",
               named.size(), " are given");
        return formats::write_npy(path, named[0].second);
      case Format::kNpz: {
        formats::NpzWriter file(path);
        for (const auto& [name, array] : named) file.add(name, array);
        return file.close();
      }
    }
  });
}

std::map<std::string, Array> load_arrays(const std::string& path) {
  return translated([&] {
    std::map<std::string, Array> out;
    switch (format_of(path, "load_arrays")) {
      case Format::kSafetensors: {
        const formats::SafetensorsReader file(path, paddle::ErrorCode::kData);
        for (const auto& entry : file.entries())
          out.emplace(entry.name, handle_of(file.read(entry), entry.name));
        break;
      }
      case Format::kNpy:
        out.emplace("", handle_of(formats::read_npy(path), path));
        break;
      case Format::kNpz:
        for (const auto& [name, array] : formats::read_npz(path))
          out.emplace(name, handle_of(array, name));
        break;
    }
    return out;
  });
}

Array Array::from_dlpack(DLManagedTensor* tensor) {
  if (!tensor) throw UsageError(ErrorCode::kUsage, "from_dlpack: the tensor is a null pointer");
  return translated([&] {
    auto* const managed = reinterpret_cast<dlpack::Managed*>(tensor);
    const auto takes = std::make_shared<bool>(false);  // the caller keeps what is rejected
    const std::shared_ptr<void> owner(managed, [takes](void* held) {
      auto* const it = static_cast<dlpack::Managed*>(held);
      if (*takes && it->deleter) it->deleter(it);
    });
    const paddle::Array array = dlpack::array_of(managed->tensor, owner);
    public_dtype(array.dtype, "from_dlpack: the array");
    *takes = true;
    return Access::handle(array.contiguous());
  });
}

DLManagedTensor* Array::to_dlpack() const {
  return translated([&] {
    return reinterpret_cast<DLManagedTensor*>(
        dlpack::managed<dlpack::Managed>(Access::engine(*this)));
  });
}

}  // namespace paddle::v0
