#include "plugin_new.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "conformance/generated/example_compiler.h"
#include "conformance/generated/example_device.h"
#include "conformance/generated/example_reader.h"
#include "conformance/generated/example_table.h"
#include "conformance/generated/example_train_parts.h"
#include "conformance/generated/example_transport.h"

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

constexpr std::string_view kPass =
    R"__(// A pass: it gets the text of a module, as --dump-ir writes it, and gives one that computes the same.
// This one removes a product with 1. `paddle plugin check` compiles functions with and without it.

#include <paddle/plugin/plugin.hpp>

#include <cstdio>

namespace {

/// `%5 = multiply(%3, %4) : TYPE` becomes `%5 = assign(%3) : TYPE` where %4 is the number 1.
std::optional<std::string> remove_ones(std::string_view module) {
  const std::string text(module);
  // The number of a constant 1.
  const size_t one = text.find(" = constant float32[] [1.0]");
  if (one == std::string::npos) return std::nullopt;
  const size_t sign = text.rfind('%', one);
  int number = 0;
  if (std::sscanf(text.c_str() + sign, "%%%d", &number) != 1) return std::nullopt;
  // A product with it.
  std::string call = ", %";
  call += std::to_string(number);
  call += ")";
  for (size_t at = text.find(" = multiply(%"); at != std::string::npos;
       at = text.find(" = multiply(%", at + 1)) {
    const size_t end = text.find(')', at);
    if (end == std::string::npos || end + 1 < call.size() ||
        text.compare(end + 1 - call.size(), call.size(), call) != 0)
      continue;
    const size_t operand = text.find('%', at);
    std::string out(text, 0, at);
    out += " = assign(";
    out.append(text, operand, end + 1 - call.size() - operand);
    out += ")";
    out.append(text, end + 1);
    return out;
  }
  return std::nullopt;
}

}  // namespace

PADDLE_PLUGIN(NAME, "0.1.0", plugin) {
  plugin.summary("a pass");
  plugin.pass("remove_ones", PADDLE_STAGE_CANONICALIZE,
              PADDLE_PASS_KEEPS_BITS | PADDLE_PASS_TRAINING, remove_ones);
}
)__";

constexpr std::string_view kRules =
    R"(# Rewrite rules, without code: in compiled functions a pattern of operations becomes another one.
# Each is a name, a pattern, a replacement and conditions.
plugin: {name: NAME, version: 0.1.0, abi: 1}
rules: |
  square: multiply(x, x) -> square(x)
  inverse_root: divide(1, sqrt(x)) -> rsqrt(x)
)";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// A kind of plug-in: what its file is made of, and a command that uses it.
struct Kind {
  std::string_view name;
  std::string_view source;
  std::string_view example;  ///< the folder of plugins/ that has the source; "" for a template
  std::string_view use;
  std::string_view suffix = ".cc";  ///< of its file; a source is built first
  std::string_view section = {};    ///< of a YAML file: the only one that it has
};
constexpr Kind kKinds[] = {
    {"operator", kOperator, "", "paddle op run NAME.scaled_tanh \"x=f32(1,2,3)\" --plugin FILE",
     ".plugin.yaml"},
    {"kernel", kKernel, "", "paddle op run NAME.scaled_tanh \"x=f32(1,2,3)\" --plugin FILE"},
    {"pass", kPass, "", "paddle train CONFIG --plugin FILE --dump-ir stages"},
    {"rules", kRules, "", "paddle train CONFIG --plugin FILE --dump-ir stages", ".plugin.yaml"},
    {"device", conformance::kExampleDevice, "relay",
     "paddle train CONFIG --device NAME --plugin FILE", ".c"},
    {"transport", conformance::kExampleTransport, "ring",
     "PADDLE_TRANSPORT=NAME.ring paddle launch -n 2 paddle train CONFIG --plugin FILE"},
    {"table", conformance::kExampleTable, "file_rows",
     "paddle train CONFIG train.tables=NAME.file_rows --plugin FILE"},
    {"reader", conformance::kExampleReader, "fvecs",
     "paddle train CONFIG data.train.kind=NAME.fvecs --plugin FILE"},
    {"compiler", conformance::kExampleCompiler, "scalar_loops",
     "paddle train CONFIG compile.compiler=NAME.loops --plugin FILE"},
    {"loss", conformance::kExampleTrainParts, "train_parts",
     "paddle train CONFIG \"loss=NAME.focal(logits, label)\" --plugin FILE", ".plugin.yaml",
     "losses"},
    {"optimizer", conformance::kExampleTrainParts, "train_parts",
     "paddle train CONFIG optimizer=NAME.signum --plugin FILE", ".plugin.yaml", "optimizers"},
    {"schedule", conformance::kExampleTrainParts, "train_parts",
     "paddle train CONFIG schedule=NAME.triangle --plugin FILE", ".plugin.yaml", "schedules"},
    {"metric", conformance::kExampleTrainParts, "train_parts",
     "paddle train CONFIG \"metrics={f: NAME.f_half(score, label)}\" --plugin FILE", ".plugin.yaml",
     "metrics"},
    {"transform", conformance::kExampleTrainParts, "train_parts",
     "paddle train CONFIG \"data.augment=[{NAME.gamma: {fields: image}}]\" --plugin FILE",
     ".plugin.yaml", "transforms"},
};

