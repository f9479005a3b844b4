#pragma once
// Certificates (X.509) for the connections of a run, made by OpenSSL (the module `crypto`).

#include <chrono>
#include <string>

namespace paddle {

/// A certificate and its private key, as PEM.
struct Certificate {
  std::string certificate, key;
};

enum class CertificateRole { kListener, kCaller };

/// Signs the certificates of others.
class CertificateAuthority {
 public:
  /// With a new key. kDevice without OpenSSL.
  explicit CertificateAuthority(std::chrono::seconds valid = std::chrono::hours(24 * 366));

  /// By this others know its certificates.
  const std::string& certificate() const { return own_.certificate; }
  /// A certificate with a new key, for one end of connections. `name`: a DNS name.
  Certificate issue(const std::string& name, CertificateRole role,
                    std::chrono::seconds valid = std::chrono::hours(24 * 366)) const;

 private:
  Certificate own_;
};

}  // namespace paddle
