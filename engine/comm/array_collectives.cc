#include "comm/array_collectives.h"

#include <numeric>
#include <utility>
#include <vector>

#include "comm/join.h"
#include "comm/membership.h"

namespace paddle::comm {
namespace {

Array scratch_of(size_t bytes) { return Array::empty(DType::kU8, {static_cast<int64_t>(bytes)}); }

/// Like x, with another number of rows.
Array with_rows(const Array& x, int64_t rows) {
  ensure(!x.shape.empty(), "a collective of rows needs an axis");
  Dims shape = x.shape;
  shape[0] = rows;
  return Array::empty(x.dtype, shape);
}

std::vector<size_t> row_bytes(const Array& x, std::span<const int64_t> rows) {
  const auto row = static_cast<size_t>(
      storage_bytes(x.dtype, element_count(std::span<const int64_t>(x.shape).subspan(1))));
  std::vector<size_t> out;
  for (const int64_t count : rows) out.push_back(static_cast<size_t>(count) * row);
  return out;
}

int64_t sum(std::span<const int64_t> rows) {
  return std::accumulate(rows.begin(), rows.end(), int64_t{0});
}

}  // namespace

std::unique_ptr<Communicator> join_run() {
  const Membership membership = membership_from_environment();
  return std::make_unique<Communicator>(
      membership.size == 1 ? nullptr : join(membership, JoinOptions::from_environment()));
}

size_t bytes_of(const Array& array) {
  return static_cast<size_t>(storage_bytes(array.dtype, array.size()));
}

std::byte* memory_of(const Array& array) { return static_cast<std::byte*>(array.raw()); }

ArrayReduction::ArrayReduction(Array array, std::span<const int> group)
    : in(std::move(array)),
      out(Array::empty(in.dtype, in.shape)),
      scratch(scratch_of(all_reduce_scratch(in.dtype, in.size(), group.size()))) {}

Array all_reduce(Communicator& run, const Array& x, Reduction reduction,
                 std::span<const int> group) {
  const ArrayReduction job(x, group);
  const ReduceBuffer buffer = job.buffer();
  run.collectives().all_reduce({&buffer, 1}, x.dtype, reduction,
                               {.group = group, .scratch = memory_of(job.scratch)});
  return job.out;
}

Array reduce_scatter(Communicator& run, const Array& x, Reduction reduction,
                     std::span<const int> group) {
  const auto parts = static_cast<int64_t>(group.size());
  if (x.shape.empty() || x.shape[0] % parts != 0)
    fail(ErrorCode::kUsage, "reduce_scatter: the first axis of ", x.shape, " does not divide into ",
         parts, " parts");
  Array out = with_rows(x, x.shape[0] / parts);
  const std::vector<int64_t> counts(group.size(), out.size());
  const Array scratch = scratch_of(reduce_scatter_scratch(bytes_of(out), group.size()));
  run.collectives().reduce_scatter(x.raw(), out.raw(), counts, x.dtype, reduction,
                                   {.group = group, .scratch = memory_of(scratch)});
  return out;
}

Array all_gather(Communicator& run, const Array& x, std::span<const int64_t> rows,
                 std::span<const int> group) {
  Array out = with_rows(x, sum(rows));
  run.all_gather(x.raw(), out.raw(), row_bytes(x, rows), group);
  return out;
}

Array all_to_all(Communicator& run, const Array& x, std::span<const int64_t> sent,
                 std::span<const int64_t> received, std::span<const int> group) {
  Array out = with_rows(x, sum(received));
  ensure(sum(sent) == x.shape[0], "all_to_all: rows are missing");
  run.all_to_all(x.raw(), row_bytes(x, sent), out.raw(), row_bytes(x, received), group);
  return out;
}

}  // namespace paddle::comm
