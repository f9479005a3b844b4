#pragma once
// A run with servers of tables as a description that another launcher takes.

#include <string>
#include <vector>

namespace paddle::launch {

struct EmittedRun {
  int ranks = 1, servers = 1;
  std::vector<std::string> command;  ///< of workers and servers; the environment says which it is
  std::string name = "paddle";       ///< of its objects: lower-case letters, digits and dashes
  std::string image = "paddle";      ///< of Kubernetes
  bool insecure_network = false;     ///< rows are sent without TLS
};

/// The port of the first server, and that of the rendezvous of the workers.
inline constexpr int kServerPort = 7164, kWorkerPort = 7163;

/// Objects of Kubernetes as YAML: services, a StatefulSet of servers and an indexed Job of workers.
/// Their secret is the key `token` of the Secret NAME-token, their certificates are in the Secret
/// NAME-tls, their files on the volume claim NAME-files.
std::string kubernetes_objects(const EmittedRun& run);

/// A script for sbatch: a heterogeneous job whose second part are the servers, one a node. It wants
/// the variables PADDLE_TLS_CA, PADDLE_TLS_CERTIFICATE and PADDLE_TLS_KEY.
std::string slurm_script(const EmittedRun& run);

/// The command as a shell reads it.
std::string quoted_command(const std::vector<std::string>& command);

}  // namespace paddle::launch
