#include "ops/core/attrs.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace paddle {
namespace {

[[noreturn]] void wrong_kind(const char* expected, const AttrValue& value) {
  fail(ErrorCode::kUsage, "expected ", expected, ", found ", value.text());
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}
  AttrValue run() {
    AttrValue value = element(0);
    space();
    if (at_ != text_.size()) bad();
    return value;
  }

 private:
  [[noreturn]] void bad() const {
    fail(ErrorCode::kUsage, "'", text_, "' is not an attribute value (at position ", at_ + 1, ")");
  }
  void space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  AttrValue element(int depth) {
    if (depth > 100) bad();
    space();
    if (at_ >= text_.size()) bad();
    if (text_[at_] == '[') return list(depth);
    if (text_[at_] == '\'') return quoted();
    // A bare word reaches to the comma or bracket that ends it; parentheses belong to dims.
    const size_t start = at_;
    int open = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '(') ++open;
      if (c == ')') --open;
      if (open == 0 && (c == ',' || c == ']')) break;
    }
    return word(trim(text_.substr(start, at_ - start)));
  }
  AttrValue list(int depth) {
    AttrValue::List items;
    ++at_;
    space();
    if (at_ < text_.size() && text_[at_] == ']') {
      ++at_;
      return items;
    }
    while (true) {
      items.push_back(element(depth + 1));
      space();
      if (at_ >= text_.size()) bad();
      const char c = text_[at_++];
      if (c == ']') return items;
      if (c != ',') bad();
    }
  }
  AttrValue quoted() {
    std::string out;
    for (++at_; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (c == '\'') {
        ++at_;
        return out;
      }
      if (c == '\\') {
        if (++at_ >= text_.size()) bad();
        c = text_[at_] == 'n' ? '\n' : text_[at_];
      }
      out += c;
    }
    bad();
  }
  AttrValue word(std::string_view token) {
    if (token.empty()) bad();
    // Most values are short integers, which need none of the comparisons below.
    if (int64_t value = 0; token.size() < 10) {
      const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
      if (error == std::errc() && end == token.data() + token.size()) return value;
    }
    if (token == "none") return {};
    if (token == "true") return true;
    if (token == "false") return false;
    if (token == "inf") return std::numeric_limits<double>::infinity();
    if (token == "-inf") return -std::numeric_limits<double>::infinity();
    if (token == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (const auto dtype = parse_dtype(token)) return *dtype;
    if (token.starts_with("complex(") && token.ends_with(")")) {
      const auto parts = split(token.substr(8, token.size() - 9), ',');
      if (parts.size() != 2) bad();
      return std::complex<double>(word(trim(parts[0])).as_double(),
                                  word(trim(parts[1])).as_double());
    }
    const bool numeric = token.find_first_not_of("0123456789+-.eE") == std::string::npos &&
                         token.find_first_of("0123456789") != std::string::npos;
    if (numeric && token.find_first_of(".eE") != std::string::npos) {
      double value = 0;
      const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
      if (error != std::errc() || end != token.data() + token.size()) bad();
      return value;
    }
    return Dim::parse(token);
  }
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

bool AttrValue::as_bool() const {
  if (is_bool()) return std::get<bool>(value_);
  wrong_kind("true or false", *this);
}

int64_t AttrValue::as_int() const { return as_dim().value(); }

const Dim& AttrValue::as_dim() const {
  if (is_int()) return std::get<Dim>(value_);
  wrong_kind("an integer", *this);
}

double AttrValue::as_double() const {
  if (is_float()) return std::get<double>(value_);
  if (is_int()) return static_cast<double>(as_int());
  if (is_bool()) return as_bool() ? 1 : 0;
  wrong_kind("a number", *this);
}

std::complex<double> AttrValue::as_complex() const {
  if (is_complex()) return std::get<std::complex<double>>(value_);
  return as_double();
}

const std::string& AttrValue::as_string() const {
  if (is_string()) return std::get<std::string>(value_);
  wrong_kind("a string", *this);
}

DType AttrValue::as_dtype() const {
  if (is_dtype()) return std::get<DType>(value_);
  wrong_kind("a dtype", *this);
}

const AttrValue::List& AttrValue::as_list() const {
  if (is_list()) return std::get<List>(value_);
  wrong_kind("a list", *this);
}

std::vector<int64_t> AttrValue::as_ints() const {
  if (is_int()) return {as_int()};
  std::vector<int64_t> out;
  for (const AttrValue& v : as_list()) out.push_back(v.as_int());
  return out;
}

Shape AttrValue::as_dims() const {
  if (is_int()) return {as_dim()};
  Shape out;
  for (const AttrValue& v : as_list()) out.push_back(v.as_dim());
  return out;
}

std::vector<double> AttrValue::as_doubles() const {
  if (!is_list()) return {as_double()};
  std::vector<double> out;
  for (const AttrValue& v : as_list()) out.push_back(v.as_double());
  return out;
}

std::vector<std::string> AttrValue::as_strings() const {
  if (is_string()) return {as_string()};
  std::vector<std::string> out;
  for (const AttrValue& v : as_list()) out.push_back(v.as_string());
  return out;
}

bool AttrValue::operator==(const AttrValue& other) const {
  if (value_.index() != other.value_.index()) return false;
  if (is_int()) return as_dim().same(other.as_dim());
  if (is_float()) {
    const double a = as_double(), b = other.as_double();
    return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
  }
  if (is_bool()) return as_bool() == other.as_bool();
  if (is_complex()) return text() == other.text();
  if (is_string()) return as_string() == other.as_string();
  if (is_dtype()) return as_dtype() == other.as_dtype();
  if (is_list()) return as_list() == other.as_list();
  return true;
}

std::string AttrValue::text() const {
  if (is_none()) return "none";
  if (is_bool()) return as_bool() ? "true" : "false";
  if (is_int()) return as_dim().text();
  if (is_dtype()) return paddle::text(as_dtype());
  if (is_complex()) {
    const std::complex<double> z = as_complex();
    return str("complex(", AttrValue(z.real()).text(), ", ", AttrValue(z.imag()).text(), ")");
  }
  if (is_float()) {
    std::string out = format_double(as_double());
    if (out.find_first_of(".einf") == std::string::npos) out += ".0";
    return out;
  }
  if (is_string()) {
    std::string out = "'";
    for (const char c : as_string()) {
      if (c == '\'' || c == '\\') out += '\\';
      if (c == '\n')
        out += "\\n";
      else
        out += c;
    }
    return out + "'";
  }
  std::string out = "[";
  for (const AttrValue& v : as_list()) {
    if (out.size() > 1) out += ", ";
    out += v.text();
  }
  return out + "]";
}

AttrValue AttrValue::parse(std::string_view text) { return Parser(text).run(); }

}  // namespace paddle
