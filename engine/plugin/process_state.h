#pragma once
// The state of the process and the thread that functions of plug-ins must leave as it is: the
// locale, the current folder, and how the floating-point unit rounds.

#include <fenv.h>

#include <string>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace paddle::plugin {

/// How this thread's floating-point unit rounds, traps and treats denormals, as one number.
inline unsigned float_control() {
#if defined(__x86_64__)
  constexpr unsigned kFlags = 0x3F;  // of exceptions that have happened
  return _mm_getcsr() & ~kFlags;
#else
  return static_cast<unsigned>(fegetround());
#endif
}
inline void set_float_control(unsigned control) {
#if defined(__x86_64__)
  _mm_setcsr(control);
#else
  fesetround(static_cast<int>(control));
#endif
}

/// Puts the state back at its end.
class KeepProcessState {
 public:
  /// `change` receives what has changed: "it changes the locale".
  explicit KeepProcessState(std::string& change);
  ~KeepProcessState();
  KeepProcessState(const KeepProcessState&) = delete;
  KeepProcessState& operator=(const KeepProcessState&) = delete;

 private:
  std::string& change_;
  std::string locale_, folder_;
  int rounding_;
  unsigned control_;
};

}  // namespace paddle::plugin
