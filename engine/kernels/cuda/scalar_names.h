#pragma once
// The names of functions of numbers in device code, which are those of elementwise loops.

#include <string_view>

namespace paddle::cuda {

/// Whether device/scalar.cuh or device/special.cuh has the function.
bool is_scalar_function(std::string_view name);
/// Whether it is in device/special.cuh, which programs without such functions leave out.
bool is_special_function(std::string_view name);

}  // namespace paddle::cuda
