#include "partition/schedule.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "base/error.h"

namespace paddle::partition {
namespace {

bool splits_backward(const PipelineShape& shape) { return shape.schedule == Schedule::kZeroBubble; }

/// Jobs whose results a job reads.
std::vector<Job> needs(const Job& job, const PipelineShape& shape) {
  std::vector<Job> out;
  if (job.kind == JobKind::kWeights) {
    out.push_back({JobKind::kBackward, job.stage, job.micro_batch});
  } else if (job.kind == JobKind::kBackward) {
    out.push_back({JobKind::kForward, job.stage, job.micro_batch});
    if (job.stage + 1 < shape.stages())
      out.push_back({JobKind::kBackward, job.stage + 1, job.micro_batch});
  } else if (job.stage > 0) {
    out.push_back({JobKind::kForward, job.stage - 1, job.micro_batch});
  }
  return out;
}

using Key = std::tuple<JobKind, int, int>;
Key key(const Job& job) { return {job.kind, job.stage, job.micro_batch}; }

/// The passes of a rank in the order of interleaving: as many micro-batches as there are ranks go
/// through a stage before the rank takes up its next one.
std::vector<Job> passes(const PipelineShape& shape, int rank, JobKind kind) {
  std::vector<Job> out;
  for (int first = 0; first < shape.micro_batches; first += shape.ranks)
    for (int c = 0; c < shape.chunks; ++c) {
      const int chunk = kind == JobKind::kForward ? c : shape.chunks - 1 - c;
      for (int m = first; m < std::min(first + shape.ranks, shape.micro_batches); ++m)
        out.push_back({kind, chunk * shape.ranks + rank, m});
    }
  return out;
}

/// Some forward passes, then one forward and one backward in turn.
std::vector<Job> in_turn(const PipelineShape& shape, int rank, int first) {
  const std::vector<Job> forward = passes(shape, rank, JobKind::kForward);
  const std::vector<Job> backward = passes(shape, rank, JobKind::kBackward);
  const auto count = static_cast<int>(forward.size());
  const int ahead = std::min(first, count);
  std::vector<Job> out(forward.begin(), forward.begin() + ahead);
  for (int i = 0; i < count; ++i) {
    if (ahead + i < count) out.push_back(forward[static_cast<size_t>(ahead + i)]);
    out.push_back(backward[static_cast<size_t>(i)]);
  }
  return out;
}

/// A clock on which each rank takes, whenever it is free, the best job that can start: a backward
/// pass, else a forward pass unless too many are open, else gradients of weights. These wait for at
/// most as many backward passes as there are ranks, so that memory stays bounded.
class ZeroBubble {
 public:
  explicit ZeroBubble(const PipelineShape& shape)
      : shape_(shape), lists_(ranks()), next_(ranks()), free_(ranks(), 0) {}

  JobLists run() {
    const int jobs = 3 * shape_.micro_batches * shape_.ranks;
    int done = 0;
    for (int now = 0; done < jobs; ++now)
      for (int rank = 0; rank < shape_.ranks; ++rank) done += take_job(rank, now);
    return std::move(lists_);
  }

 private:
  size_t ranks() const { return static_cast<size_t>(shape_.ranks); }
  struct Next {
    int forward = 0, backward = 0, weights = 0;
  };

  bool can_start(const Job& job, int now) const {
    for (const Job& needed : needs(job, shape_)) {
      const auto it = ended_.find(key(needed));
      if (it == ended_.end() || it->second > now) return false;
    }
    return true;
  }

  int take_job(int rank, int now) {
    const auto r = static_cast<size_t>(rank);
    Next& next = next_[r];
    if (free_[r] > now) return 0;
    const Job backward{JobKind::kBackward, rank, next.backward};
    const Job forward{JobKind::kForward, rank, next.forward};
    const Job weights{JobKind::kWeights, rank, next.weights};
    // As many micro-batches between their passes as with one forward, one backward.
    const int between = next.forward - next.backward, most = shape_.ranks - rank;
    if (next.backward < shape_.micro_batches && can_start(backward, now))
      return start(backward, next.backward, r, now);
    if (next.backward - next.weights >= shape_.ranks && can_start(weights, now))
      return start(weights, next.weights, r, now);
    if (next.forward < shape_.micro_batches && between < most && can_start(forward, now))
      return start(forward, next.forward, r, now);
    if (next.weights < next.backward && can_start(weights, now))
      return start(weights, next.weights, r, now);
    return 0;
  }

  int start(const Job& job, int& count, size_t rank, int now) {
    ++count;
    lists_[rank].push_back(job);
    free_[rank] = now + 1;
    ended_[key(job)] = now + 1;
    return 1;
  }

  const PipelineShape& shape_;
  JobLists lists_;
  std::vector<Next> next_;
  std::vector<int> free_;
  std::map<Key, int> ended_;
};

/// Runs the lists: `run(rank, job)` for each job once those that it needs have run. Returns the
/// first jobs of the ranks that are left waiting.
template <class Run>
std::vector<std::pair<int, Job>> step_through(const JobLists& lists, const PipelineShape& shape,
                                              const Run& run) {
  std::map<Key, bool> done;
  std::vector<size_t> at(lists.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t r = 0; r < lists.size(); ++r)
      while (at[r] < lists[r].size()) {
        const Job& job = lists[r][at[r]];
        const std::vector<Job> needed = needs(job, shape);
        if (!std::all_of(needed.begin(), needed.end(),
                         [&](const Job& each) { return done.contains(key(each)); }))
          break;
        run(r, job);
        done[key(job)] = true;
        ++at[r];
        moved = true;
      }
  }
  std::vector<std::pair<int, Job>> waiting;
  for (size_t r = 0; r < lists.size(); ++r)
    if (at[r] < lists[r].size()) waiting.emplace_back(static_cast<int>(r), lists[r][at[r]]);
  return waiting;
}

}  // namespace

