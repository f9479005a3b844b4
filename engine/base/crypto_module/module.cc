// The module `crypto`: AES-256-GCM, Ed25519 and random bytes, by OpenSSL.

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include <climits>
#include <memory>

#include "base/crypto_module/interface.h"

using paddle::PaddleAesGcm;

#define PADDLE_EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kTagBytes = 16, kNonceBytes = 12;
constexpr size_t kSignatureBytes = 64;

using Cipher = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Digest = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;
using Memory = std::unique_ptr<BIO, decltype(&BIO_free)>;

int run(const PaddleAesGcm& call, bool seal) {
  if (call.bytes > INT_MAX || call.extra_bytes > INT_MAX) return 0;
  const Cipher cipher(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  EVP_CIPHER_CTX* const c = cipher.get();
  const int encrypts = seal ? 1 : 0;
  int written = 0;
  if (!c || EVP_CipherInit_ex(c, EVP_aes_256_gcm(), nullptr, nullptr, nullptr, encrypts) != 1 ||
      EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_IVLEN, kNonceBytes, nullptr) != 1 ||
      EVP_CipherInit_ex(c, nullptr, nullptr, call.key, call.nonce, encrypts) != 1 ||
      EVP_CipherUpdate(c, nullptr, &written, call.extra, static_cast<int>(call.extra_bytes)) != 1)
    return 0;
  if (call.bytes > 0 &&
      EVP_CipherUpdate(c, call.out, &written, call.in, static_cast<int>(call.bytes)) != 1)
    return 0;
  if (!seal && EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, kTagBytes, call.tag) != 1) return 0;
  uint8_t rest[kTagBytes];
  if (EVP_CipherFinal_ex(c, rest, &written) != 1) return 0;
  return !seal || EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, kTagBytes, call.tag) == 1 ? 1 : 0;
}

/// Null unless the text is a key of Ed25519.
Key read_key(const char* pem, size_t bytes, bool is_private) {
  const Memory text(bytes > INT_MAX ? nullptr : BIO_new_mem_buf(pem, static_cast<int>(bytes)),
                    BIO_free);
  // A key with a passphrase is not asked for on the terminal.
  const auto none = [](char*, int, int, void*) { return 0; };
  Key key(!text        ? nullptr
          : is_private ? PEM_read_bio_PrivateKey(text.get(), nullptr, none, nullptr)
                       : PEM_read_bio_PUBKEY(text.get(), nullptr, none, nullptr),
          EVP_PKEY_free);
  if (key && EVP_PKEY_get_id(key.get()) != EVP_PKEY_ED25519) key.reset();
  return key;
}

}  // namespace

PADDLE_EXPORTED int paddle_module_version() { return paddle::kCryptoModuleVersion; }

PADDLE_EXPORTED int paddle_aes_gcm_seal(const PaddleAesGcm* call) { return run(*call, true); }

PADDLE_EXPORTED int paddle_aes_gcm_open(const PaddleAesGcm* call) { return run(*call, false); }

PADDLE_EXPORTED int paddle_random_bytes(uint8_t* out, size_t bytes) {
  return bytes <= INT_MAX && RAND_bytes(out, static_cast<int>(bytes)) == 1 ? 1 : 0;
}

PADDLE_EXPORTED int paddle_ed25519_sign(const char* pem, size_t pem_bytes, const uint8_t* message,
                                        size_t bytes, uint8_t* signature) {
  const Key key = read_key(pem, pem_bytes, true);
  const Digest digest(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  size_t written = kSignatureBytes;
  return key && digest &&
                 EVP_DigestSignInit(digest.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
                 EVP_DigestSign(digest.get(), signature, &written, message, bytes) == 1 &&
                 written == kSignatureBytes
             ? 1
             : 0;
}

PADDLE_EXPORTED int paddle_ed25519_verify(const char* pem, size_t pem_bytes, const uint8_t* message,
                                          size_t bytes, const uint8_t* signature) {
  const Key key = read_key(pem, pem_bytes, false);
  const Digest digest(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (!key || !digest ||
      EVP_DigestVerifyInit(digest.get(), nullptr, nullptr, nullptr, key.get()) != 1)
    return -1;
  return EVP_DigestVerify(digest.get(), signature, kSignatureBytes, message, bytes) == 1 ? 1 : 0;
}
