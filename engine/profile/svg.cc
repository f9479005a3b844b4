#include "profile/svg.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/markup.h"
#include "base/text.h"

namespace paddle::profile {
namespace {

constexpr double kWidth = 1000;

std::string open_svg(double height, const char* label) {
  return fmt::format("<svg viewBox=\"0 0 {:g} {:g}\" role=\"img\" aria-label=\"{}\">\n", kWidth,
                     height, label);
}

std::string label(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">", x, y, anchor) +
         escape_markup(text) + "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2, const char* style) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2,
      y2, style);
}

/// A node of the flame graph.
struct Part {
  double seconds = 0;
  std::string phase;
  std::map<std::string, Part> parts;
};

void add(Part& root, const OperationCost& c) {
  std::vector<std::string> path = {c.phase};
  std::string layer = c.layer;
  std::replace(layer.begin(), layer.end(), '/', '.');
  for (const std::string& piece : split(layer, '.'))
    if (!piece.empty()) path.push_back(piece);
  path.push_back(c.operation);
  Part* at = &root;
  at->seconds += c.seconds;
  for (const std::string& piece : path) {
    at = &at->parts[piece];
    at->seconds += c.seconds;
    at->phase = c.phase;
  }
}

int depth_of(const Part& part) {
  int deepest = 0;
  for (const auto& [name, inner] : part.parts) deepest = std::max(deepest, depth_of(inner));
  return deepest + 1;
}

int phase_number(const std::string& phase) {
  return phase == "forward" ? 0 : phase == "backward" ? 1 : 2;
}

struct FlameLayout {
  double total, steps;
  std::string out = {};

  void draw(const Part& part, const std::string& path, double x, int row) {
    constexpr double kRow = 20;
    std::vector<std::pair<std::string, const Part*>> order;
    for (const auto& [name, inner] : part.parts) order.push_back({name, &inner});
    // Phases in the order in which they run, the rest by falling time.
    std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
      return row == 0 ? phase_number(a.first) < phase_number(b.first)
                      : a.second->seconds > b.second->seconds;
    });
    for (const auto& [name, inner] : order) {
      const double width = kWidth * inner->seconds / total;
      const std::string full = path.empty() ? name : path + " / " + name;
      if (width >= 0.4) {
        out += fmt::format(
            "<g><rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" class=\"{}\">",
            x, kRow * row, std::max(0.3, width - 0.6), kRow - 1, inner->phase.c_str());
        out +=
            "<title>" +
            escape_markup(full + fmt::format(": {:.3f} ms, {:.1f}%", 1e3 * inner->seconds / steps,
                                             100 * inner->seconds / total)) +
            "</title></rect>";
        const auto room = static_cast<size_t>(width / 6.6);
        if (room >= 3)
          out += label(x + 3, kRow * row + 13.5, "start",
                       name.size() <= room ? name : name.substr(0, room - 1) + "…");
        out += "</g>\n";
        draw(*inner, full, x, row + 1);
      }
      x += width;
    }
  }
};

/// A logarithmic axis from 10^low to 10^high over pixels [from, to].
struct LogAxis {
  double low, high, from, to;
  double at(double value) const {
    return from + (to - from) * (std::log10(value) - low) / (high - low);
  }
};

std::string power_of_ten(int exponent) {
  if (exponent >= -2 && exponent <= 5) return fmt::format("{:g}", std::pow(10.0, exponent));
  return fmt::format("1e{}", exponent);
}

}  // namespace

std::string flame_graph(const Analysis& a) {
  Part root;
  for (const OperationCost& c : a.operations) add(root, c);
  if (root.seconds <= 0) return "";
  FlameLayout layout{root.seconds, std::max(1.0, a.steps())};
  layout.draw(root, "", 0, 0);
  return open_svg(20.0 * (depth_of(root) - 1) + 4, "time by layer") + layout.out + "</svg>\n";
}

