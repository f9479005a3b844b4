#pragma once
// The functions of the module `crypto` (base/module.h): AES-256-GCM, Ed25519, certificates and
// random bytes, by OpenSSL. They return 1, or 0 if something fails or does not fit.

#include <cstddef>
#include <cstdint>

namespace paddle {

/// The version that paddle_module_version() returns.
constexpr int kCryptoModuleVersion = 2;

extern "C" {

/// Encrypts or decrypts `bytes` from `in` to `out`; `tag` has 16 bytes, written or compared.
struct PaddleAesGcm {
  const uint8_t* key;    ///< 32 bytes
  const uint8_t* nonce;  ///< 12 bytes
  const uint8_t* extra;  ///< also covered by the tag
  size_t extra_bytes;
  const uint8_t* in;
  uint8_t* out;
  size_t bytes;
  uint8_t* tag;
};
using paddle_aes_gcm_seal_t = int(const PaddleAesGcm* call);
using paddle_aes_gcm_open_t = int(const PaddleAesGcm* call);
using paddle_random_bytes_t = int(uint8_t* out, size_t bytes);
/// `pem`: a private key of Ed25519; `signature` has 64 bytes.
using paddle_ed25519_sign_t = int(const char* pem, size_t pem_bytes, const uint8_t* message,
                                  size_t bytes, uint8_t* signature);
/// `pem`: a public key of Ed25519. 0 if the signature is not of that key and message, -1 if `pem`
/// is no such key.
using paddle_ed25519_verify_t = int(const char* pem, size_t pem_bytes, const uint8_t* message,
                                    size_t bytes, const uint8_t* signature);

/// A certificate (X.509) with a new private key of the curve P-256, both as PEM.
struct PaddleCertificate {
  const char* name;     ///< of its owner, also as a DNS name
  const char* purpose;  ///< extended key usage: "serverAuth", "clientAuth"; "": an authority
  const char* issuer_certificate;  ///< PEM of the authority that signs it; null: itself
  const char* issuer_key;
  int64_t seconds;  ///< for which it is valid from now on; negative: it has expired
  char* certificate;
  char* key;
  size_t capacity;  ///< of both, with a zero at their ends
};
using paddle_make_certificate_t = int(const PaddleCertificate* call);
}

}  // namespace paddle
