#include "text/grammar/matcher.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace paddle::grammar {

namespace {

constexpr int32_t kMaxDepth = 256;
constexpr size_t kMaxStates = 50'000, kMaxThreads = 20'000;

}  // namespace

Matcher::Matcher(Grammar grammar) : grammar_(std::move(grammar)) {
  std::vector<Thread> threads;
  bool accepts = false;
  close({grammar_.rules.at(0), -1}, threads, accepts);
  start_ = intern(std::move(threads), accepts);
}

int32_t Matcher::push(int32_t node, int32_t below) {
  // A call at the end of a rule returns to where the rule itself returns.
  while (grammar_.nodes[static_cast<size_t>(node)].kind == Node::Kind::kEmpty)
    node = grammar_.nodes[static_cast<size_t>(node)].next;
  if (grammar_.nodes[static_cast<size_t>(node)].kind == Node::Kind::kReturn && below >= 0)
    return below;
  const auto [found, is_new] =
      frame_index_.try_emplace({node, below}, static_cast<int32_t>(frames_.size()));
  if (is_new) {
    const int32_t depth = below < 0 ? 1 : frames_[static_cast<size_t>(below)].depth + 1;
    if (depth > kMaxDepth)
      fail(ErrorCode::kUsage, "the grammar is nested more than ", kMaxDepth, " levels deep");
    frames_.push_back({node, below, depth});
  }
  return found->second;
}

void Matcher::close(Thread from, std::vector<Thread>& out, bool& accepts) {
  std::set<Thread> seen;
  std::vector<Thread> open = {from};
  while (!open.empty()) {
    const Thread thread = open.back();
    open.pop_back();
    if (!seen.insert(thread).second) continue;
    if (seen.size() > kMaxThreads)
      fail(ErrorCode::kUsage, "the grammar is too ambiguous, or a rule calls itself at once");
    const Node& node = grammar_.nodes[static_cast<size_t>(thread.node)];
    switch (node.kind) {
      case Node::Kind::kEmpty:
        open.push_back({node.next, thread.stack});
        break;
      case Node::Kind::kSplit:
        open.push_back({node.next, thread.stack});
        open.push_back({node.other, thread.stack});
        break;
      case Node::Kind::kCall:
        open.push_back(
            {grammar_.rules[static_cast<size_t>(node.other)], push(node.next, thread.stack)});
        break;
      case Node::Kind::kReturn:
        if (thread.stack < 0) {
          accepts = true;
        } else {
          const Frame& frame = frames_[static_cast<size_t>(thread.stack)];
          open.push_back({frame.node, frame.below});
        }
        break;
      case Node::Kind::kBytes:
        out.push_back(thread);
        break;
    }
  }
}

StateId Matcher::intern(std::vector<Thread> threads, bool accepts) {
  if (threads.empty() && !accepts) return kNoState;
  std::sort(threads.begin(), threads.end());
  threads.erase(std::unique(threads.begin(), threads.end()), threads.end());
  const auto [found, is_new] =
      state_index_.try_emplace({std::move(threads), accepts}, static_cast<StateId>(states_.size()));
  if (is_new) {
    if (states_.size() >= kMaxStates)
      fail(ErrorCode::kUsage, "the grammar needs more than ", kMaxStates, " states");
    states_.push_back({found->first.first, accepts, {}});
    states_.back().next.fill(kUnknown);
  }
  return found->second;
}

StateId Matcher::next(StateId state, uint8_t byte) {
  if (state == kNoState) return kNoState;
  const StateId known = states_[static_cast<size_t>(state)].next[byte];
  if (known != kUnknown) return known;
  std::vector<Thread> threads;
  bool accepts = false;
  for (const Thread& thread : states_[static_cast<size_t>(state)].threads) {
    const Node& node = grammar_.nodes[static_cast<size_t>(thread.node)];
    if (byte < node.low || byte > node.high) continue;
    close({node.next, thread.stack}, threads, accepts);
  }
  const StateId found = intern(std::move(threads), accepts);
  states_[static_cast<size_t>(state)].next[byte] = found;
  return found;
}

}  // namespace paddle::grammar
