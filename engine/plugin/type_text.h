#pragma once
// Types of results as text, for operations whose types do not follow from a body:
//
//     like x                          the type of an operand
//     x.dtype [dim(x, 0), 2 * n]      its dtype, and dims
//     int64 [dim(x, -1) // 2 + 1]
//     x.dtype [?]                     a size that only the kernel knows; `?n` in several results is
//                                     the same
//
// A dim is an expression of numbers, integer attributes and dims of operands, as in types
// (tensor/dim.h).

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "ops/core/rules.h"

namespace paddle::plugin {

struct TypeText {
  /// A symbol of the dims.
  struct Symbol {
    std::string name;
    int operand = -1;  ///< of which it is dim `axis`
    int64_t axis = 0;
    int attribute = -1;     ///< or the value of this one
    bool run_time = false;  ///< or a size that only the kernel knows
  };
  int like = -1;      ///< an operand that has the whole type
  int dtype_of = -1;  ///< an operand that has the dtype; else `dtype`
  DType dtype = DType::kF32;
  std::vector<Dim> dims;
  std::vector<Symbol> symbols;
};

/// Reads the type of a result. kConfig at `place`.
TypeText read_type_text(const std::string& text, std::span<const OperandDef> operands,
                        std::span<const AttrDef> attributes, const SourceLocation& place);
/// Whether a dim is known only after the operation has run.
bool has_run_time_dim(const TypeText& text);
/// The type in a call. `run_time` has the dims of this call that are known later, by name.
TensorType type_of(const TypeText& text, InferContext& c, std::map<std::string, Dim>& run_time);

}  // namespace paddle::plugin
