#include "train/runs/average_checkpoints.h"

#include <filesystem>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "formats/safetensors.h"
#include "program/checkpoint.h"

namespace paddle::train {
namespace {

namespace fs = std::filesystem;
using formats::SafetensorsEntry;
using formats::SafetensorsReader;

std::string weights_in(const fs::path& folder) { return (folder / "model.safetensors").string(); }

void check_tensors(const SafetensorsReader& model, const SafetensorsReader& checkpoint) {
  const auto reject = [&](const std::string& problem) {
    fail(ErrorCode::kModel, checkpoint.path(), ": ", problem, " in ", model.path(),
         "; runs with adapters or several models have no such average");
  };
  for (const SafetensorsEntry& entry : checkpoint.entries()) {
    const SafetensorsEntry* other = model.find(entry.name);
    if (!other) reject("'" + entry.name + "' is not");
    if (other->shape != entry.shape || other->dtype != entry.dtype)
      reject("'" + entry.name + "' is of another type");
  }
  if (model.entries().size() != checkpoint.entries().size()) reject("lacks tensors that are");
}

Array mean_of(const std::vector<std::unique_ptr<SafetensorsReader>>& readers,
              const SafetensorsEntry& entry) {
  if (!is_float(entry.dtype)) return readers.back()->read(entry.name);
  Array sum = Array::zeros(DType::kF64, entry.shape);
  for (const auto& reader : readers) {
    const Array value = reader->read(entry.name).cast(DType::kF64).contiguous();
    for (int64_t i = 0; i < sum.size(); ++i) sum.data<double>()[i] += value.data<double>()[i];
  }
  const auto count = static_cast<double>(readers.size());
  for (int64_t i = 0; i < sum.size(); ++i) sum.data<double>()[i] /= count;
  return sum.cast(entry.dtype);
}

}  // namespace

std::vector<int64_t> average_checkpoints(const std::string& run, int64_t last,
                                         const std::string& output, bool dry_run, bool overwrite) {
  const fs::path checkpoints = fs::path(run) / "checkpoints", model = fs::path(run) / "model";
  std::vector<int64_t> steps = program::list_checkpoints(checkpoints.string());
  if (static_cast<int64_t>(steps.size()) < last)
    fail(ErrorCode::kUsage, run, ": has ", steps.size(), " checkpoints, fewer than --last ", last,
         "; train.keep_checkpoints says how many are kept");
  if (!file_exists(weights_in(model)))
    fail(ErrorCode::kUsage, run, ": has no model/, which a run writes at its end");
  const bool is_there = file_exists(output) || is_directory(output);
  if (is_there && !overwrite)
    fail(ErrorCode::kUsage, output, ": already exists (--overwrite replaces it)");
  if (is_there && !file_exists(weights_in(output)))
    fail(ErrorCode::kUsage, output, ": is not a model folder; choose another --output");
  steps.erase(steps.begin(), steps.end() - last);
  const SafetensorsReader pattern(weights_in(model));
  std::vector<std::unique_ptr<SafetensorsReader>> readers;
  for (const int64_t step : steps) {
    readers.push_back(
        std::make_unique<SafetensorsReader>(weights_in(checkpoints / std::to_string(step))));
    check_tensors(pattern, *readers.back());
  }
  if (dry_run) return steps;
  std::vector<std::pair<std::string, Array>> means;
  for (const SafetensorsEntry& entry : pattern.entries())
    means.emplace_back(entry.name, mean_of(readers, entry));
  const fs::path beside = output + ".writing";
  std::error_code error;
  fs::remove_all(beside, error);
  fs::copy(model, beside, fs::copy_options::recursive, error);
  if (error) fail(ErrorCode::kDevice, beside.string(), ": ", error.message());
  formats::write_safetensors(weights_in(beside), means, pattern.metadata());
  if (is_there) fs::remove_all(output, error);
  fs::rename(beside, output, error);
  if (error) fail(ErrorCode::kDevice, output, ": ", error.message());
  return steps;
}

}  // namespace paddle::train
