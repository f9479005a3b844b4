#include "quant/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/text.h"
#include "quant/function_runner.h"
#include "quant/interruption.h"

namespace paddle::quant {
namespace {

/// `rows` rows of an array, all of its rows in turn: they begin again where it has fewer.
Array rows_in_turn(const Array& whole, int64_t rows) {
  const Array packed = whole.contiguous();
  Dims shape = packed.shape;
  const auto bytes = static_cast<size_t>(packed.size() / shape[0] * item_size(packed.dtype));
  const int64_t there = shape[0];
  shape[0] = rows;
  Array out = Array::zeros(packed.dtype, shape);
  for (int64_t i = 0; i < rows; ++i)
    std::memcpy(
        static_cast<std::byte*>(out.raw()) + static_cast<size_t>(i) * bytes,
        static_cast<const std::byte*>(packed.raw()) + static_cast<size_t>(i % there) * bytes,
        bytes);
  return out;
}

/// Whether values are finite where those of a reference are.
bool finite_where(const Array& reference, const Array& found) {
  for (int64_t i = 0; i < reference.size(); ++i)
    if (std::isfinite(reference.data<float>()[i]) && !std::isfinite(found.data<float>()[i]))
      return false;
  return true;
}

}  // namespace

const Metric* Comparison::find(const std::string& name) const {
  const auto found = std::find_if(metrics.begin(), metrics.end(),
                                  [&](const Metric& metric) { return metric.name == name; });
  return found == metrics.end() ? nullptr : &*found;
}

std::vector<Array> timed_inputs(const program::Model& model, const infer::InputOptions& data,
                                int64_t rows) {
  infer::InputOptions options = data;
  options.batch = rows;
  const auto batches = infer::open_inputs(model, options);
  while (const auto batch = batches->next()) {
    if (batch->rows == 0) continue;
    std::vector<Array> out;
    for (const Array& each : batch->inputs) {
      const bool is_batch = each.ndim() > 0 && each.shape[0] == batch->rows;
      if (!is_batch && rows == 1) return batch->inputs;
      if (!is_batch)
        fail(ErrorCode::kModel, model.name(), ": quant.accept.latency.batch is ", rows,
             ", but an input of the model has no batch axis");
      out.push_back(rows_in_turn(each, rows));
    }
    return out;
  }
  fail(ErrorCode::kData, "the data has no samples");
}

Comparison compare_models(program::Model& first, program::Model& second,
                          const infer::InputOptions& data, int64_t latency_batch) {
  if (first.inputs().size() != second.inputs().size())
    fail(ErrorCode::kModel, "the models take ", first.inputs().size(), " and ",
         second.inputs().size(), " inputs");
  const auto batches = infer::open_inputs(first, data);
  Comparison out;
  Sqnr outputs;
  bool is_finite = true;
  int64_t correct_first = 0, correct_second = 0, agree = 0, compared = 0;
  double difference_squares = 0;
  while (const auto batch = batches->next()) {
    if (batch->rows == 0) continue;
    stop_if_interrupted();
    const Array expected = first.run(batch->inputs).at(0).cast(DType::kF32).contiguous();
    const Array found = second.run(batch->inputs).at(0).cast(DType::kF32).contiguous();
    if (expected.shape != found.shape)
      fail(ErrorCode::kModel, "the first outputs of the models have different shapes");
    outputs.add(expected, found);
    is_finite = is_finite && finite_where(expected, found);
    out.samples += batch->rows;
    const bool classifies =
        expected.ndim() == 2 && expected.shape[0] == batch->rows && expected.shape[1] > 1;
    if (!classifies) continue;
    const int64_t classes = expected.shape[1];
    for (int64_t row = 0; row < batch->rows; ++row) {
      const auto top = [&](const Array& scores) {
        const float* const begin = scores.data<float>() + row * classes;
        return std::max_element(begin, begin + classes) - begin;
      };
      const auto a = top(expected), b = top(found);
      agree += a == b;
      ++compared;
      if (!batches->has_labels() || !batch->labels[static_cast<size_t>(row)]) continue;
      const auto label = static_cast<int64_t>(*batch->labels[static_cast<size_t>(row)]);
      const int right_first = a == label, right_second = b == label;
      correct_first += right_first;
      correct_second += right_second;
      difference_squares += (right_first - right_second) * (right_first - right_second);
    }
  }
  if (out.samples == 0) fail(ErrorCode::kData, "the data has no samples");
  out.metrics.push_back(
      {.name = "output_sqnr_db",
       .quantized = is_finite ? outputs.decibels() : std::numeric_limits<double>::quiet_NaN()});
  const auto n = static_cast<double>(compared);
  if (compared > 0)
    out.metrics.push_back({.name = "agreement",
                           .float_value = 1,
                           .quantized = static_cast<double>(agree) / n,
                           .is_share = true});
  if (compared > 0 && batches->has_labels()) {
    const double a = static_cast<double>(correct_first) / n,
                 b = static_cast<double>(correct_second) / n;
    const double variance = difference_squares / n - (a - b) * (a - b);
    out.metrics.push_back({.name = "accuracy",
                           .float_value = a,
                           .quantized = b,
                           .confidence95 = 1.96 * std::sqrt(std::max(0.0, variance) / n),
                           .is_share = true,
                           .higher_is_better = true});
  }
  const std::vector<Array> timed = timed_inputs(first, data, latency_batch);
  out.latency_batch = latency_batch;
  const PairedTimes times =
      time_alternately([&] { first.run(timed); }, [&] { second.run(timed); }, 1);
  out.first_ms = times.first;
  out.second_ms = times.second;
  return out;
}

}  // namespace paddle::quant
