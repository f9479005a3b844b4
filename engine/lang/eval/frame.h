#pragma once
// The state of running code, how it ends, and the arguments of its calls. Not for use outside the
// room.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lang/eval/values.h"

namespace paddle::lang {

/// The names and the place in the tree of parameters of one running body or chain.
struct Frame {
  const Code* code = nullptr;
  std::string file;
  std::unordered_map<std::string, Value> locals;
  /// Names that the code binds somewhere: locals even before they have a value.
  const std::unordered_set<std::string>* bound = nullptr;
  /// Why a bound name has no value, where there is more to say than "not assigned yet".
  std::unordered_map<std::string, std::string> unavailable;
  std::string path;
  std::vector<int64_t> iterations;  ///< of the enclosing loops, outermost first
  /// Names that held references, with their targets' names.
  std::map<std::string, std::set<std::string>> references;
  bool sees_program = true;  ///< params, dims and blocks
};

/// Levels of evaluation over all open blocks, which bound the stack.
class DepthGuard {
 public:
  explicit DepthGuard(int& depth) : depth_(depth) { ++depth_; }
  ~DepthGuard() { --depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;
  bool too_deep() const { return depth_ > 1500; }

 private:
  int& depth_;
};

enum class Flow { kNormal, kBreak, kContinue, kReturn, kMixed };

/// How a piece of code ended. kMixed: which way depends on a tensor. Then the frame's local `%jump`
/// holds the number of the Flow and `%value` what is returned, where that may have happened.
struct Outcome {
  Flow flow = Flow::kNormal;
  Value value;
  unsigned may = 0;        ///< of kMixed: bits of the flows that are possible
  bool continued = false;  ///< of an `if`: what stands after it has run as well
  static constexpr unsigned bit(Flow flow) { return 1u << static_cast<unsigned>(flow); }
  unsigned flows() const { return flow == Flow::kMixed ? may : bit(flow); }
};

/// Names of locals, in order of appearance.
using Names = std::vector<std::string>;
/// Changes that a piece of code makes.
struct Changes {
  Names changed;  ///< names that are bound, written into, appended to or popped from
  Names bound;    ///< those that get a value of their own
};

/// Evaluated arguments of a call.
struct Arguments {
  std::vector<Value> positional;
  NamedValues named;
  std::map<std::string, SourcePosition> places = {};  ///< of named ones, for messages
  const Value* find(std::string_view name) const;
  /// Takes a named argument out; nullopt if it was not given.
  std::optional<Value> take(std::string_view name);
  /// The values of these parameters, in their order; kConfig, in the name of `callee`, if more or
  /// others were given.
  std::vector<std::optional<Value>> bind(std::string_view callee,
                                         const std::vector<std::string>& names) const;
};

/// A call's identity in the text, for the names of parameters.
struct Site {
  const void* key = nullptr;  ///< the syntax node
  int index = -1;             ///< in Code::sites, -1 for calls that name nothing
  SourcePosition where;
};

}  // namespace paddle::lang
