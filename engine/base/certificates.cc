#include "base/certificates.h"

#include <array>

#include "base/crypto.h"
#include "base/error.h"

namespace paddle {
namespace {

Certificate make_certificate(const std::string& name, const char* purpose, const Certificate* by,
                             std::chrono::seconds valid) {
  auto* const make =
      crypto_function<paddle_make_certificate_t>("paddle_make_certificate", "certificates");
  std::array<char, 4096> certificate{}, key{};
  const PaddleCertificate call = {.name = name.c_str(),
                                  .purpose = purpose,
                                  .issuer_certificate = by ? by->certificate.c_str() : nullptr,
                                  .issuer_key = by ? by->key.c_str() : nullptr,
                                  .seconds = valid.count(),
                                  .certificate = certificate.data(),
                                  .key = key.data(),
                                  .capacity = certificate.size()};
  if (make(&call) != 1) fail(ErrorCode::kDevice, "OpenSSL cannot make a certificate for ", name);
  return {certificate.data(), key.data()};
}

}  // namespace

CertificateAuthority::CertificateAuthority(std::chrono::seconds valid)
    : own_(make_certificate("run", "", nullptr, valid)) {}

Certificate CertificateAuthority::issue(const std::string& name, CertificateRole role,
                                        std::chrono::seconds valid) const {
  return make_certificate(name, role == CertificateRole::kListener ? "serverAuth" : "clientAuth",
                          &own_, valid);
}

}  // namespace paddle
