#pragma once
// The one exception type of the engine. An error has a code (which the tools turn into their exit
// status), a one-line message and, if a file is at fault, the location in it.

#include <exception>
#include <string>
#include <vector>

#include "base/text.h"

namespace paddle {

/// Kinds of errors; the values are the exit statuses of the tools.
enum class ErrorCode : int {
  kDifference = 1,  ///< a check found differences
  kUsage = 2,       ///< command line, or a call with invalid arguments
  kConfig = 3,      ///< a YAML or JSON file
  kData = 4,        ///< a dataset, or an input given at run time
  kModel = 5,       ///< weights or a model file
  kDevice = 6,      ///< device, memory or disk
  kPeer = 7,        ///< another process of the run was lost
  kInternal = 70,   ///< a bug
};

/// A position in a text file. Lines and columns count from 1; 0 means unknown.
struct SourceLocation {
  std::string file;
  int line = 0;
  int column = 0;
  std::string text() const;  ///< "file:12:5", shorter where parts are unknown
};

class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message, SourceLocation place = {});

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }  ///< without the location
  const SourceLocation& location() const { return location_; }
  /// Further lines: callers ("called from FILE:LINE:COLUMN") or further errors of the same file.
  const std::vector<std::string>& notes() const { return notes_; }
  Error& note(std::string line);
  /// "location: message", with notes on further lines.
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  void compose();
  ErrorCode code_;
  std::string message_;
  SourceLocation location_;
  std::vector<std::string> notes_;
  std::string what_;
};

namespace text_detail {
[[noreturn, gnu::cold]] void fail(ErrorCode code, std::span<const Part> parts);
}

/// Throws an Error whose message is the concatenation of `parts`.
template <class... Parts>
[[noreturn, gnu::always_inline]] inline void fail(ErrorCode code, const Parts&... parts) {
  const text_detail::Part list[] = {text_detail::part(parts)...};
  text_detail::fail(code, list);
}

/// For conditions that only a bug can violate.
template <class... Parts>
[[gnu::always_inline]] inline void ensure(bool condition, const Parts&... parts) {
  if (!condition) fail(ErrorCode::kInternal, parts...);
}

}  // namespace paddle
