// Metrics and transforms of plug-ins, on the samples that they state.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <thread>

#include "base/text.h"
#include "conformance/passes.h"
#include "conformance/results.h"
#include "conformance/train_parts.h"
#include "data/transform_info.h"
#include "inspect/both_modes.h"
#include "inspect/op_call.h"
#include "metrics/metric.h"
#include "plugin/plugin.h"
#include "runtime/execute.h"

namespace paddle::conformance {
namespace {

const std::vector<std::string>& stated_samples(const std::string& name) {
  static const std::vector<std::string> none;
  const plugin::Plugin* const loaded = plugin::find(name.substr(0, name.find('.')));
  if (!loaded) return none;
  const auto at = loaded->samples.find(name);
  return at == loaded->samples.end() ? none : at->second;
}

/// "f32[2,3]{0,1}" and other arrays of a command line.
Array array_of(const std::string& text) {
  return inspect::own_copy(inspect::parse_call(get_op("isnan"), {"x=" + text}).inputs().at(0));
}

/// Rows from `from` to `to` of the first axis.
Array batch_rows(const Array& all, int64_t from, int64_t to) {
  Dims shape = all.shape;
  shape[0] = to - from;
  Array out = Array::empty(all.dtype, shape);
  if (out.size() == 0) return out;
  const auto bytes = static_cast<size_t>(storage_bytes(all.dtype, all.size() / all.shape[0]));
  std::memcpy(out.raw(),
              static_cast<const std::byte*>(all.raw()) + static_cast<size_t>(from) * bytes,
              static_cast<size_t>(to - from) * bytes);
  return out;
}

bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// A metric of all rows, and of parts of them whose states are joined in another order.
std::string check_sample(const metrics::MetricInfo& info, const std::string& sample) {
  std::map<std::string, Array> given;
  for (const std::string& word : split(sample, ' ')) {
    const size_t equals = word.find('=');
    if (equals != std::string::npos)
      given[word.substr(0, equals)] = array_of(word.substr(equals + 1));
  }
  std::vector<Array> operands;
  metrics::MetricSpec spec{.name = info.name};
  std::vector<TensorType> types;
  for (const std::string& operand : info.operands) {
    if (!given.contains(operand)) return "the sample has no '" + operand + "'";
    operands.push_back(given.at(operand));
    if (operands.back().shape.empty() || operands.back().shape[0] != operands[0].shape[0])
      return "the operands of the sample have different numbers of rows";
    types.push_back({operands.back().dtype, to_shape(operands.back().shape)});
  }
  metrics::resolve_operands(spec, types);
  const int64_t rows = operands[0].shape[0];
  const auto accumulated = [&](int64_t from, int64_t to) {
    auto metric = metrics::make_metric(spec);
    std::vector<Array> part;
    for (const Array& each : operands) part.push_back(batch_rows(each, from, to));
    metric->update(part, to - from);
    return metric;
  };
  const double whole = accumulated(0, rows)->result();
  if (!same_number(whole, accumulated(0, rows)->result())) return "it differs when computed again";
  for (const int64_t size : {int64_t{1}, int64_t{3}, rows / 2}) {
    if (size < 1) continue;
    const auto joined = metrics::make_metric(spec);
    for (int64_t end = rows; end > 0; end -= size)
      joined->merge(accumulated(std::max<int64_t>(0, end - size), end)->state());
    if (const double found = joined->result(); !same_number(found, whole))
      return str("in batches of ", size, " it is ", found, ", of all rows at once ", whole);
  }
  (void)metrics::make_metric(spec)->result();  // of no data: any number, no error
  return "";
}

data::Value value_of(const Array& array) {
  data::Value out;
  out.reset(array.dtype, array.shape);
  if (out.bytes() > 0) std::memcpy(out.raw(), array.raw(), out.bytes());
  return out;
}

bool same_value(const data::Value& a, const data::Value& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

/// A transform of one field: its type, repetitions, and threads at a time.
std::string check_field(const data::Transform& transform, const Array& array) {
  const data::Field field{.name = "x", .dtype = array.dtype, .shape = array.shape};
  const data::Field expected = transform.infer(field);
  data::Field any = field;
  std::ranges::fill(any.shape, -1);
  const data::Field of_any = transform.infer(any);
  if (of_any.dtype != expected.dtype || of_any.shape.size() != expected.shape.size())
    return str("with sizes that differ by sample it makes ", of_any.text(), ", else ",
               expected.text());
  const data::Value in = value_of(array);
  const auto applied = [&](uint64_t seed) {
    data::Value out;
    transform.apply(in, out, data::FieldKind::kPlain, RandomSequence(Random(seed, 1)));
    return out;
  };
  const data::Value first = applied(1);
  if (first.dtype() != expected.dtype || first.shape() != expected.shape)
    return str("its result is ", text(first.dtype()), first.shape(), ", expected ",
               expected.text());
  constexpr size_t kThreads = 8;
  std::vector<std::string> wrong(kThreads);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      try {
        for (int repeat = 0; repeat < 4 && wrong[i].empty(); ++repeat)
          if (!same_value(applied(1), first)) wrong[i] = "the same sample gives another result";
      } catch (const std::exception& e) {
        wrong[i] = e.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& bad : wrong)
    if (!bad.empty()) return bad;
  return "";
}

constexpr const char* kNoSamples = "it states no samples";

}  // namespace

std::string check_metric(const std::string& name) {
  runtime::register_backends();
  const auto info = metrics::find_metric(name);
  if (!info) return "it is not registered";
  if (stated_samples(name).empty()) return str(kSkip, kNoSamples);
  for (const std::string& sample : stated_samples(name))
    if (const std::string bad = check_sample(*info, sample); !bad.empty())
      return str(bad, "  [", sample, "]");
  return "";
}

std::string check_transform(const std::string& name, const std::vector<std::string>& keys) {
  runtime::register_backends();
  const auto info = data::transform_registry().find(name);
  if (!info) return "it is not registered";
  if (stated_samples(name).empty()) return str(kSkip, kNoSamples);
  std::string why;
  auto given = own_keys(info->keys, keys, why);
  if (!given) return why;
  config::Diagnostics diagnostics;
  info->keys.resolve(*given, "--key", diagnostics);
  diagnostics.raise();
  const auto transform = data::make_transform(info->read(config::Section(*given)));
  for (const std::string& sample : stated_samples(name))
    if (const std::string bad = check_field(*transform, array_of(sample)); !bad.empty())
      return str(bad, "  [", sample, "]");
  return "";
}

}  // namespace paddle::conformance
