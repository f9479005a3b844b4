#pragma once
// What the system knows of an operation. Definitions come from schema/*.yaml through opgen (and,
// in the same form, from plug-ins): plain structs of names, flags and rule pointers, collected in
// a registry that the interpreters, the IR, the model language and the tools read.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/attrs.h"
#include "tensor/tensor.h"

namespace paddle {

class InferContext;
class VjpContext;
class CallContext;

enum class AttrType : uint8_t {
  kBool,
  kInt,
  kFloat,
  kString,
  kWord,
  kDType,
  kDim,
  kInts,
  kDims,
  kFloats,
  kStrings,
  kNumber,  ///< bool, integer or float: a weak scalar
  kAny,     ///< several kinds (padding as number, list, pairs or word); the rule checks
};

enum class OperandKind : uint8_t { kTensor, kList };

struct OperandDef {
  const char* name;
  OperandKind kind;
  bool optional;
  bool promotes;    ///< shares one dtype with the other promoting operands
  bool host;        ///< its value is read on the host
  bool shape_only;  ///< the gradient reads only its shape
  bool widened;     ///< kernels read any float type: a cast to a wider one before it can go
  bool hidden;      ///< filled in by the system (random state), not by callers
};

struct AttrDef {
  const char* name;
  AttrType type;
  bool optional;   ///< none is a value
  bool required;   ///< has no default
  bool or_tensor;  ///< callers may give a tensor whose value is known
  bool hidden;
  const char* default_text;  ///< as AttrValue::text prints it
  const char* words;         ///< "a|b|c" for kWord
};

struct ResultDef {
  const char* name;
  bool variadic;
  bool optional;  ///< present if inference says so
  bool hidden;    ///< kept for the gradient; callers do not see it
};

/// The order in which callers give parameters.
struct ParamDef {
  bool is_operand;
  int index;  ///< into operands or attrs
};

/// Facts that passes and interpreters ask for; never the operation's name.
enum Trait : uint32_t {
  kElementwise = 1u << 0,  ///< each result element depends on the operand elements at its index
  kCommutative = 1u << 1,
  kFloatInputs = 1u << 2,  ///< integer and bool operands are cast to float32 first
  kStrided = 1u << 3,      ///< kernels take operands of any strides
  kRandom = 1u << 4,       ///< reads the random state
  kReduction = 1u << 5,
  kEffect = 1u << 6,        ///< must not be removed, merged or reordered
  kRunTimeShape = 1u << 7,  ///< result dims are known only after running
  kCreation = 1u << 8,      ///< no operands; dtype and shape from attributes
  kLinear = 1u << 9,        ///< linear in each differentiable operand
  kControlFlow = 1u << 10,
  kConstantFold = 1u << 11,  ///< cheap to evaluate at compile time
  kOptimizerUpdate = 1u << 12,
  kStopGradient = 1u << 13,  ///< results carry no gradient
  kSameElements = 1u << 15,  ///< the operand's elements in order: of its type, it is the operand
  kDoubleInputs = 1u << 14,  ///< integer and bool operands are cast to float64 first
  kSkipsUnread = 1u << 16,   ///< kernels take null for results after the first that nobody reads
  kPrefersChannelsLast = 1u << 17,  ///< runs faster on images whose channels lie together
  kUnpacks =
      1u << 18,  ///< a wider form of its operand: constants stay packed until passes saw them
  /// What permutes the axes of the operands that have as many as the result, with those that the
  /// attributes `axis`, `axes` and `pad` name, permutes those of the result.
  kPermutable = 1u << 19,
};

/// How mixed precision treats an operation.
enum class PrecisionClass : uint8_t {
  kFollow,  ///< computes in what its operands promote to
  kLow,     ///< in the 16-bit type
  kFull,    ///< in float32
  kWide,    ///< takes 16-bit operands as they are, computes in float32 and gives float32
  kFirst,   ///< the first operand may have 16 bits, all others stay float32
};

/// Concrete memory of one tensor: what view rules compute and kernels are prepared for.
struct Layout {
  DType dtype = DType::kF32;
  Dims shape;
  Dims strides;
  int64_t offset = 0;   ///< elements from the storage's start
  bool present = true;  ///< false for an absent optional operand
  /// Where an operand lies whose content never changes, so that a kernel may bring it into a form
  /// of its own once; null for others. As a file holds it, at any address.
  const void* constant = nullptr;
  int64_t size() const { return element_count(std::span<const int64_t>(shape)); }
  bool is_contiguous() const;
  static Layout contiguous(DType dtype, Dims shape);
  static Layout of(const Array& array);
};

/// Floating-point operations of one call, from concrete shapes.
using CostFn = double (*)(const Attrs& attrs, const std::vector<Dims>& operands,
                          const std::vector<Dims>& results);
using InferFn = void (*)(InferContext&);
using VjpFn = Tensors (*)(VjpContext&);
using DecomposeFn = Tensors (*)(CallContext&);
/// The layout of a view of `operand`, or present = false if only a copy will do.
using ViewFn = Layout (*)(const Layout& operand, const Attrs& attrs, const Dims& result_shape);
/// The base's new value after its view took `value`.
using WriteFn = Tensor (*)(const Tensor& base, const Tensor& value, const Attrs& attrs);

struct OpDef {
  uint32_t struct_size;
  uint32_t version;  ///< of the operation's meaning; grows when it changes
  const char* name;
  const char* family;
  const char* doc;
  const char* signature;        ///< as written in the schema
  const char* layer_signature;  ///< the form the model language calls, or ""
  const char* no_gradient;      ///< why there is no gradient, or ""
  const OperandDef* operands;
  uint32_t operand_count;
  const AttrDef* attrs;
  uint32_t attr_count;
  const ResultDef* results;
  uint32_t result_count;
  const ParamDef* params;
  uint32_t param_count;
  uint32_t traits;
  PrecisionClass precision;
  int32_t in_place;  ///< operand whose buffer the first result may take, -1 for none
  InferFn infer;
  VjpFn vjp;              ///< null if by decomposition or none
  DecomposeFn decompose;  ///< null if there is a kernel only
  ViewFn view;
  WriteFn write;
  CostFn cost;  ///< null: one operation per result element
  /// Inputs on which the gradient is checked, one call a line; "" if only together with another
  /// operation, null for float64 [2, 3] everywhere.
  const char* samples;
  /// Operations ("a|b") that a call becomes whose arguments do not fit this one's parameters.
  const char* overloads;
  /// Operands, results and dims ("x|out|input_shape") that lie as `data_format` says.
  const char* images;
  /// The operation in terms of ones that fusion can join with its neighbours, for compiled
  /// functions; gives no tensors where the operation had better stay whole. Null: it always stays.
  DecomposeFn lower;
};

/// A registered operation. Pointers stay valid for the life of the process.
struct Op {
  const OpDef* def = nullptr;
  int id = 0;
  std::vector<AttrValue> defaults;

