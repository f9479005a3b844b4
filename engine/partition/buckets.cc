// Sums over ranks that travel together. A gradient is usually read long after it has been computed,
// by the norm for clipping or the update, so that many small sums can share one all-reduce. Each
// element is summed as it would be alone, and what shares a bucket follows from whole sizes and the
// order of the program, which are the same on all ranks.

#include "ops/generated/comm.h"
#include "ops/generated/shape.h"
#include "partition/localize.h"

namespace paddle::partition {
namespace {

constexpr int64_t kLargestSum = 256 * 1024;  ///< bytes; a copy of larger ones costs too much
constexpr int64_t kLargestBucket = 4 * 1024 * 1024;

}  // namespace

bool Localizer::postpone(size_t result, const Tensor& partial, const SplitAtoms& split) {
  const Rule& rule = *current_->rule;
  if (rule.combine != Combine::kSum || active_.empty()) return false;
  // The stages of a pipeline have their sums for themselves.
  if (options_.mesh.axis_size_of("pipeline") > 1) return false;
  const ir::Value& value = *operation().results[result];
  const std::vector<int>& dims = rule.results[result];
  int axis = -1;
  for (const ActiveFactor& a : active_) {
    if (std::find(dims.begin(), dims.end(), a.factor) != dims.end()) continue;
    if (axis >= 0 || stored_atom(value, split, a.axis)) return false;
    axis = a.axis;
  }
  if (axis < 0 || !is_float(value.type.dtype)) return false;
  int64_t count = 1;
  for (size_t d = 0; d < value.type.shape.size(); ++d) count *= size_of(value, d);
  const int64_t bytes = storage_bytes(value.type.dtype, count);
  if (bytes > kLargestSum || bytes == 0) return false;
  auto bucket = std::find_if(buckets_.begin(), buckets_.end(), [&](const Bucket& b) {
    return b.axis == axis && b.dtype == value.type.dtype;
  });
  if (bucket != buckets_.end() && bucket->bytes + bytes > kLargestBucket) {
    Bucket full = std::move(*bucket);
    buckets_.erase(bucket);
    flush(std::move(full));
    bucket = buckets_.end();
  }
  if (bucket == buckets_.end())
    bucket = buckets_.insert(buckets_.end(), {axis, value.type.dtype, 0, {}});
  bucket->bytes += bytes;
  bucket->sums.emplace_back(&value, partial);
  return true;
}

void Localizer::flush_bucket_of(const ir::Value& value) {
  const auto bucket = std::find_if(buckets_.begin(), buckets_.end(), [&](const Bucket& b) {
    return std::any_of(b.sums.begin(), b.sums.end(),
                       [&](const auto& sum) { return sum.first == &value; });
  });
  ensure(bucket != buckets_.end(), "partition: value %", value.id, " is in no bucket");
  Bucket read = std::move(*bucket);
  buckets_.erase(bucket);
  flush(std::move(read));
}

void Localizer::flush(Bucket bucket) {
  const auto keep = [&](const ir::Value* value, Tensor sum) {
    LocalValue& local = values_.at(value);
    local.tensor = std::move(sum);
    local.is_postponed = false;
  };
  if (bucket.sums.size() == 1)
    return keep(bucket.sums[0].first, all_reduce(bucket.sums[0].second, bucket.axis));
  Tensors flat;
  for (const auto& [value, partial] : bucket.sums) {
    const Dims shape = concrete(partial.shape());
    flat.push_back(ops::reshape(partial, {Dim(element_count(std::span(shape)))}));
  }
  const Tensor all = all_reduce(ops::concat(flat, 0), bucket.axis);
  int64_t begin = 0;
  for (size_t i = 0; i < bucket.sums.size(); ++i) {
    const Tensor& partial = bucket.sums[i].second;
    const int64_t end = begin + *flat[i].dim(0).constant();
    const Tensor own =
        ops::strided_slice(all, {0}, std::vector<Dim>{begin}, std::vector<Dim>{end}, {1});
    keep(bucket.sums[i].first, ops::reshape(own, partial.shape()));
    begin = end;
  }
}

}  // namespace paddle::partition
