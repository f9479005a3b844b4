#include "tune/parallel/cluster.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "config/overrides.h"
#include "config/schema.h"

namespace paddle::tune {
namespace {

using config::Schema;
using config::Section;
using config::Spec;

constexpr double kTera = 1e12, kGiga = 1e9;

struct Known {
  const char* name;
  double tflops, tflops8, memory_gib, bandwidth, host_link, network;  ///< in TFLOP/s, GiB, GB/s
  double efficiency;
};

// Peaks, memory and links are those of data sheets (NVLink and NVSwitch in one direction, one
// network adapter for each device). The efficiency is fitted to published runs
// (docs/performance/planner.md).
constexpr Known kDevices[] = {
    {"V100", 125, 0, 16, 900, 120, 3, 0.62},
    {"A100-40", 312, 0, 40, 1555, 250, 20, 0.80},
    // The partition of Jean Zay where BLOOM was trained: four Omni-Path adapters of 100 Gbit/s for
    // the eight devices of a host.
    {"A100-80GB (Jean Zay)", 312, 0, 80, 2039, 250, 6.25, 0.71},
    {"A100", 312, 0, 80, 2039, 250, 25, 0.78},
    {"H100-96", 989, 1979, 96, 2600, 400, 50, 0.53},
    {"H100", 989, 1979, 80, 3350, 400, 50, 0.66},
    {"H200", 989, 1979, 141, 4800, 400, 50, 0.66},
    {"GB200", 2500, 5000, 192, 8000, 800, 50, 0.79},
    {"B200", 2250, 4500, 192, 8000, 800, 50, 0.72},
    {"GB300", 2500, 5000, 288, 8000, 800, 100, 0.97},
    {"B300", 2250, 4500, 288, 8000, 800, 100, 0.97},
    {"TPU v4", 275, 0, 32, 1228, 100, 6, 0.85},
    {"TPU v5e", 197, 0, 16, 819, 90, 6, 0.93},
    {"TPU v5p", 459, 0, 95, 2765, 200, 12, 0.99},
};

double quantity_at(const Section& s, const char* key, const char* unit) {
  try {
    const double value = parse_quantity(s.text(key), unit);
    if (value > 0) return value;
    fail(ErrorCode::kConfig, "expected more than 0, found '", s.text(key), "'");
  } catch (const Error& e) {
    throw Error(ErrorCode::kConfig, str(key, ": ", e.message()), s.location(key));
  }
}

void read_links(const Section& s, Cluster& cluster) {
  bool host = false, network = false;
  for (const Section& link : s.sections("links")) {
    const bool within = link.has("within"), across = link.has("across");
    if (within == across)
      throw Error(ErrorCode::kConfig, "a link has either 'within: host' or 'across: hosts'",
                  link.node().location());
    if (within ? host : network)
      throw Error(ErrorCode::kConfig,
                  str("two links are ", within ? "within: host" : "across: hosts"),
                  link.node().location());
    (within ? host : network) = true;
    if (across && cluster.hosts == 1)
      throw Error(ErrorCode::kConfig, "a link across hosts, but there is one host",
                  link.location("across"));
    (within ? cluster.host_link : cluster.network) = quantity_at(link, "bandwidth", "B/s");
    if (link.has("latency"))
      (within ? cluster.host_latency : cluster.network_latency) = quantity_at(link, "latency", "s");
  }
}

}  // namespace

Schema cluster_schema() {
  Schema peak;
  peak.add("bfloat16", Spec::text().doc("of bfloat16 and float16 products, such as 989 TFLOP/s"));
  peak.add("float8", Spec::text().doc("of 8-bit floating products"));
  Schema device;
  device.add("name", Spec::text().fallback("device").doc("known: A100, H100, H200, B200, …"));
  device.add("peak", Spec::map(peak).fallback("{}").doc("of products"));
  device.add("memory", Spec::text().doc("such as 80 GiB"));
  device.add("bandwidth", Spec::text().doc("of its memory, such as 3350 GB/s"));
  Schema link;
  link.add("within", Spec::word({"host"}).doc("a link between devices of a host"));
  link.add("across", Spec::word({"hosts"}).doc("a link between hosts"));
  link.add("bandwidth", Spec::text().required().doc("of a device, in one direction"));
  link.add("latency", Spec::text().doc("such as 3 us"));
  Schema s;
  s.add("hosts", Spec::integer().at_least(1).at_most(1e6).required().doc("machines"));
  s.add("devices", Spec::integer().at_least(1).at_most(4096).required().doc("of a host"));
  s.add("device", Spec::map(device).required().doc("one of them"));
  s.add("links", Spec::list(Spec::map(link)).fallback("[]").doc("between devices"));
  s.add("efficiency",
        Spec::real().above(0).at_most(2).doc("of large products, in place of the fitted one"));
  return s;
}

double parse_quantity(const std::string& text, const std::string& unit) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  std::string rest(trim(end));
  if (end == text.c_str() || !std::isfinite(number) || !rest.ends_with(unit))
    fail(ErrorCode::kConfig, "expected a number of ", unit, ", found '", text, "'");
  rest.resize(rest.size() - unit.size());
  static constexpr std::pair<const char*, double> kPrefixes[] = {
      {"", 1},           {"k", 1e3},   {"M", 1e6},         {"G", 1e9},  {"T", 1e12},
      {"P", 1e15},       {"m", 1e-3},  {"u", 1e-6},        {"n", 1e-9}, {"Ki", 1024.0},
      {"Mi", 1048576.0}, {"Gi", kGib}, {"Ti", kGib * 1024}};
  for (const auto& [prefix, factor] : kPrefixes)
    if (rest == prefix) return number * factor;
  fail(ErrorCode::kConfig, "unknown unit in '", text, "'; expected ", unit, " with a prefix");
}

