#include "profile/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

#include "base/files.h"
#include "base/text.h"
#include "profile/views.h"

namespace paddle::profile {
namespace {

std::string columns(const Cost& c, double total, const Peaks& peaks, double steps = 1) {
  return fmt::format("{:8.{}f} {:10.3f} {:6.1f}% {:9.1f} {:7.1f} {:6.0f}%  ",
                     static_cast<double>(c.calls) / steps,
                     c.calls % static_cast<int64_t>(steps) == 0 ? 0 : 1, c.seconds * 1e3 / steps,
                     100 * c.seconds / total, c.flops / c.seconds / 1e9, c.bytes / c.seconds / 1e9,
                     100 * share_of_peak(c, peaks));
}

constexpr const char* kHeader = "   calls         ms   share   GFLOP/s    GB/s of peak  ";

/// Rows by falling time.
std::vector<std::pair<std::string, Cost>> sorted(const std::map<std::string, Cost>& costs) {
  std::vector<std::pair<std::string, Cost>> rows(costs.begin(), costs.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second.seconds > b.second.seconds;
  });
  return rows;
}

std::string summary(const Analysis& a) {
  const Measurement& m = a.measured;
  const double total = a.wall + a.waiting;
  std::string out = fmt::format("{}: {}, {}, {} steps after {} of warm-up, {} threads{}\n",
                                m.subject.c_str(), m.training ? "training" : "inference",
                                m.dtype.c_str(), m.steps.size(), static_cast<long>(m.warm_up),
                                m.threads, m.ranks > 1 ? str(", rank 0 of ", m.ranks).c_str() : "");
  const auto [shortest, longest] = std::minmax_element(
      m.steps.begin(), m.steps.end(),
      [](const Step& x, const Step& y) { return x.end - x.loaded < y.end - y.loaded; });
  if (!m.steps.empty())
    out += fmt::format("  step        {:.3f} ms median ({:.3f} to {:.3f}), {:.0f} samples/s\n",
                       1e3 * a.median_step(),
                       1e-6 * static_cast<double>(shortest->end - shortest->loaded),
                       1e-6 * static_cast<double>(longest->end - longest->loaded),
                       static_cast<double>(a.samples) / total);
  out += fmt::format(
      "  operations  {:.1f}% of the wall time of steps; reading the clock about {:.1f}%\n",
      100 * a.operation_seconds() / a.wall, 100 * a.overhead);
  std::map<std::string, double> phases;
  for (const OperationCost& c : a.operations) phases[c.phase] += c.seconds;
  out += "  phases     ";
  for (const char* phase : {"forward", "backward", "update"})
    if (const auto it = phases.find(phase); it != phases.end())
      out += fmt::format(" {} {:.1f}%", phase, 100 * it->second / a.operation_seconds());
  out += "\n";
  if (m.training)
    out += fmt::format(
        "  data        waiting {:.1f}% of the time; {} workers, {:.3f} ms to make a batch\n",
        100 * a.waiting / total, m.loader_workers, 1e3 * a.batch_seconds);
  if (!a.memory.timeline.empty()) {
    const MemoryPoint& peak = a.memory.timeline[a.memory.peak];
    out += str("  memory      ", human_bytes(peak.bytes), " of values at the peak (",
               peak.operation, peak.layer.empty() ? "" : " in " + peak.layer, ", ", peak.phase,
               "), arena ", human_bytes(a.memory.arena), " (scratch of a kernel at most ",
               human_bytes(a.memory.scratch), "), parameters, states and inputs ",
               human_bytes(a.memory.inputs + a.memory.constants),
               m.resident > 0 ? "; the process at most " + human_bytes(m.resident) : "", "\n");
  }
  out += fmt::format("  peaks       {:.0f} GFLOP/s, {:.1f} GB/s (measured)\n", m.peaks.gflops,
                     m.peaks.gigabytes);
  if (!a.complete)
    out += "  warning     more events than are kept; the last steps are not complete\n";
  return out;
}

/// The exchanges of each rank with the others in a step.
std::string communication(const Analysis& a) {
  const double steps = std::max(1.0, a.steps()), step = a.median_step();
  std::string out =
      "\n  rank    calls         sent         ms  of step      MB/s  exchange with other ranks\n";
  for (const Communication& c : a.measured.communication)
    out += fmt::format(
        "{:6} {:8.1f} {:>12} {:10.3f} {:7.1f}% {:9.1f}  {}\n", c.rank,
        static_cast<double>(c.calls) / steps,
        human_bytes(static_cast<uint64_t>(static_cast<double>(c.bytes) / steps)).c_str(),
        1e3 * c.seconds / steps, step > 0 ? 100 * c.seconds / steps / step : 0,
        c.seconds > 0 ? static_cast<double>(c.bytes) / c.seconds / 1e6 : 0, c.operation.c_str());
  return out;
}

/// The step of each rank by what it did, as shares.
std::string ranks(const Analysis& a) {
  const double steps = std::max(1.0, a.steps());
  std::string out =
      "\n  rank    step ms  computing  waiting for data  for ranks  exchanging  other  hidden ms\n";
  for (const RankShare& s : a.measured.shares) {
    const auto share = [&](double seconds) { return s.wall > 0 ? 100 * seconds / s.wall : 0; };
    out += fmt::format("{:6} {:10.3f} {:9.1f}% {:16.1f}% {:9.1f}% {:10.1f}% {:5.1f}% {:10.3f}\n",
                       s.rank, 1e3 * s.wall / steps, share(s.computing), share(s.data),
                       share(s.waiting), share(s.exchanging), share(s.other()),
                       1e3 * s.hidden / steps);
  }
  return out;
}

}  // namespace

