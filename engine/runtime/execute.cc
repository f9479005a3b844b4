#include "runtime/execute.h"

#include <cstring>
#include <mutex>
#include <utility>

#include "compiler/codegen/compiled_fusion.h"
#include "kernels/fusion/block_interpreter.h"
#include "kernels/onednn/epilogue.h"
#include "kernels/quantized/onednn.h"
#include "ops/core/call.h"
#include "ops/generated/math.h"
#include "ops/quantization/quantized.h"

namespace paddle {
namespace cpu {
void limit_instructions();
void register_kernels();
}  // namespace cpu
namespace onednn {
void limit_instructions();
void register_kernels();
}  // namespace onednn
}  // namespace paddle

namespace paddle::runtime {

void register_backends() {
  static std::once_flag once;
  std::call_once(once, [] {
    cpu::limit_instructions();
    onednn::limit_instructions();
    cpu::register_kernels();
    onednn::register_kernels();
    register_fused(cpu::prepare_fused_group);
    register_fused(codegen::prepare_compiled_group);
    register_fused(onednn::prepare_with_epilogue);
    register_can_fuse_epilogue(onednn::can_fuse_epilogue);
    quantized::register_has_int8_kernel(onednn::has_int8_kernel);
    quantized::register_has_int8_matmul(onednn::has_int8_matmul);
  });
}

namespace {

AttrValue bind_value(const AttrValue& value, const SymbolLookup& lookup) {
  if (value.is_int() && !value.as_dim().is_constant()) {
    const auto bound = value.as_dim().evaluate(lookup);
    if (!bound) fail(ErrorCode::kData, "the dim '", value.as_dim(), "' is unbound");
    return *bound;
  }
  if (!value.is_list()) return value;
  AttrValue::List items;
  for (const AttrValue& v : value.as_list()) items.push_back(bind_value(v, lookup));
  return items;
}

bool value_has_symbols(const AttrValue& value) {
  if (value.is_int()) return !value.as_dim().is_constant();
  if (!value.is_list()) return false;
  for (const AttrValue& v : value.as_list())
    if (value_has_symbols(v)) return true;
  return false;
}

bool value_binds(const AttrValue& value, const SymbolLookup& lookup) {
  if (value.is_int()) return value.as_dim().evaluate(lookup).has_value();
  if (!value.is_list()) return true;
  for (const AttrValue& v : value.as_list())
    if (!value_binds(v, lookup)) return false;
  return true;
}

class ArrayAllocator final : public ResultAllocator {
 public:
  ArrayAllocator(std::vector<Array>& results, const std::vector<TensorType>& types)
      : results_(results), types_(types) {}
  void* allocate(size_t index, const Dims& shape) override {
    results_[index] = Array::empty(types_[index].dtype, shape);
    return results_[index].raw();
  }

