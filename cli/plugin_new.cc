#include "plugin_new.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace paddle::cli {
namespace {

constexpr std::string_view kOperator =
    R"(# An operation without code: shapes, gradients, compiled code and the ONNX form follow from the body.
plugin: {name: NAME, version: 0.1.0, abi: 1}
operations:
  scaled_tanh:
    signature: (x:T, scale:float=1.0) -> out
    doc: scale times the hyperbolic tangent of x.
    dtypes: {x: float}
    traits: [elementwise]
    body: tanh(x) * scale
    samples:
      - x=f64[3,7]
      - x=f64[5] scale=2.5
)";

constexpr std::string_view kKernel =
    R"(// An operation with a kernel for the CPU. The body says what the kernel computes, and is computed
// itself where the kernel declines: `paddle plugin check` compares them.

#include <paddle/plugin/plugin.hpp>

#include <cmath>

namespace {

void scaled_tanh(const paddle::plugin::Run& run) {
  const float* const x = run.in<float>(0);
  float* const out = run.out<float>(0);
  run.parallel(run.count(0), 4096, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = std::tanh(x[i]);
  });
}

/// Other scales are left to the body.
bool has_no_scale(const paddle::plugin::Request& request) { return request.number("scale") == 1; }

}  // namespace

PADDLE_PLUGIN(NAME, "0.1.0", plugin) {
  plugin.summary("an operation with a kernel");
  plugin.operations(R"__(
scaled_tanh:
  signature: (x:T, scale:float=1.0) -> out
  doc: scale times the hyperbolic tangent of x.
  dtypes: {x: float}
  traits: [elementwise]
  body: tanh(x) * scale
  vjp: g * scale * (1.0 - tanh(x) * tanh(x))
  samples:
    - x=f64[3,7]
    - x=f64[5] scale=2.5
)__");
  plugin.kernel("NAME.scaled_tanh", "cpu", "float32", scaled_tanh, has_no_scale);
}
)";

std::string with_name(std::string_view text, const std::string& name) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t next = std::min(text.find("NAME", at), text.size());
    out += text.substr(at, next - at);
    if (next < text.size()) out += name;
    at = next + 4;
  }
  return out;
}

}  // namespace

std::string write_plugin_template(const PluginTemplate& options) {
  const std::string& name = options.name;
  const bool is_word = !name.empty() && name.size() < 64 && name[0] >= 'a' && name[0] <= 'z' &&
                       std::ranges::all_of(name, [](char c) {
                         return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
                       });
  if (!is_word)
    fail(ErrorCode::kUsage, "NAME: '", name,
         "' is not a name: letters in lower case, digits and _, a letter first");
  const bool is_kernel = options.kind == "kernel";
  const std::string file =
      options.output.empty() ? name + (is_kernel ? ".cc" : ".plugin.yaml") : options.output;
  if (!is_kernel && !file.ends_with(".plugin.yaml"))
    fail(ErrorCode::kUsage, file, ": expected a file NAME.plugin.yaml");
  if (file_exists(file)) fail(ErrorCode::kUsage, file, ": is there already");
  write_file_atomically(file, with_name(is_kernel ? kKernel : kOperator, name));
  std::string out = str("written: ", file, "\nnext:\n");
  std::string built = file;
  if (is_kernel) {
    built = name + ".so";
    out += str("  paddle plugin build ", file, " -o ", built, "\n");
  }
  return out + str("  paddle plugin check ", built, " --quick\n  paddle op run ", name,
                   ".scaled_tanh \"x=f32(1,2,3)\" --plugin ./", built, "\n");
}

}  // namespace paddle::cli
