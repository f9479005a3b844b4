#include "onnx/ops/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <vector>

#include "base/error.h"
#include "base/free_with.h"

namespace paddle::onnx {
namespace {

constexpr size_t kMaxPattern = size_t{1} << 14;
constexpr uint32_t kMatchLimit = 20'000'000;
constexpr size_t kFirstWorkspace = 256, kMaxWorkspace = size_t{1} << 20;

/// RE2's syntax in PCRE2's: \v is one character, and references do not exist.
std::string translate(const std::string& pattern) {
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '\\' || i + 1 == pattern.size()) {
      out += pattern[i];
      continue;
    }
    const char next = pattern[++i];
    if (next >= '1' && next <= '9')
      fail(ErrorCode::kModel, "backreferences are not supported in patterns");
    out += next == 'v' ? std::string("\\x0b") : std::string{'\\', next};
  }
  return out;
}

}  // namespace

struct Regex::Compiled {
  std::unique_ptr<pcre2_code, FreeWith<pcre2_code_free>> code;

  std::optional<Match> match(const std::string& s, size_t from, uint32_t options) const {
    const std::unique_ptr<pcre2_match_data, FreeWith<pcre2_match_data_free>> data(
        pcre2_match_data_create(1, nullptr));
    const std::unique_ptr<pcre2_match_context, FreeWith<pcre2_match_context_free>> context(
        pcre2_match_context_create(nullptr));
    if (!data || !context) fail(ErrorCode::kDevice, "out of memory for a pattern");
    pcre2_set_match_limit(context.get(), kMatchLimit);
    std::vector<int> workspace(kFirstWorkspace);
    while (true) {
      const int status =
          pcre2_dfa_match(code.get(), reinterpret_cast<PCRE2_SPTR>(s.data()), s.size(), from,
                          options, data.get(), context.get(), workspace.data(), workspace.size());
      if (status >= 0) {
        const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(data.get());
        return Match{ends[0], ends[1]};
      }
      if (status == PCRE2_ERROR_DFA_WSSIZE && workspace.size() < kMaxWorkspace) {
        workspace.resize(4 * workspace.size());
        continue;
      }
      const bool is_utf8 = status > PCRE2_ERROR_UTF8_ERR1 || status < PCRE2_ERROR_UTF8_ERR21;
      if (status == PCRE2_ERROR_NOMATCH || !is_utf8) return std::nullopt;
      fail(ErrorCode::kModel, "a pattern takes too long or too much memory to match");
    }
  }
};

Regex::Regex(const std::string& pattern) {
  const std::string shown = "the pattern '" + pattern.substr(0, 100) + "'";
  if (pattern.size() > kMaxPattern) fail(ErrorCode::kModel, shown, " is too long");
  const std::string translated = translate(pattern);
  auto compiled = std::make_shared<Compiled>();
  int error = 0;
  PCRE2_SIZE at = 0;
  compiled->code.reset(pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
      PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C, &error, &at, nullptr));
  if (!compiled->code) {
    PCRE2_UCHAR message[256];
    pcre2_get_error_message(error, message, sizeof message);
    fail(ErrorCode::kModel, shown, " cannot be read: ", reinterpret_cast<const char*>(message));
  }
  compiled_ = std::move(compiled);
}

bool Regex::matches(const std::string& s) const {
  return compiled_->match(s, 0, PCRE2_ANCHORED | PCRE2_ENDANCHORED).has_value();
}

std::optional<Regex::Match> Regex::find(const std::string& s, size_t from) const {
  return compiled_->match(s, from, 0);
}

}  // namespace paddle::onnx
