#pragma once
// A oneDNN kernel is a short program of primitives (reorders around one computation) over the
// operands, the results and scratch. This header is for the .cc files of this folder only: it shows
// oneDNN's types.

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "oneapi/dnnl/dnnl.hpp"

#include "ops/kernel.h"

namespace paddle::onednn {

dnnl::engine& cpu_engine();
/// f32, or bf16 where the machine has AVX-512; nothing else.
bool supports(DType dtype);
dnnl::memory::data_type data_type(DType dtype);
/// True if products of bytes are summed to 32 bits by one instruction. Without it pairs of products
/// are summed to 16 bits first, which large weights overflow.
bool has_vnni();
/// True if products of bytes have instructions at all.
bool has_int8_simd();
/// True for oneDNN's slow reference code, which our own kernels beat.
bool is_reference(const std::string& implementation);

/// True for code that oneDNN generates for the shape; its plain loops are slower than our own.
bool is_jit(const std::string& implementation);

/// True for so few operations that waking a second thread takes longer than it saves.
bool is_small(int64_t multiplications);

/// Where a primitive's argument lies when the kernel runs.
struct MemoryRef {
  enum Kind : uint8_t { kOperand, kResult, kScratch, kOwned } kind;
  size_t index;       ///< of the operand, result or owned memory; byte offset in scratch
  size_t offset = 0;  ///< in bytes, from where the value begins
};

class Program final : public Kernel {
 public:
  /// Scratch for one value of this layout.
  MemoryRef scratch(const dnnl::memory::desc& desc);
  /// Appends a reorder, unless the layouts agree; gives the slot that then holds the value.
  MemoryRef convert(MemoryRef from, const dnnl::memory::desc& from_desc,
                    const dnnl::memory::desc& to_desc);
  /// The same for operand `place`, which is `request.operands[operand]`. One that never changes is
  /// brought into the layout now, and shared by all kernels that want it so; where few runs are
  /// expected, it is so in each of them.
  MemoryRef prepack_operand(const KernelRequest& request, size_t operand, size_t place,
                            const dnnl::memory::desc& from_desc, const dnnl::memory::desc& to_desc);
  /// A value of the program's own, copied from `data`.
  MemoryRef add_constant(const dnnl::memory::desc& desc, const void* data);
  /// Appends a reorder into `to`, whose layout is `to_desc`.
  void reorder(MemoryRef from, const dnnl::memory::desc& from_desc, MemoryRef to,
               const dnnl::memory::desc& to_desc);

  struct Argument {
    int id;  ///< DNNL_ARG_…
    dnnl::memory::desc desc;
    MemoryRef ref;
  };
  /// Appends a primitive, whose attributes ask for user scratch.
  void add(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
           const std::vector<Argument>& arguments);
  /// The same in scratch that other primitives use too.
  void add(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
           MemoryRef scratch, const std::vector<Argument>& arguments);
  /// Appends a computation of our own, called as a kernel's `run`, which looks at these operands.
  using Function = std::function<void(const RunContext&, void* const*, void* const*)>;
  void add(const std::vector<size_t>& operands, Function function);
  /// Where the value of an operand, a result or scratch lies in a run.
  static void* address(MemoryRef ref, const RunContext& context, void* const* operands,
                       void* const* results);
  /// The program is too small for several threads; its primitives must have been made in a
  /// SerialScope too.
  void set_serial(bool serial) { serial_ = serial; }
  void set_name(std::string name) { name_ = "onednn:" + std::move(name); }

  void run(const RunContext& context, void* const* operands, void* const* results) const override;
  size_t scratch_bytes() const override { return scratch_; }
  bool reads(size_t i) const override;
  std::string implementation() const override { return name_; }

 private:
  struct Step {
    Function function;  ///< reading the operands in `slots`; or empty, and
    dnnl::primitive primitive;
    std::vector<dnnl::memory> memories;
    std::vector<MemoryRef> memory;
    std::vector<dnnl_exec_arg_t> arguments;
  };

  std::vector<Step> steps_;
  std::vector<std::shared_ptr<Storage>> owned_;  ///< or borrowed, at any address
  size_t scratch_ = 0;
  std::string name_ = "onednn";
  bool serial_ = false;
  mutable std::mutex running_;  // the memories' pointers are set anew for each run
};

/// Attributes that take scratch from the caller.
dnnl::primitive_attr user_scratchpad();

}  // namespace paddle::onednn
