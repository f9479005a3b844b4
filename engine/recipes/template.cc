#include "recipes/template.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "recipes/generated/templates.h"
#include "recipes/recipes.h"

namespace paddle::recipes {

std::string fill_template(const RecipeRequest& request, Values values) {
  const auto found = std::find_if(std::begin(kTemplates), std::end(kTemplates),
                                  [&](const auto& each) { return request.recipe == each.first; });
  ensure(found != std::end(kTemplates), "no template for the recipe");
  values.emplace("file", std::filesystem::path(request.output).filename().string());
  values.emplace("run", run_name(request));
  if (!request.data.empty()) values.emplace("data", data_path(request));
  values.emplace("block_format", "");
  values.emplace("flow_format", "");
  const std::string_view text = found->second;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t open = std::min(text.find("{{", at), text.size());
    out += text.substr(at, open - at);
    if (open == text.size()) break;
    const size_t close = text.find("}}", open);
    ensure(close != std::string_view::npos, "a placeholder of a template is not closed");
    std::string place(text.substr(open + 2, close - open - 2));
    if (const size_t bar = place.find('|'); bar != std::string::npos)
      place = request.small ? place.substr(bar + 1) : place.substr(0, bar);
    const auto value = values.find(place);
    const bool is_number = !place.empty() && place.find_first_not_of("0123456789.e-") == place.npos;
    if (value == values.end() && !is_number)
      fail(ErrorCode::kInternal, "the template of ", request.recipe, " has no value for '", place,
           "'");
    out += value == values.end() ? place : value->second;
    at = close + 2;
  }
  return out;
}

}  // namespace paddle::recipes
