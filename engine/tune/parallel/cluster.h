#pragma once
// A cluster as a planner sees it: hosts of equal devices, their rates and the links between them.

#include <cstdint>
#include <string>

#include "config/schema.h"

namespace paddle::tune {

inline constexpr double kGib = 1073741824.0;

struct Cluster {
  std::string device;              ///< name, such as "H100-80GB"
  int64_t hosts = 1, devices = 1;  ///< devices of a host
  double flops = 0;                ///< peak of 16-bit products, per second
  double flops8 = 0;               ///< of 8-bit floating products; 0: none
  double memory = 0;               ///< bytes of a device
  double bandwidth = 0;            ///< of its memory, bytes per second
  double host_link = 0;            ///< bytes per second that a device sends within its host
  double network = 0;              ///< and to other hosts
  double host_latency = 3e-6, network_latency = 8e-6;  ///< seconds
  double efficiency = 0;  ///< share of the peak that large products reach with all around

  int64_t all() const { return hosts * devices; }
  double peak(const std::string& precision) const;
  /// Bandwidth of a ring through `size` devices that are `stride` apart. A ring enters and leaves a
  /// host once for all of its members there, so they share the network adapters of all of them.
  double ring(int64_t size, int64_t stride) const;
  /// Bandwidth of a device to others that are `stride` apart, where each sends for itself.
  double link(int64_t size, int64_t stride) const;
  /// Latency of a message in such a group.
  double latency(int64_t size, int64_t stride) const;
};

/// Rates of well-known devices by the beginning of their name; null for others.
const Cluster* known_device(const std::string& name);

/// kConfig with the place for unknown units, missing rates and contradictions.
Cluster read_cluster(const std::string& path);
/// The keys of its file.
config::Schema cluster_schema();

/// "989 TFLOP/s" with the unit "FLOP/s": 9.89e14. Decimal (k, M, G, T, P) and binary (Ki to Ti)
/// prefixes; seconds also as ms, us, ns. kConfig for other texts.
double parse_quantity(const std::string& text, const std::string& unit);

}  // namespace paddle::tune
