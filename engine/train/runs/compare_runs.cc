#include "train/runs/compare_runs.h"

#include <cmath>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>

#include "base/files.h"
#include "comm/simulation.h"
#include "train/runs/run_folder.h"
#include "train/session/session.h"

namespace paddle::train {
namespace {

/// Values on their way from a replayed run to the comparison; few at a time.
class Channel {
 public:
  void push(const ReplayedValue& value) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return values_.size() < kMax || is_ignored_; });
    if (is_ignored_) return;
    values_.push_back(value);
    values_.back().whole = value.whole.on_host();
    changed_.notify_all();
  }
  void end() {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
  }
  /// nullopt after the last one.
  std::optional<ReplayedValue> pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !values_.empty() || is_over_; });
    if (values_.empty()) return std::nullopt;
    ReplayedValue value = std::move(values_.front());
    values_.pop_front();
    changed_.notify_all();
    return value;
  }
  /// Later values are thrown away.
  void ignore() {
    const std::lock_guard lock(mutex_);
    is_ignored_ = true;
    values_.clear();
    changed_.notify_all();
  }

 private:
  static constexpr size_t kMax = 4;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ReplayedValue> values_;
  bool is_over_ = false, is_ignored_ = false;
};

/// A run that computes one step, in threads of its own.
class ReplayedRun {
 public:
  ReplayedRun(const std::string& run, std::string checkpoint, TrainObserver& observer)
      : checkpoint_(std::move(checkpoint)), observer_(observer) {
    const std::string file = config_of_run(run);
    const auto ranks = static_cast<size_t>(read_config(file, {}).parallel.ranks());
    for (size_t rank = 0; rank < ranks; ++rank) configs_.push_back(read_config(file, {}));
    thread_ = std::thread([this] { compute(); });
  }
  ~ReplayedRun() {
    channel_.ignore();
    if (thread_.joinable()) thread_.join();
  }
  ReplayedRun(const ReplayedRun&) = delete;
  ReplayedRun& operator=(const ReplayedRun&) = delete;

  std::optional<ReplayedValue> next() { return channel_.pop(); }
  /// The number of the step; throws what the run has thrown.
  int64_t finish() {
    channel_.ignore();
    thread_.join();
    if (error_) std::rethrow_exception(error_);
    return step_;
  }

 private:
  void compute() {
    try {
      comm::simulate(static_cast<int>(configs_.size()), [this](const auto& communicator) {
        TrainObserver silent;
        TrainOptions options;
        options.communicator = communicator;
        options.eager = false;
        options.fitted = fitted_of_checkpoint(checkpoint_);
        Trainer trainer(std::move(configs_[static_cast<size_t>(communicator->rank())]), options,
                        communicator->is_root() ? observer_ : silent);
        trainer.prepare().require_fit();
        const int64_t step = trainer.replay(
            checkpoint_, [this](const ReplayedValue& value) { channel_.push(value); });
        if (communicator->is_root()) step_ = step;
      });
    } catch (...) {
      error_ = std::current_exception();
    }
    channel_.end();
  }

  std::string checkpoint_;
  TrainObserver& observer_;
  std::vector<RunConfig> configs_;
  Channel channel_;
  int64_t step_ = 0;
  std::exception_ptr error_;
  std::thread thread_;
};

std::string named(const ReplayedValue& value) {
  return str("'", value.operation, "'", value.location.empty() ? "" : " at " + value.location,
             " : ", value.type);
}

/// The elements as float64; complex ones as two of them.
std::vector<double> numbers_of(const Array& array) {
  const auto of = [&]<class T>(const T* data, int64_t count) {
    return std::vector<double>(data, data + count);
  };
  if (array.dtype == DType::kC128)
    return of(static_cast<const double*>(array.raw()), 2 * array.size());
  if (array.dtype == DType::kC64)
    return of(static_cast<const float*>(array.raw()), 2 * array.size());
  const Array wide = array.cast(DType::kF64);
  return of(wide.data<double>(), wide.size());
}

ValueDifference difference(const ReplayedValue& a, const ReplayedValue& b) {
  ValueDifference out;
  out.operation = a.operation;
  out.location = a.location;
  out.type = a.type.text();
  const Array x = a.whole.contiguous(), y = b.whole.contiguous();
  out.count = x.size();
  if (std::memcmp(x.raw(), y.raw(), static_cast<size_t>(storage_bytes(x.dtype, x.size()))) == 0)
    return out;
  const std::vector<double> u = numbers_of(x), v = numbers_of(y);
  for (size_t i = 0; i < u.size(); ++i) {
    if (std::isfinite(u[i])) out.scale = std::max(out.scale, std::abs(u[i]));
    if (u[i] == v[i] || (std::isnan(u[i]) && std::isnan(v[i]))) continue;
    ++out.different;
    const double apart = std::abs(u[i] - v[i]);
    out.largest =
        std::max(out.largest, std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart);
  }
  return out;
}

/// The newest checkpoint of a run before a step; "" if there is none.
std::string checkpoint_before(const std::string& run, int64_t step) {
  const std::string folder = join_path(run, "checkpoints");
  if (!is_directory(folder)) return "";
  std::string found;
  for (const int64_t number : program::list_checkpoints(folder))
    if (number < step) found = join_path(folder, std::to_string(number));
  return found;
}

}  // namespace

double rounding_bound(DType dtype) {
  constexpr double kDouble = 1e-10, kSingle = 1e-4, kHalf = 5e-2;
  switch (dtype) {
    case DType::kF64:
    case DType::kC128:
      return kDouble;
    case DType::kF32:
    case DType::kC64:
      return kSingle;
    case DType::kF16:
    case DType::kBF16:
      return kHalf;
    default:
      return 0;
  }
}

StepComparison compare_step(const std::string& a, const std::string& b, int64_t before,
                            TrainObserver& observer) {
  StepComparison out;
  out.checkpoint = checkpoint_before(a, before);
  ReplayedRun first(a, out.checkpoint, observer), second(b, out.checkpoint, observer);
  while (true) {
    const auto x = first.next(), y = second.next();
    if (!x && !y) break;
    if (!x || !y) {
      // One of them may have failed: then its error says more.
      out.parted = str(named(x ? *x : *y), " is only in the ", x ? "first" : "second", " run");
      break;
    }
    if (x->operation != y->operation || !same_type(x->type, y->type)) {
      out.parted = str(named(*x), " and ", named(*y));
      break;
    }
    ++out.values;
    const ValueDifference apart = difference(*x, *y);
    if (apart.different == 0) {
      ++out.same_bits;
      continue;
    }
    if (!out.first_bits) out.first_bits = apart;
    if (!out.first_beyond && apart.largest > rounding_bound(x->type.dtype) * apart.scale)
      out.first_beyond = apart;
  }
  out.step = first.finish();
  second.finish();
  return out;
}

}  // namespace paddle::train
