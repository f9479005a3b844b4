#pragma once
// How an operation runs on a backend, in two phases. `prepare` sees concrete layouts once: it
// selects the algorithm, creates primitives and determines the scratch size. `run` only computes:
// it must not allocate, look anything up or synchronize.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/core/op.h"
#include "ops/core/target.h"

namespace paddle {

struct KernelRequest {
  const Op& op;
  const Attrs& attrs;
  /// Flat, like OpCall::operands. Contiguous unless the operation has the trait kStrided; with it
  /// any strides are possible, including zero (broadcast) and negative ones. The pointers that
  /// `run` receives include the offset.
  std::span<const Layout> operands;
  /// Contiguous. With the trait kRunTimeShape, shapes are unknown and empty. With the trait
  /// kSkipsUnusedResults, unused results after the first have present = false and a null pointer in
  /// `run`; eager mode uses every result.
  std::span<const Layout> results;
  TargetInfo target = {};
  PrepareOptions prepare = {};
};

/// Where a choice is made: among the backends that have a kernel for an operation, or among the
/// algorithms of one of its kernels, such as those of a convolution.
enum class ChoiceLevel : uint8_t { kBackend, kAlgorithm };

/// Preferences that overrule the default order, such as a table of timings.
class KernelChoices {
 public:
  virtual ~KernelChoices() = default;
  /// The name to try first, or "" for the default order. `names` is that order.
  virtual std::string choose(const KernelRequest& request, ChoiceLevel level,
                             std::span<const std::string> names) = 0;
};

/// Allocates results of a kernel whose shapes are known only at run time.
class ResultAllocator {
 public:
  virtual ~ResultAllocator() = default;
  /// Contiguous memory for result `index` with these dims, on the kernel's device; called once per
  /// result.
  virtual void* allocate(size_t index, const Dims& shape) = 0;
};

namespace comm {
class Collectives;
}

struct RunContext {
  std::byte* scratch = nullptr;          ///< 64-byte aligned, of `scratch_bytes()`
  ResultAllocator* allocator = nullptr;  ///< only for operations of the trait kRunTimeShape
  paddle_stream stream = nullptr;        ///< null on the CPU
  /// Where the operation comes from, for errors of kernels that run later than the call; null if
  /// unknown. It stays valid until the stream is synchronized.
  const std::string* location = nullptr;
  /// Of the run of several ranks that the program belongs to (comm/collectives.h); null without.
  comm::Collectives* collectives = nullptr;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  /// One pointer per flat operand and per result, null where absent. On devices with streams the
  /// work is queued; with `context.allocator` it is done when the call returns.
  virtual void run(const RunContext& context, void* const* operands,
                   void* const* results) const = 0;
  virtual size_t scratch_bytes() const { return 0; }
  /// False if `run` does not read operand `i`, such as a constant that was prepacked.
  virtual bool reads(size_t /*i*/) const { return true; }
  /// Whether the work that `run` queues may be recorded and queued again (paddle/plugin/device.h):
  /// false for what waits for the device or reads something of the host while it runs.
  virtual bool capturable() const { return true; }
  /// Name of the algorithm for `paddle op bench` and profiles, such as "onednn:brg:avx512_core".
  virtual std::string implementation() const { return "cpu"; }
  /// Kernels with the same key can be merged; null for those that cannot.
  virtual const void* merge_key() const { return nullptr; }
  /// A kernel that does the work of several with this one's key, which are independent. It refers
  /// to them. Its operands and results are theirs, one kernel after the other; it needs no scratch.
  virtual std::unique_ptr<Kernel> merged(std::span<const Kernel* const> /*kernels*/) const {
    return nullptr;
  }
};

/// Returns null to decline (another backend, or the decomposition, is used then).
using PrepareFn = std::unique_ptr<Kernel> (*)(const KernelRequest& request);

/// A kernel from a callable `f(const RunContext&, void* const* operands, void* const* results)`.
template <class F>
std::unique_ptr<Kernel> make_kernel(F f, size_t scratch = 0, std::string name = "cpu") {
  class FunctionKernel final : public Kernel {
   public:
    FunctionKernel(F fn, size_t bytes, std::string label)
        : f_(std::move(fn)), scratch_(bytes), name_(std::move(label)) {}
    void run(const RunContext& c, void* const* operands, void* const* results) const override {
      f_(c, operands, results);
    }
    size_t scratch_bytes() const override { return scratch_; }
    std::string implementation() const override { return name_; }

   private:
    F f_;
    size_t scratch_;
    std::string name_;
  };
  return std::make_unique<FunctionKernel>(std::move(f), scratch, std::move(name));
}

/// For results without elements.
inline std::unique_ptr<Kernel> nothing_to_do() {
  return make_kernel([](const RunContext&, void* const*, void* const*) {});
}

/// Registers a kernel of a backend (ops/core/backend.h); the one registered last is asked first.
void register_kernel(std::string_view op, std::string_view backend, PrepareFn prepare);

/// A kernel that is added to a running program. It lives to the end of the process.
struct AddedKernel {
  std::string_view op;
  std::string_view backend;  ///< registered; its device is that of the kernel
  std::unique_ptr<Kernel> (*prepare)(const KernelRequest& request, const void* context);
  const void* context = nullptr;
};
/// Adds kernels while other threads prepare some: all of them, or none if an operation or a backend
/// is unknown (kUsage). They are asked before others.
void add_kernels(std::span<const AddedKernel> added);

/// Prepares the first kernel of the target that does not decline; null if there is none.
std::unique_ptr<Kernel> prepare_kernel(const KernelRequest& request);
/// While active, kernels prepared on this thread come from `backend` wherever it can compute them,
/// even if another one is faster. For measurements and tests.
class BackendScope {
 public:
  explicit BackendScope(std::string backend);
  ~BackendScope();
  BackendScope(const BackendScope&) = delete;
  BackendScope& operator=(const BackendScope&) = delete;

 private:
  std::string before_;
};
/// True if a BackendScope is active on this thread.
bool backend_is_wanted();
/// Names of the backends that have a kernel for the operation.
std::vector<std::string> kernel_backends(const Op& op);
/// Whether a backend of the target has a kernel for the operation and operands of these dtypes,
/// absent ones left out; without any, for operands of some dtypes.
bool has_kernel(const Op& op, const TargetInfo& target = {}, std::span<const DType> operands = {});

}  // namespace paddle
