#include "convert/encrypt.h"

#include <algorithm>
#include <filesystem>

#include "base/encryption.h"
#include "base/files.h"
#include "convert/signature.h"

namespace paddle::convert {
namespace {

void encrypt_one(const std::string& from, const std::string& to, EncryptedCopy& copy) {
  if (is_encrypted(MappedFile::open_stored(from, ErrorCode::kModel)->view()))
    fail(ErrorCode::kUsage, from, ": is encrypted");
  for (const char* const suffix : {".h5", ".hdf5", ".keras"})
    if (from.ends_with(suffix))
      fail(ErrorCode::kUsage, from, ": HDF5 files cannot be read encrypted; convert it before");
  encrypt_file(from, to);
  const auto wanted = MappedFile::open(from, ErrorCode::kModel);
  const auto found = MappedFile::open(to, ErrorCode::kModel);
  if (wanted->view() != found->view())
    fail(ErrorCode::kDevice, to, ": was not read back as it was written");
  ++copy.files;
  copy.bytes += file_size(to, ErrorCode::kModel);
}

}  // namespace

EncryptedCopy encrypt_model(const std::string& in, const std::string& out, bool overwrite) {
  namespace fs = std::filesystem;
  if (!file_exists(in)) fail(ErrorCode::kUsage, in, ": no such file or folder");
  if (file_exists(join_path(in, "run.json")))
    fail(ErrorCode::kUsage, in, ": is a run; state its model, such as ", join_path(in, "model"));
  if (file_exists(out) && !overwrite)
    fail(ErrorCode::kUsage, out, ": already exists (--overwrite replaces it)");
  if (fs::weakly_canonical(in) == fs::weakly_canonical(out))
    fail(ErrorCode::kUsage, out, ": would replace the model itself");
  EncryptedCopy copy;
  if (!is_directory(in)) {
    encrypt_one(in, out, copy);
    return copy;
  }
  for (const std::string& name : files_in(in)) {
    const std::string to = join_path(out, name);
    ensure_directory(fs::path(to).parent_path().string());
    encrypt_one(join_path(in, name), to, copy);
  }
  return copy;
}

}  // namespace paddle::convert
