#include "plugin/ranks_adapter.h"

#include <algorithm>
#include <vector>

#include "comm/collectives.h"
#include "plugin/host.h"

namespace paddle::plugin {
namespace {

/// Messages of plug-ins have tags of their own, apart from those of the engine and of operations.
constexpr uint32_t kTag = uint32_t{3} << 30, kMaxTag = uint32_t{1} << 20;

comm::Collectives& run_of(paddle_call* call) {
  if (!call || !call->collectives)
    fail(ErrorCode::kUsage,
         "a collective operation runs only within a parallel run (paddle-launch, or paddle-train "
         "--simulate)");
  return *call->collectives;
}

std::vector<int> group_of(const comm::Collectives& run, const int32_t* group, uint32_t count) {
  if (!group || count == 0 || count > static_cast<uint32_t>(run.size()))
    fail(ErrorCode::kUsage, "a group of ", count, " ranks, the run has ", run.size());
  std::vector<int> out(group, group + count);
  if (out[0] < 0 || out.back() >= run.size() ||
      std::ranges::adjacent_find(out, std::greater_equal()) != out.end() ||
      std::ranges::find(out, run.rank()) == out.end())
    fail(ErrorCode::kUsage, "the group ", str(out), " is not ascending ranks of ", run.size(),
         " with the rank ", run.rank());
  return out;
}

paddle_status gather(paddle_call* call, const int32_t* group, uint32_t count, const void* in,
                     const size_t* bytes, void* out) {
  return guarded(call, [&] {
    comm::Collectives& run = run_of(call);
    const std::vector<int> ranks = group_of(run, group, count);
    run.all_gather(in, out, {bytes, count}, {ranks, nullptr, nullptr});
  });
}

paddle_status exchange(paddle_call* call, const int32_t* group, uint32_t count, const void* in,
                       const size_t* sent, void* out, const size_t* received) {
  return guarded(call, [&] {
    comm::Collectives& run = run_of(call);
    const std::vector<int> ranks = group_of(run, group, count);
    run.all_to_all(in, {sent, count}, out, {received, count}, {ranks, nullptr, nullptr});
  });
}

void check_message(const comm::Collectives& run, int32_t peer, uint32_t tag) {
  if (peer < 0 || peer >= run.size() || peer == run.rank())
    fail(ErrorCode::kUsage, "rank ", peer, " is not another rank of this run of ", run.size());
  if (tag >= kMaxTag) fail(ErrorCode::kUsage, "the tag ", tag, " is not below ", kMaxTag);
}

paddle_status send(paddle_call* call, int32_t peer, uint32_t tag, const void* in, size_t size) {
  return guarded(call, [&] {
    comm::Collectives& run = run_of(call);
    check_message(run, peer, tag);
    run.send({static_cast<const std::byte*>(in), size}, peer, kTag | tag, nullptr);
  });
}

paddle_status receive(paddle_call* call, int32_t peer, uint32_t tag, void* out, size_t size) {
  return guarded(call, [&] {
    comm::Collectives& run = run_of(call);
    check_message(run, peer, tag);
    run.recv({static_cast<std::byte*>(out), size}, peer, kTag | tag, nullptr);
  });
}

}  // namespace

const paddle_ranks_functions& ranks_functions() {
  static const paddle_ranks_functions functions = {
      .struct_size = sizeof functions,
      .reserved = 0,
      .rank = [](paddle_call* call) -> int32_t {
        return call && call->collectives ? call->collectives->rank() : -1;
      },
      .size = [](paddle_call* call) -> int32_t {
        return call && call->collectives ? call->collectives->size() : 1;
      },
      .gather = gather,
      .exchange = exchange,
      .send = send,
      .receive = receive,
  };
  return functions;
}

}  // namespace paddle::plugin
