#include "serve/metrics.h"

#include <cstdio>

#include "base/text.h"

namespace paddle::serve {

void Metrics::add(const std::string& name, double value) {
  const std::lock_guard lock(mutex_);
  counters_[name] += value;
}

void Metrics::set(const std::string& name, double value) {
  const std::lock_guard lock(mutex_);
  gauges_[name] = value;
}

std::string Metrics::text() const {
  const std::lock_guard lock(mutex_);
  std::string out, family;
  const auto write = [&](const std::map<std::string, double>& values, const char* type) {
    for (const auto& [name, value] : values) {
      const std::string of = name.substr(0, name.find('{'));
      if (of != family) out += str("# TYPE paddle_", of, " ", type, "\n");
      family = of;
      char number[32];
      std::snprintf(number, sizeof number, "%.17g", value);
      out += str("paddle_", name, " ", number, "\n");
    }
  };
  write(counters_, "counter");
  write(gauges_, "gauge");
  return out;
}

}  // namespace paddle::serve
