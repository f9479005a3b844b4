#include "base/phase.h"

#include <exception>

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
  if (!failed && records.size() >= kMaxRecords) return;
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start_;
  records.push_back({std::move(name_), depth_, taken.count(), failed});
}

const std::vector<PhaseRecord>& phase_records() { return records; }

}  // namespace paddle
