// Incomplete gamma functions and their slope.

#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/special_functions.h"

namespace paddle::cpu {
namespace {

struct Slope {
  double operator()(double a, double x) const { return gamma_slope(a, x); }
};
struct Lower {
  double operator()(double a, double x) const { return gamma_p(a, x); }
};
struct Upper {
  double operator()(double a, double x) const { return gamma_q(a, x); }
};

}  // namespace

std::unique_ptr<Kernel> prepare_incomplete_gamma(const KernelRequest& request) {
  const std::string_view name = request.op.name();
  const DType type = compute_type(request.operands[0].dtype);
  const bool is_f64 = type == DType::kF64;
  const auto choose = [&](auto function) -> Loop {
    using F = decltype(function);
    return is_f64 ? &scalar_loop<double, double, 2, F> : &scalar_loop<float, float, 2, F>;
  };
  const Loop loop = name == "gammaincc"        ? choose(Upper())
                    : name == "gammainc_slope" ? choose(Slope())
                                               : choose(Lower());
  return elementwise(request, loop, {type, type}, type, {}, 64, name);
}

}  // namespace paddle::cpu