std::string roofline(const Analysis& a) {
  const Peaks& peaks = a.measured.peaks;
  struct Point {
    double intensity, gflops, seconds;
    const OperationCost* cost;
  };
  std::vector<Point> points;
  for (const OperationCost& c : a.operations)
    if (c.flops > 0 && c.bytes > 0 && c.seconds > 0)
      points.push_back({c.flops / c.bytes, c.flops / c.seconds / 1e9, c.seconds, &c});
  if (points.empty() || peaks.gflops <= 0 || peaks.gigabytes <= 0) return "";
  const double ridge = peaks.gflops / peaks.gigabytes;
  double low_x = ridge / 10, high_x = ridge * 10, low_y = peaks.gflops / 100,
         high_y = peaks.gflops * 2;
  for (const Point& p : points) {
    low_x = std::min(low_x, p.intensity);
    high_x = std::max(high_x, p.intensity);
    low_y = std::min(low_y, p.gflops);
    high_y = std::max(high_y, p.gflops);
  }
  low_y = std::max(low_y, peaks.gflops * 1e-6);
  constexpr double kHeight = 420, kLeft = 60, kBottom = 380;
  const LogAxis x{std::floor(std::log10(low_x)), std::ceil(std::log10(high_x)), kLeft, kWidth - 10};
  const LogAxis y{std::floor(std::log10(low_y)), std::ceil(std::log10(high_y)), kBottom, 10};
  std::string out = open_svg(kHeight, "roofline");
  for (int e = static_cast<int>(x.low); e <= static_cast<int>(x.high); ++e) {
    out += line(x.at(std::pow(10, e)), y.to, x.at(std::pow(10, e)), y.from, "grid");
    out += label(x.at(std::pow(10, e)), kBottom + 16,
                 e < static_cast<int>(x.high) ? "middle" : "end", power_of_ten(e));
  }
  for (int e = static_cast<int>(y.low); e <= static_cast<int>(y.high); ++e) {
    out += line(x.from, y.at(std::pow(10, e)), x.to, y.at(std::pow(10, e)), "grid");
    out += label(kLeft - 6, y.at(std::pow(10, e)) + 4, "end", power_of_ten(e));
  }
  out += label(kWidth / 2, kHeight - 6, "middle", "FLOP per byte");
  out += label(kLeft + 6, 22, "start", "GFLOP/s");
  const double bottom = std::pow(10, y.low),
               start = std::max(std::pow(10, x.low), bottom / peaks.gigabytes);
  out += line(x.at(start), y.at(start * peaks.gigabytes), x.at(ridge), y.at(peaks.gflops), "roof");
  out += line(x.at(ridge), y.at(peaks.gflops), x.to, y.at(peaks.gflops), "roof");
  out +=
      label(x.to - 4, y.at(peaks.gflops) - 6, "end", fmt::format("{:.0f} GFLOP/s", peaks.gflops));
  out += label(x.at(start) + 8, y.at(start * peaks.gigabytes) - 8, "start",
               fmt::format("{:.1f} GB/s", peaks.gigabytes));
  const double total = a.operation_seconds(), steps = std::max(1.0, a.steps());
  for (const Point& p : points) {
    const double radius = 2.5 + 16 * std::sqrt(p.seconds / total);
    out += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" class=\"{} point\"><title>",
        x.at(p.intensity), y.at(std::max(p.gflops, bottom)), radius, p.cost->phase.c_str());
    out += escape_markup(
               p.cost->operation + " " + p.cost->layer + " " + p.cost->shapes +
               fmt::format(": {:.3f} ms, {:.1f} GFLOP/s", 1e3 * p.seconds / steps, p.gflops)) +
           "</title></circle>\n";
  }
  return out + "</svg>\n";
}

std::string memory_chart(const Analysis& a) {
  const Memory& memory = a.memory;
  if (memory.timeline.empty()) return "";
  constexpr double kHeight = 260, kLeft = 90, kBottom = 225, kTop = 20;
  const MemoryPoint& peak = memory.timeline[memory.peak];
  double end = 0;
  for (const OperationCost& c : a.operations) end += c.seconds;
  end = std::max({end / std::max(1.0, a.steps()), memory.timeline.back().seconds, 1e-9});
  const double highest = std::max<double>(1, static_cast<double>(peak.bytes));
  const auto x = [&](double seconds) { return kLeft + (kWidth - 10 - kLeft) * seconds / end; };
  const auto y = [&](double bytes) { return kBottom - (kBottom - kTop) * bytes / highest; };
  std::string out = open_svg(kHeight, "memory over the step");
  for (int i = 0; i <= 4; ++i) {
    const double bytes = highest * i / 4;
    out += line(kLeft, y(bytes), kWidth - 10, y(bytes), "grid");
    out += label(kLeft - 6, y(bytes) + 4, "end", human_bytes(static_cast<uint64_t>(bytes)));
    out += label(x(end * i / 4), kBottom + 16,
                 i == 0   ? "start"
                 : i == 4 ? "end"
                          : "middle",
                 fmt::format("{:.3g} ms", 1e3 * end * i / 4));
  }
  std::string path = fmt::format("M{:.1f} {:.1f}", x(0), kBottom);
  for (size_t i = 0; i < memory.timeline.size(); ++i) {
    const double until = i + 1 < memory.timeline.size() ? memory.timeline[i + 1].seconds : end;
    path += fmt::format("L{:.1f} {:.1f}", x(memory.timeline[i].seconds),
                        y(static_cast<double>(memory.timeline[i].bytes)));
    path +=
        fmt::format("L{:.1f} {:.1f}", x(until), y(static_cast<double>(memory.timeline[i].bytes)));
  }
  out += "<path class=\"area\" d=\"" + path + fmt::format("L{:.1f} {:.1f}Z\"/>\n", x(end), kBottom);
  out += line(x(peak.seconds), kTop - 4, x(peak.seconds), kBottom, "roof");
  const bool right = peak.seconds > end / 2;
  out += label(x(peak.seconds) + (right ? -6 : 6), kTop - 6, right ? "end" : "start",
               human_bytes(peak.bytes) + " at " + peak.operation +
                   (peak.layer.empty() ? "" : " in " + peak.layer) + ", " + peak.phase);
  return out + "</svg>\n";
}

