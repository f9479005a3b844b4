#include "runtime/plan_builder.h"

#include <algorithm>

#include "runtime/execute.h"
#include "runtime/plan_streams.h"
#include "tensor/device_functions.h"

namespace paddle::runtime {

PlanBuilder::PlanBuilder(Plan& plan, const std::vector<Layout>& inputs)
    : plan_(plan), function_(plan.function_), inputs_(inputs) {
  const size_t count = static_cast<size_t>(function_.value_count());
  plan_.value_buffers_.resize(count);
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
  if (plan_.streams_) build_copies_in(plan_.instructions_);
  build_region(function_.body, plan_.instructions_);
  place_outputs(copies, end);
  if (plan_.streams_) set_waits();
  extend_buffers();
  const auto is_dynamic = [](const ValueBuffer& value) { return value.dynamic; };
  if (std::any_of(plan_.value_buffers_.begin(), plan_.value_buffers_.end(), is_dynamic))
    plan_.dynamic_.resize(plan_.value_buffers_.size());
  const bool check = plan_.options_.check_memory;
  const TargetInfo& target = plan_.options_.target;
  const auto alignment = static_cast<size_t>(target.alignment);
  plan_.arena_bytes_ =
      target.device.is_cpu()
          ? assign_offsets(plan_.buffers_, check ? kGuard : 0, alignment)
          : assign_offsets(plan_.buffers_, 0,
                           std::max<size_t>(alignment, device_properties(target.device).alignment));
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
  const auto reject = [&](size_t i) {
    fail(ErrorCode::kData, "input '", function_.inputs[i].name, "' is ", text(inputs_[i].dtype),
         str(inputs_[i].shape), ", expected ", function_.body.arguments[i]->type);
  };
  ensure(inputs_.size() == function_.inputs.size(), "plan: input count");
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const TensorType& type = function_.body.arguments[i]->type;
    if (inputs_[i].dtype != type.dtype || inputs_[i].shape.size() != type.shape.size()) reject(i);
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
    const ir::PortKind port = function_.inputs[i].kind;
    const bool from_host = port == ir::PortKind::kValue || port == ir::PortKind::kRandom;
    Buffer b;
    b.kind = plan_.streams_ && from_host ? BufferKind::kStaged : BufferKind::kInput;
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

}  // namespace paddle::runtime
