#include "llm/expression.h"

#include <charconv>

#include "base/error.h"
#include "text/jinja/template.h"

namespace paddle::llm {

std::string evaluate(const config::Node& expression, const jinja::Value& variables) {
  try {
    return jinja::Template("{{ (" + expression.as_string() + ") | tojson }}", "").render(variables);
  } catch (const Error& e) {
    throw Error(ErrorCode::kConfig, "'" + expression.as_string() + "': " + e.message(),
                expression.location());
  }
}

int64_t integer_of(const config::Node& expression, const std::string& value) {
  int64_t out = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
  if (error != std::errc() || end != value.data() + value.size())
    throw Error(ErrorCode::kConfig,
                str("'", expression.as_string(), "' is ", value, ", expected an integer"),
                expression.location());
  return out;
}

}  // namespace paddle::llm
