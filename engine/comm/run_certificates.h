#pragma once
// Certificates that the rendezvous of a run hands out, for connections between its machines. They
// travel encrypted under the token of the run.

#include <optional>
#include <string>

#include "base/certificates.h"
#include "comm/grpc_streams.h"

namespace paddle::comm {

class RunCertificates {
 public:
  /// A new certificate of the run for one end, for a process that knows the token: one line of
  /// text. kDevice without OpenSSL.
  std::string sealed(const std::string& token, CertificateRole role);

 private:
  std::optional<CertificateAuthority> authority_;
};

/// The content of such a line. kPeer if it was made with another token, or damaged.
TlsIdentity open_sealed_identity(const std::string& token, const std::string& line);

}  // namespace paddle::comm
