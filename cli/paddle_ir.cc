// paddle-ir show|verify|opt|run FILE: modules in their text form.

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "commands.h"
#include "common.h"
#include "common_options.h"
#include "compiler/passes/rules/rule.h"
#include "formats/npz.h"
#include "formats/safetensors.h"
#include "ir/module.h"
#include "ops/core/access.h"
#include "runtime/compile.h"
#include "runtime/constant_files.h"
#include "runtime/executable.h"
#include "runtime/execute.h"

namespace {

using namespace paddle;

struct IrOptions {
  std::string file, function, passes, rules, input, output, weights;
  bool overwrite = false;
};

/// The constants that a text refers to are in its folder.
runtime::ConstantFiles constants_beside(const std::string& file) {
  return runtime::ConstantFiles(std::filesystem::path(file).parent_path().string());
}

ir::Module load(const IrOptions& o) {
  if (!file_exists(o.file)) fail(ErrorCode::kUsage, o.file, ": no such file");
  return ir::parse(read_file(o.file, uint64_t{1} << 30, ErrorCode::kModel), o.file,
                   constants_beside(o.file), kAccessesRanks);
}

/// The text for a file; its large constants are written next to it.
std::string with_files_beside(const ir::Module& module, const std::string& file) {
  runtime::ConstantFiles files = constants_beside(file);
  return ir::print(module, files, runtime::ConstantFiles::kMaxLength);
}

/// The passes named by `--passes`, or the whole pipeline.
std::vector<compiler::Pass> chosen_passes(const IrOptions& o) {
  compiler::CompileOptions compile;
  if (!o.rules.empty()) compile.rules = passes::read_rules(o.rules);
  auto all = runtime::pass_pipeline(compile);
  if (o.passes.empty()) return all;
  std::vector<compiler::Pass> out;
  const auto names = compiler::pass_names();
  for (const std::string& name : split(o.passes, ',')) {
    const auto it =
        std::find_if(all.begin(), all.end(), [&](const auto& p) { return p.name == name; });
    if (it == all.end())
      fail(ErrorCode::kUsage, "unknown pass '", name, "'", did_you_mean(name, names),
           "; there are ", join(names, ", "));
    out.push_back(*it);
  }
  return out;
}

std::shared_ptr<ir::Function> chosen_function(const ir::Module& module, const IrOptions& o) {
  if (module.functions.empty()) fail(ErrorCode::kModel, o.file, ": has no function");
  std::vector<std::string> names;
  for (const auto& f : module.functions) {
    if (f->name == o.function || o.function.empty()) return f;
    names.push_back(f->name);
  }
  fail(ErrorCode::kUsage, o.file, ": has no function '", o.function, "'",
       did_you_mean(o.function, names), "; it has ", join(names, ", "));
}

/// Runs a function on arrays: values by name from the NPZ file, parameters and states from the
/// safetensors file.
int run_function(const IrOptions& o) {
  const ir::Module module = load(o);
  ir::verify(module);
  const auto function = chosen_function(module, o);
  std::unique_ptr<formats::NpzReader> arrays;
  std::unique_ptr<formats::SafetensorsReader> weights;
  if (!o.input.empty()) arrays = std::make_unique<formats::NpzReader>(o.input);
  if (!o.weights.empty()) weights = std::make_unique<formats::SafetensorsReader>(o.weights);
  std::vector<Array> inputs;
  for (size_t i = 0; i < function->inputs.size(); ++i) {
    const std::string& name = function->inputs[i].name;
    if (arrays && arrays->contains(name))
      inputs.push_back(arrays->read(name).contiguous());
    else if (weights && weights->find(name))
      inputs.push_back(weights->read(name).contiguous());
    else if (function->inputs[i].kind == ir::PortKind::kRandom)
      inputs.push_back(Array::zeros(DType::kU64, {2}));
    else
      fail(ErrorCode::kData, "the function takes '", name, "' ", function->body.arguments[i]->type,
           ", which is in neither --input nor --weights");
  }
  runtime::Executable executable(function);
  const auto& results = executable.run(inputs);
  formats::NamedArrays out;
  for (size_t i = 0; i < function->outputs.size(); ++i) {
    const ir::Port& port = function->outputs[i];
    if (port.kind == ir::PortKind::kValue) out.push_back({port.name, results[i]});
    for (size_t in = 0; in < function->inputs.size(); ++in)  // updated in place
      if (port.kind != ir::PortKind::kValue && function->inputs[in].kind == port.kind &&
          function->inputs[in].name == port.name)
        out.push_back({port.name, inputs[in]});
  }
  if (o.output.empty())
    for (const auto& [name, a] : out)
      cli::print(str(printable(name), ": ", text(a.dtype), str(a.shape), " ", text(a), "\n"));
  else
    formats::write_npz(o.output, out);
  return 0;
}

int run_ir(int argc, char** argv) {
  cli::App app{"Prints, checks, transforms and runs modules in their text form."};
  app.require_subcommand(1);
  IrOptions o;
  const auto command = [&](const char* name, const char* doc) {
    cli::App* sub = app.add_subcommand(name, doc);
    sub->add_option("FILE", o.file, "a module's text")->required();
    return sub;
  };
  cli::App* show = command("show", "parse and print it");
  cli::App* verify = command("verify", "check types, definitions and ports");
  cli::App* opt = command("opt", "run passes and print the result");
  cli::App* execute = command("run", "run a function on arrays");
  opt->add_option("--passes", o.passes,
                  "names, separated by commas (default: the pipeline of the compiled mode)");
  opt->footer("Passes: " + join(compiler::pass_names(), ", ") + ".");
  opt->add_option("--rules", o.rules, "a file of rewrite rules, tried before the standard ones");
  opt->add_option("-o,--output", o.output, "write here instead of printing");
  cli::add_overwrite(*opt, o.overwrite);
  execute->add_option("--function", o.function, "name (default: the first)");
  execute->add_option("--input", o.input, "NPZ with arrays by input name");
  execute->add_option("--weights", o.weights, "safetensors with parameters and states by name");
  execute->add_option("-o,--output", o.output, "NPZ for the results (default: print them)");
  cli::add_overwrite(*execute, o.overwrite);
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  cli::check_output(o.output, o.overwrite);
  if (execute->parsed()) return run_function(o);
  const ir::Module module = load(o);
  if (show->parsed()) {
    cli::print(ir::print(module));
    return 0;
  }
  ir::verify(module);
  if (verify->parsed()) {
    for (const auto& f : module.functions)
      cli::print(str(f->name, ": ", f->operation_count(), " operations, ", f->inputs.size(),
                     " inputs, ", f->outputs.size(), " outputs: valid\n"));
    return 0;
  }
  if (opt->parsed()) {
    for (const auto& f : module.functions)
      for (const compiler::Pass& pass : chosen_passes(o)) pass.run(*f);
    if (o.output.empty())
      cli::print(ir::print(module));
    else
      write_file_atomically(o.output, with_files_beside(module, o.output));
  }
  return 0;
}

}  // namespace

namespace paddle::cli {

int ir_command(int argc, char** argv) {
  return run_tool([&] { return run_ir(argc, argv); });
}

}  // namespace paddle::cli
