#include "runtime/executable.h"

#include <algorithm>

#include "base/limits.h"

namespace paddle::runtime {

Executable::Executable(std::shared_ptr<const ir::Function> function, ExecutableOptions options)
    : function_(std::move(function)), options_(options), pointers_(function_->inputs.size()) {}

Executable::Entry& Executable::make_entry(std::vector<Dims> shapes,
                                          const std::vector<Layout>& layouts) {
  Entry made;
  made.shapes = std::move(shapes);
  made.plan = std::make_unique<Plan>(*function_, layouts, options_.plan);
  ++plans_made_;
  planned_bytes_ = std::max(planned_bytes_, made.plan->memory().total());
  plans_.push_front(std::move(made));
  if (plans_.size() > options_.max_plans) plans_.pop_back();
  return plans_.front();
}

Executable::Entry& Executable::entry(const std::vector<Array>& inputs) {
  const auto fits = [&](const Entry& e) {
    for (size_t i = 0; i < inputs.size(); ++i)
      if (e.shapes[i] != inputs[i].shape) return false;
    return true;
  };
  for (auto it = plans_.begin(); it != plans_.end(); ++it)
    if (fits(*it)) {
      if (it != plans_.begin()) plans_.splice(plans_.begin(), plans_, it);
      return plans_.front();
    }
  std::vector<Layout> layouts;
  std::vector<Dims> shapes;
  for (const Array& a : inputs) {
    layouts.push_back(Layout::of(a));
    shapes.push_back(a.shape);
  }
  return make_entry(std::move(shapes), layouts);
}

Plan& Executable::plan(const std::vector<Layout>& inputs) {
  std::vector<Dims> shapes;
  for (const Layout& l : inputs) shapes.push_back(l.shape);
  for (Entry& e : plans_)
    if (e.shapes == shapes) return *e.plan;
  return *make_entry(std::move(shapes), inputs).plan;
}

const std::vector<Array>& Executable::run(const std::vector<Array>& inputs) {
  ensure(inputs.size() == function_->inputs.size(), "run: ", function_->name, " expects ",
         function_->inputs.size(), " inputs, got ", inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].dtype != function_->body.arguments[i]->type.dtype)
      fail(ErrorCode::kData, "input '", function_->inputs[i].name, "' is ", text(inputs[i].dtype),
           str(inputs[i].shape), ", expected ", function_->body.arguments[i]->type);
  Entry& e = entry(inputs);
  const size_t needed = e.plan->arena_bytes();
  if (!arena_ || arena_->bytes() < needed) {
    if (needed > static_cast<size_t>(limits().memory))
      fail(ErrorCode::kDevice, function_->name, " needs ", human_bytes(needed),
           " for its values, more than the memory of ",
           human_bytes(static_cast<uint64_t>(limits().memory)));
    arena_ = nullptr;  // free the old one first
    arena_ = Storage::allocate(needed);
  }
  if (e.plan->arena() != arena_->data()) {
    e.plan->set_arena(arena_->data());
    e.outputs.clear();
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_contiguous())
      fail(ErrorCode::kInternal, "run: input '", function_->inputs[i].name, "' is not contiguous");
    pointers_[i] = inputs[i].raw();
  }
  e.plan->run(pointers_);
  const bool first = e.outputs.empty();
  e.outputs.resize(function_->outputs.size());
  for (size_t i = 0; i < e.outputs.size(); ++i)
    if (function_->outputs[i].kind == ir::PortKind::kValue && (first || e.plan->output_moves(i)))
      e.outputs[i] = e.plan->output(i);
  return e.outputs;
}

}  // namespace paddle::runtime
