#pragma once
// Counters, gauges and histograms of a server, in the text format of Prometheus.

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace paddle::serve {

/// `name="value"`, with what would end the value or the line escaped.
std::string metric_label(std::string_view name, std::string_view value);

class Metrics {
 public:
  /// Adds to a counter, such as `requests_total{status="200"}`.
  void add(const std::string& name, double value = 1);
  void set(const std::string& name, double value);
  /// Counts a time in a histogram, such as `request_duration_seconds{model="llama"}`.
  void observe(const std::string& name, double seconds);
  /// All of them with their types; names begin with "paddle_".
  std::string text() const;

 private:
  /// Upper bounds of the buckets of all histograms, in seconds: from a token of a small model to a
  /// long text of a large one.
  static constexpr std::array kBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,   0.25, 0.5,
                                         1.0,   2.5,    5.0,   10.0, 25.0,  50.0, 100.0, 250.0};
  struct Histogram {
    std::array<int64_t, kBounds.size() + 1> counts = {};  ///< the last one is of larger values
    double sum = 0;
  };
  void write_histograms(std::string& out) const;

  mutable std::mutex mutex_;
  std::map<std::string, double> counters_, gauges_;
  std::map<std::string, Histogram> histograms_;
};

}  // namespace paddle::serve
