// Collective operations: the collectives of the run context move the bytes.

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include "comm/collectives.h"
#include "ops/core/kernel.h"
#include "ops/generated/comm.h"

namespace paddle::io_kernels {
namespace {

/// The collectives of a run that these ranks belong to.
comm::Collectives& collectives(const RunContext& context, const std::vector<int>& ranks) {
  comm::Collectives* const run = context.collectives;
  if (!run)
    fail(ErrorCode::kUsage, "a collective operation over ", ranks.size(),
         " ranks runs only within a parallel run (paddle-launch, or paddle-train --simulate)");
  if (ranks.back() >= run->size() ||
      std::find(ranks.begin(), ranks.end(), run->rank()) == ranks.end())
    fail(ErrorCode::kUsage, "a collective operation over ranks ", str(ranks), " runs on rank ",
         run->rank(), " of ", run->size());
  run->set_location(context.location);
  return *run;
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
  std::vector<comm::ReduceBuffer> tensors;
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
          collectives(context, sums->ranks)
              .all_reduce(sums->tensors, sums->dtype, sums->reduction,
                          {sums->ranks, context.scratch, context.stream});
      },
      comm::all_reduce_scratch(sums->dtype, sums->count, sums->ranks.size()), "comm");
}

std::unique_ptr<Kernel> prepare_comm_start_all_reduce(const KernelRequest& request) {
  const CommStartAllReduceAttrs attrs(request.attrs);
  const auto sums = std::make_shared<Sums>(request, attrs.ranks, attrs.reduction);
  const size_t needed = comm::all_reduce_scratch(sums->dtype, sums->count, sums->ranks.size());
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
          collectives(context, sums->ranks)
              .start_all_reduce(
                  sums->tensors, sums->dtype, sums->reduction,
                  {sums->ranks, static_cast<std::byte*>(results[sums->tensors.size()]),
                   context.stream});
      },
      copy_scratch, "comm");
}

std::unique_ptr<Kernel> prepare_comm_wait(const KernelRequest& request) {
  const Layout& x = request.operands[0];
  return make_kernel(
      [bytes = static_cast<size_t>(storage_bytes(x.dtype, x.size()))](
          const RunContext& context, void* const* operands, void* const* results) {
        if (context.collectives) context.collectives->wait(context.stream);
        if (operands[0] != results[0] && bytes > 0) std::memcpy(results[0], operands[0], bytes);
      },
      0, "comm");
}

namespace {

/// A reduce-scatter: what it needs besides its memory.
struct Scatter {
  std::vector<int> ranks;
  comm::Reduction reduction;
  DType dtype;
  Rows rows;
  std::vector<int64_t> counts;
  size_t reducing = 0, total = 0;
  bool packs = false;

  template <class A>
  Scatter(const Layout& x, const A& attrs, comm::Reduction of)
      : ranks(as_ranks(attrs.ranks)),
        reduction(of),
        dtype(x.dtype),
        rows(x, attrs.axis, attrs.sizes) {
    for (const int64_t size : attrs.sizes) counts.push_back(size * rows.outer * rows.inner);
    reducing = comm::reduce_scatter_scratch(
        static_cast<size_t>(storage_bytes(dtype, counts[static_cast<size_t>(attrs.position)])),
        ranks.size());
    total = static_cast<size_t>(storage_bytes(dtype, x.size()));
    packs = rows.outer > 1 && ranks.size() > 1;
  }
  size_t scratch() const { return reducing + (packs ? total : 0); }
  /// The parts of the ranks, contiguous, in rank order.
  const void* packed(const void* in, std::byte* scratch) const {
    if (!packs) return in;
    std::byte* const out = scratch + reducing;
    const auto* from = static_cast<const std::byte*>(in);
    for (int64_t row = 0; row < rows.outer; ++row) {
      std::byte* part = out;
      for (const size_t bytes : rows.bytes) {
        std::memcpy(part + static_cast<size_t>(row) * bytes, from, bytes);
        from += bytes;
        part += bytes * static_cast<size_t>(rows.outer);
      }
    }
    return out;
  }
};

/// An all-gather: what it needs besides its memory.
struct Gather {
  std::vector<int> ranks;
  int64_t outer = 1;
  std::vector<size_t> rows, bytes;  ///< of each rank in a row, in all rows
  size_t total = 0;

