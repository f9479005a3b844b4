#pragma once
// Line charts as SVG, and pages that need no other file.

#include <cstddef>
#include <string>
#include <vector>

namespace paddle::train {

struct Point {
  double x = 0, value = 0;
};
struct Curve {
  std::string name, color;
  std::vector<Point> points;
};

/// A figure with a line for each curve and a legend; "" without points.
std::string chart(const std::string& title, const std::vector<Curve>& curves,
                  const std::string& axis = "step");
/// A page with the style of the charts and tables; `body` is HTML.
std::string report_page(const std::string& title, const std::string& body);
/// Four digits.
std::string short_number(double value);
/// Colors of curves, repeated after the last one.
const char* curve_color(size_t i);

}  // namespace paddle::train
