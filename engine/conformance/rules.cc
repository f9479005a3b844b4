// A rewrite rule against itself: the pattern is called with values, and once more as its
// replacement.

#include <algorithm>
#include <cmath>
#include <map>

#include "compiler/passes/passes.h"
#include "conformance/passes.h"
#include "inspect/both_modes.h"
#include "ir/tracer.h"
#include "ops/core/call.h"
#include "runtime/executable.h"
#include "runtime/execute.h"
#include "tensor/random.h"

namespace paddle::conformance {
namespace {

using passes::Rule;
using passes::RuleAttr;
using passes::RuleCondition;
using passes::Term;

/// Sizes of tensors, and values of attributes that the pattern leaves open. Which ones fit is found
/// by trying.
const std::vector<Dims> kShapes = {{3, 8}, {2, 3, 8}, {2, 4, 8, 8}, {8}, {8, 8}};
constexpr size_t kAttributeChoices = 6;

AttrValue some_value(AttrType type, size_t choice) {
  constexpr double kNumbers[kAttributeChoices] = {1e-3, 0.5, 2, -1, 1, 0};
  constexpr int64_t kIntegers[kAttributeChoices] = {-1, 1, 0, 2, 4, 8};
  const std::vector<int64_t> lists[kAttributeChoices] = {{8},          {-1},      {1, 0},
                                                         {0, 2, 1, 3}, {0, 2, 1}, {2, 4, 8, 8}};
  switch (type) {
    case AttrType::kBool:
      return choice % 2 == 0;
    case AttrType::kFloat:
    case AttrType::kNumber:
      return kNumbers[choice];
    case AttrType::kInt:
    case AttrType::kDim:
      return kIntegers[choice];
    default:
      return lists[choice];
  }
}

/// Numbers of all sizes, some of them special ones.
Array values(DType dtype, const Dims& shape, uint64_t seed) {
  constexpr double kSpecial[] = {0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 1e-4, -1e-4, 10, -10};
  Array out = Array::empty(DType::kF64, shape);
  const Random random(seed);
  for (int64_t i = 0; i < out.size(); ++i) {
    const auto at = static_cast<uint64_t>(i);
    out.data<double>()[i] =
        at % 3 == 0 ? kSpecial[(at / 3 + seed) % std::size(kSpecial)] : 2 * random.normal(at);
  }
  return out.cast(dtype);
}

/// The pattern of a rule as a function of its free names, by one choice of sizes and attributes.
class PatternCall {
 public:
  PatternCall(const Rule& rule, DType dtype, size_t shape, size_t attributes)
      : function(std::make_shared<ir::Function>("check")),
        rule_(rule),
        dtype_(dtype),
        shape_(kShapes[shape]),
        attributes_(attributes),
        tracer_(*function) {
    const InterpreterScope scope(tracer_);
    tracer_.output({ir::PortKind::kValue, "y"}, term(rule.pattern));
  }
  std::shared_ptr<ir::Function> function;
  std::vector<Array> inputs;

 private:
  Tensor term(const Term& t) {
    switch (t.kind) {
      case Term::Kind::kAbsent:
        return {};
      case Term::Kind::kNumber:
        return constant(t.number);
      case Term::Kind::kScalar:
        return constant(named(t.name, AttrType::kFloat).as_double());
      case Term::Kind::kTensor:
        return tensor(t.name);
      case Term::Kind::kCall:
        break;
    }
    Tensors operands;
    for (const Term& o : t.operands) operands.push_back(term(o));
    Attrs attrs = default_attrs(*t.op);
    attrs.list_sizes = t.list_sizes;
    for (const RuleAttr& a : t.attrs) {
      const auto index = static_cast<size_t>(a.index);
      attrs[index] =
          a.kind == RuleAttr::Kind::kName ? named(a.name, t.op->attrs()[index].type) : a.value;
    }
    const Tensor out = call_single(*t.op, std::move(operands), std::move(attrs));
    return t.name.empty() ? out : tensors_.emplace(t.name, out).first->second;
  }

  Tensor constant(double value) const {
    return Tensor(Array::from<double>({value}, {}).cast(dtype_));
  }

