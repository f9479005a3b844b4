#include "comm/transport_kind.h"

#include <utility>

#include "comm/gloo_transport.h"
#include "comm/mpi_transport.h"
#include "comm/tcp_transport.h"

namespace paddle::comm {
namespace {

std::shared_ptr<Transport> open_tcp(JoinedRank joined) {
  return make_tcp_transport(joined.rank, std::move(joined.peers), joined.hosts, joined.options,
                            std::move(joined.rendezvous), std::move(joined.host));
}

}  // namespace

Registry<TransportKind>& transport_kinds() {
  static Registry<TransportKind> kinds(
      "transport",
      {{"auto", "from memory to memory between processes of one machine, else TCP", open_tcp},
       {"tcp", "TCP connections", open_tcp},
       {"gloo", "the library Gloo",
        [](JoinedRank joined) {
          return make_gloo_transport(joined.rank, joined.peers, joined.options,
                                     std::move(joined.rendezvous), std::move(joined.host));
        }},
       {"mpi", "an MPI library, whose launcher has started the ranks", [](JoinedRank joined) {
          return make_mpi_transport(joined.rank, joined.size, joined.options,
                                    std::move(joined.rendezvous), std::move(joined.host));
        }}});
  return kinds;
}

}  // namespace paddle::comm
