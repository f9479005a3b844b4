#pragma once
// Eager executor for untrusted graphs: rejects results that do not fit into memory, counts FLOPs
// and profiles calls.

#include <string>
#include <unordered_map>

#include "runtime/execute.h"
#include "runtime/profile.h"

namespace paddle::onnx {

/// Records the exclusive time of a scope: its duration minus the events recorded inside it, so that
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
  size_t first_ = 0;  ///< index of the first event inside the scope
  int64_t begin_ = 0;
};

/// Assigns profile instruction numbers to distinct calls.
class ProfileInstructions {
 public:
  explicit ProfileInstructions(runtime::Profile* profile) : profile_(profile) {}
  runtime::Profile* profile() const { return profile_; }
  /// For a node or partition: the time spent outside of operations.
  int number_of(const std::string& name);
  int number_of(runtime::InstructionInfo info);

 private:
  runtime::Profile* profile_;
  std::unordered_map<std::string, int> numbers_;
};

class CheckedExecutor final : public Interpreter {
 public:
  /// `count_flops`: count without a profile as well. Calls run on the host, which counts as a
  /// fallback (runtime/host_fallback.h) if the model runs on another device.
  explicit CheckedExecutor(ProfileInstructions& instructions, bool count_flops = false,
                           Device device = {})
      : instructions_(instructions),
        count_flops_(count_flops || instructions.profile()),
        device_(device) {}
  Tensors apply(const OpCall& call) override;
  /// Total over all calls; 0 unless counting.
  double flops() const { return flops_; }

 private:
  runtime::EagerExecutor eager_;
  ProfileInstructions& instructions_;
  bool count_flops_;
  Device device_;
  double flops_ = 0;
  int64_t calls_ = 0;
};

}  // namespace paddle::onnx