  template <class A>
  Gather(const KernelRequest& request, const A& attrs) : ranks(as_ranks(attrs.ranks)) {
    const Rows all(request.operands[0], attrs.axis, attrs.sizes);
    outer = all.outer;
    rows = all.bytes;
    for (const size_t row : rows) bytes.push_back(row * static_cast<size_t>(outer));
    const Layout& out = request.results[0];
    total = static_cast<size_t>(storage_bytes(out.dtype, out.size()));
  }
  bool packs() const { return outer > 1 && ranks.size() > 1; }
  size_t scratch() const { return packs() ? total : 0; }
  /// Rows of all ranks from the contiguous parts of the ranks.
  void unpack(const std::byte* parts, void* out) const {
    auto* to = static_cast<std::byte*>(out);
    for (int64_t row = 0; row < outer; ++row) {
      const std::byte* part = parts;
      for (size_t i = 0; i < rows.size(); ++i) {
        std::memcpy(to, part + static_cast<size_t>(row) * rows[i], rows[i]);
        to += rows[i];
        part += bytes[i];
      }
    }
  }
};

void check_scratch(const char* op, int64_t given, size_t needed) {
  if (static_cast<size_t>(given) < needed)
    fail(ErrorCode::kUsage, op, ": scratch is ", given, " bytes, the exchange needs ", needed);
}

}  // namespace

std::unique_ptr<Kernel> prepare_comm_reduce_scatter(const KernelRequest& request) {
  const CommReduceScatterAttrs attrs(request.attrs);
  const Scatter scatter(request.operands[0], attrs, reduction_of(attrs.reduction));
  return make_kernel(
      [scatter](const RunContext& context, void* const* operands, void* const* results) {
        if (scatter.ranks.size() == 1) {
          std::memcpy(results[0], operands[0], scatter.total);
          return;
        }
        collectives(context, scatter.ranks)
            .reduce_scatter(scatter.packed(operands[0], context.scratch), results[0],
                            scatter.counts, scatter.dtype, scatter.reduction,
                            {scatter.ranks, context.scratch, context.stream});
      },
      scatter.scratch(), "comm");
}

std::unique_ptr<Kernel> prepare_comm_start_reduce_scatter(const KernelRequest& request) {
  const CommStartReduceScatterAttrs attrs(request.attrs);
  const Scatter scatter(request.operands[0], attrs, comm::Reduction::kSum);
  check_scratch("comm.start_reduce_scatter", attrs.scratch, scatter.scratch());
  return make_kernel(
      [scatter](const RunContext& context, void* const* operands, void* const* results) {
        if (scatter.ranks.size() == 1) {
          std::memcpy(results[0], operands[0], scatter.total);
          return;
        }
        auto* const memory = static_cast<std::byte*>(results[1]);
        collectives(context, scatter.ranks)
            .start_reduce_scatter(scatter.packed(operands[0], memory), results[0], scatter.counts,
                                  scatter.dtype, scatter.reduction,
                                  {scatter.ranks, memory, context.stream});
      },
      0, "comm");
}

std::unique_ptr<Kernel> prepare_comm_all_gather(const KernelRequest& request) {
  const CommAllGatherAttrs attrs(request.attrs);
  const Gather gather(request, attrs);
  return make_kernel(
      [gather](const RunContext& context, void* const* operands, void* const* results) {
        if (gather.ranks.size() == 1) {
          std::memcpy(results[0], operands[0], gather.total);
          return;
        }
        comm::Collectives& run = collectives(context, gather.ranks);
        const comm::CollectiveCall call{gather.ranks, nullptr, context.stream};
        if (!gather.packs()) {
          run.all_gather(operands[0], results[0], gather.bytes, call);
          return;
        }
        run.all_gather(operands[0], context.scratch, gather.bytes, call);
        gather.unpack(context.scratch, results[0]);
      },
      gather.scratch(), "comm");
}

std::unique_ptr<Kernel> prepare_comm_start_all_gather(const KernelRequest& request) {
  const CommStartAllGatherAttrs attrs(request.attrs);
  const auto gather = std::make_shared<const Gather>(request, attrs);
  check_scratch("comm.start_all_gather", attrs.scratch, gather->scratch());
  return make_kernel(
      [gather](const RunContext& context, void* const* operands, void* const* results) {
        if (gather->ranks.size() == 1) {
          std::memcpy(results[0], operands[0], gather->total);
          return;
        }
        comm::Collectives& run = collectives(context, gather->ranks);
        const comm::CollectiveCall call{gather->ranks, nullptr, context.stream};
        if (!gather->packs()) {
          run.start_all_gather(operands[0], results[0], gather->bytes, call, {});
          return;
        }
        auto* const memory = static_cast<std::byte*>(results[1]);
        run.start_all_gather(
            operands[0], memory, gather->bytes, call,
            [gather, memory, out = results[0]](paddle_stream) { gather->unpack(memory, out); });
      },
      0, "comm");
}

