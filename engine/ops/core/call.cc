#include "ops/core/call.h"

#include <algorithm>
#include <array>

#include "ops/core/attr_words.h"
#include "ops/core/kernel.h"
#include "ops/core/operand_types.h"
#include "ops/core/row_sparse.h"

namespace paddle {
namespace {

thread_local RandomScope* current_random = nullptr;

const Op& cast_op() {
  static const Op& op = get_op("cast");
  return op;
}

Tensor cast_to(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype && !x.type().weak) return x;
  if (x.type().weak && x.is_concrete()) return Tensor(x.array().on_host().cast(dtype));
  return call_single(cast_op(), {x}, Attrs{{AttrValue(dtype)}, {}});
}

DType default_of_weak(DType d) {
  return d == DType::kF64 ? DType::kF32 : d == DType::kC128 ? DType::kC64 : d;
}

/// Casts the promoting operands to their common dtype.
void promote_operands(const Op& op, const OperandMap& map, Tensors& operands) {
  std::optional<DType> common;
  const auto each = [&](auto&& visit) {
    for (size_t d = 0; d < op.operands().size(); ++d)
      if (op.operands()[d].promotes)
        for (size_t i = map.begin(d); i < map.end(d); ++i)
          if (operands[i].defined()) visit(operands[i]);
  };
  each([&](const Tensor& t) {
    if (!t.type().weak) common = common ? promote(*common, t.dtype()) : t.dtype();
  });
  const bool all_weak = !common;
  each([&](const Tensor& t) {
    if (!t.type().weak) return;
    if (all_weak)
      common = common ? promote(*common, default_of_weak(t.dtype())) : default_of_weak(t.dtype());
    else
      common = promote_weak(*common, t.dtype());
  });
  if (!common) return;
  if (op.has(kFloatInputs) && !is_differentiable(*common)) common = DType::kF32;
  if (op.has(kDoubleInputs) && !is_differentiable(*common)) common = DType::kF64;
  each([&](Tensor& t) { t = cast_to(t, *common); });
}

void fill_random_state(const Op& op, const OperandMap& map, Tensors& operands, Attrs& attrs) {
  const int state = op.operand_index("rng");
  const int stream = op.attr_index("stream");
  ensure(state >= 0 && stream >= 0, "random operation without state: ", op.name());
  Tensor& slot = operands[map.begin(static_cast<size_t>(state))];
  if (slot.defined()) return;
  slot = RandomScope::state();
  attrs[static_cast<size_t>(stream)] = RandomScope::next_stream();
}

void check_present(const Op& op, const OperandMap& map, const Tensors& operands) {
  for (size_t d = 0; d < op.operands().size(); ++d) {
    const OperandDef& def = op.operands()[d];
    if (def.optional) continue;
    if (def.kind == OperandKind::kList && map.begin(d) == map.end(d) && !op.has(kControlFlow))
      fail(ErrorCode::kUsage, op.name(), ": '", def.name, "' is an empty list");
    for (size_t i = map.begin(d); i < map.end(d); ++i)
      if (!operands[i].defined())
        fail(ErrorCode::kUsage, op.name(), ": '", def.name, "' is missing");
  }
}

/// Weak scalars that were not promoted by a tensor get the default dtype.
void settle_weak(Tensors& operands) {
  for (Tensor& t : operands)
    if (t.defined() && t.type().weak) t = cast_to(t, default_of_weak(t.dtype()));
}

void link_view(const Op& op, const Attrs& attrs, const Tensor& base, const Tensor& view) {
  const WriteFn write = op.def->write;
  Tensor(view).set_view(
      base, [&op, attrs](const Tensor& b) { return call_single(op, {b}, attrs); },
      [write, attrs](const Tensor& b, const Tensor& v) { return write(b, v, attrs); });
}

}  // namespace

namespace {

bool takes_complex(const Op& op) { return op.has(kTakesComplex) || op.has(kControlFlow); }

/// Rejects negative sizes, and known sizes that cannot be counted: next to a size of 0 too, so that
/// kernels may multiply them.
void check_sizes(const Op& op, const TensorType& result) {
  int64_t count = 1;
  for (const Dim& d : result.shape) {
    if (!d.is_constant() || d.value() == 0) continue;
    if (d.value() < 0)
      fail(ErrorCode::kUsage, op.name(), ": the result would have a negative size: ", result);
    if (__builtin_mul_overflow(count, d.value(), &count) || count > int64_t{1} << 56)
      fail(ErrorCode::kUsage, op.name(), ": the result would be too large: ", result);
  }
}

/// Attributes of several words: bound calls are checked when they are bound, this checks those of
/// C++ and of composed operations.
void check_words(const Op& op, const Attrs& attrs) {
  const std::span<const AttrDef> defs = op.attrs();
  for (size_t i = 0; i < defs.size(); ++i)
    if (defs[i].type == AttrType::kWord && attrs[i].is_string())
      require_word(attrs[i].as_string(), defs[i].words, op.name(), ": ", defs[i].name, ": ");
}

}  // namespace

