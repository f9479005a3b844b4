#include "runtime/plan_builder.h"

#include <algorithm>

#include "ops/core/fused.h"
#include "runtime/execute.h"

namespace paddle::runtime {
namespace {

/// The kernel of `assign` copies between any strides.
const Op& copy_op() {
  static const Op& op = get_op("assign");
  return op;
}

std::unique_ptr<Kernel> copy_kernel(const Layout& from, const Layout& to) {
  static const Attrs kNone;
  auto kernel = prepare_kernel({copy_op(), kNone, std::span(&from, 1), std::span(&to, 1)});
  ensure(kernel != nullptr, "no copy kernel for ", text(from.dtype));
  return kernel;
}

}  // namespace

PlanBuilder::PlanBuilder(Plan& plan, const std::vector<Layout>& inputs)
    : plan_(plan), function_(plan.function_), inputs_(inputs) {
  const size_t count = static_cast<size_t>(function_.value_count());
  plan_.value_buffers_.resize(count);
  plan_.dynamic_.resize(count);
  last_use_.assign(count, -1);
  for (const ir::Value& v : function_.values()) plan_.values_.push_back(&v);
}

void PlanBuilder::build() {
  bind_inputs();
  check_constraints();
  for (const ir::Value& v : function_.values())
    if (v.constant) {
      Buffer b;
      b.kind = BufferKind::kConstant;
      b.constant = &*v.constant;
      b.bytes = static_cast<size_t>(storage_bytes(v.constant->dtype, v.constant->size()));
      plan_.buffers_.push_back(b);
      ValueBuffer& p = at(&v);
      p.planned = true;
      p.buffer = static_cast<int>(plan_.buffers_.size()) - 1;
      p.layout = Layout::of(*v.constant);
      p.layout.offset = 0;  // relative to the constant, which may start inside its storage
    }
  find_tilings();
  number(function_.body);
  const int copies = ++positions_, end = positions_ + 1;
  for (size_t i = 0; i < function_.outputs.size(); ++i) {
    count_use(function_.body.results[i], end);
    replaced_.push_back(replaced_input(function_.outputs[i]));
  }
  build_region(function_.body, plan_.instructions_);
  place_outputs(copies, end);
  extend_buffers();
  const bool check = plan_.options_.check_memory;
  plan_.arena_bytes_ = assign_offsets(plan_.buffers_, check ? kGuard : 0);
  if (check) plan_.check_ = std::make_unique<MemoryCheck>(plan_.buffers_, end + 2);
}

// --- outputs ---

/// The input that this output updates: the parameter or state of the same name.
std::optional<size_t> PlanBuilder::replaced_input(const ir::Port& output) const {
  if (output.kind != ir::PortKind::kParameter && output.kind != ir::PortKind::kState)
    return std::nullopt;
  for (size_t i = 0; i < function_.inputs.size(); ++i)
    if (function_.inputs[i].kind == output.kind && function_.inputs[i].name == output.name)
      return i;
  return std::nullopt;
}

/// A value can update several inputs, since CSE merges equal values.
bool PlanBuilder::replaces(const ir::Value* value, size_t input) const {
  for (size_t i = 0; i < replaced_.size(); ++i)
    if (function_.body.results[i] == value && replaced_[i] == input) return true;
  return false;
}

/// Lists updates that were not computed in place, to be written back after the last instruction. An
/// output that is (a view of) the old value of another updated input is copied first, because that
/// input may be overwritten before the output is read.
void PlanBuilder::place_outputs(int copies, int end) {
  std::map<const ir::Value*, int> copied;
  for (size_t i = 0; i < replaced_.size(); ++i) {
    const ir::Value* value = function_.body.results[i];
    const ValueBuffer p = at(value);
    int id = value->id;
    if (p.buffer >= 0) {
      const Buffer& buffer = plan_.buffers_[static_cast<size_t>(p.buffer)];
      const bool in_input = buffer.kind == BufferKind::kInput;
      const bool in_place = in_input && replaces(value, buffer.input) && p.layout.offset == 0 &&
                            p.layout.is_contiguous();
      if (in_place && replaced_[i] == buffer.input) {
        plan_.outputs_.push_back(id);
        continue;
      }
      const bool overwritten =
          in_input && !in_place && replaced_[i] != buffer.input &&
          std::find(replaced_.begin(), replaced_.end(), buffer.input) != replaced_.end();
      if (overwritten) {
        auto [copy, inserted] = copied.try_emplace(value, -1);
        if (inserted) {
          copy->second = copied_to_temporary(value, copies, plan_.instructions_);
          last_use_[static_cast<size_t>(copy->second)] = end;
        }
        id = copy->second;
      }
    }
    plan_.outputs_.push_back(id);
    if (replaced_[i]) plan_.write_back_.push_back({id, *replaced_[i]});
  }
}

// --- dims ---

void PlanBuilder::bind_inputs() {
  auto& symbols = plan_.symbols_;
  const auto lookup = [&](const std::string& name) { return plan_.symbol(name); };
  const auto refuse = [&](size_t i) {
    fail(ErrorCode::kData, "input '", function_.inputs[i].name, "' is ", text(inputs_[i].dtype),
         str(inputs_[i].shape), ", expected ", function_.body.arguments[i]->type);
  };
  ensure(inputs_.size() == function_.inputs.size(), "plan: input count");
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const TensorType& type = function_.body.arguments[i]->type;
    if (inputs_[i].dtype != type.dtype || inputs_[i].shape.size() != type.shape.size()) refuse(i);
    for (size_t d = 0; d < type.shape.size(); ++d)
      if (type.shape[d].is_symbol()) symbols.try_emplace(type.shape[d].text(), inputs_[i].shape[d]);
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const TensorType& type = function_.body.arguments[i]->type;
    for (size_t d = 0; d < type.shape.size(); ++d) {
      const auto value = type.shape[d].evaluate(lookup);
      if (!value)
        fail(ErrorCode::kData, "input '", function_.inputs[i].name, "': the dim '", type.shape[d],
             "' is unbound");
      if (*value != inputs_[i].shape[d]) {
        std::string bound;
        std::vector<std::string> names;
        type.shape[d].collect_symbols(names);
        for (const std::string& n : names)
          bound += str(bound.empty() ? " where " : ", ", n, " is ", symbols[n]);
        fail(ErrorCode::kData, "input '", function_.inputs[i].name, "' is ", text(inputs_[i].dtype),
             str(inputs_[i].shape), ", expected ", type, bound);
      }
    }
    Buffer b;
    b.kind = BufferKind::kInput;
    b.input = i;
    b.bytes = static_cast<size_t>(storage_bytes(type.dtype, inputs_[i].size()));
    b.label = function_.inputs[i].name;
    plan_.buffers_.push_back(b);
    ValueBuffer& p = at(function_.body.arguments[i]);
    p.planned = true;
    p.buffer = static_cast<int>(plan_.buffers_.size()) - 1;
    p.layout = Layout::contiguous(type.dtype, inputs_[i].shape);
  }
}

