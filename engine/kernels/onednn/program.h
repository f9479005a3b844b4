#pragma once
// A oneDNN kernel is a short program of primitives (reorders around one computation) over operands,
// results and scratch. Only for .cc files of kernels/: it exposes oneDNN types.

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "oneapi/dnnl/dnnl.hpp"

#include "base/parallel.h"
#include "ops/core/kernel.h"

namespace paddle::onednn {

dnnl::engine& cpu_engine();
/// f32, or bf16 where the machine has AVX-512.
bool supports(DType dtype);
dnnl::memory::data_type data_type(DType dtype);
/// True if one instruction accumulates int8 products in 32 bits (VNNI). Without it pairs of
/// products are added in 16 bits first, which large weights overflow.
bool has_vnni();
/// True if there are SIMD instructions for int8 products at all (AVX2).
bool has_int8_simd();
/// True for oneDNN's slow reference implementation, which our own kernels beat.
bool is_reference(const std::string& implementation);

/// True for implementations generated for the shape; oneDNN's plain loops are slower than ours.
bool is_jit(const std::string& implementation);

/// True if waking a second thread would cost more than it saves.
bool is_small(int64_t multiplications);
/// The number of threads for a kernel that multiplies as often.
inline int threads_for(int64_t multiplications) {
  return is_small(multiplications) ? 1 : thread_count();
}

/// Where an argument of a primitive is found when the kernel runs.
struct MemoryRef {
  enum Kind : uint8_t { kOperand, kResult, kScratch, kOwned } kind;
  size_t index;       ///< of the operand, result or owned memory; byte offset in scratch
  size_t offset = 0;  ///< bytes from the start of the value
};

/// Runs with as many threads as the thread that makes it has then: work that is too small for
/// several is prepared in a ThreadScope of one.
class Program final : public Kernel {
 public:
  /// Allocates scratch for one value of this layout.
  MemoryRef scratch(const dnnl::memory::desc& desc);
  /// Appends a reorder unless the layouts agree; returns where the value is then.
  MemoryRef convert(MemoryRef from, const dnnl::memory::desc& from_desc,
                    const dnnl::memory::desc& to_desc);
  /// The same for `request.operands[operand]`, which is operand `index` of the run. Constants are
  /// prepacked now, and shared by all kernels that use the same layout; with the target's
  /// skip_prepack they are reordered in each run instead.
  MemoryRef prepack_operand(const KernelRequest& request, size_t operand, size_t index,
                            const dnnl::memory::desc& from_desc, const dnnl::memory::desc& to_desc);
  /// A copy of `data` that the program owns.
  MemoryRef add_constant(const dnnl::memory::desc& desc, const void* data);
  /// Appends a reorder into `to`, whose layout is `to_desc`.
  void reorder(MemoryRef from, const dnnl::memory::desc& from_desc, MemoryRef to,
               const dnnl::memory::desc& to_desc);

  struct Argument {
    int id;  ///< DNNL_ARG_…
    dnnl::memory::desc desc;
    MemoryRef ref;
  };
  /// Appends a primitive whose attributes request a user scratchpad.
  void add(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
           const std::vector<Argument>& arguments);
  /// The same with a scratchpad that other primitives share.
  void add(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
           MemoryRef scratch, const std::vector<Argument>& arguments);
  /// Appends a function that is called like Kernel::run and reads these operands.
  using Function = std::function<void(const RunContext&, void* const*, void* const*)>;
  void add(const std::vector<size_t>& operands, Function function);
  /// The address of an operand, a result or scratch in a run.
  static void* address(MemoryRef ref, const RunContext& context, void* const* operands,
                       void* const* results);
  void set_name(std::string name) { name_ = "onednn:" + std::move(name); }

  void run(const RunContext& context, void* const* operands, void* const* results) const override;
  size_t scratch_bytes() const override { return scratch_; }
  bool reads(size_t i) const override;
  std::string implementation() const override { return name_; }

 private:
  struct Step {
    Function function;  ///< reads the operands in `memory`; or empty, and
    dnnl::primitive primitive;
    std::vector<dnnl::memory> memories;
    std::vector<MemoryRef> memory;
    std::vector<dnnl_exec_arg_t> arguments;
  };

  std::vector<Step> steps_;
  std::vector<std::shared_ptr<Storage>> owned_;  ///< or borrowed, at any address
  size_t scratch_ = 0;
  std::string name_ = "onednn";
  int threads_ = thread_count();  ///< of the primitives, which were created for them
  mutable std::mutex running_;    // runs set the data handles of the memories
};

/// Attributes of primitives whose scratchpad the caller provides.
dnnl::primitive_attr user_scratchpad();

}  // namespace paddle::onednn
