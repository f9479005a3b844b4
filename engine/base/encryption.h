#pragma once
// Encrypted model files. A file of any format is stored as a header and chunks that are encrypted
// with AES-256-GCM; `read_file` and `MappedFile` (base/files.h) decrypt it into memory. OpenSSL
// does the work, in the module `crypto`.
//
//   magic "PADDLENC", version (u32), bytes of a chunk (u32), bytes of the content (u64), salt (32
//   bytes), 8 bytes of 0; then for each chunk its encrypted bytes and a tag of 16 bytes. Numbers
//   are little-endian; only the last chunk is shorter, and an empty file has one empty chunk.
//
// The key of a file is HMAC-SHA-256 of the model's key over "paddle model file" and the salt; the
// nonce of a chunk is its number, and its tag also covers the header. So chunks cannot be changed,
// exchanged or left out.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace paddle {

inline constexpr size_t kEncryptedHeaderBytes = 64;

/// States where the key of encrypted files comes from; it is read when the first such file is
/// opened, or encrypted:
///   file:PATH        a file with 32 bytes, or 64 hexadecimal digits
///   env:NAME         a variable with 64 hexadecimal digits
///   command:COMMAND  what a shell command prints: 64 hexadecimal digits
/// kUsage for another form. Without it, PADDLE_MODEL_KEY has the source.
void set_model_key(const std::string& source);

/// Whether a file that begins so is encrypted.
bool is_encrypted(std::string_view beginning);
/// The size of the content of an encrypted file of `bytes`, whose first 64 bytes are `header`; an
/// error of the code `code`, naming `path`, for a header or size that is not valid.
uint64_t decrypted_size(std::string_view header, uint64_t bytes, const std::string& path,
                        ErrorCode code);
/// Decrypts a whole file, of which `descriptor` is open and `header` has the first 64 bytes, to
/// `out`, which has its decrypted size. An error of the code `code`, naming `path`, if the key is
/// missing or wrong, or if the file was changed; kDevice without the module.
void decrypt_file(int descriptor, std::string_view header, uint64_t bytes, const std::string& path,
                  ErrorCode code, std::byte* out);

/// The first chunk of such a file, decrypted.
std::string decrypt_beginning(int descriptor, std::string_view header, uint64_t bytes,
                              const std::string& path, ErrorCode code);

/// Writes the content of the file `from`, which is not encrypted, encrypted to `to`, whole or not
/// at all.
void encrypt_file(const std::string& from, const std::string& to);

}  // namespace paddle
