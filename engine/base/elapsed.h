#pragma once
// Time that has passed, for reports and limits of time.

#include <chrono>

namespace paddle {

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace paddle