namespace {

/// Bytes of the rows for each rank; kData unless they fit into `rows`.
std::vector<size_t> row_bytes(const void* counts, size_t ranks, int64_t rows, size_t each,
                              const char* name) {
  std::vector<size_t> out(ranks);
  int64_t left = rows;
  for (size_t i = 0; i < ranks; ++i) {
    const int64_t count = static_cast<const int64_t*>(counts)[i];
    if (count < 0 || count > left)
      fail(ErrorCode::kData, "comm.all_to_all: ", name, "[", i, "] is ", count, ", but ", left,
           " of ", rows, " rows are left");
    left -= count;
    out[i] = static_cast<size_t>(count) * each;
  }
  return out;
}

}  // namespace

std::unique_ptr<Kernel> prepare_comm_all_to_all(const KernelRequest& request) {
  const CommAllToAllAttrs attrs(request.attrs);
  const Layout &x = request.operands[0], &out = request.results[0];
  int64_t items = 1;
  for (size_t d = 1; d < x.shape.size(); ++d) items *= x.shape[d];
  const auto each = static_cast<size_t>(storage_bytes(x.dtype, items));
  return make_kernel(
      [ranks = as_ranks(attrs.ranks), each, sends = x.shape[0], takes = out.shape[0]](
          const RunContext& context, void* const* operands, void* const* results) {
        const auto sent = row_bytes(operands[1], ranks.size(), sends, each, "sent");
        const auto received = row_bytes(operands[2], ranks.size(), takes, each, "received");
        const size_t arrived = std::accumulate(received.begin(), received.end(), size_t{0});
        auto* const to = static_cast<std::byte*>(results[0]);
        if (const size_t all = static_cast<size_t>(takes) * each; all > arrived)
          std::memset(to + arrived, 0, all - arrived);
        collectives(context, ranks)
            .all_to_all(operands[0], sent, to, received, {ranks, nullptr, context.stream});
      },
      0, "comm");
}

namespace {

size_t bytes_of_layout(const Layout& layout) {
  return static_cast<size_t>(storage_bytes(layout.dtype, layout.size()));
}

/// Messages of operations have tags of their own, apart from those of the engine.
uint32_t message_tag(int64_t tag) { return (uint32_t{1} << 31) | static_cast<uint32_t>(tag); }

/// The collectives of a run, for a message to or from another rank.
comm::Collectives& collectives_of_message(const RunContext& context, int64_t rank, const char* op) {
  comm::Collectives* const run = context.collectives;
  if (!run || rank >= run->size() || rank == run->rank())
    fail(ErrorCode::kUsage, op, ": rank ", rank, " is not another rank of this run of ",
         run ? run->size() : 1);
  run->set_location(context.location);
  return *run;
}

}  // namespace

std::unique_ptr<Kernel> prepare_comm_permute(const KernelRequest& request) {
  const CommPermuteAttrs attrs(request.attrs);
  return make_kernel(
      [ranks = as_ranks(attrs.ranks), shift = attrs.shift,
       bytes = bytes_of_layout(request.operands[0])](const RunContext& context,
                                                     void* const* operands, void* const* results) {
        if (ranks.size() == 1) {
          if (bytes > 0) std::memcpy(results[0], operands[0], bytes);
          return;
        }
        collectives(context, ranks)
            .permute({static_cast<const std::byte*>(operands[0]), bytes},
                     {static_cast<std::byte*>(results[0]), bytes}, shift,
                     {ranks, nullptr, context.stream});
      },
      0, "comm");
}

std::unique_ptr<Kernel> prepare_comm_send(const KernelRequest& request) {
  const CommSendAttrs attrs(request.attrs);
  return make_kernel(
      [rank = attrs.rank, tag = message_tag(attrs.tag),
       bytes = bytes_of_layout(request.operands[0])](const RunContext& context,
                                                     void* const* operands, void* const*) {
        collectives_of_message(context, rank, "comm.send")
            .send({static_cast<const std::byte*>(operands[0]), bytes}, static_cast<int>(rank), tag,
                  context.stream);
      },
      0, "comm");
}

std::unique_ptr<Kernel> prepare_comm_recv(const KernelRequest& request) {
  const CommRecvAttrs attrs(request.attrs);
  return make_kernel(
      [rank = attrs.rank, tag = message_tag(attrs.tag),
       bytes = bytes_of_layout(request.results[0])](const RunContext& context, void* const*,
                                                    void* const* results) {
        collectives_of_message(context, rank, "comm.recv")
            .recv({static_cast<std::byte*>(results[0]), bytes}, static_cast<int>(rank), tag,
                  context.stream);
      },
      0, "comm");
}

}  // namespace paddle::io_kernels
