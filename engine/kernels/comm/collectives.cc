// Collective operations: the calling thread's communicator moves the bytes.

#include <algorithm>
#include <cstring>

#include "comm/communicator.h"
#include "ops/core/kernel.h"
#include "ops/generated/comm.h"

namespace paddle::cpu {
namespace {

comm::Communicator& communicator(const std::vector<int>& ranks) {
  comm::Communicator* const current = comm::current_communicator();
  if (!current)
    fail(ErrorCode::kUsage, "a collective operation over ", ranks.size(),
         " ranks runs only within a parallel run (paddle-launch, or paddle-train --simulate)");
  if (ranks.back() >= current->size() ||
      std::find(ranks.begin(), ranks.end(), current->rank()) == ranks.end())
    fail(ErrorCode::kUsage, "a collective operation over ranks ", str(ranks), " runs on rank ",
         current->rank(), " of ", current->size());
  return *current;
}

std::vector<int> as_ranks(const std::vector<int64_t>& ranks) {
  return {ranks.begin(), ranks.end()};
}

comm::Reduction reduction_of(const std::string& word) {
  return word == "max"   ? comm::Reduction::kMax
         : word == "min" ? comm::Reduction::kMin
                         : comm::Reduction::kSum;
}

}  // namespace

std::unique_ptr<Kernel> prepare_comm_all_reduce(const KernelRequest& request) {
  const CommAllReduceAttrs attrs(request.attrs);
  const Layout& x = request.operands[0];
  return make_kernel(
      [ranks = as_ranks(attrs.ranks), reduction = reduction_of(attrs.reduction), dtype = x.dtype,
       count = x.size()](const RunContext& context, void* const* operands, void* const* results) {
        if (ranks.size() == 1)
          std::memcpy(results[0], operands[0], static_cast<size_t>(storage_bytes(dtype, count)));
        else
          communicator(ranks).all_reduce(operands[0], results[0], count, dtype, reduction, ranks,
                                         context.scratch);
      },
      comm::Communicator::all_reduce_scratch(x.dtype, x.size(), attrs.ranks.size()), "comm");
}

std::unique_ptr<Kernel> prepare_comm_all_gather(const KernelRequest& request) {
  const CommAllGatherAttrs attrs(request.attrs);
  const Layout &x = request.operands[0], &out = request.results[0];
  const auto rank = static_cast<int64_t>(x.shape.size());
  const auto axis = static_cast<size_t>(attrs.axis < 0 ? attrs.axis + rank : attrs.axis);
  int64_t outer = 1, inner = 1;
  for (size_t d = 0; d < axis; ++d) outer *= x.shape[d];
  for (size_t d = axis + 1; d < x.shape.size(); ++d) inner *= x.shape[d];
  std::vector<size_t> rows, bytes;  // of each rank: a row, and all of them
  for (const int64_t size : attrs.sizes) {
    rows.push_back(static_cast<size_t>(storage_bytes(x.dtype, size * inner)));
    bytes.push_back(rows.back() * static_cast<size_t>(outer));
  }
  const auto total = static_cast<size_t>(storage_bytes(out.dtype, out.size()));
  return make_kernel(
      [ranks = as_ranks(attrs.ranks), rows, bytes, outer, total](
          const RunContext& context, void* const* operands, void* const* results) {
        if (ranks.size() == 1) {
          std::memcpy(results[0], operands[0], total);
          return;
        }
        comm::Communicator& peers = communicator(ranks);
        if (outer == 1) {
          peers.all_gather(operands[0], results[0], bytes, ranks);
          return;
        }
        peers.all_gather(operands[0], context.scratch, bytes, ranks);
        auto* to = static_cast<std::byte*>(results[0]);
        for (int64_t row = 0; row < outer; ++row) {
          const std::byte* part = context.scratch;
          for (size_t i = 0; i < rows.size(); ++i) {
            std::memcpy(to, part + static_cast<size_t>(row) * rows[i], rows[i]);
            to += rows[i];
            part += bytes[i];
          }
        }
      },
      outer == 1 ? 0 : total, "comm");
}

}  // namespace paddle::cpu
