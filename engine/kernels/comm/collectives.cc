// Collective operations: the calling thread's communicator moves the bytes.

#include <algorithm>
#include <cstring>
#include <memory>

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

/// An array as rows along an axis, each of which has a part of every rank.
struct Rows {
  int64_t outer = 1, inner = 1;
  std::vector<size_t> bytes;  ///< of each rank in a row

  Rows(const Layout& x, int64_t axis, const std::vector<int64_t>& sizes) {
    const auto rank = static_cast<int64_t>(x.shape.size());
    const auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
    for (size_t d = 0; d < at; ++d) outer *= x.shape[d];
    for (size_t d = at + 1; d < x.shape.size(); ++d) inner *= x.shape[d];
    for (const int64_t size : sizes)
      bytes.push_back(static_cast<size_t>(storage_bytes(x.dtype, size * inner)));
  }
};

}  // namespace

namespace {

/// The operands and results of an all-reduce: the pointers are those of its last call.
struct Sums {
  std::vector<int> ranks;
  comm::Reduction reduction;
  DType dtype;
  std::vector<comm::Summand> tensors;
  std::vector<void*> sources;  ///< room for the operands, or the copies of them that are summed
  int64_t count = 0;

  Sums(const KernelRequest& request, const std::vector<int64_t>& of_ranks, const std::string& word)
      : ranks(as_ranks(of_ranks)), reduction(reduction_of(word)), dtype(request.operands[0].dtype) {
    for (const Layout& x : request.operands) {
      tensors.push_back({nullptr, nullptr, x.size()});
      count += x.size();
    }
    sources.resize(tensors.size());
  }
  void point_to(void* const* operands, void* const* results) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      tensors[i].in = operands[i];
      tensors[i].out = results[i];
      if (ranks.size() == 1 && results[i] != operands[i])
        std::memcpy(results[i], operands[i],
                    static_cast<size_t>(storage_bytes(dtype, tensors[i].count)));
    }
  }
};

}  // namespace

std::unique_ptr<Kernel> prepare_comm_all_reduce(const KernelRequest& request) {
  const CommAllReduceAttrs attrs(request.attrs);
  const auto sums = std::make_shared<Sums>(request, attrs.ranks, attrs.reduction);
  return make_kernel(
      [sums](const RunContext& context, void* const* operands, void* const* results) {
        sums->point_to(operands, results);
        if (sums->ranks.size() > 1)
          communicator(sums->ranks)
              .all_reduce(sums->tensors, sums->dtype, sums->reduction, sums->ranks,
                          context.scratch);
      },
      comm::Communicator::all_reduce_scratch(sums->dtype, sums->count, sums->ranks.size()), "comm");
}

std::unique_ptr<Kernel> prepare_comm_start_all_reduce(const KernelRequest& request) {
  const CommStartAllReduceAttrs attrs(request.attrs);
  const auto sums = std::make_shared<Sums>(request, attrs.ranks, attrs.reduction);
  const size_t needed =
      comm::Communicator::all_reduce_scratch(sums->dtype, sums->count, sums->ranks.size());
  if (static_cast<size_t>(attrs.scratch) < needed)
    fail(ErrorCode::kUsage, "comm.start_all_reduce: scratch is ", attrs.scratch,
         " bytes, the tensors need ", needed);
  // Copies of operands would not stay until the wait: those that are not contiguous are copied into
  // their results, which are then summed in place.
  std::vector<std::shared_ptr<Kernel>> copies(sums->tensors.size());
  size_t copy_scratch = 0;
  static const Attrs kNone;
  for (size_t i = 0; i < copies.size(); ++i) {
    const Layout& from = request.operands[i];
    if (from.is_contiguous()) continue;
    const Layout to = Layout::contiguous(from.dtype, from.shape);
    copies[i] = prepare_kernel(
        {.op = get_op("assign"), .attrs = kNone, .operands = {&from, 1}, .results = {&to, 1}});
    ensure(copies[i] != nullptr, "comm.start_all_reduce: no copy of ", text(from.dtype));
    copy_scratch = std::max(copy_scratch, copies[i]->scratch_bytes());
  }
  return make_kernel(
      [sums, copies](const RunContext& context, void* const* operands, void* const* results) {
        std::vector<void*>& sources = sums->sources;
        for (size_t i = 0; i < copies.size(); ++i) {
          sources[i] = copies[i] ? results[i] : operands[i];
          if (copies[i]) copies[i]->run(context, &operands[i], &results[i]);
        }
        sums->point_to(sources.data(), results);
        if (sums->ranks.size() > 1)
          communicator(sums->ranks)
              .start_all_reduce(sums->tensors, sums->dtype, sums->reduction, sums->ranks,
                                static_cast<std::byte*>(results[sums->tensors.size()]));
      },
      copy_scratch, "comm");
}

