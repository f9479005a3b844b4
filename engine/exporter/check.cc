#include "exporter/check.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/files.h"
#include "base/text.h"
#include "exporter/bisect.h"
#include "exporter/onnxruntime.h"
#include "exporter/sample_run.h"
#include "exporter/streamed.h"
#include "inspect/compare.h"

namespace paddle::exporter {
namespace {

namespace fs = std::filesystem;

/// Weights of more bytes are not in memory at once.
constexpr int64_t kMaxAtOnce = int64_t{1} << 30;

int64_t weight_bytes(const onnx::ExportedModel& exported) {
  int64_t out = 0;
  for (const auto& each : exported.model.graph.initializers)
    out += storage_bytes(each.array.dtype, each.array.size());
  return out;
}

/// The largest |found - expected| over what the tolerance allows.
double relative_error(const Array& found, const Array& expected, const inspect::Tolerance& t) {
  if (found.shape != expected.shape || !is_float(expected.dtype)) return 0;
  double worst = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    const double a = found.number(i), b = expected.number(i);
    if (std::isfinite(a) && std::isfinite(b))
      worst = std::max(worst, std::abs(a - b) / (t.absolute + t.relative * std::abs(b)));
  }
  return worst;
}

inspect::Tolerance tolerance_for(DType dtype, const ExportJob& job, double largest) {
  if (job.low == DType::kF16) return {2e-2, 1e-2 * largest};
  if (job.low == DType::kBF16) return {1e-1, 5e-2 * largest};
  if (dtype == DType::kF64) return {1e-9, 1e-9};
  if (dtype == DType::kF16) return {1e-2, 1e-3};
  if (dtype == DType::kBF16) return {4e-2, 1e-2};
  // Sums that cancel are as exact as their terms.
  return {1e-3, std::max(1e-4, 1e-5 * largest)};
}

/// Which node of the file is the first that differs, as far as it can be found.
std::string blame(const ExportJob& job, const std::string& file,
                  const onnx::ExportedModel& exported, const onnx::WeightLookup& weights,
                  const program::Model& source, const std::vector<Array>& inputs,
                  const OpenFile& open) {
  std::map<std::string, Array> by_name;
  for (size_t i = 0; i < inputs.size(); ++i) by_name[source.inputs()[i].first] = inputs[i];
  try {
    const auto found = first_difference(
        exported, weights, by_name,
        [&](const Array& expected) {
          return tolerance_for(expected.dtype, job, largest_of(expected));
        },
        open, file + ".values.onnx", job.low);
    std::string out =
        found ? found->text() : "each node computes what the operation that it was made of does";
    if (job.low && !exported.limited.empty()) {
      const onnx::LimitedConstant& first = exported.limited[0];
      out = str(first.source, first.source.empty() ? "" : ": ", "the constant ",
                format_double(first.before), " is beyond ", text(*job.low), " and becomes ",
                format_double(first.now), "; ", out);
    }
    return out;
  } catch (const Error& error) {
    return str("the nodes could not be compared one by one: ", error.message());
  }
}

/// Arrays for the file's inputs by name: inputs that it lost are left out, states have their
/// initial values, and rows of tables are looked up.
std::vector<Array> inputs_for(const program::Model& file, const program::Model& source,
                              const std::vector<Array>& inputs, const onnx::WeightLookup& initial,
                              const program::ServedTables* tables) {
  std::map<std::string, const Array*> known;
  for (size_t i = 0; i < inputs.size(); ++i) known[source.inputs()[i].first] = &inputs[i];
  std::vector<Array> out;
  for (const auto& [name, type] : file.inputs()) {
    const auto rows = program::parse_rows_port(name);
    if (const auto at = known.find(name); at != known.end()) {
      out.push_back(*at->second);
    } else if (rows && tables && tables->find(rows->first) && known.contains(rows->second)) {
      Array found;
      const DType exact = type.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
      program::look_up(*tables->find(rows->first), *known.at(rows->second), exact, found);
      out.push_back(found.cast(type.dtype));
    } else {
      out.push_back(initial(name));
    }
  }
  return out;
}

}  // namespace

double largest_of(const Array& array) {
  double out = 0;
  if (is_float(array.dtype))
    for (int64_t i = 0; i < array.size(); ++i)
      if (const double x = std::abs(array.number(i)); std::isfinite(x)) out = std::max(out, x);
  return out;
}

std::vector<CheckResult> check_export(const ExportJob& job, const std::string& file,
                                      const program::TracedModel& model,
                                      const onnx::ExportedModel& exported_model,
                                      const std::function<void(const std::string&)>& note) {
  const onnx::WeightLookup& weights = model.weight;
  const auto initial = [&](const std::string& input) {
    return weights(exported_model.states.at(input));
  };
  const bool streams = !job.check_with_onnxruntime && weight_bytes(exported_model) > kMaxAtOnce;
  const OpenFile open = [&](const std::string& path) {
    return streams ? stream_file(path) : open_exported(job, path);
  };
  const auto source = streams ? stream_function(*model.function, weights)
                              : program::load_model(job.model, job.load);
  const auto exported = open(file);
  std::vector<CheckResult> out;
  for (int64_t binding = 0; binding < job.checks; ++binding) {
    CheckResult result;
    std::string rejection;
    const auto reference = run_on_samples(*source, job.dims, binding, &rejection);
    if (!reference) {
      note(
          str("the model takes none of the inputs that were tried, so the file is not compared "
              "with it (--dim NAME=SIZE fixes a size): ",
              rejection));
      out.push_back(result);
      break;
    }
    result.ran = true;
    result.dims = reference->sizes;
    const auto& found = exported->run(
        inputs_for(*exported, *source, reference->inputs, initial, model.tables.get()));
    for (size_t i = 0; i < reference->outputs.size() && result.difference.empty(); ++i) {
      // Outputs come in the order of the model; those of states follow.
      const std::string& name = source->outputs()[i];
      const Array& expected = reference->outputs[i];
      const Array& actual = found.at(i);
      const inspect::Tolerance tolerance = tolerance_for(expected.dtype, job, largest_of(expected));
      const std::string bad = inspect::difference(actual, expected, tolerance);
      if (!bad.empty()) {
        result.difference = "'" + name + "': " + bad;
        result.node = blame(job, file, exported_model, weights, *source, reference->inputs, open);
      }
      result.largest_error =
          std::max(result.largest_error, relative_error(actual, expected, tolerance));
    }
    out.push_back(result);
    if (free_symbols(*source).empty()) break;  // one binding is all there is
  }
  return out;
}

void remove_model(const std::string& file) {
  std::error_code ignored;
  fs::remove(file, ignored);
  fs::remove(file + ".data", ignored);
}

}  // namespace paddle::exporter
