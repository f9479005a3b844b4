#include "conformance/random_calls.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>

#include "conformance/calls.h"
#include "conformance/every_operation.h"
#include "conformance/operators.h"
#include "inspect/fuzz.h"
#include "inspect/isolate.h"
#include "ops/core/call.h"
#include "runtime/execute.h"

namespace paddle::conformance {
namespace {

using inspect::Mode;
using inspect::NamedCall;
using Words = std::vector<std::string>;

/// Begin the answers of calls that say nothing about the subject.
constexpr std::string_view kRejected = "\x01rejected", kUnsteady = "\x01unsteady";
constexpr char kWordEnd = '\x1f';
/// Of results: others take too long for a call of many.
constexpr int64_t kMaxElements = int64_t{1} << 20;
constexpr int64_t kMemoryMib = 1024;

bool is_failure(const std::string& answer) { return !answer.empty() && answer[0] != '\x01'; }

/// Decomposes what a device has no kernel for, as its executor does.
class PathOfDevice final : public ForwardingInterpreter {
 public:
  explicit PathOfDevice(Device device) : device_(device) {}
  Tensors apply(const OpCall& call) override {
    return is_decomposed(call, {.device = device_}) ? decompose(call) : next().apply(call);
  }

 private:
  Device device_;
};

/// Whether rounding decides the results, as far as float64 tells: then nothing can be compared.
bool is_unsteady(const Op& op, const NamedCall& call, const std::vector<Array>& inputs) {
  try {
    return !compare_with_reference(narrow_reference(op, call, inputs),
                                   reference_results(op, call, inputs))
                .empty();
  } catch (const std::exception&) {
    return true;
  }
}

struct Trial {
  const Op& op;
  NamedCall call;
  std::vector<Array> inputs;
};

std::string too_large(const Results& results) {
  for (const auto& each : results)
    if (each && each->size() > kMaxElements) return std::string(kRejected);
  return "";
}

/// The operation of a plug-in against its body.
std::string outcome_on_cpu(const Trial& trial, bool only_reference) {
  Results expected;
  try {
    expected = reference_results(trial.op, trial.call, trial.inputs);
    if (std::string bad = too_large(expected); !bad.empty()) return bad;
    if (only_reference) return "";
  } catch (const std::exception&) {
    return std::string(kRejected);
  }
  if (is_unsteady(trial.op, trial.call, trial.inputs)) return std::string(kUnsteady);
  for (const Mode mode : {Mode::kEager, Mode::kCompiled}) {
    Results found;
    try {
      found = call_results(trial.call, trial.inputs, mode);
    } catch (const Error& e) {
      // A compiled function may need values that only the call has.
      if (mode == Mode::kCompiled && e.code() == ErrorCode::kUsage) continue;
      return str(inspect::text(mode), ": its body gives results, but: ", e.what());
    }
    if (const std::string bad = compare_with_reference(found, expected, 4); !bad.empty())
      return str(inspect::text(mode), ": ", bad);
  }
  return "";
}

/// An operation on a device against the CPU.
std::string outcome_on_device(const Trial& trial, Device device, bool only_reference) {
  const Mode reference = device.is_cpu() ? Mode::kEager : Mode::kCompiled;
  const auto on_cpu = [&](Mode mode) -> std::optional<Results> {
    try {
      return call_results(trial.call, trial.inputs, mode);
    } catch (const std::exception&) {
      return std::nullopt;
    }
  };
  const auto expected = on_cpu(reference);
  if (!expected) return std::string(kRejected);
  if (std::string bad = too_large(*expected); !bad.empty()) return bad;
  if (only_reference)
    return on_cpu(Mode::kCompiled) && on_cpu(Mode::kEager) ? "" : std::string(kRejected);
  for (const Mode mode : {Mode::kCompiled, Mode::kEager}) {
    Results found;
    try {
      found = call_results(trial.call, trial.inputs, mode, device);
    } catch (const std::exception& e) {
      if (!on_cpu(mode)) continue;
      return str(inspect::text(mode), ": the CPU gives results, but: ", first_line(e.what()));
    }
    const std::string bad = compare_each(found, *expected, 4);
    if (bad.empty()) continue;
    try {
      const auto path = inspect::run(
          Mode::kEager,
          [&](const Tensors& x) {
            PathOfDevice same(device);
            const InterpreterScope scope(same);
            return trial.call(x);
          },
          trial.inputs);
      if (compare_each(found, path, 4).empty()) continue;
    } catch (const std::exception&) {
      return std::string(kUnsteady);
    }
    if (is_unsteady(trial.op, trial.call, trial.inputs)) return std::string(kUnsteady);
    return str(inspect::text(mode), ": ", bad);
  }
  return "";
}

/// In the process of the call.
class Calls {
 public:
  explicit Calls(const RandomCalls& subject) : subject_(subject) {}

