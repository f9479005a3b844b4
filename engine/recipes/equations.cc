// The recipe for differential equations, which needs no data.

#include "base/error.h"
#include "recipes/recipes.h"
#include "recipes/template.h"

namespace paddle::recipes {

RecipeResult pinn(const RecipeRequest& request) {
  if (!request.data.empty())
    fail(ErrorCode::kUsage,
         "pinn takes no data: the points of the equation are drawn; found --data ", request.data);
  RecipeResult out;
  out.found = {"no data: points in the ranges of the equation's variables are drawn"};
  out.config = fill_template(request, {});
  return out;
}

}  // namespace paddle::recipes
