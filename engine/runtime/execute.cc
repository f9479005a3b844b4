#include "runtime/execute.h"

#include <cstring>
#include <mutex>
#include <utility>

#include "base/crash_report.h"
#include "base/log.h"
#include "compiler/codegen/compiled_fusion.h"
#include "io_kernels/register.h"
#include "kernels/cuda/cuda.h"
#include "kernels/fusion/block_interpreter.h"
#include "kernels/mirror/mirror.h"
#include "kernels/onednn/epilogue.h"
#include "kernels/quantized/onednn.h"
#include "ops/core/backend.h"
#include "ops/core/call.h"
#include "ops/generated/math.h"
#include "paddle/plugin/device.h"
#include "runtime/cpu_target.h"
#include "runtime/decomposed.h"
#include "runtime/host_fallback.h"
#include "runtime/known_calls.h"

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
    register_backend(
        {.name = "cpu", .prepare_fused = cpu::prepare_fused_group, .describe = describe_cpu});
    register_backend({.name = "codegen", .prepare_fused = codegen::prepare_compiled_group});
    register_backend({.name = "onednn",
                      .prepare_fused = onednn::prepare_with_epilogue,
                      .can_fuse_epilogue = onednn::can_fuse_epilogue,
                      .has_int8_kernel = onednn::has_int8_kernel,
                      .has_int8_matmul = onednn::has_int8_matmul});
    cpu::register_kernels();
    onednn::register_kernels();
    io_kernels::register_kernels();
    mirror::register_device();
    cuda::register_device();
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
  ArrayAllocator(std::vector<Array>& results, const std::vector<TensorType>& types, Device device)
      : results_(results), types_(types), device_(device) {}
  void* allocate(size_t index, const Dims& shape) override {
    const Shape& known = types_[index].shape;
    bool fits = known.size() == shape.size();
    for (size_t i = 0; fits && i < shape.size(); ++i)
      fits = !known[i].constant() || *known[i].constant() == shape[i];
    if (!fits)
      fail(ErrorCode::kInternal, "result ", index, " has the shape ", shape, ", expected ",
           str(known));
    results_[index] = Array::empty(types_[index].dtype, shape, device_);
    return results_[index].address();
  }

 private:
  std::vector<Array>& results_;
  const std::vector<TensorType>& types_;
  Device device_;
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

/// True if the kernel of a call depends on nothing but the operation, its attributes and its
/// operands' layouts, and can be kept for the next call.
bool can_know(const Op& op, const TargetInfo& target, const PrepareOptions& prepare) {
  constexpr uint32_t kNever = kRunTimeShape | kEffect | kControlFlow | kAccessesFiles |
                              kAccessesProcesses | kAccessesNetwork | kAccessesTerminal |
                              kAccessesRanks;
  return (op.def->traits & kNever) == 0 && !op.def->view && target.device.is_cpu() &&
         prepare.codegen && !prepare.allow_winograd && !prepare.skip_prepack &&
         !prepare.single_run && !prepare.backend_pinned && !prepare.choices && !single_runs &&
         !backend_is_wanted() && !is_logged(LogLevel::kTrace);
}

std::string trace_line(const Op& op, const std::vector<Layout>& operands,
                       const std::vector<Layout>& results, const Kernel& kernel) {
  const auto list = [](const std::vector<Layout>& layouts) {
    std::string out;
    for (const Layout& l : layouts)
      if (l.present) out += str(out.empty() ? "" : ", ", text(l.dtype), l.shape);
    return out;
  };
  return str(op.name(), " ", list(operands), " -> ", list(results), " (", kernel.implementation(),
             ")");
}

