// Reading of dims: the inverse of Dim::text.

#include "base/error.h"
#include "tensor/dim.h"

namespace paddle {
namespace {

class DimParser {
 public:
  explicit DimParser(std::string_view text) : text_(text) {}
  Dim run() {
    const Dim d = sum();
    space();
    if (at_ != text_.size()) bad();
    return d;
  }

 private:
  [[noreturn]] void bad() {
    fail(ErrorCode::kUsage, "'", text_, "' is not a dim (at position ", at_ + 1, ")");
  }
  void space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view token) {
    space();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  Dim sum() {
    if (++depth_ > 200) bad();
    Dim d = product();
    while (true) {
      if (take("+"))
        d = d + product();
      else if (take("-"))
        d = d - product();
      else
        break;
    }
    --depth_;
    return d;
  }
  Dim product() {
    Dim d = primary();
    while (true) {
      if (take("//"))
        d = floor_divide(d, primary());
      else if (take("*"))
        d = d * primary();
      else if (take("%"))
        d = modulo(d, primary());
      else
        return d;
    }
  }
  Dim primary() {
    space();
    if (take("-")) {
      space();
      // The least number has no positive counterpart.
      return at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9' ? number(-1)
                                                                          : Dim(0) - primary();
    }
    if (take("(")) {
      const Dim d = sum();
      if (!take(")")) bad();
      return d;
    }
    for (const bool larger : {true, false})
      if (take(larger ? "max(" : "min(")) {
        const Dim a = sum();
        if (!take(",")) bad();
        const Dim b = sum();
        if (!take(")")) bad();
        return larger ? maximum(a, b) : minimum(a, b);
      }
    if (at_ >= text_.size()) bad();
    if (text_[at_] >= '0' && text_[at_] <= '9') return number(1);
    return Dim::symbol(word());
  }
  std::string word() {
    const auto is_part = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '?' || c == '$' || c == '.';
    };
    const size_t start = at_;
    while (at_ < text_.size() && is_part(text_[at_])) ++at_;
    if (start == at_) bad();
    return std::string(text_.substr(start, at_ - start));
  }
  Dim number(int64_t sign) {
    int64_t value = 0;
    for (const char c : word()) {
      if (c < '0' || c > '9') bad();
      value = checked_add(checked_multiply(value, 10), sign * (c - '0'));
    }
    return value;
  }
  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Dim Dim::parse(std::string_view text) { return DimParser(text).run(); }

}  // namespace paddle
