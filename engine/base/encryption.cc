#include "base/encryption.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/crypto.h"
#include "base/files.h"
#include "base/hex.h"
#include "base/parallel.h"
#include "base/sha256.h"
#include "base/text.h"

namespace paddle {
namespace {

constexpr std::string_view kMagic = "PADDLENC";
constexpr uint32_t kVersion = 1, kChunkBytes = 1 << 16, kMaxChunkBytes = 1 << 24;
constexpr size_t kKeyBytes = 32, kSaltBytes = 32, kTagBytes = 16, kNonceBytes = 12;
constexpr const char* kVariable = "PADDLE_MODEL_KEY";
constexpr const char* kSources = "file:PATH, env:NAME or command:COMMAND";

using Key = std::array<uint8_t, kKeyBytes>;

template <class Number>
Number number_at(std::string_view bytes, size_t at) {
  Number out;
  std::memcpy(&out, bytes.data() + at, sizeof out);
  return out;
}

// --- the model's key ---

/// Kind and rest of "file:PATH".
std::pair<std::string, std::string> split_source(const std::string& source) {
  const size_t colon = source.find(':');
  std::string kind = source.substr(0, colon);
  if (colon == std::string::npos || colon + 1 == source.size() ||
      (kind != "file" && kind != "env" && kind != "command"))
    fail(ErrorCode::kUsage, "key '", source, "': expected ", kSources);
  return {std::move(kind), source.substr(colon + 1)};
}

std::optional<Key> key_of_digits(std::string_view digits) {
  std::string lower(trim(digits));
  for (char& c : lower)
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c + ('a' - 'A'));
  Key out;
  if (!read_hex_digits(lower, std::as_writable_bytes(std::span(out)))) return std::nullopt;
  return out;
}

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "re"), ::pclose);
  if (!pipe) fail(ErrorCode::kUsage, "the command of the key cannot be started");
  std::string out(256, '\0');
  out.resize(std::fread(out.data(), 1, out.size(), pipe.get()));
  return out;
}

Key read_key(const std::string& source) {
  const auto [kind, rest] = split_source(source);
  std::optional<Key> key;
  if (kind == "file") {
    const std::string text = read_file(rest, 4096, ErrorCode::kUsage);
    key = key_of_digits(text);
    if (!key && text.size() == kKeyBytes) std::memcpy(key.emplace().data(), text.data(), kKeyBytes);
  } else if (kind == "env") {
    const char* const value = std::getenv(rest.c_str());
    if (!value) fail(ErrorCode::kUsage, "key '", source, "': the variable is not set");
    key = key_of_digits(value);
  } else {
    key = key_of_digits(output_of(rest));
  }
  if (!key)
    fail(ErrorCode::kUsage, "key '", source,
         "': is not a key of 32 bytes, as 64 hexadecimal digits",
         kind == "file" ? " or as they are" : "");
  return *key;
}

/// The source, and the key once it was read.
struct ModelKey {
  std::mutex mutex;
  std::string source;
  std::optional<Key> key;
};
ModelKey& model_key() {
  static ModelKey key;
  return key;
}

/// Nullopt if no source is stated.
std::optional<Key> find_model_key() {
  ModelKey& model = model_key();
  const std::lock_guard lock(model.mutex);
  if (model.key) return model.key;
  const char* const variable = std::getenv(kVariable);
  const std::string source = !model.source.empty() ? model.source : variable ? variable : "";
  if (source.empty()) return std::nullopt;
  model.key = read_key(source);
  return model.key;
}

// --- chunks ---

Key key_of_file(const Key& model, std::string_view salt) {
  const std::string_view key(reinterpret_cast<const char*>(model.data()), model.size());
  return *key_of_digits(hmac_sha256(key, str("paddle model file", salt)));
}

uint64_t chunk_count(uint64_t content, uint32_t chunk) {
  return std::max<uint64_t>(1, (content + chunk - 1) / chunk);
}

/// Encrypts or decrypts the chunk `index`.
bool run_chunk(paddle_aes_gcm_open_t* function, const Key& key, std::string_view header,
               uint64_t index, const uint8_t* in, uint8_t* out, size_t bytes, uint8_t* tag) {
  std::array<uint8_t, kNonceBytes> nonce{};
  std::memcpy(nonce.data(), &index, sizeof index);
  const PaddleAesGcm call = {.key = key.data(),
                             .nonce = nonce.data(),
                             .extra = reinterpret_cast<const uint8_t*>(header.data()),
                             .extra_bytes = header.size(),
                             .in = in,
                             .out = out,
                             .bytes = bytes,
                             .tag = tag};
  return function(&call) == 1;
}