/// None if no kernel of the target accepts the call. The operands are on its device.
std::optional<std::vector<Array>> try_execute(const Op& op, const Attrs& attrs,
                                              const std::vector<const Array*>& operands,
                                              const std::vector<TensorType>& types,
                                              const TargetInfo& target,
                                              const PrepareOptions& prepare,
                                              comm::Collectives* collectives) {
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
  PrepareOptions here = prepare;
  here.single_run = here.single_run || single_runs;
  const Device device = target.device;
  std::vector<Array> dense(operands.size());
  std::vector<Layout> layouts(operands.size());
  std::vector<void*> operand_data(operands.size()), result_data(types.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i]) {
      layouts[i].present = false;
      continue;
    }
    dense[i] = op.has(kStrided) ? *operands[i] : packed(*operands[i]);
    layouts[i] = Layout::of(dense[i]);
    layouts[i].offset = 0;
    operand_data[i] = dense[i].address();
  }
  std::vector<Array> results(types.size());
  std::vector<Layout> result_layouts(types.size());
  const bool run_time = op.has(kRunTimeShape);
  for (size_t i = 0; i < types.size(); ++i) {
    if (run_time) {
      result_layouts[i] = Layout::contiguous(types[i].dtype, {});
      continue;
    }
    results[i] = Array::empty(types[i].dtype, concrete(types[i].shape), device);
    result_layouts[i] = Layout::of(results[i]);
    result_data[i] = results[i].address();
  }
  const auto kernel = prepare_kernel({.op = op,
                                      .attrs = attrs,
                                      .operands = layouts,
                                      .results = result_layouts,
                                      .target = target,
                                      .prepare = here});
  if (!kernel) return std::nullopt;
  std::shared_ptr<Storage> scratch;
  RunContext context;
  if (const size_t bytes = kernel->scratch_bytes()) {
    scratch = Storage::allocate(bytes, device);
    context.scratch = scratch->address();
  }
  context.collectives = collectives;
  ArrayAllocator allocator(results, types, device);
  if (run_time) context.allocator = &allocator;
  if (!device.is_cpu()) context.stream = compute_stream(device);
  if (is_logged(LogLevel::kTrace))
    log(LogLevel::kTrace, trace_line(op, layouts, result_layouts, *kernel));
  set_running_operation(op.def->name);
  kernel->run(context, operand_data.data(), result_data.data());
  set_running_operation(nullptr);
  return results;
}

/// Operands on a device; those that are there already are not copied.
class OperandsOn {
 public:
  OperandsOn(std::vector<const Array*> operands, Device device) : pointers_(std::move(operands)) {
    for (const Array*& operand : pointers_) {
      if (!operand || operand->device() == device) continue;
      copies_.reserve(pointers_.size());  // pointers to copies stay valid
      operand = &copies_.emplace_back(operand->to(device));
    }
  }
  operator const std::vector<const Array*>&() const { return pointers_; }

 private:
  std::vector<const Array*> pointers_;
  std::vector<Array> copies_;
};

/// Runs the operation on the host and brings the results back to the device.
std::optional<std::vector<Array>> execute_on_host(const Op& op, const Attrs& attrs,
                                                  const std::vector<const Array*>& operands,
                                                  const std::vector<TensorType>& types,
                                                  const TargetInfo& target,
                                                  const PrepareOptions& prepare,
                                                  comm::Collectives* collectives) {
  TargetInfo on_host = target;
  on_host.device = Device::cpu();
  const OperandsOn host(operands, on_host.device);
  auto results = try_execute(op, attrs, host, types, on_host, prepare, collectives);
  if (!results) return std::nullopt;
  count_host_fallback(op, target.device);
  for (Array& result : *results) result = result.to(target.device);
  return results;
}

}  // namespace

