#include "plugin/rules_adapter.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "lang/eval/values.h"
#include "plugin/frame.h"
#include "plugin/host.h"
#include "plugin/kernel_adapter.h"
#include "plugin/text_rules.h"

namespace paddle::plugin {

/// The dims and results of a call of `infer`.
struct TypesOfCall {
  InferContext& context;
  std::vector<Dim> dims = {};  ///< handles are positions from 1
};

/// The tensors of a call of `decompose` or `vjp`.
struct ValuesOfCall {
  const Op& op;
  const NativeRules& rules;
  lang::NamedValues names;  ///< operands and attributes
  Tensors operands;         ///< flat
  Tensors results = {}, cotangents = {};
  std::vector<bool> needed = {};  ///< in `vjp`: by flat operand
  bool differentiates = false;
  Tensors values = {};  ///< handles are positions from 1
  Tensors given = {};   ///< results or, by flat operand, gradients
};

namespace {

constexpr size_t kMaxHandles = 100000;

const NativeRules& native_rules(const Op& op) { return *text_rules_of(op).native; }

/// Calls a rule that gives a status; errors are those of the call.
template <class F>
void call_rule(const NativeRules& rules, const char* function, paddle_call& call, F&& f) {
  paddle_status status = PADDLE_INTERNAL;
  {
    const Frame frame(rules.plugin.c_str(), function, rules.operation.c_str());
    status = call_plugin(frame, rules.plugin.c_str(), rules.operation.c_str(), f);
  }
  if (status == PADDLE_OK && call.message.empty()) return;
  if (const std::string prefix = rules.operation + ": "; call.message.starts_with(prefix))
    call.message.erase(0, prefix.size());
  throw_status(call, status, rules.operation);
}

/// Whether an earlier function has failed: its error is the one to report.
bool has_failed(const paddle_call* call) { return call && !call->message.empty(); }

// --- types ---

TypesOfCall& types_of(paddle_call* call) {
  if (!call || !call->types)
    fail(ErrorCode::kUsage, "the functions of " PADDLE_TYPES " are for the rule 'infer'");
  return *call->types;
}

const Dim& dim_of(const TypesOfCall& types, paddle_dim handle) {
  if (handle == 0 || handle > types.dims.size())
    fail(ErrorCode::kUsage, "infer: ", handle, " is not a dim of this call");
  return types.dims[handle - 1];
}

/// A new dim; 0 after an error, which is set.
template <class F>
paddle_dim make_dim(paddle_call* call, F&& f) noexcept {
  paddle_dim out = 0;
  if (has_failed(call)) return out;
  (void)guarded(call, [&] {
    TypesOfCall& types = types_of(call);
    if (types.dims.size() >= kMaxHandles) fail(ErrorCode::kUsage, "infer: too many dims");
    Dim dim = f(types);
    types.dims.push_back(std::move(dim));
    out = types.dims.size();
  });
  return out;
}

template <Dim (*Combine)(const Dim&, const Dim&)>
paddle_dim combine(paddle_call* call, paddle_dim a, paddle_dim b) {
  return make_dim(
      call, [&](const TypesOfCall& types) { return Combine(dim_of(types, a), dim_of(types, b)); });
}
Dim sum_of(const Dim& a, const Dim& b) { return a + b; }
Dim difference_of(const Dim& a, const Dim& b) { return a - b; }
Dim product_of(const Dim& a, const Dim& b) { return a * b; }
Dim quotient_of(const Dim& a, const Dim& b) {
  if (b.constant() == 0) fail(ErrorCode::kUsage, "infer: a division by zero");
  return floor_divide(a, b);
}

const TensorType& type_of_operand(const TypesOfCall& types, uint32_t operand) {
  const Tensors& all = types.context.operands();
  if (operand >= all.size() || !all[operand].defined())
    fail(ErrorCode::kUsage, "infer: operand ", operand, " does not exist");
  return all[operand].type();
}

paddle_dim operand_dim(paddle_call* call, uint32_t operand, int32_t axis) {
  return make_dim(call, [&](const TypesOfCall& types) {
    const Shape& shape = type_of_operand(types, operand).shape;
    return shape[static_cast<size_t>(types.context.axis(axis, static_cast<int64_t>(shape.size())))];
  });
}

paddle_dim attribute(paddle_call* call, int32_t index) {
  return make_dim(call, [&](const TypesOfCall& types) {
    const std::vector<AttrValue>& values = types.context.attrs().values;
    if (index < 0 || static_cast<size_t>(index) >= values.size() ||
        !values[static_cast<size_t>(index)].is_int())
      fail(ErrorCode::kUsage, "infer: the attribute ", index, " is not an integer");
    return values[static_cast<size_t>(index)].as_dim();
  });
}

paddle_status add_result(paddle_call* call, paddle_dtype dtype, const paddle_dim* dims,
                         int32_t rank) {
  if (has_failed(call)) return call->status;
  return guarded(call, [&] {
    TypesOfCall& types = types_of(call);
    const auto known = dtype_of_c(dtype);
    if (!known) fail(ErrorCode::kUsage, "infer: there is no dtype ", dtype);
    constexpr int32_t kMaxRank = 64;
    if (rank < 0 || rank > kMaxRank || (rank > 0 && !dims))
      fail(ErrorCode::kUsage, "infer: a result of rank ", rank);
    TensorType type{*known, {}};
    for (int32_t i = 0; i < rank; ++i) {
      type.shape.push_back(dim_of(types, dims[i]));
      if (const auto size = type.shape.back().constant(); size && *size < 0)
        types.context.reject("a dim of the result would be ", *size);
    }
    types.context.result(std::move(type));
  });
}

// --- values ---

ValuesOfCall& values_of(paddle_call* call) {
  if (!call || !call->values)
    fail(ErrorCode::kUsage,
         "the functions of " PADDLE_BUILD " are for the rules 'decompose' and 'vjp'");
  return *call->values;
}

const Tensor& tensor_of(const ValuesOfCall& values, paddle_value handle) {
  if (handle == 0 || handle > values.values.size())
    fail(ErrorCode::kUsage, handle, " is not a value of this call");
  return values.values[handle - 1];
}

/// A new value; 0 for an undefined tensor, and after an error, which is set.
template <class F>
paddle_value make_value(paddle_call* call, F&& f) noexcept {
  paddle_value out = 0;
  if (has_failed(call)) return out;
  (void)guarded(call, [&] {
    ValuesOfCall& values = values_of(call);
    if (values.values.size() >= kMaxHandles)
      fail(ErrorCode::kUsage, "a rule makes too many values");
    Tensor tensor = f(values);
    if (!tensor.defined()) return;
    values.values.push_back(std::move(tensor));
    out = values.values.size();
  });
  return out;
}

Tensor member(const Tensors& tensors, uint32_t i, const char* what) {
  if (i >= tensors.size()) fail(ErrorCode::kUsage, "there is no ", what, " ", i);
  return tensors[i];
}

paddle_value expression(paddle_call* call, const char* text, const char* const* names,
                        const paddle_value* values, uint32_t count) {
  return make_value(call, [&](const ValuesOfCall& all) {
    lang::NamedValues scope;
    for (uint32_t i = 0; i < count; ++i)
      scope.emplace_back(names[i] ? names[i] : "",
                         values[i] ? lang::Value(tensor_of(all, values[i])) : lang::Value());
    for (const auto& [name, value] : all.names)
      if (std::ranges::find(scope, name, &lang::NamedValues::value_type::first) == scope.end())
        scope.emplace_back(name, value);
    return value_of_text(all.op, text ? text : "", all.rules.file, scope);
  });
}

paddle_status give(paddle_call* call, paddle_value value) {
  if (has_failed(call)) return call->status;
  return guarded(call, [&] {
    ValuesOfCall& values = values_of(call);
    if (values.differentiates) fail(ErrorCode::kUsage, "vjp: 'give' is for 'decompose'");
    values.given.push_back(tensor_of(values, value));
  });
}

paddle_status gradient(paddle_call* call, uint32_t operand, paddle_value value) {
  if (has_failed(call)) return call->status;
  return guarded(call, [&] {
    ValuesOfCall& values = values_of(call);
    if (!values.differentiates) fail(ErrorCode::kUsage, "decompose: 'gradient' is for 'vjp'");
    const Tensor of = member(values.operands, operand, "operand");
    const Tensor& tensor = tensor_of(values, value);
    if (!of.defined()) fail(ErrorCode::kUsage, "vjp: the operand ", operand, " is absent");
    if (tensor.shape().size() != of.shape().size())
      fail(ErrorCode::kUsage, "the gradient of operand ", operand, " is ", tensor.type(),
           ", the operand ", of.type());
    values.given[operand] = tensor;
  });
}

std::vector<Layout> layouts_of(const Tensors& tensors) {
  std::vector<Layout> out;
  for (const Tensor& t : tensors) {
    out.push_back(t.defined() ? layout_of_type(t.type()) : Layout());
    out.back().present = t.defined();
  }
  return out;
}

// --- rules that get no operation ---

constexpr size_t kSlots = 128;
using SlotRules = std::array<std::atomic<const NativeRules*>, kSlots>;
SlotRules& slot_rules() {
  static SlotRules all{};
  return all;
}

/// Whether all elements of a layout are between the first and the last one of another.
bool is_inside(const Layout& inner, const Layout& outer) {
  const auto span_of = [](const Layout& layout) {
    std::pair<int64_t, int64_t> out(layout.offset, layout.offset);
    for (size_t d = 0; d < layout.shape.size(); ++d) {
      const int64_t reach = checked_multiply(layout.shape[d] - 1, layout.strides[d]);
      int64_t& end = reach < 0 ? out.first : out.second;
      end = checked_add(end, reach);
    }
    return out;
  };
  if (inner.size() == 0) return true;
  if (outer.size() == 0) return false;
  const auto [first, last] = span_of(inner);
  const auto [begin, end] = span_of(outer);
  return begin <= first && last <= end;
}

Layout view_of(const NativeRules& rules, const Layout& operand, const Attrs& attrs,
               const Dims& shape) {
  Layout out = operand;
  out.shape = shape;
  out.strides.assign(shape.size(), 0);
  const OperationRequest request(get_op(rules.operation), attrs, {&operand, 1}, {&out, 1});
  int64_t offset = 0;
  paddle_status status = PADDLE_INTERNAL;
  {
    const Frame frame(rules.plugin.c_str(), "view", rules.operation.c_str());
    status = call_plugin(frame, rules.plugin.c_str(), rules.operation.c_str(), [&] {
      return rules.rules.view(request.get(), out.strides.data(), &offset);
    });
  }
  if (status == PADDLE_DECLINED) {
    out.present = false;
    return out;
  }
  if (status != PADDLE_OK)
    fail(ErrorCode::kInternal, rules.operation, ": 'view' of ", rules.plugin, " gives the status ",
         status);
  out.offset = checked_add(operand.offset, offset);
  if (!is_inside(out, operand))
    fail(ErrorCode::kInternal, rules.operation, ": 'view' of ", rules.plugin,
         " gives elements outside of the operand");
  return out;
}

double cost_of(const NativeRules& rules, const Attrs& attrs, const std::vector<Dims>& operands,
               const std::vector<Dims>& results) {
  std::vector<Layout> from, to;
  for (const Dims& each : operands) from.push_back(Layout::contiguous(DType::kF32, each));
  for (const Dims& each : results) to.push_back(Layout::contiguous(DType::kF32, each));
  const OperationRequest request(get_op(rules.operation), attrs, from, to);
  const Frame frame(rules.plugin.c_str(), "cost", rules.operation.c_str());
  const double flops = call_plugin(frame, rules.plugin.c_str(), rules.operation.c_str(),
                                   [&] { return rules.rules.cost(request.get()); });
  return flops >= 0 && flops < 1e30 ? flops : 0;
}

template <size_t N>
Layout view_in_slot(const Layout& operand, const Attrs& attrs, const Dims& shape) {
  return view_of(*slot_rules()[N].load(), operand, attrs, shape);
}
template <size_t N>
double cost_in_slot(const Attrs& attrs, const std::vector<Dims>& operands,
                    const std::vector<Dims>& results) {
  return cost_of(*slot_rules()[N].load(), attrs, operands, results);
}
template <size_t... N>
constexpr std::array<ViewFn, kSlots> views(std::index_sequence<N...> /*numbers*/) {
  return {view_in_slot<N>...};
}
template <size_t... N>
constexpr std::array<CostFn, kSlots> costs(std::index_sequence<N...> /*numbers*/) {
  return {cost_in_slot<N>...};
}

size_t slot_of(const NativeRules& rules) {
  for (size_t i = 0; i < kSlots; ++i) {
    const NativeRules* expected = nullptr;
    if (slot_rules()[i].compare_exchange_strong(expected, &rules) || expected == &rules) return i;
  }
  fail(ErrorCode::kDevice, rules.operation, ": more than ", kSlots,
       " operations have a rule 'view' or 'cost' in C");
}

}  // namespace

void infer_by_c(InferContext& c) {
  const NativeRules& rules = native_rules(c.op());
  const std::vector<Layout> operands = layouts_of(c.operands());
  const OperationRequest request(c.op(), c.attrs(), operands, {});
  TypesOfCall types{c};
  paddle_call call;
  call.types = &types;
  call_rule(rules, "infer", call, [&] { return rules.rules.infer(&call, request.get()); });
  if (c.results().size() != c.op().results().size())
    fail(ErrorCode::kInternal, rules.operation, ": 'infer' of ", rules.plugin, " gives ",
         c.results().size(), " types, its signature has ", c.op().results().size(), " results");
}

Tensors decompose_by_c(CallContext& c) {
  const NativeRules& rules = native_rules(c.op());
  ValuesOfCall values{c.op(), rules, names_of(c), flat_operands(c)};
  std::vector<Layout> results;
  for (size_t i = 0; i < c.result_count(); ++i) results.push_back(layout_of_type(c.result_type(i)));
  const OperationRequest request(c.op(), c.attrs(), layouts_of(values.operands), results);
  paddle_call call;
  call.values = &values;
  call_rule(rules, "decompose", call, [&] { return rules.rules.decompose(&call, request.get()); });
  if (values.given.size() != c.op().results().size())
    fail(ErrorCode::kUsage, rules.operation, ": its rule 'decompose' gives ", values.given.size(),
         " results, its signature has ", c.op().results().size());
  for (size_t i = 0; i < c.result_count(); ++i)
    if (values.given[i].dtype() != c.result_type(i).dtype ||
        values.given[i].shape().size() != c.result_type(i).shape.size())
      fail(ErrorCode::kUsage, rules.operation, ": its rule 'decompose' gives ",
           values.given[i].type(), ", 'infer' ", c.result_type(i));
  return values.given;
}

Tensors vjp_by_c(VjpContext& c) {
  const NativeRules& rules = native_rules(c.op());
  ValuesOfCall values{c.op(), rules, names_of(c), flat_operands(c)};
  std::vector<Layout> results;
  for (size_t i = 0; i < c.result_count(); ++i) {
    values.results.push_back(c.result(i));
    values.cotangents.push_back(c.cotangent_or_zeros(i));
    results.push_back(layout_of_type(c.plain_result(i).type()));
  }
  for (size_t i = 0; i < values.operands.size(); ++i) values.needed.push_back(c.needs_flat(i));
  values.differentiates = true;
  values.given = c.gradients();
  const OperationRequest request(c.op(), c.attrs(), layouts_of(values.operands), results);
  paddle_call call;
  call.values = &values;
  call_rule(rules, "vjp", call, [&] { return rules.rules.vjp(&call, request.get()); });
  return values.given;
}

void infer_of_view(InferContext& c) {
  const TextRules& text = text_rules_of(c.op());
  text.infer_before_view(c);
  if (c.op().results().size() != 1 || c.operands().empty() || !c.operands()[0].defined() ||
      c.results().at(0).dtype != c.operands()[0].dtype())
    c.reject("an operation with the rule 'view' has one result of the dtype of its first operand");
}

ViewFn view_by_c(const NativeRules& rules) {
  static constexpr auto kViews = views(std::make_index_sequence<kSlots>());
  return kViews.at(slot_of(rules));
}

CostFn cost_by_c(const NativeRules& rules) {
  static constexpr auto kCosts = costs(std::make_index_sequence<kSlots>());
  return kCosts.at(slot_of(rules));
}

const paddle_types_functions& types_functions() {
  static const paddle_types_functions functions = {
      .struct_size = sizeof functions,
      .reserved = 0,
      .operand_dim = operand_dim,
      .attribute = attribute,
      .constant =
          [](paddle_call* call, int64_t value) {
            return make_dim(call, [&](const TypesOfCall&) { return Dim(value); });
          },
      .add = combine<sum_of>,
      .subtract = combine<difference_of>,
      .multiply = combine<product_of>,
      .floor_divide = combine<quotient_of>,
      .maximum = combine<maximum>,
      .value = [](paddle_call* call, paddle_dim dim, int64_t* value) -> int32_t {
        int32_t known = 0;
        (void)guarded(call, [&] {
          const auto constant = dim_of(types_of(call), dim).constant();
          if (constant && value) *value = *constant;
          known = constant.has_value() ? 1 : 0;
        });
        return known;
      },
      .equal =
          [](paddle_call* call, paddle_dim a, paddle_dim b, const char* what) {
            return make_dim(call, [&](TypesOfCall& types) {
              return types.context.require_equal(dim_of(types, a), dim_of(types, b),
                                                 what ? what : "the sizes");
            });
          },
      .result = add_result,
      .result_like =
          [](paddle_call* call, uint32_t operand) {
            return guarded(call, [&] {
              TypesOfCall& types = types_of(call);
              types.context.result(type_of_operand(types, operand));
            });
          },
  };
  return functions;
}

const paddle_build_functions& build_functions() {
  static const paddle_build_functions functions = {
      .struct_size = sizeof functions,
      .reserved = 0,
      .operand =
          [](paddle_call* call, uint32_t i) {
            return make_value(
                call, [&](const ValuesOfCall& v) { return member(v.operands, i, "operand"); });
          },
      .result =
          [](paddle_call* call, uint32_t i) {
            return make_value(call, [&](const ValuesOfCall& v) {
              return member(v.results, i, "result of 'vjp'");
            });
          },
      .cotangent =
          [](paddle_call* call, uint32_t i) {
            return make_value(call, [&](const ValuesOfCall& v) {
              return member(v.cotangents, i, "result of 'vjp'");
            });
          },
      .needed = [](paddle_call* call, uint32_t i) -> int32_t {
        int32_t out = 0;
        (void)guarded(call, [&] {
          const ValuesOfCall& v = values_of(call);
          out = i < v.needed.size() && v.needed[i] ? 1 : 0;
        });
        return out;
      },
      .expression = expression,
      .give = give,
      .gradient = gradient,
  };
  return functions;
}

}  // namespace paddle::plugin