  void prepare() {
    if (ready_) return;
    ready_ = true;
    // Operations that print must not write into the report.
    if (const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC); nowhere >= 0)
      for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, descriptor);
    subject_.load();
    runtime::register_backends();
    if (!subject_.operation.empty()) {
      ops_.push_back(&get_op(subject_.operation));
    } else {
      device_ = parse_device(subject_.device);
      (void)compute_stream(device_);
      for (const Op* op : all_ops())
        if (is_called(*op)) ops_.push_back(op);
    }
    inspect::limit_memory(kMemoryMib);
  }
  /// The words of a call, the operation first.
  Words words_of(size_t index) {
    prepare();
    const Op& op = *ops_[index % ops_.size()];
    Words out = inspect::random_call(std::string(op.name()), subject_.seed, index / ops_.size());
    out.insert(out.begin(), std::string(op.name()));
    return out;
  }
  /// `only_reference`: what gives the expected results, without the subject.
  std::string outcome(const Words& words, bool only_reference = false) {
    prepare();
    const Op& op = get_op(words.at(0));
    std::optional<Trial> trial;
    try {
      NamedCall call = inspect::parse_call(op, {words.begin() + 1, words.end()});
      std::vector<Array> inputs;
      for (const Array& x : call.inputs()) inputs.push_back(inspect::own_copy(x));
      trial.emplace(Trial{op, std::move(call), std::move(inputs)});
    } catch (const std::exception&) {
      return std::string(kRejected);
    }
    return with_values(subject_.operation.empty()
                           ? outcome_on_device(*trial, device_, only_reference)
                           : outcome_on_cpu(*trial, only_reference));
  }

 private:
  const RandomCalls& subject_;
  bool ready_ = false;
  std::vector<const Op*> ops_;
  Device device_;
};

/// Runs jobs in child processes, which load the plug-in.
std::vector<std::string> answers_of(const RandomCalls& subject, size_t count,
                                    const std::function<std::string(Calls&, size_t)>& job) {
  std::vector<std::string> out(count);
  Calls calls(subject);  // each child has its own copy
  inspect::run_isolated(
      count, [&](size_t i) { return job(calls, i); },
      [&](size_t i, const std::string& answer) { out[i] = answer; }, {1, subject.timeout_seconds});
  return out;
}

/// Whether a call that crashes or does not end does so without the subject, too.
bool is_of_reference(const RandomCalls& subject, const Words& words, const std::string& bad) {
  if (!bad.starts_with("crashed") && !bad.starts_with("not done")) return false;
  return is_failure(
      answers_of(subject, 1, [&](Calls& calls, size_t) { return calls.outcome(words, true); })[0]);
}

/// Calls that are smaller than one: without an argument, or with smaller sizes.
std::vector<Words> smaller(const Words& words) {
  std::vector<Words> out;
  for (size_t i = 1; i < words.size(); ++i) {
    out.push_back(words);
    out.back().erase(out.back().begin() + static_cast<std::ptrdiff_t>(i));
  }
  const std::string joined = join(words, " ");
  std::set<std::string> seen = {joined};
  size_t sizes = 0;
  (void)resized(joined, [&](int64_t old, size_t n) {
    sizes = std::max(sizes, n + 1);
    return old;
  });
  for (size_t which = 0; which < sizes; ++which)
    for (const int64_t divisor : {0, 2, 1}) {
      const std::string text = resized(joined, [&](int64_t old, size_t n) {
        if (n != which) return old;
        return divisor == 0 ? std::min<int64_t>(old, 2)
                            : std::max<int64_t>(divisor == 2 ? old / 2 : old - 1, 1);
      });
      if (seen.insert(text).second) out.push_back(split(text, ' '));
    }
  return out;
}

std::string command_of(const RandomCalls& subject, const Words& words) {
  std::string out = "paddle op run " + words[0];
  for (size_t i = 1; i < words.size(); ++i) out += " '" + words[i] + "'";
  return out + (subject.arguments.empty() ? "" : " " + subject.arguments);
}

/// The smallest call that fails, and how.
std::string shrunk(const RandomCalls& subject, Words words, std::string bad) {
  constexpr int kRounds = 12;
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<Words> candidates = smaller(words);
    const std::vector<std::string> answers =
        answers_of(subject, candidates.size(),
                   [&](Calls& calls, size_t i) { return calls.outcome(candidates[i]); });
    const auto found = std::ranges::find_if(answers, is_failure);
    if (found == answers.end()) break;
    words = candidates[static_cast<size_t>(found - answers.begin())];
    bad = *found;
  }
  if (const auto values = take_values(bad)) inspect::note_mismatch(*values);
  return str(words[0], ": ", bad, "  [", command_of(subject, words), "]");
}

}  // namespace

std::string check_random_calls(const RandomCalls& subject) {
  const std::vector<std::string> answers = answers_of(
      subject, subject.count,
      [&](Calls& calls, size_t i) { return calls.outcome(calls.words_of(subject.first + i)); });
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!is_failure(answers[i])) continue;
    const std::string joined = answers_of(subject, 1, [&](Calls& calls, size_t) {
      return join(calls.words_of(subject.first + i), std::string(1, kWordEnd));
    })[0];
    const Words words = split(joined, kWordEnd);
    if (!is_of_reference(subject, words, answers[i])) return shrunk(subject, words, answers[i]);
  }
  const auto rejected = std::ranges::count(answers, std::string(kRejected));
  const auto unsteady = std::ranges::count(answers, std::string(kUnsteady));
  return str(kNote, answers.size(), " calls, ", rejected, " of them rejected and ", unsteady,
             " left out as rounding decides their results");
}

}  // namespace paddle::conformance
