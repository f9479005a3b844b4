#include "program/model_units.h"

#include <algorithm>
#include <cmath>

#include "data/prepared.h"

namespace paddle::program {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::optional<data::DataConfig> run_data(const ModelMetadata& metadata) {
  if (!metadata.config || !metadata.config->find("data")) return std::nullopt;
  return data::read_data_section(*metadata.config);
}

std::vector<data::Fitted> fitted_of(const ModelMetadata& metadata,
                                    const std::optional<data::DataConfig>& run) {
  if (!metadata.fitted.empty() || !run) return metadata.fitted;
  std::vector<data::Fitted> fitted = data::stated_fitted(run->train);
  if (std::holds_alternative<data::ImageFolderOptions>(run->train.source)) {
    data::Fitted& classes = fitted.emplace_back();
    classes.field = metadata.label_field;
    classes.tokens = metadata.classes;
  }
  return fitted;
}

double ScaledOutput::restored(double value, size_t column) const {
  const double factor = scale.factor(column);
  switch (unit.kind) {
    case UnitKind::kValue:
      return scale.restored(value, column);
    case UnitKind::kDifference:
      return value / factor;
    case UnitKind::kVariance:
      return value / (factor * factor);
    case UnitKind::kLogDifference:
      return value - std::log(factor);
    case UnitKind::kLogVariance:
      return value - 2 * std::log(factor);
  }
  return value;
}

std::pair<double, double> ScaledOutput::linear(size_t column) const {
  const double factor = scale.factor(column);
  switch (unit.kind) {
    case UnitKind::kValue:
      return scale.inverse(column);
    case UnitKind::kDifference:
      return {1 / factor, 0};
    case UnitKind::kVariance:
      return {1 / (factor * factor), 0};
    case UnitKind::kLogDifference:
      return {1, -std::log(factor)};
    case UnitKind::kLogVariance:
      return {1, -2 * std::log(factor)};
  }
  return {1, 0};
}

std::optional<size_t> ScaledOutput::column_of(int64_t place, int64_t size) const {
  if (unit.at >= 0 && unit.at != place) return std::nullopt;
  const auto columns = static_cast<int64_t>(scale.columns());
  if (columns <= 1) return 0;
  const int64_t column = unit.column >= 0 ? unit.column : size == columns ? place : columns;
  return column < columns ? std::optional(static_cast<size_t>(column)) : std::nullopt;
}

OutputUnits::OutputUnits(const ModelMetadata& metadata, const std::vector<std::string>& outputs) {
  if (metadata.units.empty() && metadata.targets.empty()) return;
  const auto run = run_data(metadata);
  if (!run) return;
  const std::vector<data::Fitted> fitted = fitted_of(metadata, run);
  std::vector<std::string> named;
  for (const OutputUnit& unit : metadata.units) {
    const auto at = std::find(outputs.begin(), outputs.end(), unit.output);
    if (at == outputs.end()) continue;
    named.push_back(unit.field);
    data::TargetScale scale(unit.field, fitted, run->valid_loader.transforms);
    if (scale.is_identity()) continue;
    if (unit.kind != UnitKind::kValue && !scale.is_linear())
      warnings_.push_back(str("the output '", unit.output, "' is a distance on the logarithmic ",
                              "scale of '", unit.field, "', in which it stays"));
    else
      scales_.push_back({static_cast<size_t>(at - outputs.begin()), unit, std::move(scale)});
  }
  for (const TargetUse& target : metadata.targets) {
    if (contains(named, target.field)) continue;
    const data::TargetScale scale(target.field, fitted, run->valid_loader.transforms);
    if (!scale.is_identity())
      warnings_.push_back(str("'", target.field, "' is scaled, and no output could be told to be ",
                              "in its units: the outputs are as the model gives them"));
  }
}

std::vector<Array> OutputUnits::restored(const std::vector<Array>& outputs) const {
  std::vector<Array> out = outputs;
  std::vector<bool> is_copy(out.size());
  for (const ScaledOutput& each : scales_) {
    const size_t i = each.output;
    if (i >= out.size() || !is_float(out[i].dtype)) continue;
    const auto last = static_cast<int64_t>(out[i].shape.empty() ? 1 : out[i].shape.back());
    if (!is_copy[i]) {
      const Array packed = out[i].contiguous();
      out[i] = Array::empty(packed.dtype, packed.shape);
      std::memcpy(out[i].raw(), packed.raw(),
                  static_cast<size_t>(storage_bytes(packed.dtype, packed.size())));
      is_copy[i] = true;
    }
    visit_float(out[i].dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      using Wide = typename Accumulator<T>::type;
      T* data = out[i].template data<T>();
      for (int64_t e = 0; e < out[i].size(); ++e) {
        const auto column = each.column_of(e % std::max<int64_t>(last, 1), last);
        if (!column) continue;
        const auto value = static_cast<double>(static_cast<Wide>(data[e]));
        data[e] = static_cast<T>(static_cast<Wide>(each.restored(value, *column)));
      }
    });
  }
  return out;
}

InputUnits::InputUnits(const Model& model, std::vector<std::string> without) {
  const auto run = run_data(model.metadata());
  for (const auto& [name, type] : model.inputs())
    if (!contains(without, name)) inputs_.emplace_back(name, type.dtype);
  if (!run) return;
  const auto is_input = [&](const std::string& name) {
    return std::any_of(inputs_.begin(), inputs_.end(),
                       [&](const auto& input) { return input.first == name; });
  };
  from_arrays_ = std::holds_alternative<data::NpzOptions>(run->train.source) ||
                 std::holds_alternative<data::NpyOptions>(run->train.source) ||
                 std::holds_alternative<data::Hdf5Options>(run->train.source);
  for (const data::Fitted& each : fitted_of(model.metadata(), run))
    if (is_input(each.field) && (!each.shift.empty() || each.log)) scales_.push_back(each);
  for (const data::TransformOptions& t : run->valid_loader.transforms) {
    data::TransformOptions own = t;
    std::erase_if(own.fields, [&](const std::string& f) { return !is_input(f); });
    if (!own.fields.empty()) transforms_.push_back(own);
  }
}

bool InputUnits::are_raw(
    const std::function<std::optional<DType>(const std::string&)>& dtype_of) const {
  if (!scales_.empty() || (from_arrays_ && !transforms_.empty())) return true;
  return !transforms_.empty() &&
         std::any_of(inputs_.begin(), inputs_.end(), [&](const auto& input) {
           const auto dtype = dtype_of(input.first);
           return dtype && *dtype != input.second;
         });
}

std::vector<Array> InputUnits::prepared(const std::vector<Array>& inputs) const {
  std::vector<std::pair<std::string, Array>> arrays;
  for (size_t i = 0; i < inputs_.size(); ++i) arrays.emplace_back(inputs_[i].first, inputs[i]);
  return data::prepared_arrays(std::move(arrays), scales_, transforms_);
}

}  // namespace paddle::program
