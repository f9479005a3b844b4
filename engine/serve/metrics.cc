#include "serve/metrics.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "text/unicode.h"

namespace paddle::serve {

std::string metric_label(std::string_view name, std::string_view value) {
  std::string out = str(name, "=\"");
  for (const char c : unicode::to_valid_utf8(value)) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out + '"';
}

void Metrics::add(const std::string& name, double value) {
  const std::lock_guard lock(mutex_);
  counters_[name] += value;
}

void Metrics::set(const std::string& name, double value) {
  const std::lock_guard lock(mutex_);
  gauges_[name] = value;
}

void Metrics::observe(const std::string& name, double seconds) {
  const std::lock_guard lock(mutex_);
  Histogram& histogram = histograms_[name];
  // A value that equals a bound is in its bucket.
  const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), seconds) - kBounds.begin();
  ++histogram.counts[static_cast<size_t>(bucket)];
  histogram.sum += seconds;
}

/// `name{labels}` as `name_suffix{labels,more}`.
static std::string sample_name(const std::string& name, const char* suffix,
                               const std::string& more = "") {
  const size_t brace = name.find('{');
  const std::string labels =
      brace == name.npos ? "" : name.substr(brace + 1, name.size() - brace - 2);
  const std::string all = labels + (labels.empty() || more.empty() ? "" : ",") + more;
  return "paddle_" + name.substr(0, brace) + suffix + (all.empty() ? "" : "{" + all + "}");
}

void Metrics::write_histograms(std::string& out) const {
  std::string family;
  for (const auto& [name, histogram] : histograms_) {
    const std::string of = name.substr(0, name.find('{'));
    if (of != family) out += str("# TYPE paddle_", of, " histogram\n");
    family = of;
    int64_t count = 0;
    for (size_t i = 0; i < histogram.counts.size(); ++i) {
      count += histogram.counts[i];
      const std::string bound = i < kBounds.size() ? format_double(kBounds[i]) : "+Inf";
      out += str(sample_name(name, "_bucket", "le=\"" + bound + "\""), " ", count, "\n");
    }
    out += str(sample_name(name, "_sum"), " ", histogram.sum, "\n");
    out += str(sample_name(name, "_count"), " ", count, "\n");
  }
}

std::string Metrics::text() const {
  const std::lock_guard lock(mutex_);
  std::string out, family;
  const auto write = [&](const std::map<std::string, double>& values, const char* type) {
    for (const auto& [name, value] : values) {
      const std::string of = name.substr(0, name.find('{'));
      if (of != family) out += str("# TYPE paddle_", of, " ", type, "\n");
      family = of;
      const std::string number = fmt::format("{:.17g}", value);
      out += str("paddle_", name, " ", number, "\n");
    }
  };
  write(counters_, "counter");
  write(gauges_, "gauge");
  write_histograms(out);
  return out;
}

}  // namespace paddle::serve
