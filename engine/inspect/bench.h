#pragma once
// Timing one call of an operation, against the arithmetic and memory peaks of the machine measured
// in the same run.

#include <string>

#include "inspect/op_call.h"

namespace paddle::inspect {

struct BenchResult {
  double median_ms = 0, min_ms = 0;
  int64_t runs = 0;
  double gflops = 0;           ///< arithmetic per second, 10^9 operations
  double gigabytes = 0;        ///< inputs and outputs per second, 10^9 bytes
  double peak_gflops = 0;      ///< of a large float32 matrix product
  double peak_gigabytes = 0;   ///< of a copy of 64 MiB
  double share = 0;            ///< of the nearer peak, 0 to 1
  std::string implementation;  ///< "onednn:brg:avx512_core"; several are joined by " + "
};

struct BenchOptions {
  double seconds = 1.0;  ///< at least, per backend; the first runs are not counted
  /// Backends whose kernels to take wherever they can compute the call ("cpu", "onednn"), timed in
  /// turn; none: the kernels that are chosen by themselves.
  std::vector<std::string> backends;
  bool first_result = false;  ///< the other results are not read, as in inference
};

/// Runs the call, planned; one result per backend.
std::vector<BenchResult> bench(const NamedCall& call, const BenchOptions& options);

/// One line for people, and one JSON object.
std::string text(const BenchResult& result);
std::string json(const BenchResult& result, const std::string& op);

}  // namespace paddle::inspect
