#include "base/source_location.h"

#include <cstdlib>

namespace paddle {
namespace {

constexpr std::string_view kLayer = " @", kGradient = " (gradient)";

}  // namespace

std::string text(const Origin& origin) {
  std::string out = origin.place;
  if (!origin.layer.empty()) out += std::string(kLayer) + origin.layer;
  if (origin.gradient) out += kGradient;
  return out;
}

Origin parse_origin(const std::string& text) {
  Origin out{.place = text};
  if (out.place.ends_with(kGradient)) {
    out.gradient = true;
    out.place.resize(out.place.size() - kGradient.size());
  }
  if (const size_t at = out.place.rfind(kLayer); at != std::string::npos) {
    out.layer = out.place.substr(at + kLayer.size());
    out.place.resize(at);
  }
  return out;
}

SourceLocation parse_source_location(const std::string& text) {
  const std::string place = parse_origin(text).place;
  const size_t column = place.rfind(':');
  if (column == std::string::npos || column == 0) return {};
  const size_t line = place.rfind(':', column - 1);
  if (line == std::string::npos) return {};
  return {place.substr(0, line), std::atoi(place.c_str() + line + 1),
          std::atoi(place.c_str() + column + 1)};
}

}  // namespace paddle
