#include "launch/emit.h"

#include "base/text.h"

namespace paddle::launch {
namespace {

constexpr const char* kInsecureComment =
    "# Rows of tables are sent without encryption: for clusters whose network is trusted.\n";

/// A scalar of YAML, in the form of JSON.
std::string quoted(const std::string& text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (code < 0x20) {
      out += "\\x";
      out += kDigits[code >> 4];
      out += kDigits[code & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string list(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (const std::string& word : words) out.push_back(quoted(word));
  return "[" + join(out, ", ") + "]";
}

/// A service whose only use is that its pods have names.
std::string headless_service(const std::string& name) {
  return str("apiVersion: v1\nkind: Service\nmetadata: {name: ", name,
             "}\nspec:\n  clusterIP: None\n  publishNotReadyAddresses: true\n  selector: {app: ",
             name, "}\n---\n");
}

/// The pod of a server or a worker from its containers on, indented by six spaces.
std::string containers(const EmittedRun& run, const std::string& role,
                       const std::vector<std::string>& environment) {
  std::string out =
      str("      containers:\n        - name: ", role, "\n          image: ", quoted(run.image),
          "\n          command: ", list(run.command), "\n          workingDir: /files\n",
          "          env:\n");
  for (const std::string& line : environment) out += "            - " + line + "\n";
  if (run.insecure_network)
    out += "            - {name: PADDLE_INSECURE_NETWORK, value: \"1\"}\n";
  else
    out +=
        "            - {name: PADDLE_TLS_CA, value: /tls/ca.crt}\n"
        "            - {name: PADDLE_TLS_CERTIFICATE, value: /tls/tls.crt}\n"
        "            - {name: PADDLE_TLS_KEY, value: /tls/tls.key}\n";
  const std::string mount = run.insecure_network ? "" : ", {name: tls, mountPath: /tls}";
  const std::string volume =
      run.insecure_network ? "" : str(", {name: tls, secret: {secretName: ", run.name, "-tls}}");
  return out +
         str("            - {name: PADDLE_RENDEZVOUS_TOKEN, valueFrom: {secretKeyRef: {name: ",
             run.name, "-token, key: token}}}\n",
             "          volumeMounts: [{name: files, mountPath: /files}", mount, "]\n",
             "      volumes: [{name: files, persistentVolumeClaim: {claimName: ", run.name,
             "-files}}", volume, "]\n");
}

}  // namespace

std::string quoted_command(const std::vector<std::string>& command) {
  std::string out;
  for (const std::string& word : command) {
    const bool plain =
        !word.empty() && word.find_first_of(" \t\n'\"\\$`*?[]{}()<>|&;#~!") == std::string::npos;
    std::string quoted = word;
    for (size_t at = 0; (at = quoted.find('\'', at)) != std::string::npos; at += 4)
      quoted.replace(at, 1, "'\\''");
    out += (out.empty() ? "" : " ") + (plain ? word : "'" + quoted + "'");
  }
  return out;
}

std::string kubernetes_objects(const EmittedRun& run) {
  const std::string servers = run.name + "-servers", workers = run.name + "-workers";
  std::vector<std::string> addresses;
  for (int i = 0; i < run.servers; ++i)
    addresses.push_back(str(servers, "-", i, ".", servers, ":", kServerPort));
  const std::string known =
      str("{name: PADDLE_SERVER_ADDRESSES, value: ", quoted(join(addresses, ",")), "}");
  std::string out = run.insecure_network
                        ? kInsecureComment
                        : str("# Certificates: the secret ", run.name,
                              "-tls with ca.crt, tls.crt and tls.key, for *.", servers, ".\n");
  out += str("# Before: kubectl create secret generic ", run.name,
             "-token --from-literal=token=$(openssl rand -hex 16)\n", "# and a volume claim ",
             run.name, "-files that all pods may write, with the config and the data.\n");
  out += headless_service(servers) + headless_service(workers);
  out += str("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: ", servers, "}\n",
             "spec:\n  serviceName: ", servers, "\n  replicas: ", run.servers,
             "\n  podManagementPolicy: Parallel\n  selector: {matchLabels: {app: ", servers,
             "}}\n  template:\n    metadata: {labels: {app: ", servers, "}}\n    spec:\n");
  out += containers(
      run, "server",
      {"{name: PADDLE_ROLE, value: server}",
       "{name: PADDLE_SERVER, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['apps.kubernetes."
       "io/pod-index']\"}}}",
       known});
  out += str("---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: ", workers, "}\n",
             "spec:\n  completionMode: Indexed\n  completions: ", run.ranks,
             "\n  parallelism: ", run.ranks,
             "\n  backoffLimit: 0\n  template:\n    metadata: {labels: {app: ", workers,
             "}}\n    spec:\n      subdomain: ", workers, "\n      restartPolicy: Never\n");
  out += containers(run, "worker",
                    {str("{name: WORLD_SIZE, value: \"", run.ranks, "\"}"),
                     str("{name: MASTER_ADDR, value: ", workers, "-0.", workers, "}"),
                     str("{name: MASTER_PORT, value: \"", kWorkerPort, "\"}"), known});
  return out;
}

std::string slurm_script(const EmittedRun& run) {
  const std::string command = quoted_command(run.command);
  const std::string security =
      run.insecure_network
          ? "export PADDLE_INSECURE_NETWORK=1\n"
          : "export PADDLE_TLS_CA=\"${PADDLE_TLS_CA:?path of a PEM file}\"\n"
            "export PADDLE_TLS_CERTIFICATE=\"${PADDLE_TLS_CERTIFICATE:?path of a PEM file}\"\n"
            "export PADDLE_TLS_KEY=\"${PADDLE_TLS_KEY:?path of a PEM file}\"\n";
  return str(
      "#!/bin/bash\n"
      "# Workers, and servers of tables as the second part of a heterogeneous job.\n",
      run.insecure_network ? kInsecureComment : "", "#SBATCH --job-name=", run.name,
      "\n#SBATCH --ntasks=", run.ranks, "\n#SBATCH hetjob\n#SBATCH --nodes=", run.servers,
      " --ntasks-per-node=1\n", "set -euo pipefail\n", security,
      "PADDLE_RENDEZVOUS_TOKEN=\"$(od -An -N16 -tx1 /dev/urandom | tr -d ' \\n')\"\n"
      "PADDLE_SERVER_ADDRESSES=\"$(scontrol show hostnames \"$SLURM_JOB_NODELIST_HET_GROUP_1\" |\n"
      "  awk '{printf(\"%s%s:%d\", (NR > 1 ? \",\" : \"\"), $1, ",
      kServerPort - 1, " + NR)}')\"\n",
      "export PADDLE_RENDEZVOUS_TOKEN PADDLE_SERVER_ADDRESSES\n"
      "srun --het-group=1 bash -c 'PADDLE_ROLE=server PADDLE_SERVER=$SLURM_PROCID exec \"$@\"' "
      "server ",
      command, " &\n", "srun --het-group=0 ", command, "\nwait\n");
}

}  // namespace paddle::launch
