#include "launch/node_link.h"

#include <sys/socket.h>

#include <cerrno>

#include "base/text.h"
#include "comm/handshake.h"

namespace paddle::launch {

NodeLink::NodeLink(const std::string& rendezvous, const std::string& token, int node, int ranks,
                   int servers, std::chrono::milliseconds timeout)
    : socket_(comm::connect_to(rendezvous, timeout)),
      gone_(!comm::request_admission(socket_, token, str("node ", node, " ", ranks, " ", servers),
                                     timeout)) {
  socket_.set_blocking(false);
}

void NodeLink::send(const std::string& line) {
  const std::string text = line + "\n";
  (void)!::send(socket_.descriptor(), text.data(), text.size(), MSG_NOSIGNAL);
}

std::optional<std::string> NodeLink::next_line() {
  char buffer[1024];
  while (!gone_) {
    const ssize_t n = ::recv(socket_.descriptor(), buffer, sizeof buffer, 0);
    if (n > 0) {
      received_.append(buffer, static_cast<size_t>(n));
      continue;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) break;
    gone_ = true;
  }
  const size_t end = received_.find('\n');
  if (end == std::string::npos) return gone_ ? std::optional<std::string>("") : std::nullopt;
  const std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return line;
}

}  // namespace paddle::launch
