// The page of a profile: summary, suggestions, charts and tables, without scripts or other files.

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/html_page.h"
#include "base/markup.h"
#include "base/text.h"
#include "profile/report.h"
#include "profile/svg.h"

namespace paddle::profile {
namespace {

using Table = HtmlTable;

constexpr std::string_view kStyle = R"(
:root { --forward: #7fb2e5; --backward: #f0b27a; --update: #a3c9a8; --waiting: #d98880;
  --roof: #b03a2e; }
@media (prefers-color-scheme: dark) { :root { --forward: #3c6f9f; --backward: #9c6530;
  --update: #4f7a55; --waiting: #97473f; --roof: #e67e6b; } }
.grid { stroke: var(--line); } .roof { stroke: var(--roof); stroke-width: 1.5; }
.area { fill: var(--forward); } .point { fill-opacity: .6; stroke: var(--back); }
.forward { fill: var(--forward); } .backward { fill: var(--backward); }
.rest { fill: var(--line); } .update { fill: var(--update); } .waiting { fill: var(--waiting); }
.key { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 1em; }
)";

std::string key(const char* phase) {
  return str("<span class=\"key\" style=\"background: var(--", phase, ")\"></span>", phase);
}

std::vector<std::string> cost_cells(const Cost& c, const Analysis& a) {
  const double steps = std::max(1.0, a.steps());
  return {fmt::format("{:.3f}", 1e3 * c.seconds / steps),
          fmt::format("{:.1f}%", 100 * c.seconds / a.operation_seconds()),
          fmt::format("{:g}", static_cast<double>(c.calls) / steps),
          fmt::format("{:.1f}", c.flops / c.seconds / 1e9),
          fmt::format("{:.1f}", c.bytes / c.seconds / 1e9),
          fmt::format("{:.0f}%", 100 * share_of_peak(c, a.measured.peaks))};
}

const std::vector<std::string> kCostTitles = {"#ms",      "#share", "#calls",
                                              "#GFLOP/s", "#GB/s",  "#of peak"};

/// A table of costs by a key of one or more columns, by falling time.
std::string cost_table(const Analysis& a, std::vector<std::string> titles,
                       const std::function<std::vector<std::string>(const OperationCost&)>& key_of,
                       size_t count) {
  std::map<std::vector<std::string>, Cost> costs;
  for (const OperationCost& c : a.operations) costs[key_of(c)].add(c);
  std::vector<std::pair<std::vector<std::string>, Cost>> rows(costs.begin(), costs.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& x, const auto& y) {
    return x.second.seconds > y.second.seconds;
  });
  titles.insert(titles.begin(), kCostTitles.begin(), kCostTitles.end());
  Table table(titles);
  for (size_t i = 0; i < rows.size() && i < count; ++i) {
    std::vector<std::string> cells = cost_cells(rows[i].second, a);
    cells.insert(cells.end(), rows[i].first.begin(), rows[i].first.end());
    table.row(cells);
  }
  std::string out = table.html();
  if (rows.size() > count)
    out += str("<p class=\"soft\">", rows.size() - count, " more rows are in operations.csv</p>\n");
  return out;
}

std::string summary_table(const Analysis& a) {
  const Measurement& m = a.measured;
  const double total = a.wall + a.waiting;
  Table table({"", ""});
  table.row(
      {"step", fmt::format("{:.3f} ms (median of {} steps after {} of warm-up), {:.0f} samples/s",
                           1e3 * a.median_step(), m.steps.size(), static_cast<long>(m.warm_up),
                           static_cast<double>(a.samples) / total)});
  table.row(
      {"operations", fmt::format("{:.1f}% of the wall time of steps; reading the clock takes about "
                                 "{:.1f}% of it",
                                 100 * a.operation_seconds() / a.wall, 100 * a.overhead)});
  if (m.training)
    table.row(
        {"data", fmt::format("{:.1f}% of the time waiting; {} loader workers, {:.3f} ms to make a "
                             "batch on one thread",
                             100 * a.waiting / total, m.loader_workers, 1e3 * a.batch_seconds)});
  if (!a.memory.timeline.empty())
    table.row(
        {"memory",
         str(human_bytes(a.memory.timeline[a.memory.peak].bytes), " of values at the peak; arena ",
             human_bytes(a.memory.arena), " (scratch of a kernel at most ",
             human_bytes(a.memory.scratch), "), parameters, states and inputs ",
             human_bytes(a.memory.inputs + a.memory.constants),
             m.resident > 0 ? "; the process at most " + human_bytes(m.resident) : "")});
  table.row({"machine", fmt::format("{} threads; measured peaks {:.0f} GFLOP/s and {:.1f} GB/s",
                                    m.threads, m.peaks.gflops, m.peaks.gigabytes)});
  return table.html();
}

/// The chart of memory, memory by kind, and the largest values.
std::string memory_section(const Memory& memory, const std::string& chart) {
  std::string out = "<h2>Memory over the step</h2>\n" + chart;
  if (!memory.kinds.empty()) {
    Table table({"#at the peak", "#at most", "kind of memory"});
    for (const MemoryKind& k : memory.kinds)
      table.row({human_bytes(k.at_the_peak), human_bytes(k.most), k.kind});
    out += table.html();
  }
  if (memory.at_the_peak.empty()) return out;
  out += "<p>The largest values at the peak:</p>\n";
  Table table({"#size", "made by", "layer", "phase"});
  for (size_t i = 0; i < memory.at_the_peak.size() && i < 15; ++i) {
    const LiveBuffer& b = memory.at_the_peak[i];
    table.row({human_bytes(b.bytes), b.label, b.layer, b.phase});
  }
  return out + table.html();
}

std::string device_section(const Analysis& a) {
  const double ms = 1e3 / std::max(1.0, a.steps());
  Table table({"#ms", "#share", "#calls", "#GFLOP/s", "#copying ms", "#memory", "device"});
  for (const DeviceUse& d : a.devices)
    table.row({fmt::format("{:.3f}", ms * d.seconds),
               fmt::format("{:.1f}%", 100 * d.seconds / a.operation_seconds()),
               fmt::format("{:g}", static_cast<double>(d.calls) / std::max(1.0, a.steps())),
               fmt::format("{:.1f}", d.seconds > 0 ? d.flops / d.seconds / 1e9 : 0),
               fmt::format("{:.3f}", ms * d.copying), human_bytes(d.memory), d.device});
  return "<h2>Devices</h2>\n" + table.html();
}

}  // namespace

std::string html(const Analysis& a) {
  const Measurement& m = a.measured;
  const std::string title = m.subject + ": profile";
  std::string out = "<h1>" + escape_markup(m.subject) + "</h1>\n<p class=\"soft\">profile of " +
                    (m.training ? "a training step" : "a prediction") + " in " +
                    escape_markup(m.dtype) + "; times are those of one step</p>\n";
  if (a.wall <= 0 || a.operation_seconds() <= 0)
    return html_page(title, out + "<p>No step was measured.</p>\n", kStyle);
  out += summary_table(a);
  out += "<h2>Suggestions</h2>\n";
  if (a.suggestions.empty()) {
    out += "<p>No suggestion: no gain exceeds the measurement noise.</p>\n";
  } else {
    Table table({"#predicted gain", "suggestion", "why"});
    for (const Suggestion& s : a.suggestions)
      table.row({fmt::format("{:.0f}%", 100 * s.gain), s.title, s.reason});
    out += table.html();
  }
  out += "<h2>Time by layer</h2>\n<p>" + key("forward") +
         (m.training ? key("backward") + key("update") : "") + "</p>\n" + flame_graph(a);
  out += cost_table(
      a, {"layer", "phase", "place"},
      [](const OperationCost& c) {
        return std::vector<std::string>{c.layer.empty() ? "–" : c.layer, c.phase, c.place};
      },
      25);
  out +=
      "<h2>Roofline</h2>\n<p class=\"soft\">A circle is an instruction, its area the time. What "
      "lies below the sloped roof waits for memory; above it, operands came from caches.</p>\n" +
      roofline(a);
  out += memory_section(a.memory, memory_chart(a)) + device_section(a);
  out += std::string("<h2>") + (m.training ? "Data loading against compute" : "Runs") +
         "</h2>\n<p><span class=\"key\" style=\"background: var(--forward)\"></span>computing" +
         (m.training ? "<span class=\"key\" style=\"background: var(--waiting)\"></span>waiting "
                       "for data"
                     : "") +
         "</p>\n" + step_chart(a);
  if (!m.shares.empty()) {
    const auto entry = [](const char* color, const char* what) {
      return str("<span class=\"key\" style=\"background: var(--", color, ")\"></span>", what);
    };
    out += str("<h2>What the ", m.ranks, " ranks do in a step</h2>\n<p>",
               entry("forward", "computing"), entry("backward", "exchanging"),
               entry("waiting", "waiting for other ranks"), entry("update", "waiting for data"),
               entry("line", "other"), "</p>\n", rank_chart(a));
    Table table({"#rank", "#step ms", "#computing", "#exchanging", "#waiting for ranks",
                 "#waiting for data", "#other", "#exchanged meanwhile"});
    const double ms = 1e3 / a.steps();
    for (const RankShare& s : m.shares)
      table.row({std::to_string(s.rank), fmt::format("{:.3f}", ms * s.wall),
                 fmt::format("{:.3f}", ms * s.computing), fmt::format("{:.3f}", ms * s.exchanging),
                 fmt::format("{:.3f}", ms * s.waiting), fmt::format("{:.3f}", ms * s.data),
                 fmt::format("{:.3f}", ms * s.other()), fmt::format("{:.3f}", ms * s.hidden)});
    out += table.html();
  }
  if (!m.communication.empty()) {
    out += str("<h2>Communication of the ", m.ranks,
               " ranks</h2>\n<p class=\"soft\">In a step; the time includes waiting for other "
               "ranks.</p>\n");
    Table table({"#rank", "exchange", "#calls", "#sent", "#ms"});
    for (const Communication& c : m.communication)
      table.row({std::to_string(c.rank), c.operation,
                 fmt::format("{:.1f}", static_cast<double>(c.calls) / a.steps()),
                 human_bytes(static_cast<uint64_t>(static_cast<double>(c.bytes) / a.steps())),
                 fmt::format("{:.3f}", 1e3 * c.seconds / a.steps())});
    out += table.html();
  }
  out += "<h2>Kernels chosen</h2>\n" +
         cost_table(
             a, {"operation", "implementation", "phase"},
             [](const OperationCost& c) {
               return std::vector<std::string>{c.operation, c.implementation, c.phase};
             },
             40);
  out += "<h2>Instructions</h2>\n" +
         cost_table(
             a, {"operation", "layer", "phase", "shapes"},
             [](const OperationCost& c) {
               return std::vector<std::string>{c.operation, c.layer, c.phase, c.shapes};
             },
             50);
  return html_page(title, out, kStyle);
}

}  // namespace paddle::profile
