#include "exporter/check.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/files.h"
#include "inspect/compare.h"
#include "runtime/execute.h"
#include "tensor/random.h"

namespace paddle::exporter {
namespace {

namespace fs = std::filesystem;
using Sizes = std::map<std::string, int64_t>;

std::vector<std::string> symbols_of(const program::Model& model) {
  std::vector<std::string> out;
  for (const auto& [name, type] : model.inputs())
    for (const Dim& dim : type.shape) dim.collect_symbols(out);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// Random values for the inputs; integers are below `limit`, so that they can be indices.
std::vector<Array> random_inputs(const program::Model& model, const Sizes& sizes, uint64_t seed,
                                 int64_t limit) {
  std::vector<Array> out;
  for (const auto& [name, type] : model.inputs()) {
    Dims shape;
    for (const Dim& dim : type.shape) {
      const auto size = dim.evaluate([&](const std::string& symbol) -> std::optional<int64_t> {
        const auto found = sizes.find(symbol);
        return found == sizes.end() ? std::nullopt : std::optional(found->second);
      });
      shape.push_back(size.value_or(1));
    }
    const Random random(seed, stream_of("export " + name));
    const int64_t count = element_count(std::span<const int64_t>(shape));
    Array values = Array::empty(DType::kF64, shape);
    for (int64_t i = 0; i < count; ++i) {
      const double u = random.uniform(static_cast<uint64_t>(i));
      values.data<double>()[i] = is_float(type.dtype)  ? 4 * u - 2
                                 : is_bool(type.dtype) ? (u < 0.5 ? 0 : 1)
                                                       : std::floor(u * static_cast<double>(limit));
    }
    out.push_back(values.cast(type.dtype));
  }
  return out;
}

constexpr int64_t kMostElements = int64_t{1} << 24;

/// Elements of all inputs, or more than kMostElements.
int64_t input_elements(const program::Model& model, const Sizes& sizes) {
  double total = 0;
  for (const auto& [name, type] : model.inputs()) {
    double count = 1;
    for (const Dim& dim : type.shape) {
      const auto size = dim.evaluate([&](const std::string& symbol) -> std::optional<int64_t> {
        const auto found = sizes.find(symbol);
        return found == sizes.end() ? std::nullopt : std::optional(found->second);
      });
      count *= static_cast<double>(size.value_or(1));
    }
    total += count;
  }
  return total > static_cast<double>(kMostElements) ? kMostElements + 1
                                                    : static_cast<int64_t>(total);
}

struct Reference {
  Sizes sizes;
  std::vector<Array> inputs, outputs;
};

/// Runs the source on sizes that it takes; nullopt if it takes none of those that are tried.
std::optional<Reference> run_source(program::Model& model, const ExportJob& job, int64_t binding) {
  const std::vector<std::string> symbols = symbols_of(model);
  for (const int64_t scale : {1, 8, 32, 224})
    for (const int64_t limit : {16, 2, 1}) {
      Reference out;
      for (size_t i = 0; i < symbols.size(); ++i) {
        const auto fixed = job.dims.find(symbols[i]);
        // Different sizes for different symbols, so that none can stand for another.
        out.sizes[symbols[i]] = fixed != job.dims.end()
                                    ? fixed->second
                                    : (binding + 1) * scale + static_cast<int64_t>(i);
      }
      if (input_elements(model, out.sizes) > kMostElements) continue;
      out.inputs = random_inputs(model, out.sizes, static_cast<uint64_t>(binding), limit);
      try {
        model.reset();
        for (const Array& each : model.run(out.inputs))
          out.outputs.push_back(runtime::copied(each));
        return out;
      } catch (const Error& e) {
        if (e.code() == ErrorCode::kInternal || e.code() == ErrorCode::kDevice) throw;
      }
    }
  return std::nullopt;
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

inspect::Tolerance tolerance_for(DType dtype) {
  if (dtype == DType::kF64) return {1e-9, 1e-9};
  if (dtype == DType::kF16) return {1e-2, 1e-3};
  if (dtype == DType::kBF16) return {4e-2, 1e-2};
  return {1e-3, 1e-4};
}

/// Arrays for the file's inputs by name: inputs that it lost are left out, states have their
/// initial values.
std::vector<Array> inputs_for(const program::Model& file, const program::Model& source,
                              const std::vector<Array>& inputs, const onnx::WeightLookup& initial) {
  std::vector<Array> out;
  for (const auto& [name, type] : file.inputs()) {
    const auto& known = source.inputs();
    const auto at = std::find_if(known.begin(), known.end(), [&, &name = name](const auto& input) {
      return input.first == name;
    });
    if (at != known.end())
      out.push_back(inputs[static_cast<size_t>(at - known.begin())]);
    else
      out.push_back(initial(name));
  }
  return out;
}

}  // namespace

std::vector<CheckResult> check_export(const ExportJob& job, const std::string& file,
                                      const onnx::WeightLookup& initial,
                                      const std::function<void(const std::string&)>& note) {
  const auto source = program::load_model(job.model, job.load);
  const auto exported = program::load_model(file, {});
  std::vector<CheckResult> out;
  for (int64_t binding = 0; binding < job.checks; ++binding) {
    CheckResult result;
    const auto reference = run_source(*source, job, binding);
    if (!reference) {
      note("the model takes none of the inputs that were tried; the file is not compared with it");
      out.push_back(result);
      break;
    }
    result.ran = true;
    result.dims = reference->sizes;
    const auto& found = exported->run(inputs_for(*exported, *source, reference->inputs, initial));
    for (size_t i = 0; i < reference->outputs.size() && result.difference.empty(); ++i) {
      // Outputs come in the order of the model; those of states follow.
      const std::string& name = source->outputs()[i];
      const Array& expected = reference->outputs[i];
      const Array& actual = found.at(i);
      const inspect::Tolerance tolerance = tolerance_for(expected.dtype);
      const std::string bad = inspect::difference(actual, expected, tolerance);
      if (!bad.empty()) result.difference = "'" + name + "': " + bad;
      result.largest_error =
          std::max(result.largest_error, relative_error(actual, expected, tolerance));
    }
    out.push_back(result);
    if (symbols_of(*source).empty()) break;  // one binding is all there is
  }
  return out;
}

void remove_model(const std::string& file) {
  std::error_code ignored;
  fs::remove(file, ignored);
  fs::remove(file + ".data", ignored);
}

void move_model(const formats::onnx::Model& model, const std::string& from, const std::string& to,
                const formats::onnx::WriteOptions& options, formats::onnx::WrittenModel& written) {
  if (written.data_file.empty()) {
    std::error_code error;
    fs::rename(from, to, error);
    if (error) fail(ErrorCode::kDevice, to, ": ", error.message());
    return;
  }
  remove_model(from);
  written = formats::onnx::write_model(model, to, options);
}

}  // namespace paddle::exporter