std::vector<Array> execute(const Op& op, const Attrs& attrs,
                           const std::vector<const Array*>& operands,
                           const std::vector<TensorType>& types, const TargetInfo& target,
                           const PrepareOptions& prepare, comm::Collectives* collectives) {
  const OperandsOn there(operands, target.device);
  auto results = try_execute(op, attrs, there, types, target, prepare, collectives);
  if (!results && op.def->decompose)
    results = execute_decomposition(op, attrs, there, types, target, prepare);
  if (!results && !target.device.is_cpu())
    results = execute_on_host(op, attrs, there, types, target, prepare, collectives);
  if (results) return std::move(*results);
  std::vector<std::string> dtypes;
  for (const Array* a : operands)
    if (a) dtypes.push_back(text(a->dtype));
  fail(ErrorCode::kUsage, op.name(), ": there is no kernel for operands of ", join(dtypes, ", "));
}

SingleRunScope::SingleRunScope(bool active) : before_(std::exchange(single_runs, active)) {}
SingleRunScope::~SingleRunScope() { single_runs = before_; }

// --- the eager executor ---

Tensors EagerExecutor::apply(const OpCall& call) {
  if (is_decomposed(call, target_)) return decompose(call);
  if (call.constraints.empty() && can_know(call.op, target_, prepare_)) {
    Tensors results;
    if (KnownCalls::of_this_thread().add(call) &&
        KnownCalls::of_this_thread().run(call.op, call.operands, call.attrs, results))
      return results;
  }
  if (!call.constraints.empty())
    fail(ErrorCode::kInternal, call.op.name(), ": undecided sizes in eager mode");
  std::vector<const Array*> operands;
  for (const Tensor& t : call.operands) operands.push_back(t.defined() ? &t.array() : nullptr);
  const OperandsOn there(std::move(operands), target_.device);
  auto results =
      try_execute(call.op, call.attrs, there, call.results, target_, prepare_, collectives_);
  if (!results && call.op.def->decompose) return decompose(call);
  if (!results)  // on the host, or says why not
    results = execute(call.op, call.attrs, there, call.results, target_, prepare_, collectives_);
  Tensors out;
  for (Array& a : *results) out.emplace_back(std::move(a));
  return out;
}

bool EagerExecutor::apply_known(const Op& op, const Tensors& operands, const Attrs& attrs,
                                Tensors& results) {
  return can_know(op, target_, prepare_) &&
         KnownCalls::of_this_thread().run(op, operands, attrs, results);
}

Array packed(const Array& array) {
  if (array.device().is_cpu() || array.is_contiguous()) return array.contiguous();
  static const Op& copy = get_op("assign");
  static const Attrs kNone;
  return execute(copy, kNone, {&array}, {{array.dtype, to_shape(array.shape)}},
                 {.device = array.device()})[0];
}

Array copied(const Array& array) {
  const Array source = packed(array);
  if (source.storage != array.storage) return source;
  Array out = Array::empty(source.dtype, source.shape, source.device());
  const auto bytes = static_cast<size_t>(storage_bytes(source.dtype, source.size()));
  if (source.device().is_cpu())
    std::memcpy(out.raw(), source.raw(), bytes);
  else
    check_device(source.device(), device_api(source.device())
                                      .copy(compute_stream(source.device()), out.address(),
                                            source.address(), bytes, PADDLE_COPY_ON_DEVICE));
  return out;
}

void copy_into(const Array& target, const Array& source) {
  const Device device = target.device();
  const Array from = source.device() == device ? packed(source) : source.on_host().contiguous();
  const auto bytes = static_cast<size_t>(storage_bytes(from.dtype, from.size()));
  if (device.is_cpu()) {
    std::memcpy(target.raw(), from.raw(), bytes);
    return;
  }
  if (bytes == 0) return;
  const bool is_there = from.device() == device;
  check_device(device, device_api(device).copy(
                           compute_stream(device), target.address(), from.address(), bytes,
                           is_there ? PADDLE_COPY_ON_DEVICE : PADDLE_COPY_TO_DEVICE));
  if (!is_there) synchronize(device);  // the copy reads memory of the host
}

Array cast_array(const Array& array, DType to) {
  EagerExecutor eager;
  const InterpreterScope scope(eager);
  return ops::cast(Tensor(array), to).array();
}

}  // namespace paddle::runtime
