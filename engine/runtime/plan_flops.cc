// The floating-point operations of a plan.

#include "compiler/region_compilers.h"
#include "ops/core/cost.h"
#include "runtime/execute.h"
#include "runtime/plan.h"
#include "runtime/plan_names.h"

namespace paddle::runtime {

double Plan::flops_of(const Instruction& i) const {
  const auto elements_of = [&](const TensorType& type) {
    double total = 1;
    for (const Dim& d : type.shape)
      total *= static_cast<double>(
          d.evaluate([&](const std::string& name) { return symbol(name); }).value_or(0));
    return total;
  };
  if (i.kind != Instruction::Kind::kKernel || !i.operation) return 0;
  const auto dims = [&](const std::vector<int>& ids) {
    std::vector<Dims> out;
    for (const int id : ids)
      out.push_back(id < 0 ? Dims{0} : value_buffers_[static_cast<size_t>(id)].layout.shape);
    return out;
  };
  if (compiler::is_claimed(*i.operation)) {
    const auto shapes = [&](const std::vector<ir::Value*>& values) {
      std::vector<Dims> out;
      for (const ir::Value* v : values) {
        Dims& shape = out.emplace_back(v ? Dims() : Dims{0});
        if (v)
          for (const Dim& d : v->type.shape)
            shape.push_back(
                d.evaluate([&](const std::string& name) { return symbol(name); }).value_or(0));
      }
      return out;
    };
    const auto size_of = [&](const std::string& name) { return symbol(name); };
    double total = 0;
    for (const auto& step : i.operation->regions[0]->operations)
      if (can_bind(step->attrs, size_of))
        total += call_flops(*step->op, bind_attrs(step->attrs, size_of), shapes(step->operands),
                            shapes(step->results));
    return total;
  }
  if (i.operation->regions.size() == 1) {  // a group: one FLOP per element for elementwise members
    const std::vector<Dims> operands = dims(i.operands), results = dims(i.results);
    double total = 0;
    for (const ir::Operation* reduction : reductions_of(*i.operation, i.results))
      total += elements_of(reduction->operands[0]->type);
    for (const auto& step : i.operation->regions[0]->operations) {
      if (step->op->has(kReduction)) continue;
      if (step->op->has(kElementwise)) {
        total += elements_of(step->results[0]->type);
        continue;
      }
      std::vector<Dims> inputs;
      for (const ir::Value* v : step->operands) inputs.push_back(v ? operands[v->index] : Dims{0});
      total += call_flops(*step->op, step->attrs, inputs, {results[0]});
    }
    return total;
  }
  return call_flops(*i.operation->op, i.operation->attrs, dims(i.operands), dims(i.results));
}

double Plan::flops() const {
  double total = 0;
  const auto walk = [&](const auto& self, const std::vector<Instruction>& block,
                        double times) -> void {
    for (const Instruction& i : block) {
      total += flops_of(i) * times;
      for (const auto& nested : i.blocks) self(self, nested, times * static_cast<double>(i.tiles));
    }
  };
  walk(walk, instructions_, 1);
  return total;
}

}  // namespace paddle::runtime
