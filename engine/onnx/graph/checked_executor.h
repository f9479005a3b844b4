#pragma once
// The eager executor for graphs that nobody vouches for: it refuses results that exceed the memory,
// counts floating-point operations, and times calls where there is a profile.

#include <string>
#include <unordered_map>

#include "runtime/execute.h"
#include "runtime/profile.h"

namespace paddle::onnx {

/// Records the time of a scope less that of the events recorded inside it, so that the events of
/// nested scopes add up to the time of the outermost. Does nothing without a profile.
class ProfileScope {
 public:
  ProfileScope(runtime::Profile* profile, int instruction);
  ~ProfileScope();
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;
  void set(int instruction) { instruction_ = instruction; }

 private:
  runtime::Profile* profile_;
  int instruction_;
  size_t first_ = 0;  ///< event inside the scope
  int64_t begin_ = 0;
};

/// Numbers the kinds of calls that a profile has seen, by what they say of themselves.
class ProfileInstructions {
 public:
  explicit ProfileInstructions(runtime::Profile* profile) : profile_(profile) {}
  runtime::Profile* profile() const { return profile_; }
  /// Of a node or section, for the time that it takes outside of operations.
  int of(const std::string& name);
  int of(runtime::InstructionInfo info);

 private:
  runtime::Profile* profile_;
  std::unordered_map<std::string, int> numbers_;
};

class CheckedExecutor final : public Interpreter {
 public:
  /// `count_flops`: also where there is no profile.
  explicit CheckedExecutor(ProfileInstructions& names, bool count_flops = false)
      : names_(names), counts_(count_flops || names.profile()) {}
  Tensors apply(const OpCall& call) override;
  /// Of all calls so far, where they are counted.
  double flops() const { return flops_; }

 private:
  runtime::EagerExecutor eager_;
  ProfileInstructions& names_;
  bool counts_;
  double flops_ = 0;
  int64_t calls_ = 0;
};

}  // namespace paddle::onnx
