#pragma once
// The C interface of the module that compiles groups (libpaddle_codegen.so). It stands alone: the
// engine opens it when there is something to compile, and the module knows nothing of the engine.
//
// A program is text, a line per step; nodes are numbered from 0 in their order:
//
//   read <memory type> <type> <access>     operand in memory, converted; pointer in order of lines
//   convert <type> <node>
//   apply <loop> <type> <inputs> <node>… <parameters> <number>…
//   store <node> <memory type>             result in memory; pointers follow those of the operands
//   fold <kind> <node> <form>              into accumulators (f64); pointers follow those of
//   results
//
// Types are bool, i8 … u64, f16, bf16, f32, f64. Access is `vector` (one element after the other),
// `row` (one element for a row) or `scalar` (one element for all). Kinds of folds are sum, prod,
// max and min. Their form is `elements` (an accumulator per element of a row) or `lanes` (element i
// of a row goes to accumulator i modulo half the bytes of a vector). Numbers are hexadecimal
// floats.

#include <cstddef>
#include <cstdint>

extern "C" {

/// What a program becomes. Operands and results come as addresses of the first row; `strides` are
/// the bytes from row to row, per pointer; a row has n elements. `functions` are the addresses of
/// the functions that the code names.
typedef void (*paddle_codegen_function)(void* const* pointers, const int64_t* strides, int64_t rows,
                                        int64_t n, void* const* functions);

/// Position-independent code (with its constants) that is entered at `entry`. `functions`: names,
/// each followed by a newline.
typedef void (*paddle_codegen_receive)(void* context, const void* code, size_t size, size_t entry,
                                       const char* functions);

/// Compiles for vectors of 32 (AVX2) or 64 bytes (AVX-512). Returns 0 and calls `receive`; else
/// writes why to `message`, which is cut to its size.
int paddle_codegen_compile(const char* program, int vector_bytes, paddle_codegen_receive receive,
                           void* context, char* message, size_t message_size);
}
