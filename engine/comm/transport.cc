#include "comm/transport.h"

namespace paddle::comm {

const char* text(Exchange kind) {
  switch (kind) {
    case Exchange::kBarrier:
      return "barrier";
    case Exchange::kBroadcast:
      return "broadcast";
    case Exchange::kAllReduce:
      return "all_reduce";
    case Exchange::kAllGather:
      return "all_gather";
    case Exchange::kGather:
      return "gather";
    case Exchange::kReduceScatter:
      return "reduce_scatter";
    case Exchange::kAllToAll:
      return "all_to_all";
    case Exchange::kPermute:
      return "permute";
    case Exchange::kMessage:
      return "message";
  }
  return "unknown exchange";
}

void reject_mismatch(int rank, Exchange kind, uint64_t bytes, int peer, Exchange peer_kind,
                     uint64_t peer_bytes) {
  fail(ErrorCode::kInternal, "rank ", rank, " expects ", bytes, " bytes of ", text(kind),
       " from rank ", peer, ", which sends ", peer_bytes, " bytes of ", text(peer_kind),
       ": the ranks do not run the same program");
}

}  // namespace paddle::comm
