#include "train/weights/initial_weights.h"

#include <algorithm>
#include <optional>

#include "convert/named_weights.h"
#include "quant_common/fake_quant.h"
#include "runtime/execute.h"
#include "train/weights/adapters.h"

namespace paddle::train {
namespace {

/// Whether this is the learning rate that static programs of PaddlePaddle keep with their
/// parameters.
bool is_learning_rate(const std::string& file, const std::string& name) {
  return file.ends_with(".pdparams") && name.starts_with("learning_rate_");
}

}  // namespace

program::LoadReport load_initial_weights(const InitialWeights& init, const PackedBase* base,
                                         program::ParameterStore& store,
                                         const std::function<void(const std::string&)>& warn) {
  std::optional<convert::NamedWeights> opened;
  const convert::NamedWeights& weights =
      base ? base->weights() : opened.emplace(init.file, init.rules);
  // Packed matrices stay in the blocks of which the file's notes say that they become floats.
  if (!base)
    for (const std::string& line : weights.notes()) warn("init: " + line);
  program::LoadReport report;
  const auto load = [&](const std::string& name, Array& target) {
    if (!weights.contains(name)) {
      // Scales begin with what the run observes.
      if (quant::is_quantization_value(name)) return;
      report.missing.push_back(name);
      return;
    }
    if (base) {
      const auto packed = base->find(name);
      if (packed && packed->form.shape == target.shape && packed->form.dtype == target.dtype) {
        target = runtime::copied(base->read(name));
        report.matched.push_back(name);
        return;
      }
    }
    const Dims shape = weights.shape(name);
    const DType dtype = weights.dtype(name);
    if (shape != target.shape || !info(dtype).has_kernels) {
      report.mismatched.push_back(str(name, " (", text(dtype), str(shape), " in the file, ",
                                      text(target.dtype), str(target.shape), " in the model)"));
      return;
    }
    target = runtime::copied(weights.read(name).cast(target.dtype));
    report.matched.push_back(name);
  };
  for (auto& [name, parameter] : store.parameters) {
    Array* exact = store.master(name);
    load(name, exact ? *exact : parameter.value);
    store.round_from_master(name);
  }
  for (auto& [name, value] : store.states) {
    if (!program::is_model_state(name)) continue;
    load(name, value);
    const auto start = store.sequence_starts.find(name);
    if (start != store.sequence_starts.end()) start->second = runtime::copied(value);
  }
  for (const std::string& name : weights.names())
    if (!store.parameters.contains(name) && !store.states.contains(name) &&
        !is_learning_rate(init.file, weights.stored_name(name)))
      report.unused.push_back(name);
  // Where all names fit, these are rules for other variants of the model.
  if (!report.unused.empty() ||
      !std::all_of(report.missing.begin(), report.missing.end(), is_adapter))
    for (const std::string& line : weights.idle_rules()) warn("init: " + line);
  program::check_report(report, init.file, init.allow_missing, init.allow_unused);
  return report;
}

}  // namespace paddle::train
