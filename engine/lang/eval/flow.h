#pragma once
// Control flow on tensors: the part that control_flow.cc and loops.cc share. Internal to this
// folder.

#include <set>
#include <string>

#include "lang/eval/evaluation.h"

namespace paddle::lang {

/// Locals that no text can name: the number of the Flow that happened, what was returned, and the
/// value of a conditional expression.
inline constexpr const char* kJump = "%jump";
inline constexpr const char* kReturned = "%value";
inline constexpr const char* kChosen = "%chosen";

/// Gives a name its value after control flow. A list or cell that has other names as well, and is
/// not in `bound`, changes in place, as it would have without the control flow.
void store_local(Frame& frame, const std::string& name, const Value& value, const Names& bound);
/// The value that finished code returned, or null if it cannot have returned.
const Value* returned_value(const Outcome& outcome, const Frame& frame);
/// The number of the flow that happened.
Value flow_number(const Outcome& outcome, const Frame& frame);
/// The outcome for a set of flows that are possible; the frame's locals say which and what.
Outcome mixed_outcome(unsigned flows, Frame& frame);

/// A side of control flow, or an iteration of a loop, while it is written: states go back at its
/// end.
class RegionScope {
 public:
  explicit RegionScope(Evaluation& evaluation)
      : current_(evaluation.variables().states()),
        before_(current_),
        region_(evaluation.region()) {}
  ~RegionScope() { current_ = std::move(before_); }
  RegionScope(const RegionScope&) = delete;
  RegionScope& operator=(const RegionScope&) = delete;

 private:
  Variables::States& current_;
  Variables::States before_;
  TraceContext::Depth region_;
};

/// Paths of the states that were updated between two moments.
template <class States>
std::set<std::string> changed_states(const States& before, const States& after) {
  std::set<std::string> out;
  for (const auto& [path, slot] : after) {
    const auto old = before.find(path);
    if (slot.writes != (old == before.end() ? 0 : old->second.writes)) out.insert(path);
  }
  return out;
}

}  // namespace paddle::lang
