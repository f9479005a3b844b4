#pragma once
// Whether operations are marked with their place in the text that is evaluated.

namespace paddle::lang {

/// While it lives, operations on this thread keep the mark of the code around: bodies of operations
/// are marked with the place of the call.
class KeepMarksScope {
 public:
  KeepMarksScope();
  ~KeepMarksScope();
  KeepMarksScope(const KeepMarksScope&) = delete;
  KeepMarksScope& operator=(const KeepMarksScope&) = delete;
  static bool active();
};

}  // namespace paddle::lang