std::string rank_chart(const Analysis& a) {
  const std::vector<RankShare>& shares = a.measured.shares;
  constexpr double kRow = 22, kLeft = 70;
  double longest = 0;
  for (const RankShare& s : shares) longest = std::max(longest, s.wall);
  if (longest <= 0) return "";
  const double steps = std::max(1.0, a.steps());
  std::string out =
      open_svg(kRow * static_cast<double>(shares.size()) + 4, "what each rank does in a step");
  double y = 0;
  for (const RankShare& s : shares) {
    out += label(kLeft - 6, y + 15, "end", str("rank ", s.rank));
    double x = kLeft;
    const auto bar = [&](double seconds, const char* style, const char* what) {
      const double width = (kWidth - 10 - kLeft) * std::max(0.0, seconds) / longest;
      out += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" "
          "class=\"{}\"><title>{} "
          "{:.3f} ms, {:.1f}%</title></rect>\n",
          x, y, width, kRow - 3, style, what, 1e3 * seconds / steps, 100 * seconds / s.wall);
      x += width;
    };
    bar(s.computing, "forward", "computing");
    bar(s.exchanging, "backward", "exchanging");
    bar(s.waiting, "waiting", "waiting for other ranks");
    bar(s.data, "update", "waiting for data");
    bar(s.other(), "rest", "other");
    y += kRow;
  }
  return out + "</svg>\n";
}

std::string step_chart(const Analysis& a) {
  const std::vector<Step>& steps = a.measured.steps;
  if (steps.empty()) return "";
  constexpr double kHeight = 200, kLeft = 70, kBottom = 165, kTop = 10;
  double highest = 0;
  for (const Step& s : steps) highest = std::max(highest, static_cast<double>(s.end - s.begin));
  const auto y = [&](double nanoseconds) { return (kBottom - kTop) * nanoseconds / highest; };
  std::string out = open_svg(kHeight, "data loading against compute");
  for (int i = 0; i <= 4; ++i) {
    out += line(kLeft, kBottom - y(highest * i / 4), kWidth - 10, kBottom - y(highest * i / 4),
                "grid");
    out += label(kLeft - 6, kBottom - y(highest * i / 4) + 4, "end",
                 fmt::format("{:.3g} ms", 1e-6 * highest * i / 4));
  }
  const double slot = (kWidth - 10 - kLeft) / static_cast<double>(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto compute = static_cast<double>(steps[i].end - steps[i].loaded),
               waiting = static_cast<double>(steps[i].loaded - steps[i].begin);
    const double x = kLeft + slot * static_cast<double>(i);
    const auto bar = [&](double top, double height, const char* style, const char* what,
                         double nanoseconds) {
      out += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" "
          "class=\"{}\"><title>step "
          "{}: {} {:.3f} ms</title></rect>\n",
          x, top, std::max(0.5, slot * 0.85), height, style, i + 1, what, 1e-6 * nanoseconds);
    };
    bar(kBottom - y(compute), y(compute), "forward", "computing", compute);
    bar(kBottom - y(compute) - y(waiting), y(waiting), "waiting", "waiting for data", waiting);
  }
  out += label(kWidth / 2, kHeight - 12, "middle", "measured steps");
  return out + "</svg>\n";
}

}  // namespace paddle::profile
