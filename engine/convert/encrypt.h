#pragma once
// Encrypted copies of models.

#include <cstdint>
#include <string>

namespace paddle::convert {

struct EncryptedCopy {
  int64_t files = 0;
  uint64_t bytes = 0;  ///< written
};

/// Copies the file or the folder `in` with all its files to `out`, encrypted with the key that
/// `set_model_key` stated (base/encryption.h), and compares what can be read back. kUsage if `in`
/// is a run folder or encrypted, or if something is at `out` and `overwrite` is false.
EncryptedCopy encrypt_model(const std::string& in, const std::string& out, bool overwrite);

}  // namespace paddle::convert
