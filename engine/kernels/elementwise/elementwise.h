#pragma once
// Common structure of elementwise kernels: broadcasting, strides, 16-bit floats and threads around
// a contiguous loop (loops.h). Operands that are not contiguous are copied block by block into
// buffers in cache, which keeps every loop simple and costs little compared with memory traffic.

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>
#include <vector>

#include "kernels/common/convert.h"
#include "kernels/elementwise/loops.h"
#include "ops/core/kernel.h"

namespace paddle::cpu {

/// The type in which values of a dtype are computed: f32 for 16-bit floats, otherwise the dtype
/// itself.
DType compute_type(DType dtype);

/// 16 bytes that are copied as they are.
struct Unsigned128 {
  uint64_t low, high;
};

/// Calls `f` with an unsigned integer of `bytes` bytes, or `otherwise` if there is none.
template <class F, class G>
auto visit_unsigned_of_size(int64_t bytes, F&& f, G&& otherwise) {
  switch (bytes) {
    case 1:
      return f(uint8_t());
    case 2:
      return f(uint16_t());
    case 4:
      return f(uint32_t());
    case 8:
      return f(uint64_t());
    case 16:
      return f(Unsigned128());
    default:
      return otherwise();
  }
}

/// Reads operands of any strides as if broadcast to one shape, in row-major order.
class StridedReader {
 public:
  /// `layout` is broadcast to `shape`, aligned at the last axis.
  StridedReader(const Layout& layout, const Dims& shape, DType target);

  /// Elements [begin, begin + n) in the target type: a pointer into the operand if it has that form
  /// already, else `buffer`, filled.
  const void* read(const void* base, int64_t begin, int64_t n, void* buffer) const;
  /// The same, but without a copy also where the elements are one run in the operand.
  const void* read_run(const void* base, int64_t begin, int64_t n, void* buffer) const;
  /// True if `read` never uses the buffer.
  bool is_direct() const { return direct_; }
  bool is_constant() const { return constant_; }
  /// n if the operand is one contiguous run of n elements of the target type that repeats, else 0.
  int64_t period() const { return period_; }
  /// The broadcast shape with axes merged, outermost first, and the operand's strides in elements;
  /// at least one axis. The last one is the inner run.
  const Dims& shape() const { return shape_; }
  const Dims& strides() const { return strides_; }

 private:
  ConvertFn convert_;
  int64_t source_size_, target_size_;
  bool direct_ = false;
  bool constant_ = false;
  bool runs_ = false;  ///< the last axis is contiguous and of the target type
  int64_t period_ = 0;
  Dims shape_, strides_;
};

/// A kernel that applies `loop` to all present operands, each converted to its type in
/// `operand_types`. The loop writes `result_type`, which is converted to the result's dtype. `cost`
/// is the rough cost of an element in units of an addition, `name` the loop's (see
/// ElementwiseStep), which must outlive the kernel.
std::unique_ptr<Kernel> elementwise(const KernelRequest& request, Loop loop,
                                    const std::vector<DType>& operand_types, DType result_type,
                                    const std::vector<double>& params = {}, int cost = 1,
                                    std::string_view name = {});

/// The usual cases, by the name of the loop: all operands and the result have one type; with
/// `predicate` the result is bool.
std::unique_ptr<Kernel> map(const KernelRequest& request, std::string_view loop,
                            const std::vector<double>& params = {}, int cost = 1);
std::unique_ptr<Kernel> predicate(const KernelRequest& request, std::string_view loop);

/// A scalar function as a loop, for operations whose speed matters less: `F` is a stateless
/// callable over `kArity` values of T, optionally with `const double*` as the last argument.
template <class T, class R, int kArity, class F>
void scalar_loop(const void* const* in, void* out, int64_t n, const double* params) {
  const T* const a = static_cast<const T*>(in[0]);
  R* const y = static_cast<R*>(out);
  const F f{};
  if constexpr (kArity == 1) {
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (std::is_invocable_v<F, T, const double*>) {
        y[i] = static_cast<R>(f(a[i], params));
      } else {
        y[i] = static_cast<R>(f(a[i]));
      }
    }
  } else {
    const T* const b = static_cast<const T*>(in[1]);
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (std::is_invocable_v<F, T, T, const double*>) {
        y[i] = static_cast<R>(f(a[i], b[i], params));
      } else {
        y[i] = static_cast<R>(f(a[i], b[i]));
      }
    }
  }
}

}  // namespace paddle::cpu
