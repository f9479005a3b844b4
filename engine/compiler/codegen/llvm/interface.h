#pragma once
// The C interface of the module that compiles fusion groups (libpaddle_codegen.so). The engine
// loads the module on first use, and the module does not depend on the engine.
//
// A program is text, one step per line; nodes are numbered from 0:
//
//   read <memory type> <type> <access>     operand in memory, converted; pointer in order of lines
//   convert <type> <node>
//   apply <loop> <type> <inputs> <node>… <parameters> <number>…
//   store <node> <memory type>             result in memory; pointers follow those of the operands
//   fold <kind> <node> <form>              into accumulators (f64); pointers follow those of
//                                          results
//   unroll <number>                        steps of a loop at once, 1 without this line
//
// Types are bool, i8 … u64, f16, bf16, f32, f64. Access is `vector` (one element after the other),
// `row` (one element for a row) or `scalar` (one element for all). Kinds of folds are sum, prod,
// max and min. Their form is `elements` (an accumulator per element of a row) or `lanes` (element i
// of a row goes to accumulator i modulo half the bytes of a vector; sums and products of f32 add or
// multiply four vectors as floats, and the result enters the first accumulators, unless a sum is
// not finite or a product has factors beyond normal numbers). Numbers are hexadecimal floats.

#include <cstddef>
#include <cstdint>

/// Grows with each change of this interface.
#define PADDLE_CODEGEN_VERSION 4

extern "C" {

/// PADDLE_CODEGEN_VERSION of the module (base/module.h).
int paddle_module_version();

/// The compiled program. `pointers` are the first rows of operands and results; `strides` are in
/// bytes from row to row, per pointer; a row has n elements. `functions` are the addresses of the
/// functions that the code calls.
typedef void (*paddle_codegen_function)(void* const* pointers, const int64_t* strides, int64_t rows,
                                        int64_t n, void* const* functions);

/// Receives position-independent code, with its constants and entry point. `functions`: names, each
/// followed by a newline.
typedef void (*paddle_codegen_receive)(void* context, const void* code, size_t size, size_t entry,
                                       const char* functions);

/// Compiles for vectors of 32 (AVX2) or 64 bytes (AVX-512). Returns 0 and calls `receive`;
/// otherwise writes the reason, truncated, to `message`.
int paddle_codegen_compile(const char* program, int vector_bytes, paddle_codegen_receive receive,
                           void* context, char* message, size_t message_size);
}
