// Kernels of the elementwise operations: the loop of the operation's name, with its numeric
// attributes as parameters.

#include <cstring>
#include <limits>

#include "base/parallel.h"
#include "generated/attrs.h"
#include "kernels/cpu/elementwise.h"

namespace paddle::cpu {
namespace {

/// Bools, integers and floats among the attributes, in schema order.
std::vector<double> numeric_attributes(const Attrs& attrs) {
  std::vector<double> values;
  for (const AttrValue& value : attrs.values) {
    if (value.is_bool()) values.push_back(value.as_bool() ? 1 : 0);
    if (value.is_int() || value.is_float()) values.push_back(value.as_double());
  }
  return values;
}

/// Copies any layout into contiguous form, converting the type.
std::unique_ptr<Kernel> copy_kernel(const KernelRequest& request) {
  const Layout& result = request.results[0];
  StridedReader reader(request.operands[0], result.shape, result.dtype);
  return make_kernel([reader = std::move(reader), size = result.size(),
                      bytes = item_size(result.dtype)](const RunContext&, void* const* operands,
                                                       void* const* results) {
    parallel_for(size, 32768, [&](int64_t begin, int64_t end) {
      std::byte* const out = static_cast<std::byte*>(results[0]) + begin * bytes;
      const void* const in = reader.read(operands[0], begin, end - begin, out);
      if (in != out) std::memcpy(out, in, static_cast<size_t>((end - begin) * bytes));
    });
  });
}

template <class T>
void select(const void* const* in, void* out, int64_t n, const double*) {
  const bool* const condition = static_cast<const bool*>(in[0]);
  const T* const x = static_cast<const T*>(in[1]);
  const T* const y = static_cast<const T*>(in[2]);
  T* const result = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) result[i] = condition[i] ? x[i] : y[i];
}

}  // namespace

std::unique_ptr<Kernel> prepare_unary(const KernelRequest& request) {
  const std::string_view name = request.op.name();
  if (name == "assign" || name == "detach") return copy_kernel(request);
  if (name == "gelu")
    return map(request, GeluAttrs(request.attrs).approximate ? "gelu_tanh" : "gelu", {}, 16);
  if (name == "clip") {
    const ClipAttrs attrs(request.attrs);
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return map(request, name,
               {attrs.min.is_none() ? -kInfinity : attrs.min.as_double(),
                attrs.max.is_none() ? kInfinity : attrs.max.as_double()});
  }
  const bool transcendental = request.op.has(kFloatInputs);
  return map(request, name, numeric_attributes(request.attrs), transcendental ? 8 : 1);
}

std::unique_ptr<Kernel> prepare_binary(const KernelRequest& request) {
  return map(request, request.op.name(), numeric_attributes(request.attrs));
}

std::unique_ptr<Kernel> prepare_bitwise(const KernelRequest& request) {
  return map(request, request.op.name());
}

std::unique_ptr<Kernel> prepare_compare(const KernelRequest& request) {
  return predicate(request, request.op.name());
}

std::unique_ptr<Kernel> prepare_predicate(const KernelRequest& request) {
  return predicate(request, request.op.name());
}

std::unique_ptr<Kernel> prepare_copy(const KernelRequest& request) { return copy_kernel(request); }

std::unique_ptr<Kernel> prepare_cast(const KernelRequest& request) { return copy_kernel(request); }

std::unique_ptr<Kernel> prepare_where(const KernelRequest& request) {
  const DType type = request.results[0].dtype;
  Loop loop = nullptr;
  switch (item_size(type)) {
    case 1: loop = &select<uint8_t>; break;
    case 2: loop = &select<uint16_t>; break;
    case 4: loop = &select<uint32_t>; break;
    case 8: loop = &select<uint64_t>; break;
    default: return nullptr;
  }
  return elementwise(request, loop, {DType::kBool, type, type}, type);
}

}  // namespace paddle::cpu
