#pragma once
// Work that is too small for several threads: waking and awaiting them would take longer.

namespace paddle {

/// Parallel regions of this thread run serially in this scope, those of libraries too, if `serial`.
class SerialScope {
 public:
  explicit SerialScope(bool serial);
  ~SerialScope();
  SerialScope(const SerialScope&) = delete;
  SerialScope& operator=(const SerialScope&) = delete;

 private:
  bool changed_;
};

}  // namespace paddle
