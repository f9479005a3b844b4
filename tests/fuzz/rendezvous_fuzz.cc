// Lines that reach the rendezvous: of a caller that has not shown that it knows the token, and, for
// an odd first byte, of a rank or a launcher that has been admitted.

#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "comm/handshake.h"
#include "comm/rendezvous.h"

namespace {

using namespace paddle::comm;

constexpr const char* kToken = "secret";

void advance(Rendezvous& rendezvous) {
  for (int i = 0; i < 3; ++i) rendezvous.advance();
}

void send(const Socket& socket, std::string_view bytes) {
  try {
    socket.send_line(std::string(bytes));
  } catch (const paddle::Error&) {  // the rendezvous has closed the connection
  }
}

/// A connection that the rendezvous admits.
Socket admitted(Rendezvous& rendezvous, const std::string& request) {
  Socket socket = connect_to(rendezvous.address());
  advance(rendezvous);
  Admission admission(kToken, request);
  socket.send_line(admission.answer(socket.receive_line()));
  advance(rendezvous);
  if (!admission.is_welcome(socket.receive_line())) std::abort();
  return socket;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > 1 << 14) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string text(bytes.substr(0, bytes.find('\n')));
  if (const auto status = RankStatus::parse(text)) {
    const auto again = RankStatus::parse(status->line());
    if (!again || again->line() != status->line()) std::abort();
  }
  if (Challenge().accept(kToken, text)) std::abort();
  try {
    parse_address(text, "address");
  } catch (const paddle::Error& error) {  // an option that is wrong
    if (error.code() != paddle::ErrorCode::kUsage) throw;
  }
  Rendezvous rendezvous(2, "127.0.0.1", 0, kToken);
  Socket caller = connect_to(rendezvous.address());
  std::vector<Socket> others;
  if (data[0] % 2 == 1) {
    others.push_back(admitted(rendezvous, "rank 0 127.0.0.1:1 0"));
    others.push_back(admitted(rendezvous, "node 1 2"));
    for (const Socket& socket : others) send(socket, bytes);
  }
  send(caller, bytes);
  advance(rendezvous);
  if (rendezvous.complete()) std::abort();  // no rank 1 has been admitted
  rendezvous.find_lost(std::chrono::milliseconds(0));
  rendezvous.find_delay(std::chrono::milliseconds(0));
  while (rendezvous.next_node_line()) continue;
  rendezvous.node_ranks(2);
  return 0;
}
