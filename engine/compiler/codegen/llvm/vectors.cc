#include "compiler/codegen/llvm/vectors.h"

#include <llvm-c/Core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <unordered_map>

namespace paddle::codegen {
namespace {

[[noreturn]] void unknown(const std::string& what) {
  throw std::runtime_error("not known here: " + what);
}

/// Functions of libmvec that loops call directly.
const char* const kUnaryFunctions[] = {
    "expm1", "exp2", "log",  "log2", "log10", "log1p", "sin",   "cos", "tan",  "asin", "acos",
    "atan",  "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "cbrt"};
const char* const kBinaryFunctions[] = {"pow", "atan2", "hypot"};

}  // namespace

// --- types and constants ---

LLVMTypeRef Vectors::element(Type type) const {
  if (type == Type::kF32) return LLVMFloatTypeInContext(context_);
  if (type == Type::kF64) return LLVMDoubleTypeInContext(context_);
  return LLVMIntTypeInContext(context_, static_cast<unsigned>(bits_of(type)));
}

LLVMTypeRef Vectors::stored(Type type) const {
  return type == Type::kBool ? LLVMInt8TypeInContext(context_) : element(type);
}

LLVMTypeRef Vectors::vector(LLVMTypeRef element) const { return LLVMVectorType(element, lanes_); }

Value Vectors::splat(Value scalar) {
  const LLVMTypeRef type = vector(LLVMTypeOf(scalar));
  const LLVMTypeRef i32 = LLVMInt32TypeInContext(context_);
  const Value one =
      LLVMBuildInsertElement(builder_, LLVMGetPoison(type), scalar, LLVMConstInt(i32, 0, 0), "");
  return LLVMBuildShuffleVector(builder_, one, LLVMGetPoison(type), LLVMConstNull(vector(i32)), "");
}

Value Vectors::constant(Type type, double value) {
  const double rounded =
      type == Type::kF32 ? static_cast<double>(static_cast<float>(value)) : value;
  std::vector<Value> lanes(lanes_, LLVMConstReal(element(type), rounded));
  return LLVMConstVector(lanes.data(), lanes_);
}

Value Vectors::integer(Type type, uint64_t value) {
  std::vector<Value> lanes(lanes_, LLVMConstInt(element(type), value, 0));
  return LLVMConstVector(lanes.data(), lanes_);
}

// --- memory and conversions ---

Value Vectors::from_memory(Type type, Value v) {
  if (type != Type::kBool) return v;
  return LLVMBuildICmp(builder_, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
}

Value Vectors::to_memory(Type type, Value v) {
  return type == Type::kBool ? LLVMBuildZExt(builder_, v, vector(stored(type)), "") : v;
}

Value Vectors::convert(Type from, Type to, Value v) {
  if (from == to) return v;
  const LLVMTypeRef target = vector(element(to));
  const LLVMTypeRef f32 = vector(element(Type::kF32)), i32 = vector(element(Type::kI32));
  if (from == Type::kF16) {
    const LLVMTypeRef half = vector(LLVMHalfTypeInContext(context_));
    v = LLVMBuildFPExt(builder_, LLVMBuildBitCast(builder_, v, half, ""), f32, "");
    return convert(Type::kF32, to, v);
  }
  if (from == Type::kBF16) {
    v = LLVMBuildShl(builder_, LLVMBuildZExt(builder_, v, i32, ""), integer(Type::kI32, 16), "");
    return convert(Type::kF32, to, LLVMBuildBitCast(builder_, v, f32, ""));
  }
  if (to == Type::kBool) {
    if (is_float(from)) return compare(LLVMRealUNE, v, constant(from, 0));
    return LLVMBuildICmp(builder_, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
  }
  if (to == Type::kF16) {
    v = LLVMBuildFPTrunc(builder_, convert(from, Type::kF32, v),
                         vector(LLVMHalfTypeInContext(context_)), "");
    return LLVMBuildBitCast(builder_, v, target, "");
  }
  if (to == Type::kBF16) {
    // To the nearest, ties to even; NaN keeps its upper bits and stays NaN.
    const Type kBits = Type::kI32;
    const Value bits = LLVMBuildBitCast(builder_, convert(from, Type::kF32, v), i32, "");
    const Value high = LLVMBuildLShr(builder_, bits, integer(kBits, 16), "");
    const Value odd = LLVMBuildAnd(builder_, high, integer(kBits, 1), "");
    Value rounded = LLVMBuildAdd(builder_, bits, integer(kBits, 0x7fff), "");
    rounded =
        LLVMBuildLShr(builder_, LLVMBuildAdd(builder_, rounded, odd, ""), integer(kBits, 16), "");
    const Value nan = LLVMBuildOr(builder_, high, integer(kBits, 0x40), "");
    const Value size = LLVMBuildAnd(builder_, bits, integer(kBits, 0x7fffffff), "");
    const Value is_nan = LLVMBuildICmp(builder_, LLVMIntUGT, size, integer(kBits, 0x7f800000), "");
    return LLVMBuildTrunc(builder_, select(is_nan, nan, rounded), target, "");
  }
  if (is_float(from) && is_float(to))
    return to == Type::kF64 ? LLVMBuildFPExt(builder_, v, target, "")
                            : LLVMBuildFPTrunc(builder_, v, target, "");
  if (is_float(to))
    return is_unsigned(from) || from == Type::kBool ? LLVMBuildUIToFP(builder_, v, target, "")
                                                    : LLVMBuildSIToFP(builder_, v, target, "");
  if (is_float(from)) {
    if (to == Type::kU64) unknown("floats to u64");
    // Values out of range become INT64_MIN.
    const Value fits = LLVMBuildAnd(builder_, compare(LLVMRealOGE, v, constant(from, -0x1p63)),
                                    lt(v, constant(from, 0x1p63)), "");
    const LLVMTypeRef i64 = vector(element(Type::kI64));
    const Value whole = LLVMBuildFPToSI(builder_, select(fits, v, constant(from, 0)), i64, "");
    const Value kept = select(fits, whole, integer(Type::kI64, uint64_t{1} << 63));
    return bits_of(to) == 64 ? kept : LLVMBuildTrunc(builder_, kept, target, "");
  }
  if (bits_of(from) == bits_of(to)) return v;
  if (bits_of(from) > bits_of(to)) return LLVMBuildTrunc(builder_, v, target, "");
  return is_unsigned(from) || from == Type::kBool ? LLVMBuildZExt(builder_, v, target, "")
                                                  : LLVMBuildSExt(builder_, v, target, "");
}

// --- instructions and functions ---

Value Vectors::add(Value a, Value b) { return LLVMBuildFAdd(builder_, a, b, ""); }
Value Vectors::sub(Value a, Value b) { return LLVMBuildFSub(builder_, a, b, ""); }
Value Vectors::mul(Value a, Value b) { return LLVMBuildFMul(builder_, a, b, ""); }
Value Vectors::div(Value a, Value b) { return LLVMBuildFDiv(builder_, a, b, ""); }
Value Vectors::neg(Value x) { return LLVMBuildFNeg(builder_, x, ""); }
Value Vectors::compare(int predicate, Value a, Value b) {
  return LLVMBuildFCmp(builder_, static_cast<LLVMRealPredicate>(predicate), a, b, "");
}
Value Vectors::gt(Value a, Value b) { return compare(LLVMRealOGT, a, b); }
Value Vectors::lt(Value a, Value b) { return compare(LLVMRealOLT, a, b); }
Value Vectors::le(Value a, Value b) { return compare(LLVMRealOLE, a, b); }
Value Vectors::eq(Value a, Value b) { return compare(LLVMRealOEQ, a, b); }
Value Vectors::select(Value mask, Value yes, Value no) {
  return LLVMBuildSelect(builder_, mask, yes, no, "");
}
Value Vectors::unary(const char* name, Value x) { return intrinsic(name, {LLVMTypeOf(x)}, {x}); }

Value Vectors::fold(Fold::Kind kind, Value accumulators, Type type, Value v, Value mask) {
  const Value x = convert(type, Type::kF64, v), a = accumulators;
  Value taken = nullptr;
  switch (kind) {
    case Fold::Kind::kSum:
      taken = add(a, x);
      break;
    case Fold::Kind::kProd:
      taken = mul(a, x);
      break;
    case Fold::Kind::kMax:
    case Fold::Kind::kMin: {
      // Once NaN, an accumulator stays so: no comparison with it is true.
      const Value closer = kind == Fold::Kind::kMax ? gt(x, a) : lt(x, a);
      const Value nan = compare(LLVMRealUNO, x, x);
      taken = select(LLVMBuildOr(builder_, closer, nan, ""), x, a);
      break;
    }
  }
  return mask ? select(mask, taken, a) : taken;
}

Value Vectors::masked(Fold::Kind kind, Value v, Value mask) {
  return select(mask, v, constant(Type::kF32, kind == Fold::Kind::kProd ? 1 : 0));
}

Vectors::Group Vectors::fold_four(Fold::Kind kind, const std::vector<Value>& v) {
  const auto any = [&](Value bad) {
    return intrinsic("llvm.vector.reduce.or", {LLVMTypeOf(bad)}, {bad});
  };
  if (kind == Fold::Kind::kSum) {
    const Value sum = add(add(v.at(0), v.at(1)), add(v.at(2), v.at(3)));
    const Value zero = sub(sum, sum);  // or NaN
    return {sum, any(compare(LLVMRealUNO, zero, zero)), nullptr};
  }
  const Value first = mul(v.at(0), v.at(1)), second = mul(v.at(2), v.at(3)),
              product = mul(first, second);
  // Exponents and fractions as integers, below 0xFE000000 for normal numbers.
  const auto magnitude = [&](Value x) {
    const Value bits = LLVMBuildBitCast(builder_, x, vector(element(Type::kU32)), "");
    return LLVMBuildSub(builder_, LLVMBuildShl(builder_, bits, integer(Type::kU32, 1), ""),
                        integer(Type::kU32, 0x01000000), "");
  };
  const auto larger = [&](Value a, Value b) {
    return intrinsic("llvm.umax", {LLVMTypeOf(a)}, {a, b});
  };
  const Value largest = larger(larger(magnitude(first), magnitude(second)), magnitude(product));
  const Value beyond =
      LLVMBuildICmp(builder_, LLVMIntUGE, largest, integer(Type::kU32, 0xFE000000), "");
  return {product, any(beyond), beyond};
}

std::vector<Value> Vectors::in_double(const Group& group, std::vector<Value> v) {
  if (!group.lanes) return v;
  for (size_t i = 0; i < v.size(); ++i)
    v[i] = select(group.lanes, v[i], i == 0 ? group.value : constant(Type::kF32, 1));
  return v;
}

Value Vectors::intrinsic(const char* name, const std::vector<LLVMTypeRef>& types,
                         const std::vector<Value>& arguments) {
  const unsigned id = LLVMLookupIntrinsicID(name, std::strlen(name));
  std::vector<LLVMTypeRef> of = types;
  std::vector<Value> values = arguments;
  const Value function = LLVMGetIntrinsicDeclaration(module_, id, of.data(), of.size());
  const LLVMTypeRef type = LLVMIntrinsicGetType(context_, id, of.data(), of.size());
  return LLVMBuildCall2(builder_, type, function, values.data(),
                        static_cast<unsigned>(values.size()), "");
}

Value Vectors::call(const std::string& name, Type type, const std::vector<Value>& x) {
  const bool single = type == Type::kF32;
  const unsigned lanes = static_cast<unsigned>(vector_bytes_) / (single ? 4 : 8);
  const std::string symbol = std::string("_ZGV") + (vector_bytes_ == 64 ? "e" : "d") + "N" +
                             std::to_string(lanes) + std::string(x.size(), 'v') + "_" + name +
                             (single ? "f" : "");
  auto found = std::find(names_.begin(), names_.end(), symbol);
  const auto index = static_cast<uint64_t>(found - names_.begin());
  if (found == names_.end()) names_.push_back(symbol);
  const LLVMTypeRef pointer = LLVMPointerTypeInContext(context_, 0);
  Value at = LLVMConstInt(LLVMInt64TypeInContext(context_), index, 0);
  at = LLVMBuildInBoundsGEP2(builder_, pointer, functions_, &at, 1, "");
  const Value function = LLVMBuildLoad2(builder_, pointer, at, "");
  const LLVMTypeRef part = LLVMVectorType(element(type), lanes);
  std::vector<LLVMTypeRef> parameters(x.size(), part);
  const LLVMTypeRef signature =
      LLVMFunctionType(part, parameters.data(), static_cast<unsigned>(parameters.size()), 0);
  const auto call_part = [&](std::vector<Value> arguments) {
    return LLVMBuildCall2(builder_, signature, function, arguments.data(),
                          static_cast<unsigned>(arguments.size()), "");
  };
  if (lanes == lanes_) return call_part(x);
  // Doubles take two vectors.
  const LLVMTypeRef i32 = LLVMInt32TypeInContext(context_);
  const auto numbers = [&](unsigned first, unsigned count) {
    std::vector<Value> list;
    for (unsigned i = 0; i < count; ++i) list.push_back(LLVMConstInt(i32, first + i, 0));
    return LLVMConstVector(list.data(), count);
  };
  Value halves[2];
  for (unsigned h = 0; h < 2; ++h) {
    std::vector<Value> arguments;
    for (const Value v : x)
      arguments.push_back(LLVMBuildShuffleVector(builder_, v, LLVMGetPoison(LLVMTypeOf(v)),
                                                 numbers(h * lanes, lanes), ""));
    halves[h] = call_part(arguments);
  }
  return LLVMBuildShuffleVector(builder_, halves[0], halves[1], numbers(0, lanes_), "");
}

// --- loops ---

/// x clamped to [low, high]; NaN stays NaN.
Value Vectors::limited(Type t, Value x, double low_value, double high_value) {
  const Value low = constant(t, low_value), high = constant(t, high_value);
  x = select(lt(x, low), low, x);
  return select(gt(x, high), high, x);
}

/// libmvec computes lanes whose exp is not a normal number one by one, so these are masked out, as
/// in v_exp.
Value Vectors::exp(Type t, Value x) {
  const bool f32 = t == Type::kF32;
  const Value zero = constant(t, 0),
              infinity = constant(t, std::numeric_limits<double>::infinity());
  const Value small = lt(x, constant(t, f32 ? -103.98 : -745.14));
  const Value large = gt(x, constant(t, f32 ? 88.73 : 709.79));
  const Value e = call("exp", t, {select(small, zero, select(large, zero, x))});
  return select(large, infinity, select(small, zero, e));
}

/// log(1 + exp(x)) without overflow.
Value Vectors::softplus(Type t, Value x) {
  const Value zero = constant(t, 0);
  const Value rest = call("log1p", t, {exp(t, neg(abs(x)))});
  return add(select(gt(zero, x), zero, x), rest);
}

Value Vectors::apply_float(const std::string& loop, Type t, const std::vector<Value>& x,
                           const std::vector<double>& p) {
  for (const char* const name : kUnaryFunctions)
    if (loop == name) return call(loop, t, x);
  for (const char* const name : kBinaryFunctions)
    if (loop == name) return call(loop, t, x);
  const Value a = x[0];
  const auto b = [&] { return x.at(1); };
  const auto c = [&] { return x.at(2); };
  const auto number = [&](double value) { return constant(t, value); };
  const auto is = [&](const char* name) { return loop == name; };
  const auto plus_exp = [&] { return add(number(1), exp(t, neg(a))); };

  if (is("exp")) return exp(t, a);

  // arithmetic_loops.cc
  if (is("add")) return add(a, b());
  if (is("subtract")) return sub(a, b());
  if (is("multiply")) return mul(a, b());
  if (is("divide")) return div(a, b());
  if (is("maximum")) return select(eq(a, a), select(gt(a, b()), a, b()), a);
  if (is("minimum")) return select(eq(a, a), select(lt(a, b()), a, b()), a);
  if (is("fmax") || is("fmin")) {
    const Value chosen = select(is("fmax") ? gt(b(), a) : lt(b(), a), b(), a);
    return select(eq(chosen, chosen), chosen, b());
  }
  if (is("neg")) return neg(a);
  if (is("abs")) return abs(a);
  if (is("square")) return mul(a, a);
  if (is("sqrt")) return unary("llvm.sqrt", a);
  if (is("rsqrt")) return div(number(1), unary("llvm.sqrt", a));
  if (is("reciprocal")) return div(number(1), a);
  if (is("floor")) return unary("llvm.floor", a);
  if (is("ceil")) return unary("llvm.ceil", a);
  if (is("round")) return unary("llvm.roundeven", a);
  if (is("trunc")) return unary("llvm.trunc", a);
  if (is("frac")) return sub(a, unary("llvm.trunc", a));
  if (is("sign")) {
    const Value zero = number(0);
    return select(gt(a, zero), number(1), select(lt(a, zero), number(-1), add(a, zero)));
  }
  if (is("copysign")) return intrinsic("llvm.copysign", {LLVMTypeOf(a)}, {a, b()});
  if (is("scale"))
    return p.at(2) == 0 ? mul(add(a, number(p[1])), number(p[0]))
                        : add(mul(a, number(p[0])), number(p[1]));
  if (is("clip") || is("hardtanh")) return limited(t, a, p.at(0), p.at(1));
  if (is("lerp")) return add(a, mul(c(), sub(b(), a)));
  if (is("multiply_add")) return add(a, mul(b(), c()));
  if (is("heaviside"))
    return select(compare(LLVMRealUNO, a, a), a,
                  select(gt(a, number(0)), number(1), select(lt(a, number(0)), number(0), b())));

  // activation_loops.cc
  if (is("relu")) return select(lt(a, number(0)), number(0), a);
  if (is("relu6")) return limited(t, a, 0, 6);
  if (is("sigmoid")) return div(number(1), plus_exp());
  if (is("log_sigmoid")) return neg(softplus(t, neg(a)));
  if (is("silu")) return div(a, plus_exp());
  if (is("gelu")) {
    const Value erf = call("erf", t, {mul(a, number(0.70710678118654752440))});
    return mul(a, mul(number(0.5), add(number(1), erf)));
  }
  if (is("gelu_tanh")) {
    const Value cube = mul(mul(a, a), a);
    const Value inner = mul(number(0.79788456080286535588), add(a, mul(number(0.044715), cube)));
    return mul(mul(number(0.5), a), add(number(1), call("tanh", t, {inner})));
  }
  if (is("softplus")) {
    const Value scaled = mul(a, number(p.at(0)));
    return select(gt(scaled, number(p.at(1))), a, div(softplus(t, scaled), number(p[0])));
  }
  if (is("mish")) return mul(a, call("tanh", t, {softplus(t, a)}));
  if (is("elu")) return select(gt(a, number(0)), a, mul(number(p.at(0)), call("expm1", t, {a})));
  if (is("celu")) {
    const Value alpha = number(p.at(0));
    return select(gt(a, number(0)), a, mul(alpha, call("expm1", t, {div(a, alpha)})));
  }
  if (is("selu"))
    return mul(number(p.at(0)),
               select(gt(a, number(0)), a, mul(number(p.at(1)), call("expm1", t, {a}))));
  if (is("leaky_relu")) return select(lt(a, number(0)), mul(a, number(p.at(0))), a);
  if (is("hardsigmoid")) return limited(t, add(mul(a, number(p.at(0))), number(p.at(1))), 0, 1);
  if (is("hardswish")) {
    const Value y = div(mul(a, limited(t, add(a, number(3)), 0, 6)), number(6));
    return select(gt(a, number(5e37)), a, y);
  }
  if (is("hardshrink")) return select(le(abs(a), number(p.at(0))), number(0), a);
  if (is("softshrink")) {
    const Value limit = number(p.at(0));
    const Value kept = select(gt(a, limit), sub(a, limit), add(a, limit));
    return select(le(abs(a), limit), number(0), kept);
  }
  if (is("thresholded_relu")) return select(gt(a, number(p.at(0))), a, number(p.at(1)));
  if (is("tanhshrink")) return sub(a, call("tanh", t, {a}));
  if (is("softsign")) return div(a, add(number(1), abs(a)));
  if (is("stanh")) return mul(number(p.at(1)), call("tanh", t, {mul(number(p.at(0)), a)}));
  if (is("logaddexp")) {
    const Value high = select(gt(a, b()), a, b());
    const Value gap = neg(abs(sub(a, b())));
    return select(eq(a, b()), add(high, number(0.69314718055994530942)),
                  add(high, call("log1p", t, {exp(t, gap)})));
  }
  unknown(loop);
}

Value Vectors::apply_integer(const std::string& loop, Type t, const std::vector<Value>& x,
                             const std::vector<double>& p) {
  const Value a = x[0];
  const auto b = [&] { return x.at(1); };
  const Value zero = integer(t, 0);
  const LLVMIntPredicate greater = is_unsigned(t) ? LLVMIntUGT : LLVMIntSGT;
  const auto more = [&](Value u, Value v) { return LLVMBuildICmp(builder_, greater, u, v, ""); };
  const auto is = [&](const char* name) { return loop == name; };
  if (is("add")) return LLVMBuildAdd(builder_, a, b(), "");
  if (is("subtract")) return LLVMBuildSub(builder_, a, b(), "");
  if (is("multiply")) return LLVMBuildMul(builder_, a, b(), "");
  if (is("maximum") || is("fmax")) return select(more(a, b()), a, b());
  if (is("minimum") || is("fmin")) return select(more(b(), a), a, b());
  if (is("neg")) return LLVMBuildSub(builder_, zero, a, "");
  if (is("abs"))
    return is_unsigned(t) ? a : select(more(zero, a), LLVMBuildSub(builder_, zero, a, ""), a);
  if (is("square")) return LLVMBuildMul(builder_, a, a, "");
  if (is("relu")) return select(more(a, zero), a, zero);
  if (is("sign"))
    return select(more(a, zero), integer(t, 1),
                  is_unsigned(t) ? zero : select(more(zero, a), integer(t, ~uint64_t{0}), zero));
  if (is("floor") || is("ceil") || is("round") || is("trunc")) return a;
  if (is("bitwise_and")) return LLVMBuildAnd(builder_, a, b(), "");
  if (is("bitwise_or")) return LLVMBuildOr(builder_, a, b(), "");
  if (is("bitwise_xor")) return LLVMBuildXor(builder_, a, b(), "");
  if (is("bitwise_not")) return LLVMBuildNot(builder_, a, "");
  if (is("scale")) {
    const auto whole = [&](double value) -> Value {
      if (value != std::floor(value) || std::abs(value) >= 0x1p53) unknown("scale of integers");
      return integer(t, static_cast<uint64_t>(static_cast<int64_t>(value)));
    };
    const Value scale = whole(p.at(0)), bias = whole(p.at(1));
    return p.at(2) == 0 ? LLVMBuildMul(builder_, LLVMBuildAdd(builder_, a, bias, ""), scale, "")
                        : LLVMBuildAdd(builder_, LLVMBuildMul(builder_, a, scale, ""), bias, "");
  }
  unknown(loop + " of integers");
}

Value Vectors::apply_bool(const std::string& loop, const std::vector<Value>& x) {
  const auto is = [&](const char* name) { return loop == name; };
  if (is("bitwise_not")) return LLVMBuildNot(builder_, x[0], "");
  if (x.size() == 2) {
    if (is("add") || is("maximum") || is("fmax") || is("bitwise_or"))
      return LLVMBuildOr(builder_, x[0], x[1], "");
    if (is("multiply") || is("minimum") || is("fmin") || is("bitwise_and"))
      return LLVMBuildAnd(builder_, x[0], x[1], "");
    if (is("subtract") || is("bitwise_xor")) return LLVMBuildXor(builder_, x[0], x[1], "");
  }
  return nullptr;
}

Value Vectors::apply_predicate(const std::string& loop, Type t, const std::vector<Value>& x) {
  struct Comparison {
    const char* name;
    LLVMRealPredicate floats;
    LLVMIntPredicate with_sign, without_sign;
  };
  constexpr Comparison kComparisons[] = {
      {"equal", LLVMRealOEQ, LLVMIntEQ, LLVMIntEQ},
      {"not_equal", LLVMRealUNE, LLVMIntNE, LLVMIntNE},
      {"less_than", LLVMRealOLT, LLVMIntSLT, LLVMIntULT},
      {"less_equal", LLVMRealOLE, LLVMIntSLE, LLVMIntULE},
      {"greater_than", LLVMRealOGT, LLVMIntSGT, LLVMIntUGT},
      {"greater_equal", LLVMRealOGE, LLVMIntSGE, LLVMIntUGE},
  };
  const Value a = x[0];
  for (const Comparison& c : kComparisons) {
    if (loop != c.name) continue;
    if (is_float(t)) return compare(c.floats, a, x.at(1));
    const bool bare = is_unsigned(t) || t == Type::kBool;
    return LLVMBuildICmp(builder_, bare ? c.without_sign : c.with_sign, a, x.at(1), "");
  }
  const auto is = [&](const char* name) { return loop == name; };
  const auto truth = [&](size_t i) { return convert(t, Type::kBool, x.at(i)); };
  if (is("logical_and")) return LLVMBuildAnd(builder_, truth(0), truth(1), "");
  if (is("logical_or")) return LLVMBuildOr(builder_, truth(0), truth(1), "");
  if (is("logical_xor")) return LLVMBuildXor(builder_, truth(0), truth(1), "");
  if (is("logical_not")) return LLVMBuildNot(builder_, truth(0), "");
  if (is_float(t)) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (is("isnan")) return compare(LLVMRealUNO, a, a);
    if (is("isinf")) return eq(abs(a), constant(t, kInfinity));
    if (is("isfinite")) return lt(abs(a), constant(t, kInfinity));
    if (is("isposinf")) return eq(a, constant(t, kInfinity));
    if (is("isneginf")) return eq(a, constant(t, -kInfinity));
    if (is("signbit")) {
      const Type bits = t == Type::kF32 ? Type::kI32 : Type::kI64;
      const Value whole = LLVMBuildBitCast(builder_, a, vector(element(bits)), "");
      return LLVMBuildICmp(builder_, LLVMIntSLT, whole, integer(bits, 0), "");
    }
  }
  unknown(loop + " as a predicate");
}

Value Vectors::apply(const std::string& loop, Type operand, Type result,
                     const std::vector<Value>& x, const std::vector<double>& parameters) {
  if (loop == "where") return select(x.at(0), x.at(1), x.at(2));
  if (x.empty() || is_half(operand)) unknown(loop);
  if (result == Type::kBool && operand == Type::kBool)
    if (const Value v = apply_bool(loop, x)) return v;
  if (result == Type::kBool) return apply_predicate(loop, operand, x);
  if (operand != result) unknown(loop);
  return is_float(operand) ? apply_float(loop, operand, x, parameters)
                           : apply_integer(loop, operand, x, parameters);
}

}  // namespace paddle::codegen
