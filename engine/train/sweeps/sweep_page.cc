#include "train/sweeps/sweep_page.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/markup.h"
#include "train/records/report_chart.h"
#include "train/runs/run_index.h"

namespace paddle::train {
namespace {

constexpr size_t kMaxTrialsDrawn = 12;

std::string key_of(const std::string& setting) { return setting.substr(0, setting.find('=')); }
std::string value_of(const std::string& setting) { return setting.substr(setting.find('=') + 1); }

std::string trials_table(const std::string& metric, const std::vector<SweptRun>& runs) {
  std::string out = str("<table><tr><th>", escape_markup(metric), "</th>");
  for (const std::string& setting : runs[0].trial)
    out += "<th>" + escape_markup(key_of(setting)) + "</th>";
  out += "<th>trained</th><th>run</th></tr>\n";
  for (const SweptRun& run : runs) {
    out +=
        "<tr><td>" + (run.value ? short_number(*run.value) : escape_markup(run.status)) + "</td>";
    for (const std::string& setting : run.trial)
      out += "<td>" + escape_markup(value_of(setting)) + "</td>";
    out += str("<td>", short_number(100 * run.share), "%</td><th>", escape_markup(run.folder),
               "</th></tr>\n");
  }
  return out + "</table>\n";
}

std::string curves(const std::string& metric, const std::vector<SweptRun>& runs) {
  std::vector<Curve> lines;
  for (const SweptRun& run : runs) {
    if (lines.size() == kMaxTrialsDrawn) break;
    if (!is_run_folder(run.folder)) continue;
    Curve line{join(run.trial, " "), curve_color(lines.size()), {}};
    for (const LossAt& at : read_evaluations(run.folder, metric))
      if (std::isfinite(at.loss)) line.points.push_back({static_cast<double>(at.step), at.loss});
    if (!line.points.empty()) lines.push_back(std::move(line));
  }
  return chart(runs.size() > kMaxTrialsDrawn
                   ? str(metric, ", the best ", kMaxTrialsDrawn, " trials")
                   : metric,
               lines);
}

/// The metric after the first round against a setting; "" if its values are not numbers. Values
/// that span a factor of 10 are shown by their logarithm.
std::string against(size_t key, const std::string& metric, const std::vector<SweptRun>& runs) {
  Curve points{metric, curve_color(0), {}};
  double low = INFINITY, high = -INFINITY;
  for (const SweptRun& run : runs) {
    double x = 0;
    if (!parse_number(value_of(run.trial[key]), x)) return "";
    if (!run.first) continue;
    points.points.push_back({x, *run.first});
    low = std::min(low, x);
    high = std::max(high, x);
  }
  if (points.points.size() < 2) return "";
  const bool is_log = low > 0 && high >= 10 * low;
  if (is_log)
    for (Point& p : points.points) p.x = std::log10(p.x);
  std::sort(points.points.begin(), points.points.end(),
            [](const Point& a, const Point& b) { return a.x < b.x; });
  const std::string name = key_of(runs[0].trial[key]);
  return chart(str(metric, " by ", name), {points}, is_log ? str("log10(", name, ")") : name);
}

}  // namespace

std::string sweep_page(const std::string& title, const std::string& metric,
                       const std::vector<SweptRun>& runs) {
  if (runs.empty()) return report_page(title, "<p>No trial was run.</p>");
  std::string body = "<h2>Trials</h2>\n" + trials_table(metric, runs);
  body += "<h2>Curves</h2>\n<div class=\"charts\">\n" + curves(metric, runs);
  for (size_t key = 0; key < runs[0].trial.size(); ++key) body += against(key, metric, runs);
  return report_page(title, body + "</div>\n");
}

}  // namespace paddle::train