 private:
  std::vector<Array>& results_;
  const std::vector<TensorType>& types_;
};

}  // namespace

bool has_symbols(const Attrs& attrs) {
  for (const AttrValue& v : attrs.values)
    if (value_has_symbols(v)) return true;
  return false;
}

bool can_bind(const Attrs& attrs, const SymbolLookup& lookup) {
  for (const AttrValue& v : attrs.values)
    if (!value_binds(v, lookup)) return false;
  return true;
}

std::optional<Dims> bind_shape(const Shape& shape, const SymbolLookup& lookup) {
  Dims dims;
  for (const Dim& d : shape) {
    const auto size = d.evaluate(lookup);
    if (!size) return std::nullopt;
    dims.push_back(*size);
  }
  return dims;
}

Attrs bind_attrs(const Attrs& attrs, const SymbolLookup& lookup) {
  Attrs out = attrs;
  for (AttrValue& v : out.values)
    if (value_has_symbols(v)) v = bind_value(v, lookup);
  return out;
}

Layout view_layout(const Op& op, const Attrs& attrs, const Layout& operand, const Dims& result) {
  if (!op.def->view) {
    Layout none;
    none.present = false;
    return none;
  }
  return op.def->view(operand, attrs, result);
}

namespace {

thread_local bool single_runs = false;

/// None if no kernel accepts the call.
std::optional<std::vector<Array>> try_execute(const Op& op, const Attrs& attrs,
                                              const std::vector<const Array*>& operands,
                                              const std::vector<TensorType>& types) {
  if (op.def->view && operands[0]) {
    const Layout layout =
        view_layout(op, attrs, Layout::of(*operands[0]), concrete(types[0].shape));
    if (layout.present) {
      Array view = *operands[0];
      view.shape = layout.shape;
      view.strides = layout.strides;
      view.offset = layout.offset;
      return std::vector<Array>{view};
    }
  }
  std::vector<Array> packed(operands.size());
  std::vector<Layout> layouts(operands.size());
  std::vector<void*> operand_data(operands.size()), result_data(types.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i]) {
      layouts[i].present = false;
      continue;
    }
    packed[i] = op.has(kStrided) ? *operands[i] : operands[i]->contiguous();
    layouts[i] = Layout::of(packed[i]);
    layouts[i].offset = 0;
    operand_data[i] = packed[i].raw();
  }
  std::vector<Array> results(types.size());
  std::vector<Layout> result_layouts(types.size());
  const bool run_time = op.has(kRunTimeShape);
  for (size_t i = 0; i < types.size(); ++i) {
    if (run_time) {
      result_layouts[i] = Layout::contiguous(types[i].dtype, {});
      continue;
    }
    results[i] = Array::empty(types[i].dtype, concrete(types[i].shape));
    result_layouts[i] = Layout::of(results[i]);
    result_data[i] = results[i].raw();
  }
  const auto kernel = prepare_kernel({.op = op,
                                      .attrs = attrs,
                                      .operands = layouts,
                                      .results = result_layouts,
                                      .policy = {.single_run = single_runs}});
  if (!kernel) return std::nullopt;
  std::shared_ptr<Storage> scratch;
  RunContext context;
  if (const size_t bytes = kernel->scratch_bytes()) {
    scratch = Storage::allocate(bytes);
    context.scratch = scratch->data();
  }
  ArrayAllocator allocator(results, types);
  if (run_time) context.allocator = &allocator;
  kernel->run(context, operand_data.data(), result_data.data());
  return results;
}

}  // namespace

std::vector<Array> execute(const Op& op, const Attrs& attrs,
                           const std::vector<const Array*>& operands,
                           const std::vector<TensorType>& types) {
  if (auto results = try_execute(op, attrs, operands, types)) return std::move(*results);
  std::vector<std::string> dtypes;
  for (const Array* a : operands)
    if (a) dtypes.push_back(text(a->dtype));
  fail(ErrorCode::kUsage, op.name(), ": there is no kernel for operands of ", join(dtypes, ", "));
}

SingleRunScope::SingleRunScope(bool active) : before_(std::exchange(single_runs, active)) {}
SingleRunScope::~SingleRunScope() { single_runs = before_; }

// --- the eager executor ---

Tensors EagerExecutor::apply(const OpCall& call) {
  if (!has_kernel(call.op) && call.op.def->decompose) return decompose(call);
  if (!call.constraints.empty())
    fail(ErrorCode::kInternal, call.op.name(), ": undecided sizes in eager mode");
  std::vector<const Array*> operands;
  for (const Tensor& t : call.operands) operands.push_back(t.defined() ? &t.array() : nullptr);
  auto results = try_execute(call.op, call.attrs, operands, call.results);
  if (!results && call.op.def->decompose) return decompose(call);
  if (!results) results = execute(call.op, call.attrs, operands, call.results);  // says why not
  Tensors out;
  for (Array& a : *results) out.emplace_back(std::move(a));
  return out;
}

Array copied(const Array& array) {
  const Array packed = array.contiguous();
  Array out = Array::empty(packed.dtype, packed.shape);
  std::memcpy(out.raw(), packed.raw(),
              static_cast<size_t>(storage_bytes(packed.dtype, packed.size())));
  return out;
}

Array cast_array(const Array& array, DType to) {
  EagerExecutor eager;
  const InterpreterScope scope(eager);
  return ops::cast(Tensor(array), to).array();
}

}  // namespace paddle::runtime
