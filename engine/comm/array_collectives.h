#pragma once
// Collectives of arrays in host memory, for callers that are not operations of a program. Groups
// are ascending lists of ranks with this one among them; arrays are contiguous.

#include <cstdint>
#include <memory>
#include <span>

#include "comm/communicator.h"
#include "tensor/tensor.h"

namespace paddle::comm {

/// Joins the run that the environment describes; one rank without such an environment. Errors as
/// those of membership_from_environment and join.
std::unique_ptr<Communicator> join_run();

size_t bytes_of(const Array& array);
std::byte* memory_of(const Array& array);

/// An all-reduce with its memory, for `start`ed ones as well: it stays until the wait is over.
struct ArrayReduction {
  Array in, out, scratch;
  ArrayReduction(Array array, std::span<const int> group);
  ReduceBuffer buffer() const { return {in.raw(), out.raw(), in.size()}; }
};

Array all_reduce(Communicator& run, const Array& x, Reduction reduction,
                 std::span<const int> group);
/// This rank's of equal parts of the first axis; kUsage if it does not divide.
Array reduce_scatter(Communicator& run, const Array& x, Reduction reduction,
                     std::span<const int> group);
/// The rows (first axis) of all ranks joined, of which the i-th has rows[i].
Array all_gather(Communicator& run, const Array& x, std::span<const int64_t> rows,
                 std::span<const int> group);
/// Rows to and from the ranks of a group: sent[i] go to the i-th, received[i] come from it.
Array all_to_all(Communicator& run, const Array& x, std::span<const int64_t> sent,
                 std::span<const int64_t> received, std::span<const int> group);

}  // namespace paddle::comm
