#include "base/phase.h"

#include <exception>

#include "base/duration.h"
#include "base/log.h"
#include "base/text.h"

namespace paddle {
namespace {

constexpr size_t kMaxRecords = 100;
thread_local std::vector<PhaseRecord> records;
thread_local int depth = 0;

}  // namespace

Phase::Phase(std::string name)
    : name_(std::move(name)),
      depth_(depth++),
      exceptions_(std::uncaught_exceptions()),
      start_(std::chrono::steady_clock::now()) {}

Phase::~Phase() {
  --depth;
  const bool failed = std::uncaught_exceptions() > exceptions_;
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start_;
  if (is_logged(LogLevel::kDebug))
    log(LogLevel::kDebug,
        str(name_, failed ? ": failed after " : ": ", seconds_text(taken.count())));
  if (!failed && records.size() >= kMaxRecords) return;
  records.push_back({std::move(name_), depth_, taken.count(), failed});
}

const std::vector<PhaseRecord>& phase_records() { return records; }

}  // namespace paddle