/// A file with one section of the example.
std::string section_of(const Kind& kind, const std::string& name) {
  std::string out =
      str("plugin: {name: ", name, ", version: 0.1.0, abi: 1}\n", kind.section, ":\n");
  bool is_inside = false;
  for (const std::string& line : split(kind.source, '\n')) {
    if (!line.empty() && line[0] != ' ')
      is_inside = line == str(kind.section, ":");
    else if (is_inside && !line.empty())
      out += line + "\n";
  }
  return out;
}

/// The source with the name of the plug-in in place of that of the example.
std::string with_name(const Kind& kind, const std::string& name) {
  if (kind.example.empty()) return replaced(std::string(kind.source), "NAME", name);
  if (!kind.section.empty()) return section_of(kind, name);
  const std::string example(kind.example);
  std::string out = replaced(std::string(kind.source), "PADDLE_PLUGIN(" + example + ",",
                             "PADDLE_PLUGIN(" + name + ",");
  out =
      replaced(std::move(out), "#define NAME \"" + example + "\"", "#define NAME \"" + name + "\"");
  const std::string file = name + std::string(kind.suffix);
  out = replaced(std::move(out), str("plugins/", example, "/", example, kind.suffix), file);
  out = replaced(std::move(out), "plugins/" + example, file);
  out = replaced(std::move(out), "--device " + example, "--device " + name);
  out = replaced(std::move(out), example + ".so", name + ".so");
  return replaced(std::move(out), example + "." + example, name + "." + example);
}

/// CMakeLists.txt of a plug-in with one source.
std::string project(const Kind& kind, const std::string& name, const std::string& source) {
  const bool is_c = kind.suffix == ".c";
  return str("cmake_minimum_required(VERSION 3.20)\nproject(", name, " LANGUAGES ",
             is_c ? "C" : "CXX",
             ")\nif(NOT CMAKE_BUILD_TYPE)\n  set(CMAKE_BUILD_TYPE Release)\nendif()\n"
             "find_package(paddle CONFIG REQUIRED COMPONENTS plugin)\nenable_testing()\n",
             "paddle_add_plugin(", name, " SOURCES ", source, " CHECK quick)\n");
}

/// A folder with the source and CMakeLists.txt.
std::string write_project(const Kind& kind, const PluginTemplate& options) {
  const std::string folder = options.output.empty() ? options.name : options.output;
  const std::string source = options.name + std::string(kind.suffix);
  const std::string list = join_path(folder, "CMakeLists.txt"), file = join_path(folder, source);
  for (const std::string& each : {list, file})
    if (file_exists(each)) fail(ErrorCode::kUsage, each, ": already exists");
  ensure_directory(folder);
  write_file_atomically(file, with_name(kind, options.name));
  write_file_atomically(list, project(kind, options.name, source));
  return str("written: ", file, " and ", list, "\nnext:\n  cmake -S ", folder, " -B ", folder,
             "/build\n  cmake --build ", folder, "/build\n  ctest --test-dir ", folder, "/build\n");
}

}  // namespace

std::vector<std::string> plugin_kinds() {
  std::vector<std::string> out;
  for (const Kind& kind : kKinds) out.emplace_back(kind.name);
  return out;
}

std::string write_plugin_template(const PluginTemplate& options) {
  const std::string& name = options.name;
  const bool is_word = !name.empty() && name.size() < 64 && name[0] >= 'a' && name[0] <= 'z' &&
                       std::ranges::all_of(name, [](char c) {
                         return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
                       });
  if (!is_word)
    fail(ErrorCode::kUsage, "NAME: '", name,
         "' is not a name: letters in lower case, digits and _, a letter first");
  const auto kind = std::ranges::find(kKinds, options.kind, &Kind::name);
  ensure(kind != std::end(kKinds), "a kind of plug-in without a template");
  const std::string suffix(kind->suffix);
  const bool has_code = suffix != ".plugin.yaml";
  if (options.cmake) {
    if (!has_code)
      fail(ErrorCode::kUsage, "--cmake: the kind '", kind->name, "' is a file without code");
    return write_project(*kind, options);
  }
  const std::string file = options.output.empty() ? name + suffix : options.output;
  if (!has_code && !file.ends_with(".plugin.yaml"))
    fail(ErrorCode::kUsage, file, ": expected a file NAME.plugin.yaml");
  if (file_exists(file)) fail(ErrorCode::kUsage, file, ": already exists");
  write_file_atomically(file, with_name(*kind, name));
  std::string out = str("written: ", file, "\nnext:\n");
  const std::string built = has_code ? name + ".so" : file;
  if (has_code) out += str("  paddle plugin build ", file, " -o ", built, "\n");
  const std::string use =
      replaced(replaced(std::string(kind->use), "NAME", name), "FILE", "./" + built);
  const char* const data = kind->name == "reader" ? " --key path=FILE" : "";
  return out + str("  paddle plugin check ", built, " --quick", data, "\n  ", use, "\n");
}

}  // namespace paddle::cli
