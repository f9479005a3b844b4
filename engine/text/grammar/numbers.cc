#include "text/grammar/numbers.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

namespace paddle::grammar {

namespace {

/// Digits of numbers without a bound.
constexpr size_t kMaxDigits = 15;
/// Digits that may follow where a fraction is within its bounds whatever they are.
constexpr size_t kMaxTail = 15;

/// Magnitudes are texts of digits without zeros in front, counted in units of the last decimal.
using Digits = std::string;

Digits stripped(Digits digits) {
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
  return digits;
}
bool is_zero(const Digits& digits) { return digits == "0"; }
int compare_digits(const Digits& a, const Digits& b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  const int order = a.compare(b);
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}
Digits next_digits(Digits digits) {
  size_t i = digits.size();
  while (i > 0 && digits[i - 1] == '9') digits[--i] = '0';
  if (i == 0) return "1" + digits;
  ++digits[i - 1];
  return digits;
}
/// Of digits that are not zero.
Digits previous_digits(Digits digits) {
  size_t i = digits.size();
  while (digits[i - 1] == '0') digits[--i] = '9';
  --digits[i - 1];
  return stripped(std::move(digits));
}

/// An integer of any size.
struct Whole {
  bool negative = false;
  Digits digits = "0";
};
int compare_wholes(const Whole& a, const Whole& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  return compare_digits(a.digits, b.digits) * (a.negative ? -1 : 1);
}
Whole plus_one(const Whole& x) {
  if (!x.negative) return {false, next_digits(x.digits)};
  Digits digits = previous_digits(x.digits);
  const bool negative = !is_zero(digits);
  return {negative, std::move(digits)};
}
Whole minus_one(const Whole& x) {
  if (x.negative) return {true, next_digits(x.digits)};
  return is_zero(x.digits) ? Whole{true, "1"} : Whole{false, previous_digits(x.digits)};
}

/// The value in units of the last of `decimals`, not fewer than it has.
Whole scaled(const Decimal& x, int64_t decimals) {
  if (is_zero(x.digits)) return {};
  return {x.negative, x.digits + std::string(static_cast<size_t>(decimals - x.decimals), '0')};
}

/// The least integer that is not below a bound, or the largest one that is not above it.
Whole integer_bound(const Decimal& x, bool is_low, bool open) {
  const auto behind = static_cast<size_t>(x.decimals);
  const size_t before = x.digits.size() > behind ? x.digits.size() - behind : 0;
  const bool exact = x.digits.find_first_not_of('0', before) == x.digits.npos;
  Whole cut{x.negative, before > 0 ? x.digits.substr(0, before) : "0"};
  if (is_zero(cut.digits)) cut.negative = false;
  // Cutting rounds towards zero.
  if (exact ? open : is_low != x.negative) return is_low ? plus_one(cut) : minus_one(cut);
  return cut;
}

/// Makes the parts of numbers with a fixed number of decimals.
class NumberParts {
 public:
  NumberParts(Builder& builder, size_t decimals) : builder_(builder), decimals_(decimals) {}

  /// Magnitudes from the one to the other.
  Part between(Digits low, Digits high) {
    for (Digits* each : {&low, &high})
      if (each->size() <= decimals_) each->insert(0, decimals_ + 1 - each->size(), '0');
    Digits low_whole = low.substr(0, low.size() - decimals_),
           high_whole = high.substr(0, high.size() - decimals_);
    const Digits low_rest = low.substr(low_whole.size()),
                 high_rest = high.substr(high_whole.size());
    if (low_whole == high_whole)
      return builder_.sequence({builder_.text(low_whole), fraction_between(low_rest, high_rest)});
    // Whole numbers at the ends have fractions of their own unless all fractions are within.
    std::vector<Part> parts;
    if (!all(low_rest, 0, '0')) {
      parts.push_back(builder_.sequence({builder_.text(low_whole), fraction_from(low_rest)}));
      low_whole = next_digits(low_whole);
    }
    if (!all(high_rest, 0, '9')) {
      parts.push_back(builder_.sequence({builder_.text(high_whole), fraction_to(high_rest)}));
      high_whole = previous_digits(high_whole);
    }
    if (compare_digits(low_whole, high_whole) <= 0)
      parts.push_back(builder_.sequence({integers(low_whole, high_whole), any_fraction()}));
    return builder_.choice(parts);
  }

