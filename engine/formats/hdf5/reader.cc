#include "formats/hdf5/reader.h"

#include <mutex>
#include <optional>

#include "base/files.h"
#include "base/module.h"
#include "formats/hdf5/module/interface.h"
#include "formats/zip.h"

namespace paddle::formats {
namespace {

/// The functions of the module. The HDF5 library is not thread-safe, so calls hold the lock.
class Functions {
 public:
  static Functions& get() {
    static Functions functions;
    return functions;
  }

  std::mutex mutex;

  template <class F>
  F* find(const char* name, const std::string& path) {
    return module_.require<F>(name, path + ": this installation cannot read HDF5 files");
  }

 private:
  Module module_{Module::default_path("hdf5"), PADDLE_HDF5_VERSION};
};

std::optional<DType> dtype_of(char type, size_t bytes) {
  switch (type) {
    case 'f':
      return bytes == 8   ? std::optional(DType::kF64)
             : bytes == 4 ? std::optional(DType::kF32)
             : bytes == 2 ? std::optional(DType::kF16)
                          : std::nullopt;
    case 'i':
      return bytes == 8   ? std::optional(DType::kI64)
             : bytes == 4 ? std::optional(DType::kI32)
             : bytes == 2 ? std::optional(DType::kI16)
             : bytes == 1 ? std::optional(DType::kI8)
                          : std::nullopt;
    case 'u':
      return bytes == 8   ? std::optional(DType::kU64)
             : bytes == 4 ? std::optional(DType::kU32)
             : bytes == 2 ? std::optional(DType::kU16)
             : bytes == 1 ? std::optional(DType::kU8)
                          : std::nullopt;
    case 'b':
      return DType::kBool;
    default:
      return std::nullopt;
  }
}

constexpr size_t kMessage = 512;

/// The weights in a file that Keras saved; empty for other files.
std::vector<std::byte> weights_of_keras(const std::string& path) {
  constexpr std::string_view kZip = "PK\x03\x04", kWeights = "model.weights.h5";
  {
    const auto file = MappedFile::open(path, ErrorCode::kModel);
    if (!file->view().starts_with(kZip)) return {};
  }
  const ZipReader zip(path, ErrorCode::kModel);
  for (const ZipEntry& entry : zip.entries()) {
    if (entry.name != kWeights) continue;
    std::vector<std::byte> out(static_cast<size_t>(entry.bytes));
    zip.extract(entry, out);
    return out;
  }
  fail(ErrorCode::kModel, path, ": is an archive without ", kWeights, ", so not one of Keras");
}

}  // namespace

Hdf5Reader::Hdf5Reader(const std::string& path) : path_(path) {
  Functions& functions = Functions::get();
  const std::lock_guard lock(functions.mutex);
  const auto open = functions.find<decltype(paddle_hdf5_open)>("paddle_hdf5_open", path);
  const auto open_image =
      functions.find<decltype(paddle_hdf5_open_image)>("paddle_hdf5_open_image", path);
  const auto close = functions.find<decltype(paddle_hdf5_close)>("paddle_hdf5_close", path);
  const auto list = functions.find<decltype(paddle_hdf5_list)>("paddle_hdf5_list", path);
  char message[kMessage] = {};
  std::vector<std::byte> image = weights_of_keras(path);
  // Chunks are made of what the file has, so a small file can describe a large array; but not one
  // of more than a thousand times its size.
  constexpr uint64_t kMaxCompression = 1032;
  const uint64_t size = image.empty() ? file_size(path, ErrorCode::kModel) : image.size();
  if (__builtin_mul_overflow(size, kMaxCompression, &largest_)) largest_ = ~uint64_t{0};
  void* const file = image.empty() ? open(path.c_str(), message, kMessage)
                                   : open_image(image.data(), image.size(), message, kMessage);
  if (!file) fail(ErrorCode::kModel, path, ": ", message);
  const auto visit = [](void* context, const char* name, char type, size_t bytes, int rank,
                        const uint64_t* shape) {
    Hdf5Reader& reader = *static_cast<Hdf5Reader*>(context);
    if (type == 'l') return reader.links_.emplace_back(name), void();
    const auto dtype = dtype_of(type, bytes);
    Dims dims;
    int64_t count = 1;
    bool fits = dtype.has_value();
    for (int i = 0; i < rank; ++i) {
      dims.push_back(static_cast<int64_t>(shape[i]));
      fits = fits && dims.back() >= 0 &&
             !__builtin_mul_overflow(count, std::max<int64_t>(1, dims.back()), &count);
    }
    if (fits)
      reader.datasets_.push_back({name, *dtype, std::move(dims)});
    else
      reader.others_.emplace_back(name);
  };
  if (list(file, visit, this, message, kMessage) != 0) {
    close(file);
    fail(ErrorCode::kModel, path, ": ", message);
  }
  file_ = std::shared_ptr<void>(file, [close](void* opened) {
    const std::lock_guard closing(Functions::get().mutex);
    close(opened);
  });
}

Array Hdf5Reader::read(size_t index) const {
  const Hdf5Dataset& dataset = datasets_.at(index);
  const auto bytes = static_cast<uint64_t>(
      storage_bytes(dataset.dtype, element_count(std::span<const int64_t>(dataset.shape))));
  if (bytes > largest_)
    fail(ErrorCode::kModel, path_, ": the dataset '", dataset.name, "' has ", human_bytes(bytes),
         ", more than a file of this size can hold");
  Array out = Array::empty(dataset.dtype, dataset.shape);
  Functions& functions = Functions::get();
  const std::lock_guard lock(functions.mutex);
  const auto read_function = functions.find<decltype(paddle_hdf5_read)>("paddle_hdf5_read", path_);
  char message[kMessage] = {};
  if (read_function(file_.get(), dataset.name.c_str(), out.raw(), static_cast<size_t>(bytes),
                    message, kMessage) != 0)
    fail(ErrorCode::kModel, path_, ": ", message);
  return out;
}

}  // namespace paddle::formats