std::string table(const runtime::Profile& profile, const Peaks& peaks, size_t count) {
  if (profile.events.empty()) return "no operation was timed\n";
  Measurement measured;
  measured.peaks = peaks;
  const Analysis a = analyze(std::move(measured), profile);
  std::map<std::string, Cost> operations, instructions;
  for (const OperationCost& c : a.operations) {
    operations[c.operation + "  " + c.implementation].add(c);
    instructions[c.operation + "  " + c.shapes].add(c);
  }
  const double total = a.operation_seconds();
  std::string out =
      fmt::format("{:.3f} ms in operations; peaks of this machine: {:.0f} GFLOP/s, {:.0f} GB/s\n",
                  total * 1e3, peaks.gflops, peaks.gigabytes);
  out += std::string(kHeader) + "operation  implementation\n";
  for (const auto& [name, cost] : sorted(operations))
    out += columns(cost, total, peaks) + name + "\n";
  out += std::string("\n") + kHeader + "operation  shapes\n";
  auto rows = sorted(instructions);
  rows.resize(std::min(rows.size(), count));
  for (const auto& [name, cost] : rows) out += columns(cost, total, peaks) + name + "\n";
  return out;
}

std::string tables(const Analysis& a, size_t count, int64_t depth) {
  std::string out = summary(a);
  const double total = a.operation_seconds(), steps = std::max(1.0, a.steps());
  if (total <= 0) return out + "no operation was timed\n";
  std::map<std::string, Cost> operations, layers, instructions;
  for (const OperationCost& c : a.operations) {
    operations[str(c.operation, "  ", c.implementation, "  ", c.phase)].add(c);
    layers[str(c.layer.empty() ? "-" : c.layer, "  ", c.phase, c.place.empty() ? "" : "  ",
               c.place)]
        .add(c);
    instructions[str(c.operation, "  ", c.layer.empty() ? "-" : c.layer, "  ", c.phase, "  ",
                     c.shapes)]
        .add(c);
  }
  const auto section = [&](const char* title, const std::map<std::string, Cost>& costs) {
    out += str("\n", kHeader, title, "\n");
    const auto rows = sorted(costs);
    double rest = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i < count)
        out += columns(rows[i].second, total, a.measured.peaks, steps) + rows[i].first + "\n";
      else
        rest += rows[i].second.seconds;
    }
    if (rows.size() > count)
      out += fmt::format("{:>8} {:10.3f} {:6.1f}%  {} more\n", "", rest * 1e3 / steps,
                         100 * rest / total, rows.size() - count);
  };
  section("operation  implementation  phase", operations);
  out += module_table(a, depth, count);
  section("layer  phase  place", layers);
  section("operation  layer  phase  shapes", instructions);
  out += memory_kind_table(a);
  out += memory_table(a, count);
  out += device_table(a);
  if (!a.measured.shares.empty()) out += ranks(a);
  if (!a.measured.communication.empty()) out += communication(a);
  if (!a.suggestions.empty()) out += "\nsuggestions, with the predicted share of the step\n";
  for (const Suggestion& s : a.suggestions)
    out += fmt::format("{:5.0f}%  ", 100 * s.gain) + s.title + ": " + s.reason + "\n";
  return out;
}

void write_folder(const Analysis& analysis, const std::vector<RankTimeline>& timelines,
                  const std::string& folder) {
  const auto path = [&](const char* name) {
    return (std::filesystem::path(folder) / name).string();
  };
  write_file_atomically(path("profile.json"), json(analysis));
  write_file_atomically(path("operations.csv"), operations_csv(analysis));
  write_file_atomically(path("memory.csv"), memory_csv(analysis));
  write_file_atomically(path("report.html"), html(analysis));
  write_trace(timelines, path("trace.json"));
}

}  // namespace paddle::profile
