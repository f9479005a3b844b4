#pragma once
// Diagnostics collects the errors of a file, so that all of them can be shown at once.

#include <string>
#include <vector>

#include "base/error.h"

namespace paddle::config {

class Diagnostics {
 public:
  /// Keeps the error; equal ones count once, and after the first hundred the rest is dropped.
  void add(Error error);
  void add(ErrorCode code, std::string message, SourceLocation place) {
    add(Error(code, std::move(message), std::move(place)));
  }
  /// A note that is not an error (a renamed key).
  void warn(std::string message, SourceLocation place);

  bool empty() const { return errors_.empty(); }
  const std::vector<Error>& errors() const { return errors_; }
  /// "file:3:1: message" lines.
  const std::vector<std::string>& warnings() const { return warnings_; }

  /// All errors as one: the first in the order of the file, the others as its notes.
  Error combined() const;
  /// Throws `combined()` if there is any error.
  void raise() const;

  /// Calls `f` and keeps an Error that it throws; true if it threw none.
  template <class F>
  bool guard(F&& f) {
    try {
      f();
      return true;
    } catch (const Error& error) {
      add(error);
      return false;
    }
  }

 private:
  std::vector<Error> errors_;
  std::vector<std::string> warnings_;
};

}  // namespace paddle::config