/// Reads `bytes` at `offset`; false at the end of the file or for an error.
bool read_at(int descriptor, uint64_t offset, uint8_t* out, size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = ::pread(descriptor, out, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    out += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

/// The chunks of an encrypted file that is open.
class Chunks {
 public:
  Chunks(int descriptor, std::string_view header, uint64_t bytes, const std::string& path,
         ErrorCode code)
      : descriptor_(descriptor),
        header_(header),
        path_(path),
        code_(code),
        content_(decrypted_size(header, bytes, path, code)),
        chunk_(number_at<uint32_t>(header, 12)) {
    const std::optional<Key> model = find_model_key();
    if (!model)
      fail(code, "'", path, "' is encrypted: state its key by --model-key or ", kVariable, " (",
           kSources, ")");
    open_ = crypto_function<paddle_aes_gcm_open_t>("paddle_aes_gcm_open");
    key_ = key_of_file(*model, header.substr(24, kSaltBytes));
  }

  uint64_t count() const { return chunk_count(content_, chunk_); }
  size_t size_of(uint64_t index) const {
    return std::min<uint64_t>(chunk_, content_ - index * chunk_);
  }

  /// Decrypts the first `count` chunks to `out`.
  void decrypt(uint64_t count, uint8_t* out) const {
    std::atomic<bool> is_read = true, is_authentic = true;
    parallel_for(static_cast<int64_t>(count), 16, [&](int64_t begin, int64_t end) {
      std::vector<uint8_t> stored(chunk_ + kTagBytes);
      for (auto i = static_cast<uint64_t>(begin); i < static_cast<uint64_t>(end); ++i) {
        const size_t size = size_of(i);
        if (!read_at(descriptor_, kEncryptedHeaderBytes + i * stored.size(), stored.data(),
                     size + kTagBytes))
          is_read = false;
        else if (!run_chunk(open_, key_, header_, i, stored.data(), out + i * chunk_, size,
                            stored.data() + size))
          is_authentic = false;
        if (!is_read || !is_authentic) return;
      }
    });
    if (!is_read) fail(code_, "'", path_, "' cannot be read to its end");
    if (!is_authentic)
      fail(code_, "'", path_,
           "' cannot be decrypted: the key is another one, or the file was changed");
  }

 private:
  int descriptor_;
  std::string_view header_;
  const std::string& path_;
  ErrorCode code_;
  uint64_t content_;
  uint32_t chunk_;
  paddle_aes_gcm_open_t* open_ = nullptr;
  Key key_{};
};

std::string new_header(uint64_t content) {
  std::string header(kMagic);
  const auto add = [&](const auto& number) {
    header.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  add(kVersion);
  add(kChunkBytes);
  add(content);
  std::array<uint8_t, kSaltBytes> salt;
  if (crypto_function<paddle_random_bytes_t>("paddle_random_bytes")(salt.data(), salt.size()) != 1)
    fail(ErrorCode::kDevice, "OpenSSL has no random bytes");
  header.append(reinterpret_cast<const char*>(salt.data()), salt.size());
  header.resize(kEncryptedHeaderBytes, '\0');
  return header;
}

}  // namespace

void set_model_key(const std::string& source) {
  split_source(source);
  ModelKey& model = model_key();
  const std::lock_guard lock(model.mutex);
  model.source = source;
  model.key.reset();
}

bool is_encrypted(std::string_view beginning) { return beginning.starts_with(kMagic); }

uint64_t decrypted_size(std::string_view header, uint64_t bytes, const std::string& path,
                        ErrorCode code) {
  if (header.size() != kEncryptedHeaderBytes || bytes < kEncryptedHeaderBytes)
    fail(code, "'", path, "': the encrypted file ends within its header");
  const auto version = number_at<uint32_t>(header, 8), chunk = number_at<uint32_t>(header, 12);
  const auto content = number_at<uint64_t>(header, 16);
  if (version != kVersion)
    fail(code, "'", path, "': is encrypted in version ", version, ", this program reads version ",
         kVersion);
  if (chunk < 1024 || chunk > kMaxChunkBytes || content > bytes ||
      kEncryptedHeaderBytes + content + kTagBytes * chunk_count(content, chunk) != bytes)
    fail(code, "'", path, "': the encrypted file was cut, or its header is damaged");
  return content;
}

void decrypt_file(int descriptor, std::string_view header, uint64_t bytes, const std::string& path,
                  ErrorCode code, std::byte* out) {
  const Chunks chunks(descriptor, header, bytes, path, code);
  chunks.decrypt(chunks.count(), reinterpret_cast<uint8_t*>(out));
}

std::string decrypt_beginning(int descriptor, std::string_view header, uint64_t bytes,
                              const std::string& path, ErrorCode code) {
  const Chunks chunks(descriptor, header, bytes, path, code);
  std::string out(chunks.size_of(0), '\0');
  chunks.decrypt(1, reinterpret_cast<uint8_t*>(out.data()));
  return out;
}

void encrypt_file(const std::string& from, const std::string& to) {
  const std::shared_ptr<MappedFile> content = MappedFile::open(from, ErrorCode::kModel);
  const std::optional<Key> model = find_model_key();
  if (!model) fail(ErrorCode::kUsage, "there is no key to encrypt with: state one of ", kSources);
  const std::string header = new_header(content->size());
  const Key key = key_of_file(*model, std::string_view(header).substr(24, kSaltBytes));
  auto* const seal = crypto_function<paddle_aes_gcm_seal_t>("paddle_aes_gcm_seal");
  AtomicFile file(to);
  file.write(header);
  std::vector<uint8_t> stored(kChunkBytes + kTagBytes);
  const uint64_t count = chunk_count(content->size(), kChunkBytes);
  for (uint64_t i = 0; i < count; ++i) {
    const size_t begin = i * kChunkBytes;
    const size_t size = std::min<size_t>(kChunkBytes, content->size() - begin);
    if (!run_chunk(seal, key, header, i, reinterpret_cast<const uint8_t*>(content->data()) + begin,
                   stored.data(), size, stored.data() + size))
      fail(ErrorCode::kDevice, "'", to, "': OpenSSL cannot encrypt");
    file.write(stored.data(), size + kTagBytes);
  }
  file.commit();
}

}  // namespace paddle
