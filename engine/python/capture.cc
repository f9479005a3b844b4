#include "python/capture.h"

#include "autograd/autograd.h"
#include "ops/core/operators.h"
#include "ops/generated/math.h"

namespace paddle::python {
namespace {

thread_local Capture* innermost = nullptr;

Tensor& stored_value(PyObject* object) { return reinterpret_cast<TensorObject*>(object)->value; }

/// The value in a handle of its own, which writes to the other one do not change.
Tensor copy_of(const Tensor& value) { return {value.type(), value.content()}; }

}  // namespace

void store_value(PyObject* tensor, const Tensor& next) {
  Tensor& value = stored_value(tensor);
  if (value.requires_grad() && autograd::is_leaf(value))
    autograd::set_leaf_value(value, next);
  else
    value.assign(next);
}

Capture* current_capture() { return innermost; }

Capture::Capture(Sizes sizes)
    : sizes_(std::move(sizes)), trace_("to_static", {}), previous_(innermost) {
  scope_.emplace(trace_.tracer());
  innermost = this;
}

Capture::~Capture() {
  restore();
  innermost = previous_;
}

void Capture::restore() {
  if (is_restored_) return;
  is_restored_ = true;
  for (Cell& cell : cells_) {
    if (!cell.object) continue;
    cell.now = stored_value(cell.object.get());
    stored_value(cell.object.get()) = cell.before;
  }
}

Cell* Capture::find(PyObject* object) {
  const auto it = tensors_.find(object);
  return it == tensors_.end() ? nullptr : it->second;
}

Cell& Capture::add(Cell cell) {
  Cell& out = cells_.emplace_back(std::move(cell));
  if (!out.before.defined()) return out;
  TensorType type{out.before.dtype(), out.before.shape()};
  if (const auto it = sizes_.find(out.object.get()); it != sizes_.end()) type.shape = it->second;
  const std::string name = str("cell_", cells_.size() - 1);
  out.input = trace_.tracer().input({ir::PortKind::kValue, name}, std::move(type));
  out.now = copy_of(out.input);
  return out;
}

Cell& Capture::cell_of(const void* place, std::function<Tensor()> get,
                       std::function<void(const Tensor&)> set) {
  const auto [it, added] = places_.try_emplace(place);
  if (!added) return *it->second;
  Cell cell{.get = std::move(get), .set = std::move(set)};
  cell.before = cell.get();
  it->second = &add(std::move(cell));
  return *it->second;
}

void Capture::take(PyObject* object) {
  if (is_restored_ || tensors_.count(object)) return;
  Tensor& value = stored_value(object);
  Cell& cell = add({.kind = Cell::Kind::kTensor,
                    .object = Ref::to(object),
                    .requires_grad = value.requires_grad(),
                    .before = value});
  tensors_[object] = &cell;
  value = copy_of(cell.input);
}

Cell& Capture::gradient_of(PyObject* object) {
  const auto [it, added] = gradients_.try_emplace(object);
  if (!added) return *it->second;
  take(object);
  Cell* const tensor = find(object);
  if (!tensor || !autograd::is_leaf(tensor->before))
    fail(ErrorCode::kUsage, "the gradient of a tensor is used that is not a leaf");
  it->second = &add({.kind = Cell::Kind::kGradient,
                     .owner = tensor,
                     .before = autograd::leaf_gradient(tensor->before)});
  return *it->second;
}

void Capture::backward(const Tensors& outputs, const Tensors& cotangents) {
  has_backward_ = true;
  std::vector<PyObject*> leaves;
  Tensors values;
  for (const Cell& cell : cells_) {
    if (!cell.requires_grad) continue;
    if (!autograd::is_leaf(cell.before))
      fail(ErrorCode::kUsage, "backward would reach a tensor that was computed before the call");
    if (autograd::has_hooks(cell.before))
      fail(ErrorCode::kUsage, "backward runs the hook of a tensor (register_hook) in Python");
    leaves.push_back(cell.object.get());
    values.push_back(stored_value(cell.object.get()));
  }
  const Tensors found = autograd::grad(outputs, values, cotangents);
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!found[i].defined()) continue;
    Cell& cell = gradient_of(leaves[i]);
    cell.now = cell.now.defined() ? cell.now + found[i] : found[i];
  }
}

std::function<Tensor()> Capture::next_random_state() {
  const auto number = static_cast<uint64_t>(random_calls_++);
  return [this, number] {
    if (!random_.defined()) {
      random_input_ = static_cast<int>(trace_.function()->inputs.size());
      random_ =
          trace_.tracer().input({ir::PortKind::kRandom, "seed_and_step"}, {DType::kU64, {Dim(2)}});
    }
    return number == 0 ? random_
                       : random_ + Tensor(Array::from<uint64_t>({uint64_t{0}, number}, {2}));
  };
}

}  // namespace paddle::python
