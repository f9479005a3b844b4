#pragma once
// Runs a grammar over bytes: the states that a text can be in are made as they are met.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "text/grammar/grammar.h"

namespace paddle::grammar {

using StateId = int32_t;
inline constexpr StateId kNoState = -1;  ///< no text of the grammar begins like this

/// Not for several threads at a time.
class Matcher {
 public:
  /// kUsage if a rule calls itself before it reads a byte.
  explicit Matcher(Grammar grammar);

  StateId start() const { return start_; }
  /// The state after one more byte. kUsage if the text is nested too deeply, or there are too many
  /// states.
  StateId next(StateId state, uint8_t byte);
  /// Whether the text may end here.
  bool accepts(StateId state) const { return states_[static_cast<size_t>(state)].accepts; }
  /// Whether more bytes may come.
  bool can_continue(StateId state) const {
    return !states_[static_cast<size_t>(state)].threads.empty();
  }
  size_t state_count() const { return states_.size(); }

 private:
  /// A node to read a byte at, and the calls that it returns to.
  struct Thread {
    int32_t node, stack;
    auto operator<=>(const Thread&) const = default;
  };
  struct Frame {
    int32_t node, below;  ///< the node that follows; the frame below, -1 for none
    int32_t depth;
  };
  struct State {
    std::vector<Thread> threads;  ///< sorted
    bool accepts = false;
    std::array<StateId, 256> next;
  };
  static constexpr StateId kUnknown = -2;

  int32_t push(int32_t node, int32_t below);
  /// Follows everything that reads no byte.
  void close(Thread from, std::vector<Thread>& out, bool& accepts);
  StateId intern(std::vector<Thread> threads, bool accepts);

  Grammar grammar_;
  std::vector<Frame> frames_;
  std::map<std::pair<int32_t, int32_t>, int32_t> frame_index_;
  std::vector<State> states_;
  std::map<std::pair<std::vector<Thread>, bool>, StateId> state_index_;
  StateId start_ = kNoState;
};

}  // namespace paddle::grammar
