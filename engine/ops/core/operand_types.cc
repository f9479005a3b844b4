#include "ops/core/operand_types.h"

#include <algorithm>

#include "base/text.h"
#include "ops/core/rules.h"

namespace paddle {
namespace {

constexpr std::pair<DTypeSet, const char*> kDTypeKinds[] = {{dtype_sets::kReal, "real"},
                                                            {dtype_sets::kBool, "bool"},
                                                            {dtype_sets::kInteger, "integer"},
                                                            {dtype_sets::kFloat, "float"},
                                                            {dtype_sets::kComplex, "complex"}};

}  // namespace

DTypeSet operand_types(const Op& op, size_t declared) {
  return op.def->operand_dtypes ? op.def->operand_dtypes[declared] : dtype_sets::kReal;
}

DTypeSet dtype_set_of(std::string_view word) {
  for (const auto& [kind, name] : kDTypeKinds)
    if (word == name) return kind;
  const std::optional<DType> dtype = parse_dtype(word);
  return dtype ? dtype_sets::of(*dtype) : 0;
}

std::vector<std::string> dtype_set_words(DTypeSet set) {
  std::vector<std::string> words;
  for (const auto& [kind, name] : kDTypeKinds)
    if ((set & kind) == kind) {
      words.emplace_back(name);
      set &= ~kind;
    }
  for (int i = 0; i < kDTypeCount; ++i)
    if (const auto dtype = static_cast<DType>(i); set & dtype_sets::of(dtype))
      words.push_back(text(dtype));
  return words;
}

std::string dtype_set_text(DTypeSet set) {
  const std::vector<std::string> words = dtype_set_words(set);
  std::string kinds, dtypes;
  const auto add = [](std::string& list, const std::string& word) {
    list += (list.empty() ? "" : " or ") + word;
  };
  for (const std::string& word : words)
    if (word == "real" || word == "complex")
      add(kinds, "a " + word);
    else if (word == "float")
      add(kinds, "a floating");
    else if (word == "integer")
      add(kinds, "an integer");
    else if (word == "bool" && words.size() > 1)
      add(kinds, "a boolean");
    else
      add(dtypes, word);
  if (kinds.empty()) return dtypes;
  return (dtypes.empty() ? "" : dtypes + " or ") + "of " + kinds + " type";
}

void check_operand_types(const Op& op, const Attrs& attrs, const Tensors& operands) {
  const DTypeSet* const row = op.def->operand_dtypes;
  const auto is_complex_one = [](const Tensor& t) { return t.defined() && is_complex(t.dtype()); };
  if (op.has(kControlFlow)) return;
  if (!row && std::none_of(operands.begin(), operands.end(), is_complex_one)) return;
  const OperandMap map(op, attrs);
  for (size_t d = 0; d < op.operands().size(); ++d) {
    if (op.operands()[d].shape_only) continue;
    const DTypeSet takes = row ? row[d] : dtype_sets::kReal;
    for (size_t i = map.begin(d); i < map.end(d); ++i)
      if (operands[i].defined() && !(takes & dtype_sets::of(operands[i].dtype())))
        fail(ErrorCode::kUsage, op.name(), ": '", op.operands()[d].name, "' must be ",
             dtype_set_text(takes), ", not ", text(operands[i].dtype()));
  }
}

}  // namespace paddle
