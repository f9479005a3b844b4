#include "onnx/graph/checked_executor.h"

#include <algorithm>
#include <chrono>

#include "onnx/graph/constant_folding.h"
#include "ops/core/cost.h"
#include "runtime/host_fallback.h"

namespace paddle::onnx {
namespace {

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Operand and result types, such as "float32[64, 10] x float32[10] -> float32[64, 10]", with the
/// total bytes.
runtime::InstructionInfo instruction_info(const OpCall& call, double flops) {
  runtime::InstructionInfo info;
  info.function = "eager";
  info.operation = std::string(call.op.name());
  info.implementation = "eager";
  info.flops = flops;
  const auto list = [&](const TensorType& type, std::string& out) {
    if (is_constant(type.shape))
      info.bytes += static_cast<double>(
          storage_bytes(type.dtype, element_count(std::span<const Dim>(type.shape)).value()));
    out += str(out.empty() ? "" : " x ", type);
  };
  std::string operands, results;
  for (const Tensor& t : call.operands)
    if (t.defined()) list(t.type(), operands);
  for (const TensorType& type : call.results) list(type, results);
  info.shapes = operands + " -> " + results;
  return info;
}

/// The cost model of plans: views are free; 0 for data-dependent sizes.
double flops_of(const OpCall& call) {
  if (call.op.def->view) return 0;
  std::vector<Dims> operands, results;
  for (const Tensor& t : call.operands)
    operands.push_back(t.defined() ? concrete(t.shape()) : Dims{0});
  for (const TensorType& type : call.results) {
    if (!is_constant(type.shape)) return 0;
    results.push_back(concrete(type.shape));
  }
  return call_flops(call.op, call.attrs, operands, results);
}

}  // namespace

ProfileScope::ProfileScope(runtime::Profile* profile, int instruction)
    : profile_(profile), instruction_(instruction) {
  if (!profile_) return;
  first_ = profile_->events.size();
  begin_ = now();
}

ProfileScope::~ProfileScope() {
  if (!profile_ || instruction_ < 0) return;  // below 0 after an exception
  const int64_t end = now();
  int64_t inside = 0;
  for (size_t i = first_; i < profile_->events.size(); ++i)
    inside += profile_->events[i].end - profile_->events[i].begin;
  profile_->record(instruction_, std::min(begin_ + inside, end), end);
}

int ProfileInstructions::number_of(const std::string& name) {
  if (!profile_) return -1;
  return number_of(runtime::InstructionInfo{.function = "eager",
                                            .operation = name,
                                            .implementation = "outside of operations",
                                            .shapes = {}});
}

int ProfileInstructions::number_of(runtime::InstructionInfo info) {
  if (!profile_) return -1;
  const auto [entry, first] =
      numbers_.try_emplace(info.operation + " " + info.implementation + " " + info.shapes, -1);
  if (first) entry->second = profile_->add(std::move(info));
  return entry->second;
}

Tensors CheckedExecutor::apply(const OpCall& call) {
  checked_bytes(call);
  if (!device_.is_cpu() && !call.op.def->view) runtime::count_host_fallback(call.op, device_);
  if (!count_flops_) return eager_.apply(call);
  const int64_t calls = ++calls_;
  ProfileScope scope(instructions_.profile(), -1);
  Tensors results = eager_.apply(call);
  // A call without a kernel was decomposed, and its parts were counted.
  const double flops = calls == calls_ ? flops_of(call) : 0;
  flops_ += flops;
  if (instructions_.profile())
    scope.set(calls == calls_ ? instructions_.number_of(instruction_info(call, flops))
                              : instructions_.number_of(std::string(call.op.name())));
  return results;
}

}  // namespace paddle::onnx
