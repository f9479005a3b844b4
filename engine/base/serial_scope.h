#pragma once
// Serial execution of work that is too small to be worth waking threads.

namespace paddle {

/// If `serial`, parallel regions opened by this thread in this scope run serially, including those
/// of libraries.
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
