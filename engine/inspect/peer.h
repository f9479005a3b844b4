#pragma once
// Our operations compared with PyTorch's in the same run: a table of calls on realistic shapes,
// each timed here and, by a Python process, there.

#include <functional>
#include <string>
#include <vector>

namespace paddle::inspect {

struct PeerOptions {
  std::string python;    ///< an interpreter that has torch
  std::string filter;    ///< regular expression on names of operations; "" for all
  double seconds = 0.3;  ///< for each call on each side
};

struct PeerResult {
  std::string op, call;  ///< the call as `paddle op bench` takes it
  double own_ms = 0, peer_ms = 0;
  std::string implementation;
  double ratio() const { return own_ms / peer_ms; }  ///< above 1: we are slower
};

/// Times every call of the table, in turn on both sides with the same number of threads; `report`
/// gets each result. kUsage if the interpreter or its torch is not there.
std::vector<PeerResult> bench_beside_torch(const PeerOptions& options,
                                           const std::function<void(const PeerResult&)>& report);

/// "op  call  ours ms  torch ms  ratio", the head of the table, and its last line.
std::string text(const PeerResult& result);
std::string peer_head();
std::string summary(const std::vector<PeerResult>& results);
/// The results as a page of the documentation.
std::string page(const std::vector<PeerResult>& results, const std::string& torch_version);
/// "torch 2.9.0, 2 threads": of the last run.
std::string peer_version(const PeerOptions& options);

/// One call of the table: arguments as `parse_call` takes them, and PyTorch's expression, in which
/// the tensors have the names of the arguments.
struct PeerCall {
  const char* op;
  const char* words;
  const char* expression;
};
std::vector<PeerCall> peer_calls();

}  // namespace paddle::inspect
