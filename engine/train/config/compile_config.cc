#include "train/config/compile_config.h"

#include <algorithm>

#include "base/text.h"
#include "compiler/passes/rules/rule.h"
#include "compiler/region_compilers.h"
#include "config/overrides.h"

namespace paddle::train {
namespace {

using config::Schema;
using config::Spec;

/// `compile.passes`: names of passes that plug-ins have added.
std::vector<std::string> read_passes(const config::Node& list, config::Diagnostics& diagnostics) {
  std::vector<std::string> out;
  const std::vector<std::string> names = compiler::added_passes().names();
  for (const config::Node& item : list.items) {
    out.push_back(item.text);
    if (std::ranges::find(names, item.text) == names.end())
      diagnostics.add(ErrorCode::kConfig,
                      str("compile.passes: there is no pass '", item.text, "'",
                          names.empty() ? ": no plug-in with a pass is loaded"
                                        : did_you_mean(item.text, names)),
                      item.location());
  }
  return out;
}

/// `compile.leave_out`: what the compiler does not do.
void read_left_out(const config::Node& list, compiler::CompileOptions& compile,
                   config::Diagnostics& diagnostics) {
  for (const config::Node& item : list.items) try {
      compiler::leave_out(compile, item.text);
    } catch (const Error& e) {
      diagnostics.add(ErrorCode::kConfig, str("compile.leave_out: ", e.message()), item.location());
    }
}

/// `compile.compiler`: the name of a compiler that a plug-in has added, or none.
std::string read_compiler(const config::Node& given, config::Diagnostics& diagnostics) {
  if (given.text == "none") return "";
  const std::vector<std::string> names = compiler::region_compilers().names();
  if (std::ranges::find(names, given.text) == names.end())
    diagnostics.add(ErrorCode::kConfig,
                    str("compile.compiler: there is no compiler '", given.text, "'",
                        names.empty() ? ": no plug-in with a compiler is loaded"
                                      : did_you_mean(given.text, names)),
                    given.location());
  return given.text;
}

}  // namespace

Schema compile_schema() {
  Schema compile;
  compile.add("exact", Spec::boolean().fallback("false").doc("bit for bit as --eager"));
  compile.add("fusion", Spec::boolean().fallback("true").doc("fuse elementwise operations"));
  compile.add("layout", Spec::boolean().fallback("true").doc(
                            "channels last; norms and activations fused into other kernels"));
  compile.add("codegen",
              Spec::boolean().fallback("true").doc("compile fusion groups to machine code"));
  compile.add("batch_tiling",
              Spec::boolean().fallback("true").doc(
                  "validation runs layers on tiles of the batch that fit in the cache"));
  compile.renamed("slices", "batch_tiling");
  compile.add("graphs",
              Spec::word({"auto", "on", "off"})
                  .fallback("auto")
                  .doc("on devices, queue the kernels of a step as recorded work; auto: where the "
                       "device can"));
  compile.add("rewrites", Spec::boolean().fallback("true").doc("rewrite rules"));
  compile.add("rules", Spec::path().doc("a file of rewrite rules, tried before the standard ones"));
  compile.add("passes",
              Spec::list(Spec::text())
                  .doc("which passes of plug-ins run, such as [acme.fold_scales]; by default all"));
  compile.add("compiler", Spec::text().doc("which compiler of plug-ins takes regions of functions, "
                                           "such as acme.loops, or none; by default all"));
  compile.add("leave_out",
              Spec::list(Spec::text())
                  .doc("optimizations that do not run, such as [fold_batch_norm, cse]: "
                       "passes of `paddle ir opt --help`, or winograd"));
  compile.add("kernels", Spec::path().doc("a table of kernel choices that paddle-tune made"));
  return compile;
}

void read_compile(const config::Section& section, RunConfig& config,
                  config::Diagnostics& diagnostics) {
  compiler::CompileOptions& compile = config.compile;
  compile.exact = section.boolean("exact");
  compile.fusion = section.boolean("fusion");
  compile.layout = section.boolean("layout");
  compile.rewrites = section.boolean("rewrites");
  compile.prepare.codegen = section.boolean("codegen");
  compile.batch_tiling = section.boolean("batch_tiling");
  compile.graphs = compiler::parse_graph_mode(section.text("graphs"));
  if (section.has("kernels"))
    diagnostics.guard([&] { config.kernel_table = config::resolve_path(section.at("kernels")); });
  if (section.has("rules"))
    diagnostics.guard(
        [&] { compile.rules = passes::read_rules(config::resolve_path(section.at("rules"))); });
  if (section.has("passes")) compile.added = read_passes(section.at("passes"), diagnostics);
  if (section.has("compiler"))
    compile.compiler = read_compiler(section.at("compiler"), diagnostics);
  if (section.has("leave_out")) read_left_out(section.at("leave_out"), compile, diagnostics);
}

}  // namespace paddle::train
