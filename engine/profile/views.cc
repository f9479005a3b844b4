#include "profile/views.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <vector>

#include "base/text.h"

namespace paddle::profile {
namespace {

/// A module with everything within it.
struct ModuleTime {
  double seconds = 0, forward = 0, backward = 0;
  std::map<std::string, ModuleTime> parts;

  void add(const OperationCost& c) {
    seconds += c.seconds;
    if (c.phase == "forward") forward += c.seconds;
    if (c.phase == "backward") backward += c.seconds;
  }
};

ModuleTime module_tree(const Analysis& a, int64_t depth) {
  ModuleTime root;
  for (const OperationCost& c : a.operations) {
    root.add(c);
    if (c.layer.empty()) continue;
    ModuleTime* at = &root;
    int64_t level = 0;
    for (const std::string& part : split(c.layer, '.')) {
      if (level++ == depth) break;
      at = &at->parts[part];
      at->add(c);
    }
  }
  return root;
}

/// Parts by falling time.
std::vector<const std::pair<const std::string, ModuleTime>*> by_time(const ModuleTime& module) {
  std::vector<const std::pair<const std::string, ModuleTime>*> out;
  for (const auto& part : module.parts) out.push_back(&part);
  std::stable_sort(out.begin(), out.end(), [](const auto* a, const auto* b) {
    return a->second.seconds > b->second.seconds;
  });
  return out;
}

/// Rows of a module and its parts; `total` seconds are all of `steps` steps.
void add_rows(const std::string& path, const ModuleTime& module, size_t indent, double total,
              double steps, std::vector<std::string>& rows) {
  rows.push_back(fmt::format("{:10.3f} {:6.1f}% {:11.3f} {:12.3f}  ", 1e3 * module.seconds / steps,
                             100 * module.seconds / total, 1e3 * module.forward / steps,
                             1e3 * module.backward / steps) +
                 std::string(2 * indent, ' ') + (path.empty() ? "all operations" : path) + "\n");
  for (const auto* part : by_time(module))
    add_rows(path.empty() ? part->first : path + "." + part->first, part->second, indent + 1, total,
             steps, rows);
}

}  // namespace

std::string module_table(const Analysis& a, int64_t depth, size_t count) {
  const ModuleTime root = module_tree(a, depth);
  if (root.parts.empty() || root.seconds <= 0) return "";
  std::vector<std::string> rows;
  add_rows("", root, 0, root.seconds, std::max(1.0, a.steps()), rows);
  std::string out = "\n        ms   share  forward ms  backward ms  module\n";
  for (size_t i = 0; i < std::min(count, rows.size()); ++i) out += rows[i];
  if (rows.size() > count) out += str("  ", rows.size() - count, " more\n");
  return out;
}

std::string memory_table(const Analysis& a, size_t count) {
  if (a.memory.timeline.empty() || a.memory.at_the_peak.empty()) return "";
  uint64_t total = 0;
  for (const LiveBuffer& b : a.memory.at_the_peak) total += b.bytes;
  std::string out = "\n      memory   share  value at the peak  layer  phase\n";
  for (size_t i = 0; i < std::min(count, a.memory.at_the_peak.size()); ++i) {
    const LiveBuffer& b = a.memory.at_the_peak[i];
    out += fmt::format(
        "{:>12} {:6.1f}%  ", human_bytes(b.bytes).c_str(),
        100 * static_cast<double>(b.bytes) / static_cast<double>(std::max<uint64_t>(1, total)));
    out += str(b.label, "  ", b.layer.empty() ? "-" : b.layer, "  ",
               b.phase.empty() ? "-" : b.phase, "\n");
  }
  if (a.memory.at_the_peak.size() > count)
    out += str("  ", a.memory.at_the_peak.size() - count, " more\n");
  return out;
}

std::string memory_kind_table(const Analysis& a) {
  if (a.memory.kinds.empty()) return "";
  uint64_t total = 0;
  for (const MemoryKind& k : a.memory.kinds) total += k.at_the_peak;
  std::string out = "\n at the peak   share       at most  kind of memory\n";
  for (const MemoryKind& k : a.memory.kinds)
    out += fmt::format("{:>12} {:6.1f}%  {:>12}  ", human_bytes(k.at_the_peak).c_str(),
                       100 * static_cast<double>(k.at_the_peak) /
                           static_cast<double>(std::max<uint64_t>(1, total)),
                       human_bytes(k.most).c_str()) +
           k.kind + "\n";
  return out;
}

std::string device_table(const Analysis& a) {
  const double steps = std::max(1.0, a.steps()), total = a.operation_seconds();
  if (total <= 0) return "";
  std::string out = "\n   calls         ms   share   GFLOP/s  copying ms        memory  device\n";
  for (const DeviceUse& d : a.devices)
    out += fmt::format("{:8.{}f} {:10.3f} {:6.1f}% {:9.1f} {:11.3f}  {:>12}  ",
                       static_cast<double>(d.calls) / steps,
                       d.calls % static_cast<int64_t>(steps) == 0 ? 0 : 1, 1e3 * d.seconds / steps,
                       100 * d.seconds / total, d.seconds > 0 ? d.flops / d.seconds / 1e9 : 0,
                       1e3 * d.copying / steps, human_bytes(d.memory).c_str()) +
           d.device + "\n";
  return out;
}

}  // namespace paddle::profile
