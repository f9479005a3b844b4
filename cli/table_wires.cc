#include "table_wires.h"

#include "base/environment.h"
#include "base/error.h"
#include "base/files.h"
#include "comm/rendezvous.h"

namespace paddle::cli {
namespace {

/// The files that the config states, or else the environment.
std::optional<train::TlsFiles> tls_files(const train::ParameterServer& section) {
  if (section.tls) return section.tls;
  train::TlsFiles out = {environment("PADDLE_TLS_CA"), environment("PADDLE_TLS_CERTIFICATE"),
                         environment("PADDLE_TLS_KEY")};
  if (out.authority.empty() && out.certificate.empty() && out.key.empty()) return std::nullopt;
  if (out.authority.empty() || out.certificate.empty() || out.key.empty())
    fail(ErrorCode::kUsage,
         "PADDLE_TLS_CA, PADDLE_TLS_CERTIFICATE and PADDLE_TLS_KEY are given together");
  return out;
}

std::string read_pem(const std::string& path) {
  constexpr uint64_t kMaxBytes = uint64_t{1} << 20;
  std::string text = read_file(path, kMaxBytes);
  if (text.find("-----BEGIN ") == std::string::npos)
    fail(ErrorCode::kConfig, "parameter_server.tls: '", path, "' is not a PEM file");
  return text;
}

[[noreturn]] void reject_network(bool is_grpc) {
  fail(ErrorCode::kUsage,
       "servers of tables on other machines, and rows would be sent without encryption: give ",
       is_grpc ? "parameter_server.tls" : "parameter_server.channel: grpc",
       "; where the network is trusted, --insecure-network (PADDLE_INSECURE_NETWORK=1) allows it");
}

}  // namespace

ps::Wire wire_of(const train::ParameterServer& section, const ps::ServersPlace& place,
                 CertificateRole role) {
  using train::ServerChannel;
  const bool is_insecure = environment("PADDLE_INSECURE_NETWORK") == "1";
  ps::Wire out;
  out.is_grpc = section.channel == ServerChannel::kGrpc ||
                (section.channel == ServerChannel::kAuto && !place.is_local);
  if (out.is_grpc) {
    if (const auto files = tls_files(section))
      out.identity = comm::TlsIdentity{.authority = read_pem(files->authority),
                                       .certificate = read_pem(files->certificate),
                                       .key = read_pem(files->key)};
    else if (place.addresses.empty() && !place.rendezvous.empty() && !is_insecure)
      out.identity = comm::request_identity(place.rendezvous, place.token, role);
  }
  if (!place.is_local && !out.identity && !is_insecure) reject_network(out.is_grpc);
  return out;
}

std::string encryption_note(const ps::Wire& wire, bool is_local) {
  if (wire.identity) return "; gRPC with TLS";
  const std::string carrier = wire.is_grpc ? "; gRPC" : "";
  return carrier + (is_local ? "" : "; rows are sent without encryption");
}

}  // namespace paddle::cli
