#pragma once
// The words of the layer `experts`, for YAML chains that name them without quotes.

#include <string_view>

namespace paddle::lang {

bool is_experts_word(std::string_view word);

}  // namespace paddle::lang
