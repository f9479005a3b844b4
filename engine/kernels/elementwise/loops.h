#pragma once
// Element loops: each computes n contiguous elements of one operation in one compute type, for the
// best instruction set of the machine. Strides, broadcasting, other element types and threads are
// handled in elementwise.h. Loops are looked up by the operation's name.

#include <cstdint>
#include <span>
#include <string_view>

#include "tensor/dtype.h"

namespace paddle::cpu {

/// `in` has one pointer per operand. `out` may equal one of them. `params` are the operation's
/// numeric attributes in the order that the loop documents.
using Loop = void (*)(const void* const* in, void* out, int64_t n, const double* params);

struct LoopEntry {
  const char* name;
  Loop f32;
  Loop f64;
};

/// Vectorized loops for f32 and f64; the result has the operands' type.
std::span<const LoopEntry> arithmetic_loops();
std::span<const LoopEntry> math_loops();
std::span<const LoopEntry> activation_loops();

/// The loop of that name for f32 or f64, or null.
Loop float_loop(std::string_view name, DType compute);
/// Loops for bool and integers; the result has the operands' type.
Loop integer_loop(std::string_view name, DType compute);
/// Loops over any type with a bool result: comparisons, logic, isnan.
Loop predicate_loop(std::string_view name, DType compute);

/// Loops over complex numbers, of both kinds above and with a real result (abs, real, imag, angle).
Loop complex_loop(std::string_view name, DType compute);

/// condition ? x : y of elements of `item` bytes, where the condition is bool; null for other sizes
/// than 1, 2, 4, 8 and 16.
Loop select_loop(int64_t item);

/// Vector width of the loops on this machine in bytes: 64 (AVX-512), 32 (AVX2) or less.
int vector_bytes();

}  // namespace paddle::cpu
