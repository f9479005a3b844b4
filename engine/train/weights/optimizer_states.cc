#include "train/weights/optimizer_states.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "convert/named_weights.h"
#include "formats/pickle/weights.h"
#include "runtime/execute.h"

namespace paddle::train {
namespace {

using formats::pickle::kVariableNames;
using formats::pickle::WeightFile;

/// Names of PaddlePaddle's accumulators by those of our states.
using SlotNames = std::map<std::string_view, std::string_view>;

const SlotNames* slot_names(std::string_view optimizer) {
  static const SlotNames kMoments = {{"moment1", "moment1"}, {"moment2", "moment2"}};
  static const std::map<std::string_view, SlotNames> kNames = {
      {"sgd", {}},
      {"momentum", {{"velocity", "velocity"}}},
      {"lars", {{"velocity", "velocity"}}},
      {"adagrad", {{"moment", "moment"}}},
      {"adadelta", {{"mean_square", "_avg_squared_grad"}, {"mean_delta", "_avg_squared_update"}}},
      {"rmsprop",
       {{"mean_square", "mean_square"}, {"mean_grad", "mean_grad"}, {"velocity", "momentum"}}},
      {"adam", kMoments},
      {"adamw", kMoments},
      {"lamb", kMoments},
      {"adamax", {{"moment", "moment"}, {"norm", "inf_norm"}}},
      {"nadam", {{"moment1", "moment1"}, {"moment2", "moment2"}, {"product", "mu_product"}}},
      {"radam", kMoments},
      {"rprop", {{"previous", "prevs"}, {"step_size", "learning_rates"}}}};
  const auto found = kNames.find(optimizer);
  return found == kNames.end() ? nullptr : &found->second;
}

/// The tensors of a .pdopt file by variable and accumulator.
class OptimizerFile {
 public:
  /// An optimizer without states has none in its file.
  explicit OptimizerFile(const std::string& path) : file_(path, WeightFile::Tensors::kOptional) {
    for (size_t i = 0; i < file_.tensors().size(); ++i)
      indices_.emplace(file_.tensors()[i].name, i);
  }

  /// "linear_0.w_0_moment1_0": the last number makes the name unique.
  std::optional<size_t> find(const std::string& variable, std::string_view accumulator) const {
    const std::string beginning = str(variable, "_", accumulator, "_");
    for (auto it = indices_.lower_bound(beginning);
         it != indices_.end() && it->first.starts_with(beginning); ++it)
      if (it->first.find_first_not_of("0123456789", beginning.size()) == std::string::npos)
        return it->second;
    return std::nullopt;
  }
  std::optional<size_t> find_master(const std::string& variable) const {
    const auto found = indices_.find("master_weights." + variable);
    return found == indices_.end() ? std::nullopt : std::optional(found->second);
  }
  Array read(size_t index) const { return file_.read(index); }
  std::optional<double> number(const std::string& name) const {
    const auto found = file_.numbers().find(name);
    return found == file_.numbers().end() ? std::nullopt : std::optional(found->second);
  }

