// Optimizers and schedules of a file NAME.plugin.yaml.

#include <cmath>

#include "optim/composed.h"
#include "plugin/registration.h"
#include "plugin/text_code.h"
#include "plugin/text_kinds.h"
#include "runtime/execute.h"

namespace paddle::plugin {
namespace {

using config::Schema;
using config::Section;
using config::Spec;

const std::vector<std::string> kOptimizerKeys = {
    "name",         "lr",        "learning_rate", "base_batch",  "batch_scaling",
    "weight_decay", "l1_decay",  "decay_vectors", "layer_decay", "groups",
    "schedule",     "parameter", "gradient",      "step"};
const std::vector<std::string> kScheduleKeys = {"name",         "steps", "end_factor", "warmup",
                                                "warmup_start", "step",  "length"};

/// The states and the update of an optimizer.
struct OptimizerText {
  std::vector<optim::StateSlot> states;
  TextCode update;
  bool has_decay = false;  ///< the code reads `weight_decay`
};

class TextUpdate final : public optim::UpdateRule {
 public:
  TextUpdate(std::shared_ptr<const OptimizerText> text, lang::NamedValues keys)
      : text_(std::move(text)), keys_(std::move(keys)) {}

  std::vector<optim::StateSlot> slots(const std::string&, const Dims&, double) const override {
    return text_->states;
  }

  Tensors update(const optim::UpdateOperands& o) const override {
    const optim::ComposedUpdate u(o);
    lang::NamedValues names = keys_;
    names.emplace_back("parameter", u.value());
    names.emplace_back("gradient", u.gradient());
    names.emplace_back("lr", u.rate());
    names.emplace_back("step", u.in_type(u.step()));
    if (text_->has_decay) names.emplace_back("weight_decay", o.weight_decay);
    for (size_t i = 0; i < text_->states.size(); ++i)
      names.emplace_back(text_->states[i].name, u.state(i));
    std::map<std::string, lang::Value> assigned;
    run_text(text_->update, names, &assigned);
    Tensors states;
    for (size_t i = 0; i < text_->states.size(); ++i)
      states.push_back(next(assigned, text_->states[i].name, u.state(i)));
    return u.results(next(assigned, "parameter", u.value()), states);
  }

 private:
  /// The value that the code has assigned to a name, or the one before.
  Tensor next(const std::map<std::string, lang::Value>& assigned, const std::string& name,
              const Tensor& before) const {
    const auto at = assigned.find(name);
    if (at == assigned.end()) return before;
    Tensor out = tensor_result(text_->update.owner, at->second);
    if (text(out.shape()) != text(before.shape()))
      fail(ErrorCode::kUsage, text_->update.owner, ": ", name, " becomes ", out.type(),
           ", expected the shape ", text(before.shape()));
    return out;
  }

  std::shared_ptr<const OptimizerText> text_;
  lang::NamedValues keys_;
};

/// The initial value of a state: a number, or `parameter` for its value.
optim::StateSlot read_state(const config::Entry& entry) {
  optim::StateSlot out{.name = entry.key.text};
  out.is_copy = entry.value.is_scalar() && entry.value.text == "parameter";
  if (!out.is_copy) out.initial = entry.value.as_double();
  return out;
}

}  // namespace

Spec optimizer_entry_spec() {
  Schema s;
  s.add("doc", Spec::text().required().doc("one line for the reference"));
  s.add("lr", Spec::real().above(0).required().doc("default of the learning rate"));
  s.add("keys", Spec::map_of(Spec::any()).fallback("{}").doc("keys of its own in configs"));
  s.add("states",
        Spec::map_of(Spec::any())
            .fallback("{}")
            .doc("tensors of each parameter, with their first value: a number, or parameter"));
  s.add("update", Spec::text().required().doc("assigns to parameter and to states"));
  s.add("decoupled_weight_decay",
        Spec::boolean().fallback("false").doc(
            "update reads weight_decay; else it is an L2 penalty that is added to the gradient"));
  s.add("whole_parameters",
        Spec::boolean().fallback("false").doc("elements of a parameter depend on each other"));
  return Spec::map(s);
}

optim::OptimizerKind read_optimizer(const TextEntry& entry) {
  const Section& s = entry.section;
  const std::vector<KindKey> keys = keys_of_entry(entry, kOptimizerKeys);
  const auto text = std::make_shared<OptimizerText>();
  std::vector<std::string> taken = kOptimizerKeys;
  for (const KindKey& key : keys) taken.push_back(key.name);
  check_names(s.at("states"), "a state", taken);
  text->has_decay = s.boolean("decoupled_weight_decay");
  std::vector<std::string> names = {"parameter", "gradient", "lr", "step"};
  if (text->has_decay) names.emplace_back("weight_decay");
  for (const KindKey& key : keys) names.push_back(key.name);
  for (const config::Entry& state : s.at("states").entries) {
    text->states.push_back(read_state(state));
    names.push_back(state.key.text);
  }
  text->update = code_of_entry(entry, s.at("update"), std::move(names));
  return {.name = entry.name,
          .lr = str(s.real("lr")),
          .keys = config::schema_of(keys),
          .decouples_weight_decay = text->has_decay,
          .needs_whole_parameters = s.boolean("whole_parameters"),
          .make = [text, keys](const Section& values) {
            return std::make_shared<TextUpdate>(text, values_of_keys(keys, values));
          }};
}

Spec schedule_entry_spec() {
  Schema s;
  s.add("doc", Spec::text().required().doc("one line for the reference"));
  s.add("keys", Spec::map_of(Spec::any()).fallback("{}").doc("keys of its own in configs"));
  s.add("factor", Spec::text().required().doc("factor on the rate, from step and length"));
  s.add("has_length",
        Spec::boolean().fallback("false").doc("it ends: configs may state steps and end_factor"));
  return Spec::map(s);
}

optim::ScheduleKind read_schedule(const TextEntry& entry) {
  const std::vector<KindKey> keys = keys_of_entry(entry, kScheduleKeys);
  const bool has_length = entry.section.boolean("has_length");
  std::vector<std::string> known = {"step", "length"};
  if (has_length) known.emplace_back("end_factor");
  for (const KindKey& key : keys) known.push_back(key.name);
  const auto code = std::make_shared<const TextCode>(
      code_of_entry(entry, entry.section.at("factor"), std::move(known)));
  return {.name = entry.name,
          .keys = config::schema_of(keys),
          .has_length = has_length,
          .make = [code, keys, has_length](const Section& values) {
            lang::NamedValues names = values_of_keys(keys, values);
            if (has_length) names.emplace_back("end_factor", values.real("end_factor"));
            const auto factor = [code, names](int64_t step, int64_t length) {
              runtime::EagerExecutor executor;
              const InterpreterScope scope(executor);
              lang::NamedValues all = names;
              const auto number = [](int64_t n) {
                return Tensor(Array::from<double>({static_cast<double>(n)}, {}));
              };
              all.emplace_back("step", number(step));
              all.emplace_back("length", number(length));
              const Array found = tensor_or_number(code->owner, run_text(*code, all)).array();
              if (found.size() != 1 || !std::isfinite(found.number()))
                fail(ErrorCode::kConfig, code->owner, ": the factor of step ", step,
                     " is not one finite number");
              return found.number();
            };
            return optim::Schedule{.factor = factor};
          }};
}

}  // namespace paddle::plugin
