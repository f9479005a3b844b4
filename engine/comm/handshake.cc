#include "comm/handshake.h"

#include <sys/random.h>

#include <array>
#include <cstddef>

#include "base/error.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "base/text.h"

namespace paddle::comm {
namespace {

constexpr size_t kNonceDigits = 32;

bool is_nonce(std::string_view text) {
  return text.size() == kNonceDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// The proof of one end: that of the other one is of another word.
std::string proof(const std::string& token, const char* end, const std::string& listener_nonce,
                  const std::string& caller_nonce, const std::string& request) {
  return hmac_sha256(token, str(end, "\n", listener_nonce, "\n", caller_nonce, "\n", request));
}

/// The text up to the next space, which is removed from `rest` with it.
std::string take_word(std::string& rest) {
  const size_t space = rest.find(' ');
  const std::string word = rest.substr(0, space);
  rest = space == std::string::npos ? "" : rest.substr(space + 1);
  return word;
}

}  // namespace

std::string random_digits() {
  std::array<std::byte, kNonceDigits / 2> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    fail(ErrorCode::kDevice, "the system has no random numbers");
  return hex_digits(bytes);
}

std::optional<std::string> Challenge::accept(const std::string& token, const std::string& answer) {
  std::string request = answer;
  const std::string caller_nonce = take_word(request), given = take_word(request);
  if (!is_nonce(caller_nonce) ||
      !equal_in_constant_time(given, proof(token, "caller", nonce_, caller_nonce, request)))
    return std::nullopt;
  welcome_ = "welcome " + proof(token, "listener", nonce_, caller_nonce, request);
  return request;
}

std::string Admission::answer(const std::string& challenge) {
  listener_nonce_ = challenge;
  if (take_word(listener_nonce_) != "challenge" || !is_nonce(listener_nonce_))
    fail(ErrorCode::kPeer, "another program listens at the rendezvous address of this run");
  return str(nonce_, " ", proof(token_, "caller", listener_nonce_, nonce_, request_), " ",
             request_);
}

bool Admission::is_welcome(const std::string& line) const {
  return equal_in_constant_time(
      line, "welcome " + proof(token_, "listener", listener_nonce_, nonce_, request_));
}

bool request_admission(const Socket& socket, const std::string& token, const std::string& request,
                       std::chrono::milliseconds timeout) {
  Admission admission(token, request);
  const auto challenge = socket.receive_line(timeout);
  if (!challenge) return false;
  socket.send_line(admission.answer(*challenge));
  const auto welcome = socket.receive_line(timeout);
  if (!welcome) return false;
  if (!admission.is_welcome(*welcome))
    fail(ErrorCode::kPeer,
         "the program that listens at the rendezvous address does not know the token of this run");
  return true;
}

}  // namespace paddle::comm
