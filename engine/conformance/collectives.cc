#include "conformance/collectives.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <numeric>

#include "comm/communicator.h"
#include "comm/simulation.h"
#include "conformance/device_objects.h"
#include "inspect/both_modes.h"
#include "inspect/compare.h"
#include "ir/tracer.h"
#include "ops/generated/comm.h"
#include "runtime/compile.h"
#include "runtime/execute.h"
#include "tensor/device_functions.h"
#include "tensor/interpreter.h"

namespace paddle::conformance {
namespace {

using Peer = comm::Communicator;
using Peers = std::shared_ptr<Peer>;

/// The operand of a rank: small whole numbers, so that sums are exact in any order, except for
/// some floating ones.
Array contribution(DType dtype, int64_t rows, int rank) {
  Array out = Array::empty(DType::kF64, {rows, 2});
  for (int64_t i = 0; i < out.size(); ++i) {
    const double whole = static_cast<double>((i * 7 + rank * 5) % 23 - 11);
    out.data<double>()[i] = is_float(dtype) && i % 3 == 1 ? whole * 0.37 : whole;
  }
  return out.cast(dtype);
}

std::vector<int64_t> all_ranks(const Peer& c) {
  std::vector<int64_t> out(static_cast<size_t>(c.size()));
  std::iota(out.begin(), out.end(), int64_t{0});
  return out;
}

/// Rows of each rank: as equal as they can be.
std::vector<int64_t> shares(int64_t rows, int64_t ranks) {
  std::vector<int64_t> out;
  for (int64_t rank = 0; rank < ranks; ++rank)
    out.push_back(rows * (rank + 1) / ranks - rows * rank / ranks);
  return out;
}

/// The results of `collectives_of` that are the same on all ranks: sums, largest, smallest, and all
/// parts of a sum.
constexpr size_t kSameOnAllRanks[] = {0, 1, 2, 3, 4, 6};
constexpr size_t kCollectives = 11;

/// Every kind of collective operation of `x` [rows, 2].
Tensors collectives_of(const Tensor& x, int64_t rows, DType dtype, const Peer& c) {
  const std::vector<int64_t> ranks = all_ranks(c), parts = shares(rows, c.size());
  Tensors out;
  for (const char* reduction : {"sum", "max", "min"})
    out.push_back(ops::comm_all_reduce({x}, ranks, reduction)[0]);
  for (const Tensor& each : ops::comm_all_reduce({x, out[0]}, ranks)) out.push_back(each);
  const Tensor part = ops::comm_reduce_scatter(x, ranks, c.rank(), 0, parts);
  out.push_back(part);
  out.push_back(ops::comm_all_gather(part, ranks, 0, parts));
  for (const int64_t shift : {1, -1}) out.push_back(ops::comm_permute(x, ranks, shift));
  const int64_t tag = 40, next = (c.rank() + 1) % c.size(),
                before = (c.rank() + c.size() - 1) % c.size();
  out.push_back(ops::comm_send(x, next, tag));
  out.push_back(ops::comm_recv({rows, 2}, dtype, before, tag));
  return out;
}

/// Rows to and from the other ranks, as many as their numbers say: two ranks send each other the
/// same number.
Tensor exchanged_rows(const Tensor& x, int64_t rows, const Peer& c) {
  std::vector<int64_t> rows_of_peers;
  for (int64_t peer = 0; peer < c.size(); ++peer) {
    const int64_t wanted = (c.rank() + peer) % 3;
    rows_of_peers.push_back(rows / c.size() > wanted ? wanted : 0);
  }
  const int64_t count = c.size();
  const Tensor counts(Array::from<int64_t>(rows_of_peers, {count}));
  return ops::comm_all_to_all(x, counts, counts, all_ranks(c), 3 * count);
}

constexpr DType kDtypes[] = {DType::kF32, DType::kF64, DType::kI32, DType::kI64};

std::vector<int64_t> row_counts(const Extent& extent) {
  return {0, 1, 7, extent.quick ? 4097 : 65536};  // the last one: 1 MiB of float64
}

std::vector<Array> eager_results(Peer& c, Device device, const Extent& extent) {
  runtime::EagerExecutor executor({.device = device}, {}, &c.collectives());
  const InterpreterScope scope(executor);
  std::vector<Array> out;
  for (const DType dtype : kDtypes)
    for (const int64_t rows : row_counts(extent)) {
      const Tensor x(contribution(dtype, rows, c.rank()).to(device));
      for (const Tensor& each : collectives_of(x, rows, dtype, c)) out.push_back(each.array());
      out.push_back(exchanged_rows(x, rows, c).array());
      out.push_back(x.array());  // which stays as it is
    }
  for (Array& each : out) each = each.on_host();
  return out;
}

std::vector<Array> plan_results(Peer& c, Device device, const Extent& extent) {
  runtime::register_backends();
  const TargetInfo target{.device = device};
  std::vector<Array> out;
  for (const DType dtype : {DType::kF32, DType::kI32})
    for (const int64_t rows : row_counts(extent)) {
      auto function = std::make_shared<ir::Function>("collectives", target);
      {
        ir::Tracer tracer(*function);
        const InterpreterScope scope(tracer);
        const Tensor x = tracer.input({ir::PortKind::kValue, "x"}, {dtype, {rows, 2}});
        size_t results = 0;
        for (const Tensor& each : collectives_of(x, rows, dtype, c))
          tracer.output({ir::PortKind::kValue, str("y", results++)}, each);
      }
      const auto executable = runtime::compile(function, {.target = target},
                                               {.plan = {.collectives = &c.collectives()}});
      const Array x = contribution(dtype, rows, c.rank());
      for (int run = 0; run < 2; ++run)  // memory of the plan is used again
        for (const Array& each : executable->run({x}))
          out.push_back(inspect::own_copy(each.on_host()));
    }
  return out;
}

using Ranks = std::vector<std::vector<Array>>;

Ranks results_of_ranks(int ranks, bool plan, Device device, const Extent& extent) {
  Ranks out(static_cast<size_t>(ranks));
  comm::simulate(ranks, [&](const Peers& c) {
    out[static_cast<size_t>(c->rank())] =
        plan ? plan_results(*c, device, extent) : eager_results(*c, device, extent);
  });
  return out;
}

/// Against the CPU: sums of a device may be rounded in another order.
std::string compare_ranks(const Ranks& found, const Ranks& expected) {
  for (size_t rank = 0; rank < expected.size(); ++rank)
    for (size_t i = 0; i < expected[rank].size(); ++i) {
      const double tolerance = item_size(expected[rank][i].dtype) <= 4 ? 2e-6 : 1e-14;
      const std::string bad =
          inspect::difference(found[rank][i], expected[rank][i], {tolerance, tolerance});
      if (!bad.empty()) return str("rank ", rank, ": result ", i, ": ", bad);
    }
  return "";
}

/// Results of all ranks have the same bits on each: otherwise their weights would diverge.
std::string compare_with_first(const Ranks& found, size_t results_of_call) {
  for (size_t rank = 1; rank < found.size(); ++rank)
    for (size_t i = 0; i < found[rank].size(); ++i) {
      if (std::ranges::find(kSameOnAllRanks, i % results_of_call) == std::end(kSameOnAllRanks))
        continue;
      const Array &a = found[rank][i], &b = found[0][i];
      const auto bytes = static_cast<size_t>(storage_bytes(a.dtype, a.size()));
      if (std::memcmp(a.raw(), b.raw(), bytes) != 0)
        return str("result ", i, ", ", text(a.dtype), a.shape, ", has other bits on rank ", rank,
                   " than on rank 0");
    }
  return "";
}

/// A rank that is lost ends the others with kPeer.
std::string check_lost(Device device) {
  try {
    comm::simulate(3, [&](const Peers& c) {
      if (c->rank() == 2) fail(ErrorCode::kUsage, "lost on purpose");
      runtime::EagerExecutor executor({.device = device}, {}, &c->collectives());
      const InterpreterScope scope(executor);
      const Tensor x(contribution(DType::kF32, 100, c->rank()).to(device));
      try {
        ops::comm_all_reduce({x}, all_ranks(*c))[0].array().on_host();
      } catch (const Error& e) {
        if (e.code() != ErrorCode::kPeer)
          fail(ErrorCode::kInternal, "a lost rank gives the status ", static_cast<int>(e.code()),
               ": ", e.what());
        throw;
      }
      fail(ErrorCode::kInternal, "a collective operation returns without the lost rank");
    });
  } catch (const Error& e) {
    return e.code() == ErrorCode::kUsage ? "" : e.what();
  }
  return "a lost rank is not noticed";
}

/// Ranks whose programs differ: every rank ends with an error, and one of them says why.
std::string check_mismatch(Device device) {
  struct Difference {
    const char* what;
    std::function<Tensor(const Peer& c)> call;  ///< not the same on both ranks
    bool ends_call = false;  ///< neither rank can have a result; else the next call may notice
  };
  const auto operand = [device](DType dtype, int64_t rows, int rank) {
    return Tensor(contribution(dtype, rows, rank).to(device));
  };
  const auto reduced = [](const Tensors& x, const Peer& c) {
    return ops::comm_all_reduce(x, all_ranks(c)).back();
  };
  const std::vector<Difference> differences = {
      {"sizes",
       [&](const Peer& c) {
         return reduced({operand(DType::kF32, 100 * (c.rank() + 1), c.rank())}, c);
       },
       true},
      {"dtypes",
       [&](const Peer& c) {
         return reduced({operand(c.rank() == 0 ? DType::kF32 : DType::kF64, 100, c.rank())}, c);
       },
       true},
      {"numbers of tensors",
       [&](const Peer& c) {
         const Tensor x = operand(DType::kI32, 100, c.rank());
         return reduced(c.rank() == 0 ? Tensors{x} : Tensors{x, x}, c);
       }},
      {"operations", [&](const Peer& c) {
         const Tensor x = operand(DType::kF32, c.rank() == 0 ? 100 : 50, c.rank());
         return c.rank() == 0 ? reduced({x}, c)
                              : ops::comm_all_gather(x, all_ranks(c), 0, {100, 50});
       }}};
  for (const Difference& each : differences) {
    std::vector<std::string> accepted(2);
    try {
      comm::simulate(2, [&](const Peers& c) {
        runtime::EagerExecutor executor({.device = device}, {}, &c->collectives());
        const InterpreterScope scope(executor);
        (void)each.call(*c).array().on_host();
        synchronize(device);
        if (!each.ends_call) c->barrier();
        accepted[static_cast<size_t>(c->rank())] = "returns";
      });
    } catch (const Error& e) {
      if (e.code() != ErrorCode::kInternal)
        return str("ranks with different ", each.what, ": expected the status ",
                   static_cast<int>(ErrorCode::kInternal), ", found ", static_cast<int>(e.code()),
                   ": ", e.what());
    }
    for (size_t rank = 0; rank < accepted.size(); ++rank)
      if (!accepted[rank].empty())
        return str("ranks with different ", each.what, ": rank ", rank, " gets no error");
  }
  return "";
}

}  // namespace

std::vector<std::string> collective_checks(const Extent& extent) {
  std::vector<std::string> out;
  for (const int ranks : extent.quick ? std::vector<int>{2, 3} : std::vector<int>{2, 3, 4}) {
    out.push_back(str("ranks/", ranks));
    out.push_back(str("plan/", ranks));
  }
  out.emplace_back("lost");
  out.emplace_back("mismatch");
  return out;
}

std::string check_collectives_on(const std::string& device, const std::string& check,
                                 const Extent& extent) {
  runtime::register_backends();
  set_time_limit(extent);
  const Device there = parse_device(device);
  if (check == "lost")
    return returns_in_time("a collective operation", [=] { return check_lost(there); });
  if (check == "mismatch")
    return returns_in_time("a collective operation of ranks that disagree",
                           [=] { return check_mismatch(there); });
  const bool plan = check.starts_with("plan/");
  const int ranks = std::stoi(check.substr(check.find('/') + 1));
  return returns_in_time("a run of ranks", [=]() -> std::string {
    const Ranks found = results_of_ranks(ranks, plan, there, extent);
    const std::string bad =
        compare_ranks(found, results_of_ranks(ranks, plan, Device::cpu(), extent));
    // Eagerly rows are exchanged, too, and the operand is looked at.
    return bad.empty() ? compare_with_first(found, plan ? kCollectives : kCollectives + 2) : bad;
  });
}

}  // namespace paddle::conformance
