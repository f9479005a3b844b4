#pragma once
// Counters of a server, in the text format of Prometheus.

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace paddle::serve {

class Metrics {
 public:
  /// Adds to a counter, such as `requests_total{status="200"}`.
  void add(const std::string& name, double value = 1);
  void set(const std::string& name, double value);
  /// All of them with their types; names begin with "paddle_".
  std::string text() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, double> counters_, gauges_;
};

}  // namespace paddle::serve
