#pragma once
// Emits LLVM IR for operations on vectors of one element per lane. Bools are vectors of i1; 16-bit
// floats are kept as bits and converted, never computed with.
//
// Emitted code rounds like the loops of kernels/: no contraction, no reordering, ordered or
// unordered comparisons as there, and the vector functions of libmvec of the same width.

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/codegen/llvm/program.h"

// LLVM's C interface, by name.
struct LLVMOpaqueContext;
struct LLVMOpaqueModule;
struct LLVMOpaqueBuilder;
struct LLVMOpaqueType;
struct LLVMOpaqueValue;

namespace paddle::codegen {

using Value = LLVMOpaqueValue*;
using ValueType = LLVMOpaqueType*;

class Vectors {
 public:
  Vectors(LLVMOpaqueContext* context, LLVMOpaqueModule* module, LLVMOpaqueBuilder* builder,
          int vector_bytes)
      : context_(context),
        module_(module),
        builder_(builder),
        vector_bytes_(vector_bytes),
        lanes_(static_cast<unsigned>(vector_bytes) / 4) {}

  unsigned lanes() const { return lanes_; }
  /// The table of function addresses; set before anything is emitted.
  void set_functions(Value pointer) { functions_ = pointer; }
  const std::vector<std::string>& function_names() const { return names_; }

  ValueType element(Type type) const;  ///< in registers
  ValueType stored(Type type) const;   ///< in memory: bools are bytes
  ValueType vector(ValueType element) const;

  Value splat(Value scalar);
  Value constant(Type type, double value);
  Value integer(Type type, uint64_t value);

  /// Conversion from and to the type in memory.
  Value from_memory(Type type, Value v);
  Value to_memory(Type type, Value v);
  Value convert(Type from, Type to, Value v);
  /// A loop by its name (kernels/elementwise/loops.h). Throws std::runtime_error for those unknown
  /// here.
  Value apply(const std::string& loop, Type operand, Type result, const std::vector<Value>& x,
              const std::vector<double>& parameters);

  /// Double accumulators updated with the elements of v (only those in `mask`, if set).
  Value fold(Fold::Kind kind, Value accumulators, Type type, Value v, Value mask);
  /// f32 vectors folded into one.
  struct Group {
    Value value;
    /// A bool: whether they have to be folded in double, since a sum is not finite or a product has
    /// factors beyond normal numbers.
    Value escapes;
    Value lanes;  ///< where this is so; null: everywhere
  };
  Group fold_four(Fold::Kind kind, const std::vector<Value>& v);
  /// The vectors to fold in double if the group escapes; in other lanes they are its value and
  /// ones.
  std::vector<Value> in_double(const Group& group, std::vector<Value> v);
  /// v with what such a fold does not change where the mask is not set.
  Value masked(Fold::Kind kind, Value v, Value mask);

  Value intrinsic(const char* name, const std::vector<ValueType>& types,
                  const std::vector<Value>& arguments);

 private:
  Value apply_float(const std::string& loop, Type type, const std::vector<Value>& x,
                    const std::vector<double>& p);
  Value apply_integer(const std::string& loop, Type type, const std::vector<Value>& x,
                      const std::vector<double>& p);
  /// Null for operations that bools do not have.
  Value apply_bool(const std::string& loop, const std::vector<Value>& x);
  Value apply_predicate(const std::string& loop, Type type, const std::vector<Value>& x);

  // Floats.
  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value div(Value a, Value b);
  Value neg(Value x);
  Value abs(Value x) { return unary("llvm.fabs", x); }
  Value gt(Value a, Value b);
  Value lt(Value a, Value b);
  Value le(Value a, Value b);
  Value eq(Value a, Value b);
  /// `predicate` is an LLVMRealPredicate.
  Value compare(int predicate, Value a, Value b);
  Value select(Value mask, Value yes, Value no);
  Value unary(const char* name, Value x);
  /// A function of libmvec.
  Value call(const std::string& name, Type type, const std::vector<Value>& x);
  Value limited(Type type, Value x, double low, double high);
  Value exp(Type t, Value x);
  Value softplus(Type type, Value x);

  LLVMOpaqueContext* context_;
  LLVMOpaqueModule* module_;
  LLVMOpaqueBuilder* builder_;
  int vector_bytes_;
  unsigned lanes_;
  Value functions_ = nullptr;
  std::vector<std::string> names_;
};

}  // namespace paddle::codegen
