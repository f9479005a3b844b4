#pragma once
// Options and state that all parts of an evaluation share: the marks of operations, places of
// errors, the bound on its length, and whether values or only types are computed. Not for use
// outside the room.

#include <string>
#include <utility>

#include "base/source_location.h"
#include "ir/tracer.h"
#include "lang/eval/evaluator.h"
#include "lang/eval/place_marks.h"

namespace paddle::lang {

/// Puts a name in front of the layers that operations are marked with: `with range("name"):`. It
/// holds for all evaluations on this thread, since a step calls models.
class RangeScope {
 public:
  explicit RangeScope(const std::string& name);
  ~RangeScope();
  RangeScope(const RangeScope&) = delete;
  RangeScope& operator=(const RangeScope&) = delete;
  /// The layer within the ranges that are open.
  static std::string within(const std::string& layer);

 private:
  size_t outer_;  ///< length of the ranges around this one
};

class TraceContext {
 public:
  explicit TraceContext(const EvaluationOptions& options);
  TraceContext(const TraceContext&) = delete;
  TraceContext& operator=(const TraceContext&) = delete;

  const EvaluationOptions& options() const { return options_; }
  /// Counts a loop iteration or operation.
  void step(const SourcePosition& where);
  [[noreturn]] void reject(const SourcePosition& where, std::string message) const;
  /// Calls `f` and gives errors that still have no place this one; kUsage becomes kConfig.
  template <class F>
  auto with_location(const SourcePosition& where, F&& f) -> decltype(f());
  /// The same, with operations marked by this place.
  template <class F>
  auto with_location_scope(const SourcePosition& where, F&& f) -> decltype(f());

  /// Only types are computed, and nothing is recorded.
  bool is_abstract() const { return abstract_depth_ > 0; }
  /// A side of control flow on tensors, or an iteration, is being written.
  bool in_region() const { return regions_ > 0; }

  /// Sets the path of the layer or block that operations are marked with.
  class LayerScope {
   public:
    LayerScope(TraceContext& context, std::string path)
        : layer_(context.layer_), outer_(std::exchange(context.layer_, std::move(path))) {}
    ~LayerScope() { layer_ = std::move(outer_); }
    LayerScope(const LayerScope&) = delete;
    LayerScope& operator=(const LayerScope&) = delete;

   private:
    std::string& layer_;
    std::string outer_;
  };
  /// `is_abstract` and `in_region` hold while one of them lives.
  class Depth {
   public:
    explicit Depth(int& depth) : depth_(depth) { ++depth_; }
    ~Depth() { --depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    int& depth_;
  };
  Depth abstract() { return Depth(abstract_depth_); }
  Depth region() { return Depth(regions_); }

 private:
  const EvaluationOptions& options_;
  std::string layer_;
  int64_t steps_ = 0, abstract_steps_ = 0;
  int abstract_depth_ = 0, regions_ = 0;
};

template <class F>
auto TraceContext::with_location(const SourcePosition& where, F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (const Error& error) {
    if (error.location().line > 0 || !error.location().file.empty()) throw;
    const ErrorCode code = error.code() == ErrorCode::kUsage ? ErrorCode::kConfig : error.code();
    Error with_location_error(code, error.message(), where.location());
    for (const std::string& note : error.notes()) with_location_error.note(note);
    throw with_location_error;
  }
}

template <class F>
auto TraceContext::with_location_scope(const SourcePosition& where, F&& f) -> decltype(f()) {
  if (KeepMarksScope::active()) return with_location(where, f);
  const ir::LocationScope scope(text(Origin{where.location().text(), RangeScope::within(layer_)}));
  return with_location(where, f);
}

}  // namespace paddle::lang