std::unique_ptr<Kernel> prepare_comm_wait(const KernelRequest& request) {
  const Layout& x = request.operands[0];
  return make_kernel(
      [bytes = static_cast<size_t>(storage_bytes(x.dtype, x.size()))](
          const RunContext&, void* const* operands, void* const* results) {
        if (comm::Communicator* const peers = comm::current_communicator()) peers->finish();
        if (operands[0] != results[0] && bytes > 0) std::memcpy(results[0], operands[0], bytes);
      },
      0, "comm");
}

std::unique_ptr<Kernel> prepare_comm_reduce_scatter(const KernelRequest& request) {
  const CommReduceScatterAttrs attrs(request.attrs);
  const Layout& x = request.operands[0];
  const Rows rows(x, attrs.axis, attrs.sizes);
  const size_t group = attrs.ranks.size();
  std::vector<int64_t> counts;
  for (const int64_t size : attrs.sizes) counts.push_back(size * rows.outer * rows.inner);
  const auto mine =
      static_cast<size_t>(storage_bytes(x.dtype, counts[static_cast<size_t>(attrs.position)]));
  const size_t reducing = comm::Communicator::reduce_scatter_scratch(mine, group);
  const auto total = static_cast<size_t>(storage_bytes(x.dtype, x.size()));
  const bool packs = rows.outer > 1 && group > 1;
  return make_kernel(
      [ranks = as_ranks(attrs.ranks), reduction = reduction_of(attrs.reduction), dtype = x.dtype,
       rows, counts, reducing, packs,
       total](const RunContext& context, void* const* operands, void* const* results) {
        if (ranks.size() == 1) {
          std::memcpy(results[0], operands[0], total);
          return;
        }
        const void* in = operands[0];
        if (packs) {
          // The parts one behind the other.
          std::byte* const packed = context.scratch + reducing;
          const auto* from = static_cast<const std::byte*>(operands[0]);
          for (int64_t row = 0; row < rows.outer; ++row) {
            std::byte* part = packed;
            for (const size_t bytes : rows.bytes) {
              std::memcpy(part + static_cast<size_t>(row) * bytes, from, bytes);
              from += bytes;
              part += bytes * static_cast<size_t>(rows.outer);
            }
          }
          in = packed;
        }
        communicator(ranks).reduce_scatter(in, results[0], counts, dtype, reduction, ranks,
                                           context.scratch);
      },
      reducing + (packs ? total : 0), "comm");
}

std::unique_ptr<Kernel> prepare_comm_all_gather(const KernelRequest& request) {
  const CommAllGatherAttrs attrs(request.attrs);
  const Layout &x = request.operands[0], &out = request.results[0];
  const Rows in_rows(x, attrs.axis, attrs.sizes);
  const std::vector<size_t>& rows = in_rows.bytes;
  const int64_t outer = in_rows.outer;
  std::vector<size_t> bytes;  // of each rank in all rows
  for (const size_t row : rows) bytes.push_back(row * static_cast<size_t>(outer));
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