  Tensor tensor(const std::string& name) {
    const auto known = tensors_.find(name);
    if (known != tensors_.end()) return known->second;
    bool is_constant = false;
    Dims shape = shape_;
    for (const RuleCondition& c : rule_.conditions) {
      if (c.name != name) continue;
      if (c.kind == RuleCondition::Kind::kConstant) is_constant = true;
      if (c.kind == RuleCondition::Kind::kRank) shape.assign(static_cast<size_t>(c.rank), 8);
    }
    if (is_constant && shape == shape_) shape = {8};
    const Array array = values(dtype_, shape, 1 + tensors_.size());
    Tensor out(array);
    if (!is_constant) {
      out = tracer_.input({ir::PortKind::kValue, name}, {dtype_, to_shape(shape)});
      inputs.push_back(array);
    }
    return tensors_.emplace(name, out).first->second;
  }

  const AttrValue& named(const std::string& name, AttrType type) {
    const auto known = named_.find(name);
    if (known != named_.end()) return known->second;
    // Each name takes a digit of the choice.
    size_t choice = attributes_;
    for (size_t i = 0; i < named_.size(); ++i) choice /= kAttributeChoices;
    return named_.emplace(name, some_value(type, choice % kAttributeChoices)).first->second;
  }

  const Rule& rule_;
  DType dtype_;
  Dims shape_;
  size_t attributes_;
  ir::Tracer tracer_;
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, AttrValue> named_;
};

Array run(const std::shared_ptr<ir::Function>& function, const std::vector<Array>& inputs) {
  passes::for_target(*function, resolved({}));
  runtime::Executable executable(function);
  return inspect::own_copy(executable.run(inputs)[0]);
}

/// Where results of the replacement are not those of the pattern. A pattern that overflows is no
/// reference: its replacement may do better.
std::string compare(const Array& pattern, const Array& replacement, double tolerance) {
  if (pattern.shape != replacement.shape)
    return str("its sides have the shapes ", str(pattern.shape), " and ", str(replacement.shape));
  for (int64_t i = 0; i < pattern.size(); ++i) {
    const double a = pattern.number(i), b = replacement.number(i);
    if (std::isfinite(a) && !(std::abs(a - b) <= tolerance * (1 + std::abs(a))))
      return str("element ", i, ": the pattern is ", a, ", the replacement ", b);
  }
  return "";
}

/// Compares one call of the pattern; nullopt if it is none.
std::optional<std::string> check_call(const Rule& rule, DType dtype, size_t shape,
                                      size_t attributes) {
  std::optional<PatternCall> before, after;
  try {
    before.emplace(rule, dtype, shape, attributes);
    after.emplace(rule, dtype, shape, attributes);
  } catch (const Error&) {
    return std::nullopt;  // sizes or attributes that do not fit
  }
  passes::apply_rules(*after->function, {rule});
  if (ir::print(*after->function) == ir::print(*before->function)) return std::nullopt;
  ir::verify(*after->function);
  const double tolerance = dtype == DType::kF64 ? 1e-9 : 5e-5;
  const std::string bad = compare(run(before->function, before->inputs),
                                  run(after->function, after->inputs), tolerance);
  return bad.empty() ? bad : str(text(dtype), ", sizes ", str(kShapes[shape]), ": ", bad);
}

}  // namespace

std::string check_rule(const std::string& name) {
  constexpr size_t kMaxCalls = 4, kMaxAttributes = 216;
  runtime::register_backends();
  for (const auto& set : passes::added_rules().all())
    for (const Rule& rule : set->rules) {
      if (rule.name != name) continue;
      size_t calls = 0;
      for (const DType dtype : {DType::kF32, DType::kF64}) {
        size_t of_dtype = 0;
        for (size_t shape = 0; shape < kShapes.size(); ++shape)
          for (size_t attributes = 0; attributes < kMaxAttributes && of_dtype < kMaxCalls;
               ++attributes)
            if (const auto bad = check_call(rule, dtype, shape, attributes)) {
              if (!bad->empty()) return *bad;
              ++of_dtype;
              // Without names there is only one choice; with some, a few are enough.
              attributes += kMaxAttributes / kMaxCalls;
            }
        calls += of_dtype;
      }
      if (calls == 0)
        return str(kSkip, "no call of its pattern was found that fits its conditions");
      return "";
    }
  return "the rule was not found";
}

}  // namespace paddle::conformance
