#include "train/records/report_chart.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/markup.h"

namespace paddle::train {
namespace {

/// A step of 1, 2 or 5 times a power of ten that gives about five marks.
double mark_distance(double range) {
  if (!(range > 0)) return 1;
  const double raw = range / 5, power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (raw <= factor * power) return factor * power;
  return 10 * power;
}

constexpr const char* kStyle = R"(
body{font:15px/1.5 system-ui,sans-serif;color:#1f2937;background:#fff;max-width:1180px;margin:24px auto;padding:0 16px}
h1{font-size:22px}h2{font-size:17px;margin-top:28px}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(420px,1fr));gap:16px}
figure{margin:0;border:1px solid #e5e7eb;border-radius:6px;padding:10px}
figcaption{font-weight:600}svg{width:100%;height:auto}
svg text{font:11px system-ui,sans-serif;fill:#6b7280}.grid{stroke:#e5e7eb}
polyline{fill:none;stroke-width:1.6}.legend{margin:0;font-size:13px}
table{border-collapse:collapse}th{text-align:left;font-weight:600}
td,th{padding:3px 14px 3px 0;border-bottom:1px solid #e5e7eb}td{text-align:right;font-variant-numeric:tabular-nums}
.wide{overflow-x:auto}.interval{color:#6b7280}img.sample{height:64px;image-rendering:pixelated;vertical-align:middle}
.heat td{padding:2px 8px;border:0;text-align:center}.heat th{padding:2px 8px;border:0;font-weight:400}
pre{background:#f8fafc;border:1px solid #e5e7eb;border-radius:6px;padding:10px;overflow:auto;font-size:13px}
)";

}  // namespace

std::string report_page(const std::string& title, const std::string& body) {
  return str("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>",
             escape_markup(title), "</title><style>", kStyle, "</style></head><body>\n<h1>",
             escape_markup(title), "</h1>\n", body, "</body></html>\n");
}

std::string short_number(double value) { return fmt::format("{:.4g}", value); }

std::string chart(const std::string& title, const std::vector<Curve>& curves,
                  const std::string& axis) {
  constexpr double kWidth = 560, kHeight = 260, kLeft = 64, kRight = 12, kTop = 12, kBottom = 34;
  double first = 1e300, last = -1e300, low = 1e300, high = -1e300;
  for (const Curve& curve : curves)
    for (const Point& p : curve.points) {
      first = std::min(first, p.x);
      last = std::max(last, p.x);
      low = std::min(low, p.value);
      high = std::max(high, p.value);
    }
  if (first > last) return "";
  if (high == low) {
    const double around = std::max(std::abs(high) * 0.1, 1e-6);
    low -= around;
    high += around;
  }
  if (last == first) last = first + 1;
  const auto x_of = [&](double step) {
    return kLeft + (step - first) / (last - first) * (kWidth - kLeft - kRight);
  };
  const auto y_of = [&](double value) {
    return kTop + (high - value) / (high - low) * (kHeight - kTop - kBottom);
  };
  std::string out =
      str("<figure><figcaption>", escape_markup(title), "</figcaption><svg viewBox=\"0 0 ", kWidth,
          " ", kHeight, "\" role=\"img\" aria-label=\"", escape_markup(title), "\">");
  const auto line = [&](double x1, double y1, double x2, double y2) {
    out += str("<line class=\"grid\" x1=\"", short_number(x1), "\" y1=\"", short_number(y1),
               "\" x2=\"", short_number(x2), "\" y2=\"", short_number(y2), "\"/>");
  };
  const auto label = [&](double x, double y, const char* anchor, const std::string& text) {
    out += str("<text x=\"", short_number(x), "\" y=\"", short_number(y), "\" text-anchor=\"",
               anchor, "\">", escape_markup(text), "</text>");
  };
  const double vertical = mark_distance(high - low), horizontal = mark_distance(last - first);
  for (double v = std::ceil(low / vertical) * vertical; v <= high + vertical * 1e-9;
       v += vertical) {
    line(kLeft, y_of(v), kWidth - kRight, y_of(v));
    label(kLeft - 6, y_of(v) + 4, "end", short_number(std::abs(v) < vertical * 1e-9 ? 0 : v));
  }
  for (double s = std::ceil(first / horizontal) * horizontal; s <= last + horizontal * 1e-9;
       s += horizontal)
    label(x_of(s), kHeight - kBottom + 16, "middle", short_number(s));
  label((kLeft + kWidth) / 2, kHeight - 4, "middle", axis);
  for (const Curve& curve : curves) {
    std::string points;
    for (const Point& p : curve.points)
      points += str(short_number(x_of(p.x)), ",", short_number(y_of(p.value)), " ");
    if (curve.points.size() > 1)
      out += str("<polyline style=\"stroke:", curve.color, "\" points=\"", points, "\"/>");
    if (curve.points.size() <= 40)
      for (const Point& p : curve.points)
        out += str("<circle style=\"fill:", curve.color, "\" cx=\"", short_number(x_of(p.x)),
                   "\" cy=\"", short_number(y_of(p.value)), "\" r=\"2.5\"><title>",
                   escape_markup(curve.name), ", ", escape_markup(axis), " ", short_number(p.x),
                   ": ", short_number(p.value), "</title></circle>");
  }
  out += "</svg><p class=\"legend\">";
  for (const Curve& curve : curves)
    out += str("<span style=\"color:", curve.color, "\">●</span> ", escape_markup(curve.name),
               "&ensp;");
  return out + "</p></figure>\n";
}

const char* curve_color(size_t i) {
  static constexpr const char* kColors[] = {"#2563eb", "#dc2626", "#059669",
                                            "#d97706", "#7c3aed", "#0891b2"};
  return kColors[i % std::size(kColors)];
}

}  // namespace paddle::train
