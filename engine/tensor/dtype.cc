#include "tensor/dtype.h"

#include <array>
#include <utility>

namespace paddle {
namespace {

using K = DTypeKind;

constexpr std::array<DTypeInfo, kDTypeCount> kTable = {{
    {"bool", 8, K::kBool, true},
    {"int8", 8, K::kSigned, true},
    {"int16", 16, K::kSigned, true},
    {"int32", 32, K::kSigned, true},
    {"int64", 64, K::kSigned, true},
    {"uint8", 8, K::kUnsigned, true},
    {"uint16", 16, K::kUnsigned, true},
    {"uint32", 32, K::kUnsigned, true},
    {"uint64", 64, K::kUnsigned, true},
    {"int2", 2, K::kSigned, false},
    {"uint2", 2, K::kUnsigned, false},
    {"int4", 4, K::kSigned, false},
    {"uint4", 4, K::kUnsigned, false},
    {"float16", 16, K::kFloat, true},
    {"bfloat16", 16, K::kFloat, true},
    {"float32", 32, K::kFloat, true},
    {"float64", 64, K::kFloat, true},
    {"complex64", 64, K::kComplex, false},
    {"complex128", 128, K::kComplex, false},
    {"float8_e4m3fn", 8, K::kFloat, false},
    {"float8_e5m2", 8, K::kFloat, false},
    {"float8_e4m3fnuz", 8, K::kFloat, false},
    {"float8_e5m2fnuz", 8, K::kFloat, false},
    {"float8_e8m0fnu", 8, K::kFloat, false},
    {"float4_e2m1fn", 4, K::kFloat, false},
    {"string", 0, K::kString, false},
}};

constexpr std::pair<std::string_view, DType> kAliases[] = {
    {"i8", DType::kI8},    {"i16", DType::kI16},    {"i32", DType::kI32},    {"i64", DType::kI64},
    {"u8", DType::kU8},    {"u16", DType::kU16},    {"u32", DType::kU32},    {"u64", DType::kU64},
    {"i2", DType::kI2},    {"u2", DType::kU2},      {"i4", DType::kI4},      {"u4", DType::kU4},
    {"f16", DType::kF16},  {"fp16", DType::kF16},   {"half", DType::kF16},   {"bf16", DType::kBF16},
    {"f32", DType::kF32},  {"fp32", DType::kF32},   {"float", DType::kF32},  {"f64", DType::kF64},
    {"fp64", DType::kF64}, {"double", DType::kF64}, {"int", DType::kI32},    {"long", DType::kI64},
    {"c64", DType::kC64},  {"c128", DType::kC128},  {"fp4", DType::kF4E2M1},
};

int float_rank(DType d) {
  switch (d) {
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kF32:
      return 3;
    case DType::kF64:
      return 4;
    default:
      return 1;  // the 8- and 4-bit kinds
  }
}

DType promote_floats(DType a, DType b) {
  if (a == b) return a;
  const int ra = float_rank(a), rb = float_rank(b);
  if (ra != rb) return ra > rb ? a : b;
  return ra == 2 ? DType::kF32 : DType::kF16;
}

DType signed_of_bits(int bits) {
  if (bits <= 8) return DType::kI8;
  if (bits <= 16) return DType::kI16;
  return bits <= 32 ? DType::kI32 : DType::kI64;
}

DType promote_integers(DType a, DType b) {
  const DTypeInfo &ia = info(a), &ib = info(b);
  if (ia.kind == ib.kind) return ia.bits >= ib.bits ? a : b;
  const DTypeInfo& u = ia.kind == K::kUnsigned ? ia : ib;
  const DTypeInfo& s = ia.kind == K::kUnsigned ? ib : ia;
  if (u.bits < s.bits) return ia.kind == K::kSigned ? a : b;
  return u.bits == 64 ? DType::kF32 : signed_of_bits(u.bits * 2);
}

}  // namespace

const DTypeInfo& info(DType dtype) { return kTable[static_cast<size_t>(dtype)]; }

std::string text(DType dtype) { return std::string(info(dtype).name); }

std::optional<DType> parse_dtype(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (kTable[static_cast<size_t>(i)].name == name) return static_cast<DType>(i);
  for (const auto& [alias, dtype] : kAliases)
    if (alias == name) return dtype;
  return std::nullopt;
}

std::vector<std::string> dtype_names() {
  std::vector<std::string> names;
  for (const DTypeInfo& each : kTable) names.emplace_back(each.name);
  return names;
}

int64_t storage_bytes(DType d, int64_t count) {
  const int64_t bits = info(d).bits;
  return bits % 8 == 0 ? count * (bits / 8) : (count * bits + 7) / 8;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  const K ka = info(a).kind, kb = info(b).kind;
  if (ka == K::kString || kb == K::kString)
    fail(ErrorCode::kUsage, "no common type of ", text(a), " and ", text(b));
  if (ka == K::kComplex || kb == K::kComplex) {
    const auto wide = [](DType d) { return d == DType::kC128 || d == DType::kF64; };
    return wide(a) || wide(b) ? DType::kC128 : DType::kC64;
  }
  if (ka == K::kFloat && kb == K::kFloat) return promote_floats(a, b);
  if (ka == K::kFloat) return a;
  if (kb == K::kFloat) return b;
  if (ka == K::kBool) return b;
  if (kb == K::kBool) return a;
  return promote_integers(a, b);
}

DType promote_weak(DType tensor, DType weak) {
  const auto order = [](DType d) {
    switch (info(d).kind) {
      case K::kBool:
        return 0;
      case K::kSigned:
      case K::kUnsigned:
        return 1;
      case K::kFloat:
        return 2;
      default:
        return 3;
    }
  };
  if (order(weak) <= order(tensor)) return tensor;
  if (order(weak) == 3) return tensor == DType::kF64 ? DType::kC128 : DType::kC64;
  return order(weak) == 2 ? DType::kF32 : DType::kI64;
}

namespace float_detail {

float half_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1f;
  uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}

uint16_t float_to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds past 65504
  if (magnitude < 0x38800000u) {  // subnormal: let the FPU round to a multiple of 2^-24
    const float shifted = std::bit_cast<float>(magnitude) * 0x1p24f;
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(shifted)));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

}  // namespace float_detail
}  // namespace paddle
