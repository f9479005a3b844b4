#include "ops/core/data_format.h"

#include "base/text.h"

namespace paddle {

std::optional<DataFormatOperands> data_format_operands(const Op& op) {
  if (!*op.def->images) return std::nullopt;
  DataFormatOperands out;
  out.format = op.attr_index("data_format");
  for (const std::string& name : split(op.def->images, '|')) {
    if (const int i = op.operand_index(name); i >= 0)
      out.operands.push_back(static_cast<size_t>(i));
    else if (const int a = op.attr_index(name); a >= 0)
      out.attrs.push_back(static_cast<size_t>(a));
    else
      for (size_t r = 0; r < op.results().size(); ++r)
        if (op.results()[r].name == name) out.results.push_back(r);
  }
  return out;
}

}  // namespace paddle
