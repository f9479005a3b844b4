#include "comm/run_certificates.h"

#include <array>
#include <cstring>
#include <vector>

#include "base/base64.h"
#include "base/crypto.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "base/text.h"

namespace paddle::comm {
namespace {

constexpr const char* kUsers = "certificates";
constexpr size_t kKeyBytes = 32, kNonceBytes = 12, kTagBytes = 16;
/// Between the parts, which are PEM.
constexpr char kSeparator = '|';
/// The name in the certificates of servers: what calls them knows no other one beforehand.
constexpr const char* kListener = "paddle-server";
constexpr const char* kCaller = "paddle-worker";

std::array<uint8_t, kKeyBytes> key_of(const std::string& token) {
  std::array<uint8_t, kKeyBytes> out{};
  read_hex_digits(hmac_sha256(token, "certificates of a run"),
                  std::as_writable_bytes(std::span(out)));
  return out;
}

uint8_t* bytes_of(std::string& text) { return reinterpret_cast<uint8_t*>(text.data()); }

}  // namespace

std::string RunCertificates::sealed(const std::string& token, CertificateRole role) {
  if (!authority_) authority_.emplace();
  const Certificate own =
      authority_->issue(role == CertificateRole::kListener ? kListener : kCaller, role);
  std::string text =
      authority_->certificate() + kSeparator + own.certificate + kSeparator + own.key;
  std::string out(kNonceBytes + kTagBytes + text.size(), '\0');
  const auto key = key_of(token);
  uint8_t* const nonce = bytes_of(out);
  const PaddleAesGcm call = {.key = key.data(),
                             .nonce = nonce,
                             .extra = nullptr,
                             .extra_bytes = 0,
                             .in = bytes_of(text),
                             .out = nonce + kNonceBytes + kTagBytes,
                             .bytes = text.size(),
                             .tag = nonce + kNonceBytes};
  if (crypto_function<paddle_random_bytes_t>("paddle_random_bytes", kUsers)(nonce, kNonceBytes) !=
          1 ||
      crypto_function<paddle_aes_gcm_seal_t>("paddle_aes_gcm_seal", kUsers)(&call) != 1)
    fail(ErrorCode::kDevice, "OpenSSL cannot encrypt a certificate");
  return to_base64(out);
}

TlsIdentity open_sealed_identity(const std::string& token, const std::string& line) {
  std::string bytes = from_base64(line).value_or("");
  std::vector<std::string> parts;
  if (bytes.size() > kNonceBytes + kTagBytes) {
    const auto key = key_of(token);
    std::string text(bytes.size() - kNonceBytes - kTagBytes, '\0');
    uint8_t* const nonce = bytes_of(bytes);
    const PaddleAesGcm call = {.key = key.data(),
                               .nonce = nonce,
                               .extra = nullptr,
                               .extra_bytes = 0,
                               .in = nonce + kNonceBytes + kTagBytes,
                               .out = bytes_of(text),
                               .bytes = text.size(),
                               .tag = nonce + kNonceBytes};
    if (crypto_function<paddle_aes_gcm_open_t>("paddle_aes_gcm_open", kUsers)(&call) == 1)
      parts = split(text, kSeparator);
  }
  if (parts.size() != 3)
    fail(ErrorCode::kPeer, "the rendezvous has sent no certificate of this run");
  return {
      .authority = parts[0], .certificate = parts[1], .key = parts[2], .listener_name = kListener};
}

}  // namespace paddle::comm
