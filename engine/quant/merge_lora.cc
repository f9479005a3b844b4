#include "quant/merge_lora.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <Eigen/Core>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "formats/peft.h"
#include "formats/safetensors.h"
#include "quant/output.h"

namespace paddle::quant {
namespace {

namespace fs = std::filesystem;
using FloatMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

FloatMatrix matrix_of(const Array& array) {
  const Array values = array.cast(DType::kF32).contiguous();
  return Eigen::Map<const FloatMatrix>(values.data<float>(), values.shape[0], values.shape[1]);
}

class Merger {
 public:
  explicit Merger(const MergeJob& job) : adapter_(job.adapter), scale_(job.scale) {}

  /// The weight with what the adapter has for it.
  Array merged(const std::string& name, const Array& weight, MergeReport& report) {
    const auto found = adapter_.deltas().find(name);
    if (found == adapter_.deltas().end()) return weight;
    used_.insert(name);
    const formats::PeftAdapter::Delta& delta = found->second;
    MergedWeight entry{.name = name};
    if (delta.whole) {
      if (delta.whole->shape != weight.shape)
        fail(ErrorCode::kModel, adapter_.path(), ": '", name, "' is ", str(delta.whole->shape),
             ", the model's is ", str(weight.shape));
      entry.replaced = true;
      report.weights.push_back(entry);
      return adapter_.read(*delta.whole).cast(weight.dtype);
    }
    const auto is_matrix = [](const Dims& shape) { return shape.size() == 2; };
    if (!is_matrix(weight.shape) || !is_matrix(delta.down->shape) || !is_matrix(delta.up->shape))
      fail(ErrorCode::kModel, adapter_.path(), ": '", name,
           "': only matrices can be merged, the model's is ", str(weight.shape));
    const bool transposed = delta.is_table || adapter_.input_first();
    const int64_t out = weight.shape[transposed ? 1 : 0], in = weight.shape[transposed ? 0 : 1];
    entry.rank = delta.down->shape[0];
    if (delta.down->shape[1] != in || delta.up->shape != Dims{out, entry.rank})
      fail(ErrorCode::kModel, adapter_.path(), ": '", name, "' has A ", str(delta.down->shape),
           " and B ", str(delta.up->shape), ", which do not fit the weight ", str(weight.shape));
    const auto scale = static_cast<float>(scale_.value_or(adapter_.scale_of(name)));
    FloatMatrix change =
        scale * (matrix_of(adapter_.read(*delta.up)) * matrix_of(adapter_.read(*delta.down)));
    if (transposed) change = FloatMatrix(change.transpose());
    const FloatMatrix before = matrix_of(weight), sum = before + change;
    Array exact = Array::empty(DType::kF32, weight.shape);
    Eigen::Map<FloatMatrix>(exact.data<float>(), sum.rows(), sum.cols()) = sum;
    const Array stored = exact.cast(weight.dtype);
    const double size = before.norm(), added = change.norm();
    entry.change = size > 0 ? added / size : 0;
    entry.rounding = added > 0 ? (matrix_of(stored) - sum).norm() / added : 0;
    report.weights.push_back(entry);
    return stored;
  }

  /// kModel if a part of the adapter has met no weight.
  void check_used(const std::vector<std::string>& names) const {
    for (const auto& [name, delta] : adapter_.deltas())
      if (!used_.contains(name))
        fail(ErrorCode::kModel, adapter_.path(), ": the model has no weight '", name, "'",
             did_you_mean(name, names));
  }

 private:
  formats::PeftAdapter adapter_;
  std::optional<double> scale_;
  std::set<std::string> used_;
};

}  // namespace

MergeReport merge_lora(const MergeJob& job, const Progress& progress) {
  const bool single = job.model.ends_with(".safetensors");
  if (!single && !is_directory(job.model))
    fail(ErrorCode::kUsage, job.model, ": is not a folder or a safetensors file");
  if (single != job.output.ends_with(".safetensors"))
    fail(ErrorCode::kUsage, "--output: expected ",
         single ? "a name that ends in .safetensors" : "a folder", ", found '", job.output, "'");
  check_output(job.output, job.overwrite);
  std::vector<fs::path> files;
  if (single)
    files.emplace_back(job.model);
  else
    for (const auto& each : fs::directory_iterator(job.model))
      if (each.is_regular_file()) files.push_back(each.path());
  std::sort(files.begin(), files.end());
  if (!single && is_directory(job.output)) {
    // Only a folder of the same files is replaced.
    for (const auto& each : fs::directory_iterator(job.output))
      if (!fs::exists(fs::path(job.model) / each.path().filename()))
        fail(ErrorCode::kUsage, each.path().string(),
             ": is not a file of the model; choose another --output");
  }
  Merger merger(job);
  MergeReport report;
  std::vector<std::string> names;
  const auto is_weights = [](const fs::path& file) { return file.extension() == ".safetensors"; };
  if (std::none_of(files.begin(), files.end(), is_weights))
    fail(ErrorCode::kUsage, job.model, ": has no safetensors files");
  // Everything is written next to the output, which appears when all of it is there.
  const fs::path output = fs::path(job.output).lexically_normal(),
                 partial = output.string() + ".partial";
  fs::remove_all(partial);
  if (!single) ensure_directory(partial.string());
  try {
    for (const fs::path& file : files) {
      const std::string to = (single ? partial : partial / file.filename()).string();
      if (!is_weights(file)) {
        fs::copy_file(file, to);
        continue;
      }
      progress({file.filename().string()});
      const formats::SafetensorsReader reader(file.string());
      formats::SafetensorsWriter writer(to, reader.entries(), reader.metadata());
      for (const formats::SafetensorsEntry& entry : writer.entries()) {
        names.push_back(entry.name);
        writer.add(merger.merged(entry.name, reader.read(entry.name), report));
      }
      writer.close();
    }
    merger.check_used(names);
  } catch (...) {
    fs::remove_all(partial);
    throw;
  }
  if (fs::is_directory(output)) fs::remove_all(output);
  fs::rename(partial, output);
  return report;
}

std::string merge_json(const MergeJob& job, const MergeReport& report) {
  nlohmann::ordered_json weights = nlohmann::ordered_json::array();
  for (const MergedWeight& each : report.weights) {
    nlohmann::ordered_json entry = {{"name", each.name}};
    if (each.replaced) {
      entry["replaced"] = true;
    } else {
      entry["rank"] = each.rank;
      entry["relative_change"] = each.change;
      entry["relative_rounding"] = each.rounding;
    }
    weights.push_back(std::move(entry));
  }
  return nlohmann::ordered_json{{"version", 1},
                                {"model", job.model},
                                {"adapter", job.adapter},
                                {"output", job.output},
                                {"weights", weights}}
      .dump();
}

}  // namespace paddle::quant
