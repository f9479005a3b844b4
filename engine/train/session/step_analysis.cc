// Properties of a step that a run needs before its first update. They come from traces that are not
// run.

#include "train/session/step_analysis.h"

#include <algorithm>
#include <map>

#include "ops/core/call.h"
#include "train/session/alignment.h"
#include "train/session/batch_statistics.h"

namespace paddle::train {

program::FieldUse StepAnalysis::field_use() {
  ir::Function f("ranges");
  program::FieldUseWatch watch;
  program::FieldUse use;
  compiler_.trace(
      f, StepFunction::kEvaluate,
      [&](ir::Tracer&, program::TraceBinding&, const StepOutputs& out) {
        const lang::EntryPoint& entry = context_.step->definition().exported().model;
        const std::vector<std::string> names = lang::output_names(entry);
        std::vector<std::pair<std::string, Tensor>> outputs;
        std::vector<std::string> inputs;
        for (const lang::Input& input : entry.inputs) inputs.push_back(input.name.text);
        for (const auto& [name, value] : out.names)
          if (value.is_tensor() && std::find(names.begin(), names.end(), name) != names.end())
            outputs.push_back({name, value.tensor()});
        use = watch.use(f, outputs, inputs);
      },
      &watch);
  return use;
}

std::vector<MetricBinding> StepAnalysis::bind_metrics(int64_t ignored_label) {
  ir::Function f("metrics");
  std::vector<MetricBinding> bindings;
  compiler_.trace(f, StepFunction::kEvaluate,
                  [&](ir::Tracer&, program::TraceBinding&, const StepOutputs& out) {
                    size_t at = 0;
                    for (const MetricDefinition& metric : context_.step->definition().metrics)
                      for ([[maybe_unused]] const MetricCall& call : metric.calls) try {
                          bindings.push_back(metric_binding(
                              out.metrics[at++], context_.fields[0].type.shape[0], ignored_label));
                        } catch (const Error& e) {
                          throw Error(e.code(), "metric '" + metric.name + "': " + e.message(),
                                      metric.where.location());
                        }
                  });
  return bindings;
}

std::vector<NormCall> StepAnalysis::norm_calls() {
  ir::Function f("norms");
  NormWatch watch;
  compiler_.trace(
      f, StepFunction::kForward, [](auto&&...) {}, &watch);
  return watch.calls();
}

std::optional<int64_t> StepAnalysis::stated_batch() const {
  for (const FieldType& field : context_.fields)
    if (field.type.shape[0].is_constant()) return field.type.shape[0].value();
  return std::nullopt;
}

std::optional<int64_t> StepAnalysis::size_of(const Dim& dim, int64_t samples,
                                             const std::vector<data::Field>& fields) const {
  std::map<std::string, int64_t> sizes;
  for (size_t i = 0; i < context_.fields.size(); ++i) {
    const Shape& shape = context_.fields[i].type.shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      const int64_t size = d == 0 ? samples : fields[i].shape[d - 1];
      if (shape[d].is_symbol() && size >= 0) sizes.try_emplace(shape[d].text(), size);
    }
  }
  return dim.evaluate([&](const std::string& name) {
    const auto it = sizes.find(name);
    return it == sizes.end() ? std::nullopt : std::optional<int64_t>(it->second);
  });
}

LossForm StepAnalysis::loss_form() {
  ir::Function f("loss");
  LossForm form;
  compiler_.trace(f, StepFunction::kEvaluate,
                  [&](ir::Tracer& tracer, program::TraceBinding&, const StepOutputs& out) {
                    form = train::loss_form(f, *tracer.value_of(out.loss));
                  });
  form.divisor = nullptr;
  return form;
}

StepAnalysis::RunningStatistics StepAnalysis::running_statistics() {
  ir::Function f("statistics");
  BatchStatistics watch;
  RunningStatistics out;
  compiler_.trace(
      f, StepFunction::kStatistics,
      [&](ir::Tracer& tracer, program::TraceBinding&, const StepOutputs&) {
        const std::vector<std::string> states = add_statistics_outputs(f, tracer, watch);
        out.states.insert(states.begin(), states.end());
      },
      &watch);
  out.others = watch.others();
  return out;
}

bool StepAnalysis::aligns_labels() {
  ir::Function f("alignments");
  bool found = false;
  compiler_.trace(f, StepFunction::kEvaluate,
                  [&](ir::Tracer&, program::TraceBinding&, const StepOutputs&) {
                    found = !alignments_of(f).empty();
                  });
  return found;
}

}  // namespace paddle::train
