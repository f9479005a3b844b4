#include "lang/eval/trace_context.h"

namespace paddle::lang {
namespace {

thread_local std::string open_ranges;

}  // namespace

RangeScope::RangeScope(const std::string& name) : outer_(open_ranges.size()) {
  open_ranges += (outer_ > 0 ? "." : "") + name;
}

RangeScope::~RangeScope() { open_ranges.resize(outer_); }

std::string RangeScope::within(const std::string& layer) {
  if (open_ranges.empty() || layer.empty()) return open_ranges + layer;
  return open_ranges + "." + layer;
}

TraceContext::TraceContext(const EvaluationOptions& options) : options_(options) {
  ensure(options.store != nullptr, "Evaluation without a parameter store");
}

void TraceContext::reject(const SourcePosition& where, std::string message) const {
  throw Error(ErrorCode::kConfig, std::move(message), where.location());
}

void TraceContext::step(const SourcePosition& where) {
  // Runs on types only come on top, and have a bound of their own.
  if (is_abstract() ? ++abstract_steps_ > 4 * kMaxTraceSteps : ++steps_ > kMaxTraceSteps) {
    reject(where, "more than a million operations and loop iterations in one trace");
  }
}

}  // namespace paddle::lang
