#pragma once
// Jinja templates as chat templates use them: the language of Python's jinja2 in the environment of
// Hugging Face's transformers (a sandbox without mutation, `trim_blocks`, `lstrip_blocks`, loop
// controls, `{% generation %}`, `raise_exception`, `strftime_now`, `tojson`).
// Language: https://jinja.palletsprojects.com/templates/

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>

#include "text/jinja/value.h"

namespace paddle::jinja {

struct RenderLimits {
  int64_t steps = 20'000'000;          ///< statements and expressions
  int64_t bytes = int64_t{256} << 20;  ///< of all texts and lists that are made
};

struct TemplateNode;

class Template {
 public:
  /// kModel, with the line, for a template with errors. `name` is the file's.
  Template(std::string source, std::string name);
  ~Template();
  Template(Template&&) noexcept;

  /// kData if rendering fails: the template's raise_exception, an operation on values that do not
  /// fit, or too many steps. `variables` is a dict.
  std::string render(const Value& variables, const RenderLimits& limits = {}) const;

  /// The time that strftime_now formats; that of the clock if it is not set.
  std::optional<std::tm> now;

 private:
  std::string name_;
  std::unique_ptr<const TemplateNode> root_;
};

}  // namespace paddle::jinja
