#include "train/sweep.h"

#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "config/overrides.h"
#include "tensor/random.h"

namespace paddle::train {
namespace {

bool is_integer(const std::string& text) {
  return !text.empty() &&
         text.find_first_not_of("0123456789", text[0] == '-' ? 1 : 0) == std::string::npos;
}

/// The parts between commas that are outside of brackets, braces and quotes.
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> out(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      out.emplace_back();
      continue;
    }
    out.back() += c;
  }
  return out;
}

}  // namespace

bool parse_number(const std::string& text, double& out) {
  try {
    size_t used = 0;
    out = std::stod(text, &used);
    return used == text.size() && std::isfinite(out);
  } catch (const std::exception&) {
    return false;
  }
}

SweptKey parse_swept(const std::string& text) {
  if (!config::is_override(text))
    fail(ErrorCode::kUsage, "'", text, "': expected key=value,value or key=low..high");
  const size_t equals = text.find('=');
  SweptKey out;
  out.key = text.substr(0, equals);
  const std::string values = text.substr(equals + 1);
  if (const size_t dots = values.find(".."); dots != std::string::npos) {
    const std::string low = values.substr(0, dots), high = values.substr(dots + 2);
    if (parse_number(low, out.low) && parse_number(high, out.high)) {
      if (!(out.low < out.high)) fail(ErrorCode::kUsage, text, ": the range ends before it begins");
      out.is_integer = is_integer(low) && is_integer(high);
      out.is_log = out.low > 0 && out.high >= 10 * out.low;
      return out;
    }
  }
  for (const std::string& value : split(values)) {
    if (value.empty()) fail(ErrorCode::kUsage, text, ": an empty value between commas");
    out.values.push_back(value);
  }
  return out;
}

std::vector<Trial> grid_trials(const std::vector<SweptKey>& keys) {
  constexpr size_t kMost = 10000;
  std::vector<Trial> out = {{}};
  for (const SweptKey& key : keys) {
    if (key.values.empty())
      fail(ErrorCode::kUsage, key.key, ": a range needs --random N; list values for a grid");
    std::vector<Trial> next;
    for (const Trial& trial : out)
      for (const std::string& value : key.values) {
        next.push_back(trial);
        next.back().push_back(key.key + "=" + value);
        if (next.size() > kMost) fail(ErrorCode::kUsage, "a grid of more than ", kMost, " trials");
      }
    out = std::move(next);
  }
  return out;
}

std::vector<Trial> random_trials(const std::vector<SweptKey>& keys, int64_t count, uint64_t seed) {
  std::vector<Trial> out;
  for (int64_t i = 0; i < count; ++i) {
    Trial trial;
    for (const SweptKey& key : keys) {
      const Random random(seed, stream_of(key.key));
      const auto at = static_cast<uint64_t>(i);
      if (!key.values.empty()) {
        trial.push_back(key.key + "=" + key.values[random.below(at, key.values.size())]);
        continue;
      }
      const double share = random.uniform(at);
      if (key.is_integer && !key.is_log) {
        const auto value =
            static_cast<int64_t>(std::floor(key.low + share * (key.high - key.low + 1)));
        trial.push_back(str(key.key, "=", value));
        continue;
      }
      const double value =
          key.is_log
              ? std::exp(std::log(key.low) + share * (std::log(key.high) - std::log(key.low)))
              : key.low + share * (key.high - key.low);
      char text[32];
      std::snprintf(text, sizeof text, key.is_integer ? "%.0f" : "%.4g", value);
      trial.push_back(key.key + "=" + text);
    }
    out.push_back(std::move(trial));
  }
  return out;
}

std::vector<Rung> halving_rungs(size_t trials, int64_t factor) {
  if (factor < 2) fail(ErrorCode::kUsage, "successive halving needs a factor of at least 2");
  const auto by = static_cast<size_t>(factor);
  std::vector<Rung> out = {{1, trials}};
  while (out.back().trials >= by) out.push_back({1, out.back().trials / by});
  double share = 1;
  for (size_t i = out.size(); i-- > 0; share /= static_cast<double>(factor)) out[i].share = share;
  return out;
}

std::string trial_name(size_t index, const Trial& trial) {
  char number[16];
  std::snprintf(number, sizeof number, "%03zu", index);
  std::string out = number;
  for (const std::string& each : trial) {
    const size_t equals = each.find('='), dot = each.rfind('.', equals);
    std::string part = "-" + each.substr(dot == std::string::npos ? 0 : dot + 1);
    for (char& c : part)
      if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            std::string_view("-=._+").find(c) != std::string_view::npos))
        c = '_';
    out += part.substr(0, 24);
  }
  return out.substr(0, 120);
}

}  // namespace paddle::train
