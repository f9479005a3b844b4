#include "serve/predict_batch.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "infer/results.h"

namespace paddle::serve {

PredictJob::PredictJob(infer::InputBatch given, bool decodes, infer::ShownColumns columns)
    : batch(std::move(given)), decode(decodes), shown(columns) {}

PredictJob::PredictJob(onnx::Values given) : values(std::move(given)) {}

bool PredictJob::wait(int milliseconds) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::milliseconds(milliseconds), [&] { return done_; });
}

void PredictJob::finish() {
  const std::lock_guard lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

bool can_join(const PredictJob& a, const PredictJob& b) {
  const auto same_rows = [](const Array& x, const Array& y) {
    return x.dtype == y.dtype && x.shape.size() == y.shape.size() && !x.shape.empty() &&
           std::equal(x.shape.begin() + 1, x.shape.end(), y.shape.begin() + 1);
  };
  const auto has_rows = [](const PredictJob& job) {
    return !job.values && job.batch.rows > 0 &&
           std::all_of(job.batch.inputs.begin(), job.batch.inputs.end(), [&](const Array& each) {
             return !each.storage || (!each.shape.empty() && each.shape[0] == job.batch.rows);
           });
  };
  if (a.decode != b.decode || !has_rows(a) || !has_rows(b)) return false;
  for (size_t i = 0; i < a.batch.inputs.size(); ++i) {
    const Array &x = a.batch.inputs[i], &y = b.batch.inputs[i];
    if (static_cast<bool>(x.storage) != static_cast<bool>(y.storage)) return false;
    if (x.storage && !same_rows(x, y)) return false;
  }
  // By row, or not at all.
  return a.batch.texts.empty() == b.batch.texts.empty() &&
         a.batch.images.empty() == b.batch.images.empty();
}

infer::InputBatch joined(const std::vector<PredictJobPtr>& jobs) {
  infer::InputBatch out;
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (const PredictJobPtr& job : jobs) {
    append(out.texts, job->batch.texts);
    append(out.images, job->batch.images);
    out.rows += job->batch.rows;
  }
  for (size_t i = 0; i < jobs[0]->batch.inputs.size(); ++i) {
    const Array& first = jobs[0]->batch.inputs[i];
    if (!first.storage) {  // the decoder fills it in
      out.inputs.push_back(first);
      continue;
    }
    std::vector<Array> parts;
    for (const PredictJobPtr& job : jobs) parts.push_back(job->batch.inputs[i].contiguous());
    out.inputs.push_back(infer::joined_batches(parts).value());
  }
  return out;
}

Array rows_of(const Array& array, int64_t first, int64_t rows) {
  const Array packed = array.contiguous();
  Dims shape = packed.shape;
  const int64_t row = shape[0] > 0 ? packed.size() / shape[0] : 0;
  shape[0] = rows;
  Array out = Array::empty(packed.dtype, shape);
  const auto bytes = static_cast<size_t>(storage_bytes(packed.dtype, row));
  if (bytes > 0)
    std::memcpy(out.raw(),
                static_cast<const std::byte*>(packed.raw()) + static_cast<size_t>(first) * bytes,
                static_cast<size_t>(rows) * bytes);
  return out;
}

}  // namespace paddle::serve