void PlanBuilder::check_constraints() const {
  const auto lookup = [&](const std::string& name) { return plan_.symbol(name); };
  for (const DimConstraint& c : function_.constraints) {
    const auto left = c.left.evaluate(lookup), right = c.right.evaluate(lookup);
    if (left && right && *left != *right)
      fail(ErrorCode::kData, c.what, ": ", c.left, " is ", *left, ", ", c.right, " is ", *right);
  }
}

std::optional<Layout> PlanBuilder::static_layout(const TensorType& type) const {
  auto bound = bind_shape(type.shape, [&](const std::string& name) { return plan_.symbol(name); });
  if (!bound) return std::nullopt;
  Dims& dims = *bound;
  for (const int64_t size : dims)
    if (size < 0) fail(ErrorCode::kData, "a size would be negative: ", type);
  if (tiling_)
    dims[0] = tiling_->tiling.batch / tiling_->tiling.tiles;  // all results of the run are tiled
  return Layout::contiguous(type.dtype, dims);
}

// --- lifetimes ---

void PlanBuilder::count_use(const ir::Value* value, int position) {
  int& last = last_use_[static_cast<size_t>(value->id)];
  last = std::max(last, position);
}

void PlanBuilder::number(const ir::Region& region) {
  auto run = &region == &function_.body ? tilings_.begin() : tilings_.end();
  for (const auto& operation : region.operations) {
    if (run != tilings_.end() && run->tiling.operations.front() == operation.get())
      run->begin = ++positions_;
    const int own = ++positions_;
    span_[operation.get()] = {own, own};
    for (const ir::Value* v : operation->operands)
      if (v) count_use(v, own);
    for (const auto& nested : operation->regions) number(*nested);
    // Values that a region reads from outside and its results live until the operation ends.
    if (!operation->regions.empty()) {
      const int end = ++positions_;
      span_[operation.get()].second = end;
      for (const auto& nested : operation->regions) {
        for (const ir::Value* v : nested->results) count_use(v, end);
        for (const ir::Value* v : nested->arguments) count_use(v, end);
        ir::for_each_operation(*nested, [&](const ir::Operation& inner) {
          for (const ir::Value* v : inner.operands)
            if (v && (!v->producer || span_[v->producer].first < own)) count_use(v, end);
        });
      }
      for (const ir::Value* v : operation->operands)
        if (v) count_use(v, end);
      // Written at the end even if unused.
      for (const ir::Value* v : operation->results) count_use(v, end);
    }
    if (run != tilings_.end() && run->tiling.operations.back() == operation.get())
      end_tiling(*run++);
  }
}

