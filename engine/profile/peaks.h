#pragma once
// Measured peak rates of this machine, the reference of every "share of peak".

namespace paddle::profile {

struct Peaks {
  double gflops = 0;     ///< of a large float32 matrix product, 10^9 operations a second
  double gigabytes = 0;  ///< read and written by a large copy, 10^9 bytes a second
};

/// Takes about a second; uses all threads.
Peaks measure_peaks();
/// The rate of a large bfloat16 matrix product, 10^9 operations a second; 0 if it cannot be
/// computed. Takes a quarter of a second.
double measure_bfloat16_gflops();

}  // namespace paddle::profile