std::string Job::text() const {
  const char* const what = kind == JobKind::kForward    ? "forward"
                           : kind == JobKind::kBackward ? "backward"
                                                        : "weight gradients";
  return str(what, " of micro-batch ", micro_batch, " in stage ", stage);
}

std::vector<std::string> schedule_names() {
  return {"f_then_b", "1f1b", "interleaved", "zero_bubble"};
}

Schedule parse_schedule(const std::string& name) {
  const std::vector<std::string> names = schedule_names();
  const auto it = std::find(names.begin(), names.end(), name);
  ensure(it != names.end(), "no schedule has the name ", name);
  return static_cast<Schedule>(it - names.begin());
}

std::string name_of(Schedule schedule) { return schedule_names()[static_cast<size_t>(schedule)]; }

JobLists make_job_lists(const PipelineShape& shape) {
  if (shape.schedule == Schedule::kZeroBubble) return ZeroBubble(shape).run();
  JobLists lists;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    int ahead = shape.micro_batches * shape.chunks;
    if (shape.schedule == Schedule::kOneForwardOneBackward) ahead = shape.ranks - rank - 1;
    if (shape.schedule == Schedule::kInterleaved)
      ahead = 2 * (shape.ranks - rank - 1) + (shape.chunks - 1) * shape.ranks;
    lists.push_back(in_turn(shape, rank, ahead));
  }
  // Interleaving works in groups of as many micro-batches as there are ranks.
  if (find_fault(lists, shape)) {
    PipelineShape plain = shape;
    plain.schedule = Schedule::kForwardThenBackward;
    ensure(shape.schedule == Schedule::kInterleaved,
           "a schedule has a fault: ", *find_fault(lists, shape));
    return make_job_lists(plain);
  }
  return lists;
}

namespace {

/// Messages of a stage arrive in the order of sending, so both ends take micro-batches in order.
std::optional<std::string> find_disorder(const JobLists& lists) {
  std::map<std::pair<JobKind, int>, int> last;  // micro-batch of a kind of job and its stage
  for (size_t r = 0; r < lists.size(); ++r)
    for (const Job& job : lists[r]) {
      int& before = last.try_emplace({job.kind, job.stage}, 0).first->second;
      if (before > job.micro_batch)
        return str("rank ", r, " has the job '", job.text(), "' after that of micro-batch ",
                   before);
      before = job.micro_batch;
    }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> find_fault(const JobLists& lists, const PipelineShape& shape) {
  std::map<Key, int> count;
  for (size_t r = 0; r < lists.size(); ++r)
    for (const Job& job : lists[r]) {
      if (job.stage < 0 || job.stage >= shape.stages() || job.micro_batch < 0 ||
          job.micro_batch >= shape.micro_batches || shape.rank_of(job.stage) != static_cast<int>(r))
        return str("rank ", r, " has the job '", job.text(), "', which is not its own");
      if (++count[key(job)] > 1) return str("duplicate job '", job.text(), "'");
    }
  std::vector<JobKind> kinds = {JobKind::kForward, JobKind::kBackward};
  if (splits_backward(shape)) kinds.push_back(JobKind::kWeights);
  for (int stage = 0; stage < shape.stages(); ++stage)
    for (int m = 0; m < shape.micro_batches; ++m)
      for (const JobKind kind : kinds)
        if (const Job job{kind, stage, m}; !count.contains(key(job)))
          return str("the job '", job.text(), "' is missing");
  const auto waiting = step_through(lists, shape, [](size_t, const Job&) {});
  if (waiting.empty()) return find_disorder(lists);
  std::string message = "the ranks wait for each other:";
  for (const auto& [rank, job] : waiting)
    message +=
        str(&waiting.front().first == &rank ? " " : ", ", "rank ", rank, " at '", job.text(), "'");
  return message;
}

double Replay::bubble() const {
  double share = 0;
  for (const double b : busy) share += (end - b) / b;
  return busy.empty() ? 0 : share / static_cast<double>(busy.size());
}

Replay replay(const JobLists& lists, const PipelineShape& shape, const JobTimes& times) {
  Replay out;
  out.busy.assign(lists.size(), 0);
  out.most_active.assign(lists.size(), 0);
  std::vector<double> free(lists.size(), 0);
  std::vector<int> active(lists.size(), 0);
  std::map<Key, double> ended;
  const bool split = splits_backward(shape);
  const JobKind last = split ? JobKind::kWeights : JobKind::kBackward;
  const auto waiting = step_through(lists, shape, [&](size_t r, const Job& job) {
    double start = free[r];
    for (const Job& needed : needs(job, shape))
      start = std::max(
          start, ended.at(key(needed)) +
                     (shape.rank_of(needed.stage) == static_cast<int>(r) ? 0 : times.transfer));
    const double time = job.kind == JobKind::kForward   ? times.forward
                        : job.kind == JobKind::kWeights ? times.weights
                        : split                         ? times.backward - times.weights
                                                        : times.backward;
    free[r] = ended[key(job)] = start + time;
    out.busy[r] += time;
    out.end = std::max(out.end, free[r]);
    active[r] += job.kind == JobKind::kForward;
    out.most_active[r] = std::max(out.most_active[r], active[r]);
    active[r] -= job.kind == last;
  });
  ensure(waiting.empty(), "a job list with a fault was replayed");
  return out;
}

}  // namespace paddle::partition