 private:
  WeightFile file_;
  std::map<std::string, size_t> indices_;
};

/// The exponent of a power of beta; nullopt where it is too small to tell.
std::optional<int64_t> exponent_of(double power, double beta) {
  constexpr double kMin = 1e-30;  // below, float32 loses digits
  if (!(power >= kMin && power <= 1) || !(beta > 0 && beta < 1)) return std::nullopt;
  return std::llround(std::log(power) / std::log(beta));
}

std::optional<int64_t> updates_of(const OptimizerFile& file, const std::string& variable,
                                  double beta1, double beta2) {
  struct Power {
    const char* accumulator;
    double beta;
    int64_t first;  ///< exponent before the first update
  };
  for (const Power& each : {Power{"beta2_pow_acc", beta2, 1}, Power{"beta1_pow_acc", beta1, 1},
                            Power{"beta2_pow", beta2, 0}, Power{"beta1_pow", beta1, 0}}) {
    const auto index = file.find(variable, each.accumulator);
    if (!index) continue;
    const Array power = file.read(*index);
    if (power.size() == 0 || !is_float(power.dtype)) continue;
    if (const auto exponent = exponent_of(power.contiguous().number(0), each.beta))
      return std::max<int64_t>(0, *exponent - each.first);
  }
  return std::nullopt;
}

}  // namespace

ContinuedRun load_optimizer_states(const InitialWeights& init, const optim::Optimizer& optimizer,
                                   double beta1, double beta2, program::ParameterStore& store) {
  const SlotNames* const names = slot_names(optimizer.name());
  if (!names)
    fail(ErrorCode::kConfig, "init.optimizer: PaddlePaddle's files have no states for '",
         optimizer.name(), "'");
  const OptimizerFile file(init.optimizer);
  const convert::NamedWeights weights(init.file, init.rules);
  std::map<std::string, std::string> variables;
  if (init.file.ends_with(".pdparams")) variables = WeightFile(init.file).strings();
  const auto variable_of = [&](const std::string& parameter) {
    if (!weights.contains(parameter)) return parameter;
    const std::string& stored = weights.stored_name(parameter);
    const auto found = variables.find(str(kVariableNames, ".", stored));
    return found == variables.end() ? stored : found->second;
  };
  const auto read = [&](size_t index, const std::string& parameter, const std::string& what,
                        const Array& target) {
    Array value = file.read(index);
    if (value.size() == target.size() && value.shape.size() == target.shape.size())
      value = weights.contains(parameter) ? weights.arranged(parameter, value) : value;
    if (value.shape != target.shape || !info(value.dtype).has_kernels)
      fail(ErrorCode::kModel, init.optimizer, ": ", what, " of '", parameter, "' is ",
           text(value.dtype), str(value.shape), ", expected ", text(target.dtype),
           str(target.shape));
    return runtime::copied(value.cast(target.dtype));
  };

  const auto is_allowed = [&](const std::string& parameter) {
    return std::ranges::any_of(init.allow_missing, [&](const std::string& pattern) {
      return matches_pattern(pattern, parameter);
    });
  };

  ContinuedRun out;
  std::optional<int64_t> updates;
  std::vector<std::string> missing;
  for (auto& [name, parameter] : store.parameters) {
    if (optimizer.is_frozen(name)) continue;
    const std::string variable = variable_of(name);
    Array* const exact = store.master(name);
    if (const auto master = file.find_master(variable)) {
      Array& target = exact ? *exact : parameter.value;
      target = read(*master, name, "the master weight", target);
      store.round_from_master(name);
      ++out.states;
    }
    const Array& like = exact ? *exact : parameter.value;
    for (const optim::StateSlot& slot : optimizer.slots(name, like.shape)) {
      const auto stored = names->find(slot.name);
      const auto index =
          stored == names->end() ? std::nullopt : file.find(variable, stored->second);
      if (!index) {
        if (!is_allowed(name)) missing.push_back(str(name, " (", variable, ")"));
        break;
      }
      Array& state = store.states[str("optimizer/", name, "/", slot.name)];
      Array target = state;
      if (!target.storage) target = Array::empty(like.dtype, slot.shape.value_or(like.shape));
      state = read(*index, name, str("the state '", stored->second, "'"), target);
      ++out.states;
    }
    if (!updates) updates = updates_of(file, variable, beta1, beta2);
  }
  if (!missing.empty())
    fail(ErrorCode::kModel, init.optimizer, ": has no states of '", optimizer.name(), "' for ",
         join(missing, ", "));
  const auto scheduled = file.number("LR_Scheduler.last_epoch");
  if (!updates && scheduled && *scheduled >= 0 && *scheduled < 1e15)
    updates = static_cast<int64_t>(*scheduled);
  out.updates = init.updates.value_or(updates.value_or(0));
  out.learning_rate = file.number("LR_Scheduler.last_lr");
  return out;
}

}  // namespace paddle::train
