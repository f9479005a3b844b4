#include "profile/report.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"

namespace paddle::profile {
namespace {

struct Cost {
  int64_t calls = 0;
  double seconds = 0, flops = 0, bytes = 0;
};

std::string columns(const Cost& c, double total, const Peaks& peaks) {
  const double gflops = c.flops / c.seconds / 1e9, gigabytes = c.bytes / c.seconds / 1e9;
  const double share = std::max(gflops / peaks.gflops, gigabytes / peaks.gigabytes);
  char text[128];
  std::snprintf(text, sizeof text, "%8ld %10.3f %6.1f%% %9.1f %7.1f %6.0f%%  ",
                static_cast<long>(c.calls), c.seconds * 1e3, 100 * c.seconds / total, gflops,
                gigabytes, 100 * share);
  return text;
}

constexpr const char* kHeader = "   calls         ms   share   GFLOP/s    GB/s of peak  ";

/// Rows by falling time.
template <class Key>
std::vector<std::pair<Key, Cost>> sorted(const std::map<Key, Cost>& costs) {
  std::vector<std::pair<Key, Cost>> rows(costs.begin(), costs.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second.seconds > b.second.seconds;
  });
  return rows;
}

}  // namespace

std::string table(const runtime::Profile& profile, const Peaks& peaks, size_t count) {
  std::map<std::string, Cost> operations;
  std::map<std::string, Cost> instructions;
  double total = 0;
  for (const auto& event : profile.events) {
    const auto& info = profile.instructions[static_cast<size_t>(event.instruction)];
    const double seconds = static_cast<double>(event.end - event.begin) * 1e-9;
    total += seconds;
    for (Cost* c : {&operations[info.operation + "  " + info.implementation],
                    &instructions[info.operation + "  " + info.shapes]}) {
      ++c->calls;
      c->seconds += seconds;
      c->flops += info.flops;
      c->bytes += info.bytes;
    }
  }
  if (profile.events.empty()) return "no operation was timed\n";
  char line[160];
  std::snprintf(line, sizeof line,
                "%.3f ms in operations; peaks of this machine: %.0f GFLOP/s, %.0f GB/s\n",
                total * 1e3, peaks.gflops, peaks.gigabytes);
  std::string out = line;
  out += std::string(kHeader) + "operation  implementation\n";
  for (const auto& [name, cost] : sorted(operations))
    out += columns(cost, total, peaks) + name + "\n";
  out += std::string("\n") + kHeader + "operation  shapes\n";
  auto rows = sorted(instructions);
  rows.resize(std::min(rows.size(), count));
  for (const auto& [name, cost] : rows) out += columns(cost, total, peaks) + name + "\n";
  return out;
}

void write_trace(const runtime::Profile& profile, const std::string& path) {
  std::string out = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  const int64_t origin = profile.events.empty() ? 0 : profile.events.front().begin;
  for (size_t i = 0; i < profile.events.size(); ++i) {
    const auto& event = profile.events[i];
    const auto& info = profile.instructions[static_cast<size_t>(event.instruction)];
    const nlohmann::ordered_json o = {
        {"name", info.operation},
        {"cat", info.function},
        {"ph", "X"},
        {"ts", static_cast<double>(event.begin - origin) * 1e-3},
        {"dur", static_cast<double>(event.end - event.begin) * 1e-3},
        {"pid", 1},
        {"tid", 1},
        {"args", {{"implementation", info.implementation}, {"shapes", info.shapes}}}};
    out += o.dump() + (i + 1 < profile.events.size() ? ",\n" : "\n");
  }
  out += "]}\n";
  write_file_atomically(path, out);
}

}  // namespace paddle::profile
