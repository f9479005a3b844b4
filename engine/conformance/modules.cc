#include "conformance/modules.h"

#include <functional>

#include "autograd/autograd.h"
#include "ir/tracer.h"
#include "ops/core/call.h"
#include "tensor/random.h"

namespace paddle::conformance {
namespace {

using NamedAttrs = std::vector<std::pair<const char*, AttrValue>>;

Tensor make(const char* name, Tensors operands, const NamedAttrs& named = {}) {
  const Op& op = get_op(name);
  operands.resize(op.operands().size());  // absent ones at the end
  Attrs attrs = default_attrs(op);
  for (const auto& [attr, value] : named) attrs[static_cast<size_t>(op.attr_index(attr))] = value;
  return call_single(op, std::move(operands), std::move(attrs));
}

Array drawn(DType dtype, const Dims& shape, uint64_t seed) {
  Array out = Array::empty(DType::kF64, shape);
  Random(seed).fill_normal(std::span(out.data<double>(), static_cast<size_t>(out.size())));
  return out.cast(dtype);
}

Tensor number(double value) { return Tensor(Array::from<float>({static_cast<float>(value)}, {})); }

constexpr int64_t kRows = 6, kColumns = 8;

/// A step of a chain: from a [rows, columns] tensor to another one.
using Step = Tensor (*)(const Tensor& h, const Tensor& x, RandomSequence& random);

constexpr double kNumbers[] = {0.5, 2, 0.25, -1, 3, 1};
double some_number(RandomSequence& random) { return kNumbers[random.below(std::size(kNumbers))]; }

constexpr Step kSteps[] = {
    [](const Tensor& h, const Tensor&, RandomSequence& r) {
      return make("multiply", {h, number(some_number(r))});
    },
    [](const Tensor& h, const Tensor&, RandomSequence& r) {
      return make("multiply",
                  {make("multiply", {h, number(some_number(r))}), number(some_number(r))});
    },
    [](const Tensor& h, const Tensor&, RandomSequence& r) {
      return make("add", {h, number(some_number(r))});
    },
    [](const Tensor& h, const Tensor&, RandomSequence& r) {
      return make("divide", {h, number(some_number(r))});
    },
    [](const Tensor& h, const Tensor& x, RandomSequence&) {
      return make("add", {h, x});
    },
    [](const Tensor& h, const Tensor& x, RandomSequence&) {
      return make("subtract", {h, x});
    },
    [](const Tensor& h, const Tensor&, RandomSequence&) { return make("relu", {h}); },
    [](const Tensor& h, const Tensor&, RandomSequence&) { return make("tanh", {h}); },
    [](const Tensor& h, const Tensor&, RandomSequence&) {
      return make("multiply", {h, make("sigmoid", {h})});
    },
    [](const Tensor& h, const Tensor&, RandomSequence&) {
      return make("softmax", {h}, {{"axis", int64_t{-1}}});
    },
    [](const Tensor& h, const Tensor&, RandomSequence&) {
      return make("subtract",
                  {h, make("mean", {h}, {{"axis", std::vector<int64_t>{1}}, {"keepdim", true}})});
    },
    [](const Tensor& h, const Tensor&, RandomSequence& r) {
      return make("matmul", {h, Tensor(drawn(DType::kF32, {kColumns, kColumns}, r.below(1000)))});
    },
    [](const Tensor& h, const Tensor&, RandomSequence&) {
      const std::vector<int64_t> perm = {1, 0};
      return make("transpose", {make("transpose", {h}, {{"perm", perm}})}, {{"perm", perm}});
    },
    [](const Tensor& h, const Tensor&, RandomSequence&) {
      const Tensor flat = make("reshape", {h}, {{"shape", std::vector<int64_t>{kRows * kColumns}}});
      return make("reshape", {flat}, {{"shape", std::vector<int64_t>{kRows, kColumns}}});
    },
    [](const Tensor& h, const Tensor& x, RandomSequence&) {
      return make("where", {make("greater_than", {h, x}), h, make("abs", {x})});
    },
};

Tensor chain(const Tensor& x, const Tensor& y, uint64_t seed, uint64_t index) {
  RandomSequence random(Random(seed, index));
  Tensor h = make("multiply", {x, y});
  for (uint64_t i = 0, steps = 3 + random.below(8); i < steps; ++i)
    h = kSteps[random.below(std::size(kSteps))](h, x, random);
  return h;
}

std::vector<Array> chain_inputs(uint64_t seed) {
  return {drawn(DType::kF32, {kRows, kColumns}, seed),
          drawn(DType::kF32, {kRows, kColumns}, ~seed)};
}

Tensors branch_and_loop(const Tensors& x) {
  const Tensor positive = make("greater_than", {make("sum", {x[0]}), number(0)});
  const Tensors branched = current_interpreter().branch(
      positive,
      [&](const Tensors&) {
        return Tensors{make("multiply", {x[0], number(2)})};
      },
      [&](const Tensors&) { return Tensors{make("exp", {x[0]})}; });
  return current_interpreter().loop(
      [](const Tensors& h) {
        return Tensors{make("less_than", {make("max", {make("abs", {h[0]})}), number(100)})};
      },
      [](const Tensors& h) {
        return Tensors{make("multiply", {make("add", {h[0], number(1)}), number(2)})};
      },
      branched, 100);
}

}  // namespace

std::vector<Example> chains(size_t count, uint64_t seed) {
  std::vector<Example> out;
  for (uint64_t i = 0; i < count; ++i)
    out.push_back({[seed, i](const Tensors& x) { return Tensors{chain(x[0], x[1], seed, i)}; },
                   chain_inputs(seed + i)});
  return out;
}

std::vector<Example> chain_gradients(size_t count, uint64_t seed) {
  std::vector<Example> out;
  for (uint64_t i = 0; i < count; ++i)
    out.push_back({[seed, i](const Tensors& x) {
                     const Tensor y = chain(x[0], x[1], seed, i);
                     return autograd::grad({make("sum", {make("multiply", {y, y})})}, x);
                   },
                   chain_inputs(seed + i)});
  return out;
}

std::vector<Example> unusual_functions() {
  const Array x = drawn(DType::kF32, {4, 5}, 1);
  std::vector<Example> out = {
      {[](const Tensors& t) { return t; }, {x}},
      {[](const Tensors& t) { return Tensors{make("abs", {t[0]})}; }, {x, x}},
      {[](const Tensors& t) {
         const Tensor y = make("exp", {t[0]});
         return Tensors{y, y, t[0]};
       },
       {x}},
      {[](const Tensors& t) {
         return Tensors{make("add", {t[0], t[0]})};
       },
       {Array::from<int64_t>({1, -2, 3}, {3})}},
      {[](const Tensors& t) {
         return Tensors{make("multiply", {t[0], Tensor(Array::from<double>({0.1}, {}))})};
       },
       {drawn(DType::kF64, {3}, 2)}},
      {[](const Tensors& t) {
         return Tensors{make("multiply", {t[0], number(2)})};
       },
       {Array::zeros(DType::kF32, {0, 3})}},
      {[](const Tensors& t) {
         return Tensors{make("add", {t[0], Tensor(drawn(DType::kF32, {50, 50}, 3))})};
       },
       {drawn(DType::kF32, {50, 50}, 4)}},
      {[](const Tensors& t) {
         const Tensor y = make("multiply", {t[0], number(0.1)});
         ir::name_traced(y, "it's %1 \"so\"\n  } = multiply(%0, %0)");
         return Tensors{make("multiply", {y, number(10)})};
       },
       {x}},
      {[](const Tensors&) {
         return Tensors{make("add", {number(1), number(2)})};
       },
       {x}},
      {branch_and_loop, {x}}};
  return out;
}

}  // namespace paddle::conformance
