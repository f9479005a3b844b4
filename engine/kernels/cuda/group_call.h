#pragma once
// The arguments of a fusion group's kernel: sizes, strides, and the addresses of a call.

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/cuda/group_source.h"
#include "kernels/cuda/program.h"
#include "kernels/cuda/stream.h"

namespace paddle::cuda {

/// Memory for the arguments of a call, in words of 8 bytes.
inline constexpr size_t kMaxArgumentWords = kMaxArgumentBytes / sizeof(uint64_t);
using ArgumentWords = std::array<uint64_t, kMaxArgumentWords>;

class GroupCall {
 public:
  GroupCall(const FusedRequest& request, const cpu::FusionProgram& program, const Group& group);

  /// Of the structure, in words of 8 bytes.
  size_t size() const { return words_.size(); }
  /// Memory for the folds of chunks.
  size_t scratch_bytes() const { return scratch_; }
  /// Writes the structure of arguments (group_source.cc) to `size()` words. `operands` and
  /// `results` are those of the group.
  void write_arguments(void* const* operands, void* const* results, std::byte* scratch,
                       CUdeviceptr counters, uint64_t* words) const;
  /// Whether the addresses allow the wide kernel.
  bool is_aligned(void* const* operands, void* const* results) const;

 private:
  struct Wide {
    size_t index;
    size_t alignment;
  };

  std::vector<uint64_t> words_;  ///< with place for the addresses
  std::vector<int> reads_;       ///< operands; -1 for the product of a product group
  std::vector<int> stores_, folded_;
  std::vector<int64_t> partial_bytes_;  ///< by reduction
  std::vector<Wide> wide_reads_, wide_stores_;
  size_t scratch_ = 0;
};

}  // namespace paddle::cuda
