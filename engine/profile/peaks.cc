#include "profile/peaks.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>

#include "base/elapsed.h"
#include "base/parallel.h"
#include "ops/core/kernel.h"
#include "runtime/execute.h"

namespace paddle::profile {
namespace {

/// The best time of at least 3 calls in seconds, over about `budget` seconds.
double best_time(double budget, const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  double best = 1e30;
  call();
  for (int calls = 0; calls < 3 || seconds_since(begin) < budget; ++calls) {
    const auto start = Clock::now();
    call();
    best = std::min(best, seconds_since(start));
  }
  return best;
}

/// 10^9 operations a second of a product of two square matrices; 0 without a kernel.
double matmul_gflops(DType dtype, int64_t side, double budget) {
  const Op& op = get_op("matmul");
  const Attrs attrs{op.defaults, {}};
  const Layout square = Layout::contiguous(dtype, {side, side});
  const Layout operands[] = {square, square}, results[] = {square};
  const auto kernel = prepare_kernel({op, attrs, operands, results});
  if (!kernel) return 0;
  const Array x = Array::zeros(dtype, {side, side}), y = x;
  const Array product = Array::zeros(dtype, {side, side});
  const auto scratch = Storage::allocate(std::max<size_t>(64, kernel->scratch_bytes()));
  void* const in[] = {x.raw(), y.raw()};
  void* const out[] = {product.raw()};
  const RunContext context{scratch->data(), nullptr};
  const double time = best_time(budget, [&] { kernel->run(context, in, out); });
  return 2.0 * static_cast<double>(side * side * side) / time / 1e9;
}

}  // namespace

double measure_bfloat16_gflops() {
  runtime::register_backends();
  return matmul_gflops(DType::kBF16, 1024, 0.25);
}

Peaks measure_peaks() {
  runtime::register_backends();
  Peaks peaks;
  peaks.gflops = matmul_gflops(DType::kF32, 1536, 0.5);
  {
    constexpr int64_t kBytes = int64_t{1} << 26;
    const auto from = Storage::allocate(kBytes), to = Storage::allocate(kBytes);
    std::memset(from->data(), 1, kBytes);
    const double time = best_time(0.5, [&] {
      parallel_for(kBytes, kBytes / 64, [&](int64_t begin, int64_t end) {
        std::memcpy(to->data() + begin, from->data() + begin, static_cast<size_t>(end - begin));
      });
    });
    peaks.gigabytes = 2.0 * static_cast<double>(kBytes) / time / 1e9;
  }
  return peaks;
}

}  // namespace paddle::profile
