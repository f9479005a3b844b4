#pragma once
// How reductions and gathers are computed from messages, in host memory. The binary tree is the
// default: its sums do not depend on the transport, on the sizes of shards or on the machines.

#include <memory>
#include <span>

#include "comm/collectives.h"
#include "comm/messages.h"

namespace paddle::comm {

enum class CollectiveForm : uint8_t {
  /// Elements are reduced in a binary tree over the positions in the group, ((0 + 1) + (2 + 3)) + …
  /// Where machines hold equal runs of a power of two of the group's ranks, a large all-reduce is
  /// computed within the machines first, with the same bits.
  kTree,
  /// Parts go around the ranks: each rank exchanges with its two neighbors only. The i-th part of
  /// an
  /// array is summed in the order of ranks that begins after the i-th one, so the bits of an
  /// element
  /// depend on its position.
  kRing,
};

/// All functions block, and may be called with groups of one rank.
class CollectiveAlgorithm {
 public:
  virtual ~CollectiveAlgorithm() = default;
  virtual void all_reduce(Messages& messages, std::span<const ReduceBuffer> tensors, DType dtype,
                          Reduction reduction, std::span<const int> group, std::byte* scratch) = 0;
  virtual void reduce_scatter(Messages& messages, const void* in, void* out,
                              std::span<const int64_t> counts, DType dtype, Reduction reduction,
                              std::span<const int> group, std::byte* scratch) = 0;
  virtual void all_gather(Messages& messages, const void* in, void* out,
                          std::span<const size_t> bytes, std::span<const int> group) = 0;
};

std::unique_ptr<CollectiveAlgorithm> make_tree();
std::unique_ptr<CollectiveAlgorithm> make_ring();
std::unique_ptr<CollectiveAlgorithm> make_algorithm(CollectiveForm form);

// Shared by the algorithms.

/// The arrays may overlap, and those of no bytes may be null.
void copy_bytes(void* to, const void* from, size_t bytes);
size_t size_in_bytes(DType dtype, int64_t count);
/// Elements [begin, end) of `count` that position `i` of `parts` reduces.
std::pair<int64_t, int64_t> part_of(int64_t count, size_t i, size_t parts);
/// The position of the rank in the group.
size_t position_in(std::span<const int> group, int rank);
/// into = into ∘ other, element by element. A NaN wins, as in the kernels of max and min.
void combine(std::byte* into, const std::byte* other, int64_t count, DType dtype,
             Reduction reduction);

/// Visits the pieces of elements [begin, end) of concatenated tensors: the tensor, its first
/// element and the number of elements.
template <class Visit>
void for_each_piece(std::span<const ReduceBuffer> tensors, int64_t begin, int64_t end,
                    Visit&& visit) {
  int64_t at = 0;
  for (const ReduceBuffer& tensor : tensors) {
    const int64_t from = std::max(begin, at), to = std::min(end, at + tensor.count);
    if (from < to) visit(tensor, from - at, to - from);
    at += tensor.count;
  }
}

}  // namespace paddle::comm
