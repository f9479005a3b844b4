#include "quant/merge_lora.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include <Eigen/Core>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "formats/safetensors.h"
#include "quant/output.h"

namespace paddle::quant {
namespace {

namespace fs = std::filesystem;
using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The parts of an adapter for one weight of the model.
struct Delta {
  const formats::SafetensorsEntry *down = nullptr, *up = nullptr;  ///< A [rank, in], B [out, rank]
  const formats::SafetensorsEntry* whole = nullptr;
  bool is_table = false;  ///< of an embedding, whose rows are the features: (B A)ᵀ
};

/// The settings of adapter_config.json that the merge needs.
struct AdapterConfig {
  double rank = 8, alpha = 8;
  bool root_scale = false;                      ///< rsLoRA: alpha / sqrt(rank)
  bool input_first = false;                     ///< weights are [in, out]
  std::map<std::string, double> ranks, alphas;  ///< of single layers

  double scale_of(const std::string& layer) const {
    const double r = of_layer(ranks, layer, rank), a = of_layer(alphas, layer, alpha);
    return a / (root_scale ? std::sqrt(r) : r);
  }

 private:
  /// The value for a layer whose path ends in a key.
  static double of_layer(const std::map<std::string, double>& values, const std::string& layer,
                         double fallback) {
    for (const auto& [key, value] : values)
      if (layer == key || layer.ends_with("." + key)) return value;
    return fallback;
  }
};

AdapterConfig read_config(const std::string& path) {
  const auto json =
      nlohmann::json::parse(read_file(path, 1 << 24, ErrorCode::kModel), nullptr, false);
  if (!json.is_object()) fail(ErrorCode::kModel, path, ": is not a JSON object");
  AdapterConfig out;
  try {
    if (const std::string type = json.value("peft_type", "LORA"); type != "LORA")
      fail(ErrorCode::kModel, path, ": peft_type is '", type, "', expected LORA");
    if (json.value("use_dora", false))
      fail(ErrorCode::kModel, path, ": use_dora: magnitudes of DoRA cannot be merged");
    out.rank = json.at("r").get<double>();
    out.alpha = json.at("lora_alpha").get<double>();
    out.root_scale = json.value("use_rslora", false);
    out.input_first = json.value("fan_in_fan_out", false);
    for (const auto& [key, to] :
         {std::pair{"rank_pattern", &out.ranks}, {"alpha_pattern", &out.alphas}})
      if (const auto found = json.find(key); found != json.end() && found->is_object())
        *to = found->get<std::map<std::string, double>>();
  } catch (const nlohmann::json::exception& e) {
    fail(ErrorCode::kModel, path, ": r and lora_alpha must be numbers");
  }
  if (!(out.rank > 0)) fail(ErrorCode::kModel, path, ": r must be positive");
  return out;
}

/// The parts of the adapter by the names of the model's weights.
std::map<std::string, Delta> read_deltas(const formats::SafetensorsReader& adapter) {
  std::map<std::string, Delta> out;
  for (const formats::SafetensorsEntry& entry : adapter.entries()) {
    std::string name = entry.name;
    for (const char* prefix : {"base_model.model.", "base_model."})
      if (name.starts_with(prefix)) {
        name = name.substr(std::string(prefix).size());
        break;
      }
    const auto part = [&](const char* suffix) {
      if (!name.ends_with(suffix)) return false;
      name = name.substr(0, name.size() - std::string(suffix).size()) + ".weight";
      return true;
    };
    if (part(".lora_A.weight"))
      out[name].down = &entry;
    else if (part(".lora_B.weight"))
      out[name].up = &entry;
    else if (part(".lora_embedding_A"))
      out[name].down = &entry, out[name].is_table = true;
    else if (part(".lora_embedding_B"))
      out[name].up = &entry;
    else
      out[name].whole = &entry;
  }
  for (const auto& [name, delta] : out)
    if (!delta.whole && (!delta.down || !delta.up))
      fail(ErrorCode::kModel, adapter.path(), ": '", name, "' has only one of lora_A and lora_B");
  return out;
}

Matrix matrix_of(const Array& array) {
  const Array values = array.cast(DType::kF32).contiguous();
  return Eigen::Map<const Matrix>(values.data<float>(), values.shape[0], values.shape[1]);
}

class Merger {
 public:
  explicit Merger(const MergeJob& job)
      : adapter_((fs::path(job.adapter) / "adapter_model.safetensors").string()),
        config_(read_config((fs::path(job.adapter) / "adapter_config.json").string())),
        scale_(job.scale),
        deltas_(read_deltas(adapter_)) {}

  /// The weight with what the adapter has for it.
  Array merged(const std::string& name, const Array& weight, MergeReport& report) {
    const auto found = deltas_.find(name);
    if (found == deltas_.end()) return weight;
    used_.insert(name);
    const Delta& delta = found->second;
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
    const bool transposed = delta.is_table || config_.input_first;
    const int64_t out = weight.shape[transposed ? 1 : 0], in = weight.shape[transposed ? 0 : 1];
    entry.rank = delta.down->shape[0];
    if (delta.down->shape[1] != in || delta.up->shape != Dims{out, entry.rank})
      fail(ErrorCode::kModel, adapter_.path(), ": '", name, "' has A ", str(delta.down->shape),
           " and B ", str(delta.up->shape), ", which do not fit the weight ", str(weight.shape));
    const std::string layer = name.substr(0, name.size() - std::string(".weight").size());
    const auto scale = static_cast<float>(scale_.value_or(config_.scale_of(layer)));
    Matrix change =
        scale * (matrix_of(adapter_.read(*delta.up)) * matrix_of(adapter_.read(*delta.down)));
    if (transposed) change = Matrix(change.transpose());
    const Matrix before = matrix_of(weight), sum = before + change;
    Array exact = Array::empty(DType::kF32, weight.shape);
    Eigen::Map<Matrix>(exact.data<float>(), sum.rows(), sum.cols()) = sum;
    const Array stored = exact.cast(weight.dtype);
    const double size = before.norm(), added = change.norm();
    entry.change = size > 0 ? added / size : 0;
    entry.rounding = added > 0 ? (matrix_of(stored) - sum).norm() / added : 0;
    report.weights.push_back(entry);
    return stored;
  }

  /// kModel if a part of the adapter has met no weight.
  void check_used(const std::vector<std::string>& names) const {
    for (const auto& [name, delta] : deltas_)
      if (!used_.contains(name))
        fail(ErrorCode::kModel, adapter_.path(), ": the model has no weight '", name, "'",
             did_you_mean(name, names));
  }

 private:
  formats::SafetensorsReader adapter_;
  AdapterConfig config_;
  std::optional<double> scale_;
  std::map<std::string, Delta> deltas_;
  std::set<std::string> used_;
};

}  // namespace

MergeReport merge_lora(const MergeJob& job,
                       const std::function<void(const std::string&)>& progress) {
  if (!is_directory(job.adapter))
    fail(ErrorCode::kUsage, job.adapter, ": is not a folder with adapter_config.json");
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
  Merger merger(job);
  MergeReport report;
  std::vector<std::string> names;
  const auto is_weights = [](const fs::path& file) { return file.extension() == ".safetensors"; };
  if (std::none_of(files.begin(), files.end(), is_weights))
    fail(ErrorCode::kUsage, job.model, ": has no safetensors files");
  // Everything is written beside the output, which appears when all of it is there.
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
      progress(file.filename().string());
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
