// Instructions of kernels: their operands, the buffers of their results, and fusion groups.

#include <algorithm>

#include "base/thread_scope.h"
#include "compiler/region_compilers.h"
#include "ops/core/backend.h"
#include "runtime/decomposed.h"
#include "runtime/execute.h"
#include "runtime/host_fallback.h"
#include "runtime/plan_builder.h"

namespace paddle::runtime {
namespace {

/// The kernel of `assign` copies between any strides.
const Op& copy_op() {
  static const Op& op = get_op("assign");
  return op;
}

std::unique_ptr<Kernel> copy_kernel(Device device, const Layout& from, const Layout& to) {
  static const Attrs kNone;
  const KernelRequest request{
      copy_op(), kNone, std::span(&from, 1), std::span(&to, 1), {.device = device}};
  auto kernel = prepare_kernel(request);
  if (!kernel && !device.is_cpu()) kernel = prepare_host_fallback(request);
  ensure(kernel != nullptr, "no copy kernel for ", text(from.dtype));
  return kernel;
}

}  // namespace

void PlanBuilder::build_region(const ir::Region& region, std::vector<Instruction>& out) {
  auto run = &region == &function_.body ? tilings_.begin() : tilings_.end();
  for (auto it = region.operations.begin(); it != region.operations.end();) {
    if (run == tilings_.end() || run->tiling.operations.front() != it->get()) {
      build_operation(**it++, out);
      continue;
    }
    std::advance(it, run->tiling.operations.size());
    build_tiles(*run++, out);
  }
}

void PlanBuilder::build_operation(const ir::Operation& operation, std::vector<Instruction>& out) {
  if (compiler::is_claimed(operation)) return build_claimed(operation, out);
  if (operation.regions.size() == 1) return build_fused(operation, out);
  if (operation.regions.size() == 2)
    return ir::is_loop(operation) ? build_loop(operation, out) : build_branch(operation, out);
  bool dynamic = operation.op->has(kRunTimeShape);
  for (const ir::Value* v : operation.operands) dynamic = dynamic || (v && at(v).dynamic);
  for (const ir::Value* v : operation.results) dynamic = dynamic || !static_layout(v->type);
  dynamic = dynamic ||
            !can_bind(operation.attrs, [&](const std::string& name) { return plan_.symbol(name); });
  dynamic ? build_dynamic(operation, out) : build_kernel(operation, out);
}

/// The layout of an operand as kernels see it: their pointer includes the offset.
Layout PlanBuilder::operand_layout(int id) const {
  const ValueBuffer& p = plan_.value_buffers_[static_cast<size_t>(id)];
  Layout layout = p.layout;
  layout.offset = 0;
  if (p.buffer < 0 || p.tile_stride != 0) return layout;
  const Buffer& buffer = plan_.buffers_[static_cast<size_t>(p.buffer)];
  if (buffer.kind == BufferKind::kConstant)
    layout.constant = static_cast<const std::byte*>(buffer.constant->source()) +
                      p.layout.offset * item_size(p.layout.dtype);
  return layout;
}

void PlanBuilder::set_scratch(Instruction& instruction) {
  const size_t bytes = instruction.kernel->scratch_bytes();
  if (bytes == 0) return;
  plan_.scratch_bytes_ = std::max(plan_.scratch_bytes_, bytes);
  instruction.scratch = new_buffer(bytes, instruction.position, "scratch");
}

int PlanBuilder::packed(const ir::Value* value, int position, std::vector<Instruction>& out) {
  if (at(value).layout.is_contiguous()) return value->id;
  return copied_to_temporary(value, position, out);
}

int PlanBuilder::copied_to_temporary(const ir::Value* value, int position,
                                     std::vector<Instruction>& out) {
  const Layout from = at(value).layout;
  const int id = temporary(from, position);
  Instruction copy;
  Layout source = from;
  source.offset = 0;
  copy.kernel = copy_kernel(plan_.options_.target.device, source,
                            plan_.value_buffers_[static_cast<size_t>(id)].layout);
  copy.operands = {value->id};
  copy.results = {id};
  copy.position = position;
  set_scratch(copy);
  out.push_back(std::move(copy));
  return id;
}

bool PlanBuilder::reuse_operand_buffer(const ir::Operation& operation, size_t operand,
                                       size_t result) {
  const ir::Value* from = operation.operands[operand];
  const ir::Value* to = operation.results[result];
  if (!from || from->constant || tile_outputs_.count(to) > tile_outputs_.count(from)) return false;
  const ValueBuffer p = at(from);
  const auto layout = static_layout(to->type);
  if (p.dynamic || !p.layout.is_contiguous() || p.layout.offset != 0 || !layout) return false;
  if (p.layout.dtype != layout->dtype || p.layout.shape != layout->shape) return false;
  const int position = span_[&operation].second;
  const Buffer& buffer = plan_.buffers_[static_cast<size_t>(p.buffer)];
  if (buffer.kind == BufferKind::kConstant || buffer.kind == BufferKind::kStaged) return false;
  if (buffer.kind == BufferKind::kInput) {
    // Only the update of this very parameter or state may overwrite it.
    if (!replaces(to, buffer.input)) return false;
  }
  // No value in this buffer may be read later, and no other operand or result may share it.
  for (size_t id = 0; id < plan_.value_buffers_.size(); ++id)
    if (plan_.value_buffers_[id].buffer == p.buffer && last_use_[id] > position) return false;
  for (size_t i = 0; i < operation.operands.size(); ++i)
    if (i != operand && operation.operands[i] && at(operation.operands[i]).buffer == p.buffer)
      return false;
  for (const ir::Value* v : operation.results)
    if (v != to && at(v).buffer == p.buffer) return false;
  ValueBuffer& target = at(to);
  target.planned = true;
  target.buffer = p.buffer;
  target.layout = *layout;
  target.tile_stride = p.tile_stride;
  return true;
}

void PlanBuilder::build_kernel(const ir::Operation& operation, std::vector<Instruction>& out) {
  const Op& op = *operation.op;
  const int position = span_[&operation].first;
  const Attrs attrs =
      bind_attrs(operation.attrs, [&](const std::string& n) { return plan_.symbol(n); });
  if (op.def->view && operation.operands[0]) {
    const ValueBuffer& base = at(operation.operands[0]);
    const Layout layout =
        view_layout(op, attrs, base.layout, static_layout(operation.results[0]->type)->shape);
    if (layout.present) {
      ValueBuffer& p = at(operation.results[0]);
      p.planned = true;
      p.buffer = base.buffer;
      p.layout = layout;
      p.tile_stride = base.tile_stride;
      return;
    }
  }
  Instruction instruction;
  instruction.operation = &operation;
  instruction.position = position;
  std::vector<Layout> operand_layouts, result_layouts;
  for (const ir::Value* v : operation.operands) {
    if (!v) {
      instruction.operands.push_back(-1);
      operand_layouts.emplace_back().present = false;
      continue;
    }
    const int id = op.has(kStrided) ? v->id : packed(v, position, out);
    instruction.operands.push_back(id);
    operand_layouts.push_back(operand_layout(id));
  }
  for (size_t i = 0; i < operation.results.size(); ++i) {
    const ir::Value* v = operation.results[i];
    if (i > 0 && op.has(kSkipsUnusedResults) && last_use_[static_cast<size_t>(v->id)] < 0) {
      instruction.results.push_back(-1);
      result_layouts.push_back(*static_layout(v->type));
      result_layouts.back().present = false;
      continue;
    }
    bool placed = false;
    if (op.has(kOptimizerUpdate))
      placed = reuse_operand_buffer(operation, i == 0 ? 0 : i + 1, i);
    else if (i == 0 && op.def->in_place >= 0)
      placed = reuse_operand_buffer(operation, static_cast<size_t>(op.def->in_place), 0);
    if (!placed) place_new(v, position, std::string(op.name()));
    instruction.results.push_back(v->id);
    result_layouts.push_back(at(v).layout);
  }
  const KernelRequest request{.op = op,
                              .attrs = attrs,
                              .operands = operand_layouts,
                              .results = result_layouts,
                              .target = plan_.options_.target,
                              .prepare = prepare_options()};
  {
    std::optional<ThreadScope> threads;
    if (op.has(kSumsByThread) && plan_.options_.summing_threads > 0)
      threads.emplace(plan_.options_.summing_threads);
    instruction.kernel = prepare_kernel(request);
  }
  if (!instruction.kernel) instruction.kernel = prepare_decomposition(request);
  if (!instruction.kernel && !plan_.options_.target.device.is_cpu()) {
    for (size_t i = 0; i < operation.operands.size(); ++i) {
      if (!operation.operands[i]) continue;
      instruction.operands[i] = packed(operation.operands[i], position, out);
      operand_layouts[i] = operand_layout(instruction.operands[i]);
    }
    instruction.kernel = prepare_host_fallback(request);
  }
  if (!instruction.kernel)
    fail(ErrorCode::kUsage, op.name(), ": there is no kernel for ",
         operation.operands.empty() || !operation.operands[0] ? operation.results[0]->type
                                                              : operation.operands[0]->type);
  set_scratch(instruction);
  out.push_back(std::move(instruction));
}

/// Builds one kernel for the whole group if a backend accepts it; else one for the elementwise part
/// followed by the reductions; else one kernel per operation. Groups have no dynamic values.
void PlanBuilder::build_fused(const ir::Operation& operation, std::vector<Instruction>& out) {
  const ir::Region& region = *operation.regions[0];
  std::vector<const ir::Operation*> all, rest, reductions;
  for (const auto& inner : region.operations) {
    all.push_back(inner.get());
    (inner->op->has(kReduction) ? reductions : rest).push_back(inner.get());
  }
  std::vector<FusedResult> results, of_rest;
  for (size_t r = 0; r < region.results.size(); ++r) {
    results.push_back({region.results[r], operation.results[r]});
    if (!region.results[r]->producer->op->has(kReduction)) of_rest.push_back(results.back());
  }
  if (build_fused_kernel(operation, all, results, span_[&operation].second, out)) return;
  for (size_t i = 0; i < operation.operands.size(); ++i)
    at(region.arguments[i]) = at(operation.operands[i]);
  for (const ir::Operation* reduction : reductions) {
    const ir::Value* read = reduction->operands[0];
    if (std::none_of(of_rest.begin(), of_rest.end(),
                     [&](const FusedResult& result) { return result.inside == read; }))
      of_rest.push_back({read, read});
  }
  if (!reductions.empty() && rest.size() > 1 &&
      build_fused_kernel(operation, rest, of_rest, span_[&operation].first, out)) {
    for (const FusedResult& result : of_rest) at(result.inside) = at(result.outside);
    for (const ir::Operation* reduction : reductions) build_kernel(*reduction, out);
  } else {
    build_region(region, out);
  }
  for (const FusedResult& result : results) at(result.outside) = at(result.inside);
}

/// Builds the kernel that the region's compiler gives; else one for each operation.
void PlanBuilder::build_claimed(const ir::Operation& operation, std::vector<Instruction>& out) {
  if (build_claimed_kernel(operation, out)) return;
  const ir::Region& region = *operation.regions[0];
  for (size_t i = 0; i < operation.operands.size(); ++i)
    at(region.arguments[i]) = at(operation.operands[i]);
  build_region(region, out);
  for (size_t r = 0; r < region.results.size(); ++r)
    at(operation.results[r]) = at(region.results[r]);
}

bool PlanBuilder::build_claimed_kernel(const ir::Operation& operation,
                                       std::vector<Instruction>& out) {
  std::vector<Layout> operands, results;
  for (const ir::Value* v : operation.operands) {
    if (at(v).dynamic) return false;
    Layout layout = operand_layout(v->id);
    if (!layout.is_contiguous()) layout = Layout::contiguous(layout.dtype, layout.shape);
    operands.push_back(std::move(layout));
  }
  for (const ir::Value* v : operation.results) {
    const auto layout = static_layout(v->type);
    if (!layout) return false;
    results.push_back(*layout);
  }
  const SymbolLookup symbols = [&](const std::string& name) { return plan_.symbol(name); };
  Instruction instruction;
  instruction.kernel = compiler::compile_region(
      {operation, operands, results, symbols, plan_.options_.target.device});
  if (!instruction.kernel) return false;
  instruction.operation = &operation;
  instruction.position = span_[&operation].second;
  for (const ir::Value* v : operation.operands)
    instruction.operands.push_back(packed(v, instruction.position, out));
  for (const ir::Value* v : operation.results) {
    place_new(v, instruction.position, "plugin.region");
    instruction.results.push_back(v->id);
  }
  set_scratch(instruction);
  out.push_back(std::move(instruction));
  return true;
}

bool PlanBuilder::reads_whole(const std::vector<const ir::Operation*>& steps,
                              const ir::Value* argument) {
  const auto has_elements = [](const ir::Operation* step) {
    return step->op->has(kElementwise) || step->op->has(kReduction);
  };
  const ir::Operation& first = *steps[0];
  return !std::all_of(steps.begin() + 1, steps.end(), has_elements) ||
         (!first.op->has(kElementwise) && std::find(first.operands.begin(), first.operands.end(),
                                                    argument) != first.operands.end());
}

/// Builds one kernel for `steps` of a group that produces `results`; false if no backend accepts
/// it.
bool PlanBuilder::build_fused_kernel(const ir::Operation& operation,
                                     const std::vector<const ir::Operation*>& steps,
                                     const std::vector<FusedResult>& results, int position,
                                     std::vector<Instruction>& out) {
  const ir::Region& region = *operation.regions[0];
  FusedRequest request;
  std::map<const ir::Value*, int> number;
  for (size_t i = 0; i < operation.operands.size(); ++i) {
    const ValueBuffer& p = at(operation.operands[i]);
    if (p.dynamic) fail(ErrorCode::kModel, "fused: an operand's size is known only at run time");
    number[region.arguments[i]] = static_cast<int>(request.operands.size());
    request.operands.push_back(operand_layout(operation.operands[i]->id));
  }
  const auto layout_of = [&](const ir::Value* v) {
    const auto layout = static_layout(v->type);
    if (!layout) fail(ErrorCode::kModel, "fused: a result's size is known only at run time");
    return *layout;
  };
  request.shape = layout_of(steps[0]->results[0]).shape;
  for (const FusedResult& result : results) request.results.push_back(layout_of(result.inside));
  int next = static_cast<int>(request.operands.size());
  for (const ir::Operation* inner : steps) {
    FusedStep step;
    step.op = inner->op;
    step.attrs = bind_attrs(inner->attrs, [&](const std::string& n) { return plan_.symbol(n); });
    for (const ir::Value* v : inner->operands) step.inputs.push_back(v ? number.at(v) : -1);
    step.result = inner->results[0]->type.dtype;
    for (const ir::Value* v : inner->results) {
      step.results.push_back(layout_of(v));
      number[v] = next++;
    }
    request.steps.push_back(std::move(step));
  }
  for (const FusedResult& result : results)
    request.result_values.push_back(number.at(result.inside));
  // The first operation may need its operands packed.
  const FusedStep& first = request.steps[0];
  const auto read_whole = [&](size_t operand) {
    return reads_whole(steps, region.arguments[operand]);
  };
  const auto wants_packed = [&](size_t operand) {
    return !first.op->has(kStrided) && read_whole(operand) &&
           !at(operation.operands[operand]).layout.is_contiguous();
  };
  for (size_t i = 0; i < operation.operands.size(); ++i)
    if (wants_packed(i))
      request.operands[i] =
          Layout::contiguous(request.operands[i].dtype, request.operands[i].shape);
  request.target = plan_.options_.target;
  request.prepare = prepare_options();
  auto kernel = prepare_fused(request);
  if (!kernel) return false;
  Instruction instruction;
  instruction.operation = &operation;
  instruction.position = position;
  instruction.kernel = std::move(kernel);
  for (size_t i = 0; i < operation.operands.size(); ++i) {
    const ir::Value* v = operation.operands[i];
    instruction.operands.push_back(wants_packed(i) ? packed(v, position, out) : v->id);
  }
  for (const auto& [inside, outside] : results) {
    // Reductions are written while operands are still read, so they need buffers of their own.
    const bool own = outside->producer != &operation || inside->producer->op->has(kReduction);
    bool placed = false;
    for (size_t i = 0; !placed && !own && i < operation.operands.size(); ++i)
      placed = !read_whole(i) && reuse_operand_buffer(operation, i, outside->index);
    if (!placed) place_new(outside, position, "fused");
    instruction.results.push_back(outside->id);
  }
  set_scratch(instruction);
  out.push_back(std::move(instruction));
  return true;
}

}  // namespace paddle::runtime
