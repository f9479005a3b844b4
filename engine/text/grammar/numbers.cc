#include "text/grammar/numbers.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace paddle::grammar {

namespace {

/// Digits of the largest numbers.
constexpr int kMostDigits = 15;

int64_t power_of_ten(int n) {
  int64_t out = 1;
  for (int i = 0; i < n; ++i) out *= 10;
  return out;
}

Part digit(Builder& builder, int low, int high) {
  return builder.bytes(static_cast<uint8_t>('0' + low), static_cast<uint8_t>('0' + high));
}

/// Texts of digits, as long as `low` and `high`, from the one to the other; a point stands in front
/// of the last `decimals` of them.
Part digits_between(Builder& builder, const std::string& low, const std::string& high, size_t at,
                    size_t decimals) {
  if (at == low.size()) return builder.nothing();
  const bool point = decimals > 0 && at == low.size() - decimals;
  const auto with_point = [&](Part part) {
    return point ? builder.sequence({builder.text("."), part}) : part;
  };
  const auto all_digits = [&](size_t from) {
    std::vector<Part> parts;
    for (size_t i = from; i < low.size(); ++i) {
      if (decimals > 0 && i == low.size() - decimals) parts.push_back(builder.text("."));
      parts.push_back(digit(builder, 0, 9));
    }
    return builder.sequence(parts);
  };
  const int a = low[at] - '0', b = high[at] - '0';
  if (a == b)
    return with_point(builder.sequence(
        {digit(builder, a, a), digits_between(builder, low, high, at + 1, decimals)}));
  std::vector<Part> parts;
  const std::string nines(low.size(), '9'), zeros(low.size(), '0');
  const auto prefixed = [&](const std::string& from, const std::string& to) {
    return digits_between(builder, from, to, at + 1, decimals);
  };
  // The lowest first digit, those in between, the highest one.
  const std::string low_end = low.substr(0, at + 1) + nines.substr(at + 1),
                    high_begin = high.substr(0, at + 1) + zeros.substr(at + 1);
  parts.push_back(builder.sequence({digit(builder, a, a), prefixed(low, low_end)}));
  if (b - a > 1)
    parts.push_back(builder.sequence({digit(builder, a + 1, b - 1), all_digits(at + 1)}));
  parts.push_back(builder.sequence({digit(builder, b, b), prefixed(high_begin, high)}));
  return with_point(builder.choice(parts));
}

/// k / 10^decimals for k from `low` to `high`, both at least 0.
void add_range(Builder& builder, int64_t low, int64_t high, int decimals, bool negative,
               std::vector<Part>& parts) {
  if (low > high) return;
  const auto padded = [&](int64_t value) {
    std::string out = std::to_string(value);
    const auto width = static_cast<size_t>(decimals) + 1;
    if (out.size() < width) out.insert(0, width - out.size(), '0');
    return out;
  };
  const size_t shortest = padded(low).size(), longest = padded(high).size();
  for (size_t length = shortest; length <= longest; ++length) {
    const std::string from = length == shortest ? padded(low) : "1" + std::string(length - 1, '0'),
                      to = length == longest ? padded(high) : std::string(length, '9');
    const Part part = digits_between(builder, from, to, 0, static_cast<size_t>(decimals));
    parts.push_back(negative ? builder.sequence({builder.text("-"), part}) : part);
  }
}

/// Adds the numbers within the bounds that have this number of decimals.
void add_decimals(Builder& builder, const NumberBounds& bounds, int decimals,
                  std::vector<Part>& parts) {
  const int64_t most = power_of_ten(kMostDigits) - 1;
  const auto unit = static_cast<double>(power_of_ten(decimals));
  const auto value = [&](int64_t k) { return static_cast<double>(k) / unit; };
  const auto is_below = [&](int64_t k) {
    return bounds.low && (bounds.low_open ? value(k) <= *bounds.low : value(k) < *bounds.low);
  };
  const auto is_above = [&](int64_t k) {
    return bounds.high && (bounds.high_open ? value(k) >= *bounds.high : value(k) > *bounds.high);
  };
  const auto clamped = [&](double x) {
    return static_cast<int64_t>(
        std::clamp(x, -static_cast<double>(most), static_cast<double>(most)));
  };
  int64_t low = bounds.low ? clamped(std::floor(*bounds.low * unit) - 1) : -most;
  int64_t high = bounds.high ? clamped(std::ceil(*bounds.high * unit) + 1) : most;
  for (int i = 0; i < 4 && low <= high && is_below(low); ++i) ++low;
  for (int i = 0; i < 4 && low <= high && is_above(high); ++i) --high;
  if (low > high || is_below(low) || is_above(high)) return;
  if (low < 0)
    add_range(builder, std::max<int64_t>(1, -std::min<int64_t>(high, -1)), -low, decimals, true,
              parts);
  if (high >= 0) add_range(builder, std::max<int64_t>(0, low), high, decimals, false, parts);
}

int decimals_of(double x) {
  for (int n = 0; n < 9; ++n) {
    const double scaled = x * static_cast<double>(power_of_ten(n));
    if (std::abs(scaled - std::nearbyint(scaled)) < 1e-9 * std::max(1.0, std::abs(scaled)))
      return n;
  }
  return 9;
}

}  // namespace

std::optional<Part> number_part(Builder& builder, const NumberBounds& bounds, bool integer) {
  std::vector<Part> parts;
  if (bounds.low || bounds.high) {
    int decimals = 4;
    for (const auto& bound : {bounds.low, bounds.high})
      if (bound) decimals = std::max(decimals, decimals_of(*bound));
    for (int n = 0; n <= (integer ? 0 : decimals); ++n) add_decimals(builder, bounds, n, parts);
    if (parts.empty()) return std::nullopt;
    return builder.choice(parts);
  }
  const Part whole = builder.choice(
      {builder.text("0"),
       builder.sequence(
           {digit(builder, 1, 9), builder.repeat(digit(builder, 0, 9), 0, kMostDigits - 1)})});
  std::vector<Part> sequence = {builder.optional(builder.text("-")), whole};
  if (!integer) {
    sequence.push_back(builder.optional(builder.sequence(
        {builder.text("."), builder.repeat(digit(builder, 0, 9), 1, kMostDigits)})));
    sequence.push_back(builder.optional(
        builder.sequence({builder.choice({builder.text("e"), builder.text("E")}),
                          builder.optional(builder.choice({builder.text("+"), builder.text("-")})),
                          builder.repeat(digit(builder, 0, 9), 1, 2)})));
  }
  return builder.sequence(sequence);
}

}  // namespace paddle::grammar