 private:
  Part digit(char low = '0', char high = '9') {
    return builder_.bytes(static_cast<uint8_t>(low), static_cast<uint8_t>(high));
  }
  Part digits(size_t least, size_t most) {
    return builder_.repeat(digit(), static_cast<int64_t>(least), static_cast<int64_t>(most));
  }
  static bool all(const Digits& text, size_t from, char c) {
    return text.find_first_not_of(c, from) == text.npos;
  }
  static char after(char c) { return static_cast<char>(c + 1); }
  static char before(char c) { return static_cast<char>(c - 1); }

  Part integers(const Digits& low, const Digits& high) {
    if (low.size() == high.size()) return same_length(low, high, 0);
    std::vector<Part> parts = {same_length(low, Digits(low.size(), '9'), 0)};
    if (high.size() - low.size() > 1)
      parts.push_back(builder_.sequence({digit('1'), digits(low.size(), high.size() - 2)}));
    parts.push_back(same_length("1" + Digits(high.size() - 1, '0'), high, 0));
    return builder_.choice(parts);
  }
  /// The digits from the i-th on, those before are the same.
  Part same_length(const Digits& low, const Digits& high, size_t i) {
    if (i == low.size()) return builder_.nothing();
    if (low[i] == high[i])
      return builder_.sequence({digit(low[i], low[i]), same_length(low, high, i + 1)});
    std::vector<Part> parts = {builder_.sequence({digit(low[i], low[i]), at_least(low, i + 1)}),
                               builder_.sequence({digit(high[i], high[i]), at_most(high, i + 1)})};
    if (after(low[i]) < high[i])
      parts.push_back(
          builder_.sequence({digit(after(low[i]), before(high[i])), rest(low.size() - i - 1)}));
    return builder_.choice(parts);
  }
  Part rest(size_t count) { return digits(count, count); }
  Part at_least(const Digits& low, size_t i) {
    if (all(low, i, '0')) return rest(low.size() - i);
    std::vector<Part> parts = {builder_.sequence({digit(low[i], low[i]), at_least(low, i + 1)})};
    if (low[i] < '9')
      parts.push_back(builder_.sequence({digit(after(low[i])), rest(low.size() - i - 1)}));
    return builder_.choice(parts);
  }
  Part at_most(const Digits& high, size_t i) {
    if (all(high, i, '9')) return rest(high.size() - i);
    std::vector<Part> parts = {builder_.sequence({digit(high[i], high[i]), at_most(high, i + 1)})};
    if (high[i] > '0')
      parts.push_back(builder_.sequence({digit('0', before(high[i])), rest(high.size() - i - 1)}));
    return builder_.choice(parts);
  }

  // Fractions, from the point on: digits that are left out are zeros.
  Part with_point(Part fraction) { return builder_.sequence({builder_.text("."), fraction}); }
  Part any_fraction() {
    return decimals_ == 0 ? builder_.nothing()
                          : builder_.optional(with_point(digits(1, decimals_)));
  }
  /// Any further digits after the first i.
  Part tail(size_t i) { return digits(0, std::min(decimals_ - i, kMaxTail)); }
  Part fraction_from(const Digits& low) { return with_point(more_from(low, 0)); }
  Part more_from(const Digits& low, size_t i) {
    if (all(low, i, '0')) return tail(i);
    std::vector<Part> parts = {builder_.sequence({digit(low[i], low[i]), more_from(low, i + 1)})};
    if (low[i] < '9') parts.push_back(builder_.sequence({digit(after(low[i])), tail(i + 1)}));
    return builder_.choice(parts);
  }
  Part fraction_to(const Digits& high) { return builder_.optional(with_point(digits_to(high, 0))); }
  Part digits_to(const Digits& high, size_t i) {
    std::vector<Part> parts = {builder_.sequence({digit(high[i], high[i]), more_to(high, i + 1)})};
    if (high[i] > '0')
      parts.push_back(builder_.sequence({digit('0', before(high[i])), tail(i + 1)}));
    return builder_.choice(parts);
  }
  Part more_to(const Digits& high, size_t i) {
    return all(high, i, '9') ? tail(i) : builder_.optional(digits_to(high, i));
  }
  Part fraction_between(const Digits& low, const Digits& high) {
    if (decimals_ == 0) return builder_.nothing();
    const Part part = with_point(digits_between(low, high, 0));
    return all(low, 0, '0') ? builder_.optional(part) : part;
  }
  Part digits_between(const Digits& low, const Digits& high, size_t i) {
    if (low[i] == high[i]) {
      if (i + 1 == decimals_) return digit(low[i], low[i]);
      const Part more = digits_between(low, high, i + 1);
      return builder_.sequence(
          {digit(low[i], low[i]), all(low, i + 1, '0') ? builder_.optional(more) : more});
    }
    std::vector<Part> parts = {builder_.sequence({digit(low[i], low[i]), more_from(low, i + 1)}),
                               builder_.sequence({digit(high[i], high[i]), more_to(high, i + 1)})};
    if (after(low[i]) < high[i])
      parts.push_back(builder_.sequence({digit(after(low[i]), before(high[i])), tail(i + 1)}));
    return builder_.choice(parts);
  }

