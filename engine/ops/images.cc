#include "ops/images.h"

#include "base/text.h"

namespace paddle {

std::optional<Images> images_of(const Op& op) {
  if (!*op.def->images) return std::nullopt;
  Images images;
  images.format = op.attr_index("data_format");
  for (const std::string& name : split(op.def->images, '|')) {
    if (const int i = op.operand_index(name); i >= 0)
      images.operands.push_back(static_cast<size_t>(i));
    else if (const int a = op.attr_index(name); a >= 0)
      images.attrs.push_back(static_cast<size_t>(a));
    else
      for (size_t r = 0; r < op.results().size(); ++r)
        if (op.results()[r].name == name) images.results.push_back(r);
  }
  return images;
}

}  // namespace paddle
