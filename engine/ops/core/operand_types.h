#pragma once
// The dtypes that operands take, as the schema declares them (`dtypes`). Calls are checked against
// them before inference, so that a rejection names the operation and the operand of the call.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ops/core/op.h"

namespace paddle {

static_assert(kDTypeCount <= 32);

namespace dtype_sets {
constexpr DTypeSet of(DType dtype) { return DTypeSet{1} << static_cast<int>(dtype); }
constexpr DTypeSet range(DType first, DType last) { return (of(last) << 1) - of(first); }
inline constexpr DTypeSet kBool = of(DType::kBool);
inline constexpr DTypeSet kInteger = range(DType::kI8, DType::kU4);
inline constexpr DTypeSet kFloat =
    range(DType::kF16, DType::kF64) | range(DType::kF8E4M3FN, DType::kF4E2M1);
inline constexpr DTypeSet kComplex = of(DType::kC64) | of(DType::kC128);
inline constexpr DTypeSet kReal = kBool | kInteger | kFloat | of(DType::kString);
}  // namespace dtype_sets

/// The dtypes that an operand takes after promotion; kReal where nothing is declared.
DTypeSet operand_types(const Op& op, size_t declared);
/// The set of a word of the schema, a kind ("integer") or a dtype ("float32"); 0 for other words.
DTypeSet dtype_set_of(std::string_view word);
/// "float" and "complex", or "float32": kinds where the set has all of their dtypes.
std::vector<std::string> dtype_set_words(DTypeSet set);
/// "of a floating type", "float32 or float64".
std::string dtype_set_text(DTypeSet set);
/// kUsage if an operand is of another type. Operands of which only the shape is read may have any.
void check_operand_types(const Op& op, const Attrs& attrs, const Tensors& operands);

}  // namespace paddle