double Cluster::peak(const std::string& precision) const {
  if (precision == "float8" && flops8 > 0) return flops8;
  return precision == "float32" ? flops / 2 : flops;
}

double Cluster::ring(int64_t size, int64_t stride) const {
  if (size * stride <= devices || hosts == 1) return host_link;
  const int64_t in_host = std::clamp<int64_t>(devices / stride, 1, size);
  return std::min(host_link, network * static_cast<double>(in_host));
}

double Cluster::link(int64_t size, int64_t stride) const {
  return size * stride > devices && hosts > 1 ? network : host_link;
}

double Cluster::latency(int64_t size, int64_t stride) const {
  return size * stride > devices && hosts > 1 ? network_latency : host_latency;
}

const Cluster* known_device(const std::string& name) {
  static const std::vector<Cluster> clusters = [] {
    std::vector<Cluster> out;
    for (const Known& k : kDevices) {
      Cluster c;
      c.device = k.name;
      c.flops = k.tflops * kTera;
      c.flops8 = k.tflops8 * kTera;
      c.memory = k.memory_gib * kGib;
      c.bandwidth = k.bandwidth * kGiga;
      c.host_link = k.host_link * kGiga;
      c.network = k.network * kGiga;
      c.efficiency = k.efficiency;
      out.push_back(c);
    }
    return out;
  }();
  for (const Cluster& c : clusters)
    if (name.starts_with(c.device)) return &c;
  return nullptr;
}

Cluster read_cluster(const std::string& path) {
  config::Diagnostics diagnostics;
  config::Node document = config::read_extended(path, diagnostics);
  static const Schema schema = cluster_schema();
  schema.resolve(document, "", diagnostics);
  diagnostics.raise();
  const Section s(document), device = s.section("device"), peak = device.section("peak");
  Cluster cluster;
  if (const Cluster* known = known_device(device.text("name"))) cluster = *known;
  cluster.device = device.text("name");
  cluster.hosts = s.integer("hosts");
  cluster.devices = s.integer("devices");
  if (peak.has("bfloat16")) cluster.flops = quantity_at(peak, "bfloat16", "FLOP/s");
  if (peak.has("float8")) cluster.flops8 = quantity_at(peak, "float8", "FLOP/s");
  if (device.has("memory")) cluster.memory = quantity_at(device, "memory", "B");
  if (device.has("bandwidth")) cluster.bandwidth = quantity_at(device, "bandwidth", "B/s");
  read_links(s, cluster);
  if (s.has("efficiency")) cluster.efficiency = s.real("efficiency");
  if (cluster.efficiency == 0) cluster.efficiency = 0.7;
  const auto need = [&](double value, const char* what) {
    if (value == 0)
      throw Error(ErrorCode::kConfig,
                  str(what, " is not stated, and '", cluster.device, "' is not a known device"),
                  s.location("device"));
  };
  need(cluster.flops, "device.peak.bfloat16");
  need(cluster.memory, "device.memory");
  need(cluster.bandwidth, "device.bandwidth");
  if (cluster.devices > 1) need(cluster.host_link, "a link within: host");
  if (cluster.hosts > 1) need(cluster.network, "a link across: hosts");
  return cluster;
}

}  // namespace paddle::tune