int PlanBuilder::new_buffer(size_t bytes, int first, std::string label) {
  constexpr size_t kMaxBytes = size_t{1} << 48;  // keeps sums of buffer sizes far from overflow
  if (bytes > kMaxBytes)
    fail(ErrorCode::kDevice, label, ": a value of ", human_bytes(bytes),
         " is more than any memory");
  Buffer b;
  b.bytes = bytes;
  b.first = first;
  b.last = first;
  b.label = std::move(label);
  plan_.buffers_.push_back(std::move(b));
  return static_cast<int>(plan_.buffers_.size()) - 1;
}

void PlanBuilder::place_new(const ir::Value* value, int first, const std::string& label) {
  const auto layout = static_layout(value->type);
  ValueBuffer& p = at(value);
  p.planned = true;
  if (!layout) {
    p.dynamic = true;
    return;
  }
  p.layout = *layout;
  auto bytes = static_cast<size_t>(storage_bytes(layout->dtype, layout->size()));
  if (tile_outputs_.count(value) > 0) {
    p.tile_stride = static_cast<int64_t>(bytes);
    bytes *= static_cast<size_t>(tiling_->tiling.tiles);
    first = tiling_->begin;
  }
  p.buffer = new_buffer(bytes, first, label);
}

int PlanBuilder::add_value(ValueBuffer buffer, int last_use) {
  plan_.value_buffers_.push_back(std::move(buffer));
  plan_.values_.push_back(nullptr);
  plan_.dynamic_.emplace_back();
  last_use_.push_back(last_use);
  return static_cast<int>(plan_.value_buffers_.size()) - 1;
}

int PlanBuilder::temporary(const Layout& layout, int position) {
  ValueBuffer p;
  p.planned = true;
  p.layout = Layout::contiguous(layout.dtype, layout.shape);
  p.buffer =
      new_buffer(static_cast<size_t>(storage_bytes(layout.dtype, layout.size())), position, "copy");
  return add_value(std::move(p), position);
}

/// A buffer lives until the last use of any value in it.
void PlanBuilder::extend_buffers() {
  for (size_t id = 0; id < plan_.value_buffers_.size(); ++id) {
    const ValueBuffer& p = plan_.value_buffers_[id];
    if (p.buffer < 0) continue;
    Buffer& b = plan_.buffers_[static_cast<size_t>(p.buffer)];
    b.last = std::max(b.last, last_use_[id]);
  }
}

// --- instructions ---

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
  copy.kernel = copy_kernel(source, plan_.value_buffers_[static_cast<size_t>(id)].layout);
  copy.operands = {value->id};
  copy.results = {id};
  copy.position = position;
  plan_.scratch_bytes_ = std::max(plan_.scratch_bytes_, copy.kernel->scratch_bytes());
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
  if (buffer.kind == BufferKind::kConstant) return false;
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
  instruction.kernel = prepare_kernel({.op = op,
                                       .attrs = attrs,
                                       .operands = operand_layouts,
                                       .results = result_layouts,
                                       .policy = policy()});
  if (!instruction.kernel)
    fail(ErrorCode::kUsage, op.name(), ": there is no kernel for ",
         operation.operands.empty() || !operation.operands[0] ? operation.results[0]->type
                                                              : operation.operands[0]->type);
  plan_.scratch_bytes_ = std::max(plan_.scratch_bytes_, instruction.kernel->scratch_bytes());
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

