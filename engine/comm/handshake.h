#pragma once
// How the two ends of a connection show each other that they know the token of the run, without
// sending it: each proves it by an HMAC over random numbers of both.
//
//   listener: challenge NONCE
//   caller:   NONCE PROOF REQUEST
//   listener: welcome PROOF

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "comm/sockets.h"

namespace paddle::comm {

/// 128 random bits as hexadecimal digits. kDevice if the system has none.
std::string random_digits();

/// The listening end of one connection.
class Challenge {
 public:
  Challenge() : nonce_(random_digits()) {}
  /// The first line to send.
  std::string line() const { return "challenge " + nonce_; }
  /// The request in the caller's answer; nullopt unless the caller knows the token.
  std::optional<std::string> accept(const std::string& token, const std::string& answer);
  /// The line that admits the caller that `accept` has returned the request of.
  const std::string& welcome() const { return welcome_; }

 private:
  std::string nonce_, welcome_;
};

/// The calling end of one connection.
class Admission {
 public:
  Admission(std::string token, std::string request)
      : token_(std::move(token)), request_(std::move(request)), nonce_(random_digits()) {}
  /// The answer to the listener's first line. kPeer if that is not a challenge.
  std::string answer(const std::string& challenge);
  /// Whether the listener's second line admits this end, and shows that it knows the token.
  bool is_welcome(const std::string& line) const;

 private:
  std::string token_, request_, nonce_, listener_nonce_;
};

/// The calling end: sends the request and waits until it is admitted. False if the listener closes
/// the connection or does not answer in time; kPeer if it does not know the token.
bool request_admission(const Socket& socket, const std::string& token, const std::string& request,
                       std::chrono::milliseconds timeout);

}  // namespace paddle::comm
