// Sums over ranks that travel together. A gradient is usually read long after it has been computed,
// by the norm for clipping or the update, so that many sums can share one all-reduce. What reads
// them waits with them, as long as no other sum depends on it. Each element is summed as it would
// be only, and what shares a bucket follows from whole sizes and the order of the program, which
// are the same on all ranks.

#include <algorithm>

#include "comm/collectives.h"
#include "ops/generated/comm.h"
#include "partition/localize.h"

namespace paddle::partition {

using ir::Operation;
using ir::Value;

bool Localizer::postpone(size_t r, const Tensor& partial, Finish finish) {
  const Rule& rule = *current_->rule;
  if (rule.combine != Combine::kSum || active_.empty()) return false;
  // The stages of a pipeline have their sums for themselves.
  if (options_.mesh.axis_size_of("pipeline") > 1) return false;
  const Value& value = *operation().results[r];
  const std::vector<int>& dims = rule.results[r];
  const SplitAtoms split = wanted(value, dims);
  std::vector<int> axes;
  for (const ActiveFactor& a : active_) {
    if (std::find(dims.begin(), dims.end(), a.factor) != dims.end()) continue;
    if (stored_atom(value, split, a.axis)) return false;
    axes.push_back(a.axis);
  }
  if (axes.empty() || !is_float(partial.dtype())) return false;
  int64_t count = 1;
  for (size_t d = 0; d < value.type.shape.size(); ++d) count *= size_of(value, d);
  const int64_t bytes = storage_bytes(partial.dtype(), count);
  if (bytes == 0) return false;
  auto bucket = std::find_if(buckets_.begin(), buckets_.end(), [&](const Bucket& b) {
    return b.begun.empty() && b.axes == axes && b.dtype == partial.dtype();
  });
  if (bucket != buckets_.end() && bucket->bytes + bytes > options_.bucket_bytes) {
    Bucket full = std::move(*bucket);
    buckets_.erase(bucket);
    start(std::move(full));
    bucket = buckets_.end();
  }
  if (bucket == buckets_.end())
    bucket = buckets_.insert(buckets_.end(), {axes, partial.dtype(), 0, {}});
  bucket->bytes += bytes;
  bucket->sums.push_back({&value, partial, std::move(finish)});
  return true;
}

void Localizer::flush_bucket_of(const Value& value) {
  const auto bucket = std::find_if(buckets_.begin(), buckets_.end(), [&](const Bucket& b) {
    return std::any_of(b.sums.begin(), b.sums.end(),
                       [&](const Postponed& sum) { return sum.value == &value; });
  });
  ensure(bucket != buckets_.end(), "partition: value %", value.id, " is in no bucket");
  Bucket read = std::move(*bucket);
  buckets_.erase(bucket);
  flush(std::move(read));
}

void Localizer::start(Bucket bucket) {
  const std::vector<int64_t> ranks = options_.mesh.group(options_.rank, bucket.axes.back());
  Tensors partials;
  for (const Postponed& sum : bucket.sums) partials.push_back(sum.partial);
  // Over several axes the last sum is begun.
  for (size_t i = 0; i + 1 < bucket.axes.size(); ++i)
    partials =
        ops::comm_all_reduce(partials, options_.mesh.group(options_.rank, bucket.axes[i]), "sum");
  int64_t count = 0;
  for (size_t i = 0; i < partials.size(); ++i) {
    const Dims shape = concrete(partials[i].shape());
    count += element_count(std::span(shape));
    bucket.sums[i].partial = partials[i];
  }
  const auto scratch =
      static_cast<int64_t>(comm::all_reduce_scratch(bucket.dtype, count, ranks.size()));
  bucket.begun = ops::comm_start_all_reduce(partials, ranks, scratch, "sum");
  buckets_.push_back(std::move(bucket));
}

void Localizer::flush(Bucket bucket) {
  Tensors sums;
  for (const Postponed& sum : bucket.sums) sums.push_back(sum.partial);
  if (bucket.begun.empty()) {
    for (const int axis : bucket.axes)
      sums = ops::comm_all_reduce(sums, options_.mesh.group(options_.rank, axis), "sum");
  } else {
    // The first wait is the one for the exchange: it keeps what that reads and writes.
    Tensors used = std::move(sums);
    used.push_back(bucket.begun.back());
    sums.clear();
    for (size_t i = 0; i < bucket.sums.size(); ++i) {
      sums.push_back(ops::comm_wait(bucket.begun[i], used));
      used = {bucket.begun.back()};
    }
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    const Postponed& sum = bucket.sums[i];
    LocalValue& local = values_.at(sum.value);
    local.tensor = sum.finish ? sum.finish(sums[i]) : sums[i];
    local.is_postponed = false;
  }
}

void Localizer::find_deferrable() {
  // Whether the operation sums over ranks: a result lacks a factor that is split. Numbers, such as
  // norms and losses, are not worth an exchange of their own.
  const auto reduces = [&](const AnalyzedOperation& analyzed) {
    const Operation& o = *analyzed.operation;
    if (!analyzed.rule || analyzed.rule->reshapes || analyzed.rule->any_parts) return false;
    const Rule& rule = *analyzed.rule;
    for (size_t i = 0; i < o.operands.size(); ++i)
      for (size_t d = 0; o.operands[i] && d < rule.operands[i].size(); ++d) {
        const int factor = rule.operands[i][d];
        if (factor == kWhole) continue;
        const AtomList atoms = analysis_.dim(*o.operands[i], d);
        const bool is_split = std::any_of(atoms.begin(), atoms.end(),
                                          [&](int atom) { return analysis_.axis(atom) >= 0; });
        const auto lacks = [&](const std::vector<int>& dims) {
          return !dims.empty() && std::find(dims.begin(), dims.end(), factor) == dims.end();
        };
        if (is_split && std::any_of(rule.results.begin(), rule.results.end(), lacks)) return true;
      }
    return false;
  };
  std::unordered_set<const Operation*> early;
  const auto& operations = analysis_.operations();
  for (auto it = operations.rbegin(); it != operations.rend(); ++it) {
    const Operation& o = *it->operation;
    const bool is_early = early.contains(&o);
    if (!is_early && !o.op->has(kEffect) && o.regions.empty()) deferrable_.insert(&o);
    if (is_early || reduces(*it))
      ir::for_each_read(o, [&](const Value* v) {
        if (v->producer) early.insert(v->producer);
      });
  }
}

bool Localizer::is_deferrable(const Operation& operation) const {
  if (!deferrable_.contains(&operation)) return false;
  bool waits = false;
  ir::for_each_read(operation, [&](const Value* v) {
    const auto it = values_.find(v);
    waits =
        waits || deferred_results_.contains(v) || (it != values_.end() && it->second.is_postponed);
  });
  return waits;
}

void Localizer::localize_deferred() {
  std::vector<const AnalyzedOperation*> now;
  now.swap(deferred_);
  deferred_results_.clear();
  for (const AnalyzedOperation* o : now) localize(*o);
}

}  // namespace paddle::partition