bool PlanBuilder::reads_whole(const ir::Operation& first, const ir::Value* argument) {
  return !first.op->has(kElementwise) &&
         std::find(first.operands.begin(), first.operands.end(), argument) != first.operands.end();
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
  for (const ir::Operation* inner : steps) {
    FusedStep step;
    step.op = inner->op;
    step.attrs = bind_attrs(inner->attrs, [&](const std::string& n) { return plan_.symbol(n); });
    for (const ir::Value* v : inner->operands) step.inputs.push_back(v ? number.at(v) : -1);
    step.result = inner->results[0]->type.dtype;
    number[inner->results[0]] = static_cast<int>(request.operands.size() + request.steps.size());
    request.steps.push_back(std::move(step));
  }
  for (const FusedResult& result : results)
    request.result_values.push_back(number.at(result.inside));
  // The first operation may need its operands packed.
  const FusedStep& first = request.steps[0];
  const auto read_whole = [&](size_t operand) {
    return reads_whole(*steps[0], region.arguments[operand]);
  };
  const auto wants_packed = [&](size_t operand) {
    return !first.op->has(kStrided) && read_whole(operand) &&
           !at(operation.operands[operand]).layout.is_contiguous();
  };
  for (size_t i = 0; i < operation.operands.size(); ++i)
    if (wants_packed(i))
      request.operands[i] =
          Layout::contiguous(request.operands[i].dtype, request.operands[i].shape);
  request.compile = plan_.options_.codegen;
  request.policy = policy();
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
  plan_.scratch_bytes_ = std::max(plan_.scratch_bytes_, instruction.kernel->scratch_bytes());
  out.push_back(std::move(instruction));
  return true;
}

void PlanBuilder::build_dynamic(const ir::Operation& operation, std::vector<Instruction>& out) {
  Instruction instruction;
  instruction.kind = Instruction::Kind::kDynamic;
  instruction.operation = &operation;
  instruction.position = span_[&operation].first;
  for (const ir::Value* v : operation.operands) instruction.operands.push_back(v ? v->id : -1);
  for (const ir::Value* v : operation.results) {
    place_new(v, instruction.position, std::string(operation.op->name()));
    instruction.results.push_back(v->id);
  }
  out.push_back(std::move(instruction));
}

void PlanBuilder::build_branch(const ir::Operation& operation, std::vector<Instruction>& out) {
  Instruction instruction;
  instruction.kind = Instruction::Kind::kBranch;
  instruction.operation = &operation;
  const auto [first, end] = span_[&operation];
  instruction.position = end;
  instruction.operands = {operation.operands[0]->id};
  for (const ir::Value* v : operation.results) {
    place_new(v, first, "if");
    instruction.results.push_back(v->id);
  }
  instruction.blocks.resize(2);
  instruction.copies.resize(2);
  for (size_t b = 0; b < 2; ++b) {
    const ir::Region& region = *operation.regions[b];
    build_region(region, instruction.blocks[b]);
    for (size_t i = 0; i < region.results.size(); ++i)
      instruction.copies[b].push_back({region.results[i]->id, operation.results[i]->id});
  }
  out.push_back(std::move(instruction));
}

void PlanBuilder::build_loop(const ir::Operation& operation, std::vector<Instruction>& out) {
  Instruction instruction;
  instruction.kind = Instruction::Kind::kLoop;
  instruction.operation = &operation;
  instruction.max_steps = operation.attrs[0].as_int();
  const auto [first, end] = span_[&operation];
  instruction.position = end;
  const ir::Region &condition = *operation.regions[0], &body = *operation.regions[1];
  // Each carried value has one buffer, which condition, body and result share.
  for (size_t i = 0; i < body.arguments.size(); ++i) {
    place_new(body.arguments[i], first, "while");
    at(condition.arguments[i]) = at(body.arguments[i]);
    at(operation.results[i]) = at(body.arguments[i]);
    instruction.initial_copies.push_back({operation.operands[i]->id, body.arguments[i]->id});
    instruction.results.push_back(operation.results[i]->id);
  }
  instruction.blocks.resize(2);
  instruction.copies.resize(3);
  ++loops_;
  build_region(condition, instruction.blocks[0]);
  instruction.operands = {condition.results[0]->id};
  build_region(body, instruction.blocks[1]);
  --loops_;
  // New values that share a buffer with carried ones are moved aside before those are overwritten.
  const auto shares = [&](const ir::Value* v) {
    for (const ir::Value* a : body.arguments)
      if (at(v).dynamic || (at(a).buffer >= 0 && at(a).buffer == at(v).buffer)) return true;
    return false;
  };
  for (size_t i = 0; i < body.results.size(); ++i) {
    const ir::Value* v = body.results[i];
    int from = v->id;
    if (!at(v).dynamic && shares(v)) {
      from = temporary(at(v).layout, first);
      last_use_[static_cast<size_t>(from)] = end;
      instruction.copies[1].push_back({v->id, from});
    }
    instruction.copies[2].push_back({from, body.arguments[i]->id});
  }
  out.push_back(std::move(instruction));
}

}  // namespace paddle::runtime