Inferred infer_results(const Op& op, const Attrs& attrs, const Tensors& operands) {
  check_words(op, attrs);
  check_operand_types(op, attrs, operands);
  InferContext context(op, attrs, operands);
  op.def->infer(context);
  for (const TensorType& t : context.results()) {
    if (is_complex(t.dtype) && !takes_complex(op))
      fail(ErrorCode::kUsage, op.name(), ": the result cannot be ", text(t.dtype));
    check_sizes(op, t);
  }
  return {std::move(context.results()), std::move(context.constraints())};
}

Tensors call(const Op& op, Tensors operands, Attrs attrs) {
  Interpreter& interpreter = current_interpreter();
  if (Tensors results; interpreter.apply_known(op, operands, attrs, results)) return results;
  const OperandMap map(op, attrs);
  ensure(operands.size() == map.flat_count(), op.name(), ": ", operands.size(),
         " operands given, expected ", map.flat_count());
  if (std::any_of(operands.begin(), operands.end(),
                  [](const Tensor& t) { return row_sparse(t) != nullptr; })) {
    if (Tensors passed = row_sparse_call(op, operands, attrs); !passed.empty()) return passed;
    for (Tensor& t : operands) t = densify(t);
  }
  if (op.has(kRandom)) fill_random_state(op, map, operands, attrs);
  check_present(op, map, operands);
  promote_operands(op, map, operands);
  settle_weak(operands);
  if (Tensors results; interpreter.apply_known(op, operands, attrs, results)) return results;
  const Inferred inferred = infer_results(op, attrs, operands);
  Tensors results =
      interpreter.apply({op, operands, attrs, inferred.results, inferred.constraints});
  if (op.def->view && op.def->write && !results.empty() && !results[0].is_same_cell(operands[0]))
    link_view(op, attrs, operands[0], results[0]);
  return results;
}

Tensors call_visible(const Op& op, Tensors operands, Attrs attrs) {
  Tensors results = call(op, std::move(operands), std::move(attrs));
  size_t hidden = 0;
  for (const ResultDef& r : op.results()) hidden += r.hidden;
  if (hidden) results.resize(results.size() - hidden);
  return results;
}

Tensor call_single(const Op& op, Tensors operands, Attrs attrs) {
  Tensors results = call(op, std::move(operands), std::move(attrs));
  ensure(!results.empty(), op.name(), ": no result");
  return results[0];
}

bool is_decomposed(const OpCall& call, const TargetInfo& target) {
  // A view is tried first.
  if (!call.op.def->decompose || (call.op.def->provider && call.op.def->view)) return false;
  std::vector<DType> operands;
  for (const Tensor& t : call.operands)
    if (t.defined()) operands.push_back(t.dtype());
  return !has_kernel(call.op, target, operands);
}

Tensors decompose(const OpCall& c) {
  ensure(c.op.def->decompose != nullptr, c.op.name(), ": no kernel and no decomposition");
  CallContext context(c.op, c.attrs, c.operands, c.results);
  Tensors results = c.op.def->decompose(context);
  ensure(results.size() == c.results.size(), c.op.name(), ": the decomposition gives ",
         results.size(), " results, inference ", c.results.size());
  return results;
}

// --- random state ---

RandomScope::RandomScope(Tensor seed_and_step)
    : state_(std::move(seed_and_step)), previous_(current_random) {
  current_random = this;
}

RandomScope::RandomScope(uint64_t seed, uint64_t step)
    : seed_(seed), step_(step), makes_state_(true), previous_(current_random) {
  current_random = this;
}

RandomScope::RandomScope(std::function<Tensor()> make)
    : makes_state_(true), make_(std::move(make)), previous_(current_random) {
  current_random = this;
}

RandomScope::~RandomScope() { current_random = previous_; }

const Tensor& RandomScope::state() {
  if (!current_random) fail(ErrorCode::kUsage, "a random operation needs a seed here");
  RandomScope& scope = *current_random;
  if (!scope.state_.defined()) {
    // Code that is evaluated more than once opens a scope without state.
    if (!scope.makes_state_) fail(ErrorCode::kUsage, "a random operation cannot be called here");
    scope.state_ = scope.make_ ? scope.make_()
                               : Tensor(Array::from<uint64_t>({scope.seed_, scope.step_}, {2}));
  }
  return scope.state_;
}

int64_t RandomScope::next_stream() { return current_random->streams_++; }

}  // namespace paddle
