#pragma once
// The parsed program of a fusion group; interface.h describes its text.

#include <string>
#include <string_view>
#include <vector>

namespace paddle::codegen {

enum class Type { kBool, kI8, kI16, kI32, kI64, kU8, kU16, kU32, kU64, kF16, kBF16, kF32, kF64 };

inline bool is_float(Type t) { return t == Type::kF32 || t == Type::kF64; }
inline bool is_half(Type t) { return t == Type::kF16 || t == Type::kBF16; }
inline bool is_unsigned(Type t) { return t >= Type::kU8 && t <= Type::kU64; }
inline bool is_integer(Type t) { return t >= Type::kI8 && t <= Type::kU64; }
inline int bits_of(Type t) {
  constexpr int kBits[] = {1, 8, 16, 32, 64, 8, 16, 32, 64, 16, 16, 32, 64};
  return kBits[static_cast<int>(t)];
}

/// How often a value changes: never, from row to row, from element to element.
enum class Level { kScalar, kRow, kVector };

struct Node {
  enum class Kind { kRead, kConvert, kApply };
  Kind kind = Kind::kRead;
  Type type = Type::kF32;
  Type memory = Type::kF32;  ///< kRead
  Level level = Level::kVector;
  int pointer = 0;   ///< kRead
  std::string loop;  ///< kApply
  std::vector<int> inputs;
  std::vector<double> parameters;
};

struct Store {
  int node;
  Type memory;
};

struct Fold {
  enum class Kind { kSum, kProd, kMax, kMin };
  Kind kind;
  int node;
  bool lanes;  ///< else one accumulator per element of a row
};

struct Program {
  std::vector<Node> nodes;
  std::vector<Store> stores;
  std::vector<Fold> folds;
  int reads = 0;
  int unroll = 1;  ///< steps of a loop at once
};

/// Throws std::runtime_error for invalid text.
Program parse_program(std::string_view text);

}  // namespace paddle::codegen