  Builder& builder_;
  size_t decimals_;
};

std::optional<Part> bounded_part(Builder& builder, const NumberBounds& bounds, bool integer) {
  size_t whole_digits = kMaxDigits;
  int64_t decimals = integer ? 0 : 4;
  for (const auto& bound : {bounds.low, bounds.high}) {
    if (!bound) continue;
    if (!integer) decimals = std::max(decimals, bound->decimals);
    const auto size = static_cast<int64_t>(bound->digits.size()) - bound->decimals;
    whole_digits = std::max(whole_digits, static_cast<size_t>(std::max<int64_t>(size, 0)));
  }
  const Digits most(whole_digits + static_cast<size_t>(decimals), '9');
  Whole low{true, most}, high{false, most};
  if (bounds.low && integer) {
    low = integer_bound(*bounds.low, true, bounds.low_open);
  } else if (bounds.low) {
    low = scaled(*bounds.low, decimals);
    if (bounds.low_open) low = plus_one(low);
  }
  if (bounds.high && integer) {
    high = integer_bound(*bounds.high, false, bounds.high_open);
  } else if (bounds.high) {
    high = scaled(*bounds.high, decimals);
    if (bounds.high_open) high = minus_one(high);
  }
  if (compare_wholes(low, high) > 0) return std::nullopt;
  NumberParts numbers(builder, static_cast<size_t>(decimals));
  std::vector<Part> parts;
  if (low.negative)
    parts.push_back(builder.sequence(
        {builder.text("-"), numbers.between(high.negative ? high.digits : "1", low.digits)}));
  if (!high.negative)
    parts.push_back(numbers.between(low.negative ? "0" : low.digits, high.digits));
  return builder.choice(parts);
}

}  // namespace

Decimal parse_decimal(std::string_view text) {
  Decimal out;
  int64_t exponent = 0;
  const size_t end = std::min(text.find_first_of("eE"), text.size());
  if (end < text.size()) {
    std::string_view power = text.substr(end + 1);
    if (power.starts_with('+')) power.remove_prefix(1);
    std::from_chars(power.data(), power.data() + power.size(), exponent);
  }
  text = text.substr(0, end);
  out.negative = text.starts_with('-');
  if (out.negative) text.remove_prefix(1);
  const size_t point = std::min(text.find('.'), text.size());
  out.digits = text.substr(0, point);
  if (point < text.size()) out.digits += text.substr(point + 1);
  out.decimals = static_cast<int64_t>(out.digits.size() - point) - exponent;
  out.digits = stripped(std::move(out.digits));
  while (out.decimals > 0 && out.digits.size() > 1 && out.digits.back() == '0') {
    out.digits.pop_back();
    --out.decimals;
  }
  if (out.decimals < 0) {
    out.digits.append(static_cast<size_t>(-out.decimals), '0');
    out.decimals = 0;
  }
  if (out.digits.find_first_not_of('0') == out.digits.npos) out = {};
  return out;
}

Decimal decimal_of(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return parse_decimal({buffer, end});
}

int compare(const Decimal& a, const Decimal& b) {
  const int64_t decimals = std::max(a.decimals, b.decimals);
  return compare_wholes(scaled(a, decimals), scaled(b, decimals));
}

std::optional<Part> number_part(Builder& builder, const NumberBounds& bounds, bool integer) {
  if (bounds.low || bounds.high) return bounded_part(builder, bounds, integer);
  const auto digits = [&](size_t least, size_t most) {
    return builder.repeat(builder.bytes('0', '9'), static_cast<int64_t>(least),
                          static_cast<int64_t>(most));
  };
  const Part whole = builder.choice(
      {builder.text("0"), builder.sequence({builder.bytes('1', '9'), digits(0, kMaxDigits - 1)})});
  std::vector<Part> sequence = {builder.optional(builder.text("-")), whole};
  if (!integer) {
    sequence.push_back(
        builder.optional(builder.sequence({builder.text("."), digits(1, kMaxDigits)})));
    sequence.push_back(builder.optional(builder.sequence(
        {builder.choice({builder.text("e"), builder.text("E")}),
         builder.optional(builder.choice({builder.text("+"), builder.text("-")})), digits(1, 2)})));
  }
  return builder.sequence(sequence);
}

}  // namespace paddle::grammar
