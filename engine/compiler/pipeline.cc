#include "compiler/pipeline.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <utility>

#include "base/duration.h"
#include "base/elapsed.h"
#include "base/log.h"
#include "base/text.h"
#include "compiler/region_compilers.h"
#include "ops/core/backend.h"

namespace paddle::compiler {
namespace {

/// They make functions that the target can run.
constexpr std::array<std::string_view, 2> kRequiredPasses = {"for_target", "lower_qdq"};

using ir::Function;
using ir::Operation;

/// Dims in attributes do not decide whether an operation can be fused: any value will do.
AttrValue with_constant_dims(const AttrValue& value) {
  const auto one = [](const std::string&) { return std::optional<int64_t>(1); };
  if (value.is_int()) return value.as_dim().evaluate(one).value_or(1);
  if (!value.is_list()) return value;
  AttrValue::List items;
  for (const AttrValue& v : value.as_list()) items.push_back(with_constant_dims(v));
  return items;
}

bool can_fuse_operation(const TargetInfo& target, const Operation& operation) {
  Attrs attrs = operation.attrs;
  for (AttrValue& v : attrs.values) v = with_constant_dims(v);
  std::vector<DType> operands;
  for (const ir::Value* v : operation.operands) operands.push_back(v->type.dtype);
  return can_fuse(target, *operation.op, attrs, operation.operands[0]->type.shape.size(), operands,
                  operation.results[0]->type.dtype);
}

bool fuses_around_operation(const TargetInfo& target, const Operation& operation, Around around) {
  std::vector<DType> operands;
  for (const ir::Value* v : operation.operands)
    if (v) operands.push_back(v->type.dtype);
  return fuses_around(target, *operation.op, operands, around);
}

/// True if the result is rounded to fewer bits than it is computed in.
bool rounds_result(const Operation& operation) {
  const DType result = operation.results[0]->type.dtype;
  return result == DType::kF16 || result == DType::kBF16;
}

bool can_fuse_next(const TargetInfo& target, const std::vector<const Operation*>& group,
                   const Operation& next) {
  const TensorType& type = group.back()->results[0]->type;
  for (const ir::Value* v : next.operands)
    if (!v || !same_type(v->type, type)) return false;
  for (const ir::Value* v : group[0]->operands)
    if (v && v->type.dtype != type.dtype) return false;
  std::vector<FusionMember> members;
  for (const Operation* o : group) members.push_back({o->op, &o->attrs});
  return can_fuse_epilogue(target, members, {next.op, &next.attrs}, type.dtype);
}

/// Passes receive functions that shape inference accepted, so an error is a defect of the pass,
/// except for errors in the user's rules and for lack of memory.
void run_pass(const Pass& pass, Function& function) {
  try {
    pass.run(function);
  } catch (const PassError&) {
    throw;
  } catch (const Error& e) {
    if (e.code() == ErrorCode::kConfig || e.code() == ErrorCode::kDevice) throw;
    fail(ErrorCode::kInternal, "the pass '", pass.name, "' failed on the function '", function.name,
         "': ", e.what());
  }
}

/// Runs a pass and prints what it changed.
void run_logged(const Pass& pass, Function& function) {
  const size_t before = function.body.operations.size();
  const auto begin = std::chrono::steady_clock::now();
  run_pass(pass, function);
  log(LogLevel::kDebug,
      str("'", function.name, "': pass ", pass.name, ": ", before, " operations to ",
          function.body.operations.size(), ", ", seconds_text(seconds_since(begin))));
}

/// The rules of the caller, and then those of plug-ins.
std::vector<passes::Rule> rules_before_standard(const CompileOptions& options) {
  std::vector<passes::Rule> out = options.rules;
  for (const auto& set : passes::added_rules().all())
    out.insert(out.end(), set->rules.begin(), set->rules.end());
  return out;
}

/// Whether the target has kernels for all operations of a replacement.
bool has_kernels(const passes::Term& term, const TargetInfo& target) {
  if (term.kind != passes::Term::Kind::kCall) return true;
  return has_kernel(*term.op, target) &&
         std::ranges::all_of(term.operands,
                             [&](const passes::Term& each) { return has_kernels(each, target); });
}

/// The rules of the engine. A device without a kernel for what a rule makes would decompose it
/// again, perhaps to what the rule replaces.
std::vector<const passes::Rule*> standard_rules_for(const TargetInfo& target, const Op& root) {
  std::vector<const passes::Rule*> out;
  for (const passes::Rule& rule : passes::standard_rules(root))
    if (target.device.is_cpu() || has_kernels(rule.replacement, target)) out.push_back(&rule);
  return out;
}

bool updates_parameters(const Function& function) {
  return std::ranges::any_of(
      function.outputs, [](const ir::Port& port) { return port.kind == ir::PortKind::kParameter; });
}

/// The compilers that take regions of the function, in the order in which they are asked.
RegionCompilers wanted_compilers(const CompileOptions& options) {
  RegionCompilers out;
  const int16_t device_kind = resolved(options.target).device.kind;
  for (const auto& each : region_compilers().all())
    if (each->device_kind == device_kind && (each->keeps_bits || !options.exact) &&
        (!options.compiler || *options.compiler == each->name))
      out.push_back(each);
  return out;
}

std::vector<Pass> built_in_pipeline(const CompileOptions& options,
                                    const passes::Evaluate& evaluate) {
  const TargetInfo target = resolved(options.target);
  const bool fuse = options.fusion;
  const bool layout = fuse && options.layout && !options.exact;
  const bool rewrites = fuse && options.rewrites && !options.exact;

  std::vector<Pass> pipeline;
  auto stage = Stage::kImport;
  const auto add = [&](bool enabled, std::string name, std::function<void(Function&)> run) {
    if (enabled) pipeline.push_back({stage, std::move(name), std::move(run)});
  };
  add(true, "for_target", [target](Function& f) { passes::for_target(f, target); });

  stage = Stage::kCanonicalize;
  add(true, "fold_constants", [=](Function& f) { passes::fold_constants(f, evaluate); });
  add(true, "canonicalize", passes::canonicalize);
  add(true, "merge_slice_grads", passes::merge_slice_grads);

  stage = Stage::kQuantize;
  // Without layouts quantized operations are decomposed to float ones.
  add(true, "lower_qdq", [=](Function& f) {
    passes::Int8Kernels kernels;
    if (layout)
      kernels = {
          [target](DType x, const Array& weight) { return has_int8_kernel(target, x, weight); },
          has_int8_matmul(target),
          has_kernel(*find_op("packed_linear"), target) &&
              has_int8_kernel(target, DType::kU8, Array::zeros(DType::kI8, {1, 1}))};
    passes::lower_qdq(f, kernels, evaluate);
  });

  stage = Stage::kLayout;
  add(rewrites, "rewrite", [rules = rules_before_standard(options), target](Function& f) {
    passes::apply_rules(f, rules, [&](const Op& root) { return standard_rules_for(target, root); });
    if (!rules.empty()) passes::for_target(f, target);  // they may use any operation
  });
  add(true, "fold_batch_norm", passes::fold_batch_norm);
  add(layout, "assign_layouts", passes::assign_layouts);
  add(true, "cse", passes::merge_common_subexpressions);

  stage = Stage::kLower;
  // After CSE: merging the parts that forward and backward have in common would keep them alive
  // in between, where each can recompute them inside its fusion groups.
  add(layout, "decompose_for_fusion", passes::decompose_for_fusion);
  add(true, "dce", passes::remove_dead_code);

  stage = Stage::kFuse;
  const auto compilers = wanted_compilers(options);
  add(!compilers.empty(), "claim_regions", [compilers](Function& f) {
    RegionCompilers fitting = compilers;
    if (updates_parameters(f))
      std::erase_if(fitting, [](const auto& compiler) { return !compiler->for_training; });
    for (const auto& compiler : fitting) claim_regions(f, *compiler, fitting);
    ir::verify(f);
  });
  add(layout, "fuse_epilogues", [target](Function& f) {
    passes::fuse_epilogues(f, [target](const auto& group, const Operation& next) {
      return can_fuse_next(target, group, next);
    });
  });
  add(fuse, "fuse_packed_linears", [target](Function& f) {
    if (has_kernel(*find_op("packed_linears"), target)) passes::fuse_packed_linears(f);
  });
  add(fuse, "fuse_conversions", [target](Function& f) {
    passes::fuse_conversions(f, [target](const Operation& o, Around around) {
      return fuses_around_operation(target, o, around);
    });
  });
  add(fuse, "fuse_elementwise", [target, exact = options.exact](Function& f) {
    passes::fuse_elementwise(
        f,
        [target, exact](const Operation& o) {
          return !(exact && rounds_result(o)) && can_fuse_operation(target, o);
        },
        [target, exact](const Operation& o, Around around) {
          return !(exact && rounds_result(o)) && fuses_around_operation(target, o, around);
        });
  });

  stage = Stage::kSchedule;
  // After fusion, so that what is computed again has the kernels, and the bits, of the first time.
  if (options.recompute)
    add(true, "recompute",
        [recompute = *options.recompute](Function& f) { passes::recompute(f, recompute); });
  add(true, "schedule_updates_early", passes::schedule_updates_early);
  return pipeline;
}

/// Puts an added pass where it states.
void insert_pass(std::vector<Pass>& pipeline, const Registry<AddedPass>::Handle& added,
                 const CompileOptions& options) {
  auto at = std::find_if(pipeline.begin(), pipeline.end(),
                         [&](const Pass& p) { return p.stage > added->stage; });
  const auto before = std::find_if(pipeline.begin(), pipeline.end(), [&](const Pass& p) {
    return p.stage == added->stage && p.name == added->after;
  });
  if (before != pipeline.end()) at = before + 1;
  pipeline.insert(at, {added->stage, added->name, [added, options](Function& f) {
                         if (!added->for_training && updates_parameters(f)) return;
                         added->run(f, options);
                         ir::verify(f);
                       }});
}

}  // namespace

Registry<AddedPass>& added_passes() {
  static Registry<AddedPass> passes("pass", {});
  return passes;
}

void leave_out(CompileOptions& options, const std::string& name) {
  const std::pair<const char*, bool*> groups[] = {
      {"fusion", &options.fusion},           {"layout", &options.layout},
      {"rewrites", &options.rewrites},       {"batch_tiling", &options.batch_tiling},
      {"codegen", &options.prepare.codegen}, {"winograd", &options.prepare.allow_winograd},
  };
  std::vector<std::string> names;
  for (const auto& [group, value] : groups) {
    if (name == group) {
      *value = false;
      return;
    }
    names.emplace_back(group);
  }
  for (const std::string& pass : pass_names())
    if (std::ranges::find(kRequiredPasses, pass) == kRequiredPasses.end()) names.push_back(pass);
  if (std::ranges::find(names, name) == names.end())
    fail(ErrorCode::kUsage, "'", name, "' cannot be left out of the compilation",
         did_you_mean(name, names), "; expected one of ", join(names, ", "));
  options.left_out.push_back(name);
}

std::vector<Pass> pass_pipeline(const CompileOptions& options, const passes::Evaluate& evaluate) {
  std::vector<Pass> pipeline = built_in_pipeline(options, evaluate);
  const auto is_wanted = [&](const std::string& name) {
    return !options.added || std::ranges::find(*options.added, name) != options.added->end();
  };
  for (const auto& added : added_passes().all())
    if (added->run && (added->keeps_bits || !options.exact) && is_wanted(added->name))
      insert_pass(pipeline, added, options);
  std::erase_if(pipeline, [&](const Pass& pass) {
    return std::ranges::find(options.left_out, pass.name) != options.left_out.end();
  });
  return pipeline;
}

std::vector<Pass> saving_pipeline(const passes::Evaluate& evaluate) {
  constexpr auto kStage = Stage::kCanonicalize;
  return {
      {kStage, "fold_constants", [=](Function& f) { passes::fold_constants(f, evaluate); }},
      {kStage, "canonicalize", passes::canonicalize},
      {kStage, "merge_slice_grads", passes::merge_slice_grads},
      {kStage, "fold_batch_norm", passes::fold_batch_norm},
      {kStage, "cse", passes::merge_common_subexpressions},
      {kStage, "dce", passes::remove_dead_code},
  };
}

GraphMode parse_graph_mode(std::string_view word) {
  if (word == "auto") return GraphMode::kAuto;
  if (word == "on") return GraphMode::kOn;
  if (word == "off") return GraphMode::kOff;
  fail(ErrorCode::kUsage, "graphs: '", word, "' is unknown, expected auto, on or off");
}

std::string text(Stage stage) {
  switch (stage) {
    case Stage::kImport:
      return "import";
    case Stage::kCanonicalize:
      return "canonicalize";
    case Stage::kQuantize:
      return "quantize";
    case Stage::kLayout:
      return "layout";
    case Stage::kLower:
      return "lower";
    case Stage::kFuse:
      return "fuse";
    case Stage::kSchedule:
      return "schedule";
  }
  return "";
}

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const Pass& p : pass_pipeline({}, nullptr)) names.push_back(p.name);
  return names;
}

void run_pipeline(Function& function, const std::vector<Pass>& pipeline, const Observer& observe) {
  if (observe.stage) observe.stage(function, "trace");
  for (const Pass& pass : pipeline) {
    try {
      if (is_logged(LogLevel::kDebug))
        run_logged(pass, function);
      else
        run_pass(pass, function);
    } catch (const PassError& e) {
      if (observe.invalid && !e.text.empty()) observe.invalid(pass.name, e.text);
      throw;
    }
    if (observe.stage) observe.stage(function, pass.name);
  }
}

}  // namespace paddle::compiler