  std::string_view name() const { return def->name; }
  bool has(Trait trait) const { return (def->traits & trait) != 0; }
  std::span<const OperandDef> operands() const { return {def->operands, def->operand_count}; }
  std::span<const AttrDef> attrs() const { return {def->attrs, def->attr_count}; }
  std::span<const ResultDef> results() const { return {def->results, def->result_count}; }
  std::span<const ParamDef> params() const { return {def->params, def->param_count}; }
  int operand_index(std::string_view name) const;  ///< -1 if there is none
  int attr_index(std::string_view name) const;
  bool differentiable() const { return def->vjp || (def->decompose && !*def->no_gradient); }
};

/// Looks an operation up by name (aliases included); null if there is none.
const Op* find_op(std::string_view name);
/// The same; throws kUsage with the nearest name.
const Op& get_op(std::string_view name);
/// In the order of registration.
std::span<const Op* const> all_ops();
std::vector<std::string> op_names();
const Op& register_op(const OpDef& def);
void register_alias(const char* alias, const char* name);
/// The operation with index `id` of the generated table, for generated code.
const Op& op_at(int id);

namespace generated {
std::span<const OpDef> op_table();
struct Alias {
  const char* alias;
  const char* name;
};
std::span<const Alias> alias_table();
}  // namespace generated

}  // namespace paddle
