// Properties of a step that a run needs before its first update: types of fields, ranges of labels,
// operands of metrics, normalization by the batch, and the form of the loss. They come from traces
// that are not run.

#include <algorithm>
#include <map>
#include <sstream>

#include "base/files.h"
#include "ops/core/call.h"
#include "train/session/session.h"

namespace paddle::train {

std::vector<FieldType> Session::field_types(const std::vector<program::NamedModel>& models,
                                            const std::vector<FieldType>& samples,
                                            bool use_float64) {
  std::vector<FieldType> out = samples;
  const auto is_field = [&](const std::string& name) {
    return std::any_of(samples.begin(), samples.end(),
                       [&](const FieldType& f) { return f.name == name; });
  };
  std::vector<std::pair<std::string, TensorType>> inputs;
  for (const program::NamedModel& model : models)
    for (auto& input : lang::input_types(*model.program, model.program->model))
      // A step calls models by name with values that it computed.
      if (model.name.empty() || is_field(input.first)) inputs.push_back(std::move(input));
  Dim batch = Dim::symbol("batch");
  std::map<int64_t, Dim> symbol_of_size;
  std::map<std::string, Dim> declared_symbols;  // by the names of the samples' sizes
  for (const auto& [name, type] : inputs)
    if (!type.shape.empty()) {
      batch = type.shape[0];
      break;
    }
  for (const auto& [name, type] : inputs) {
    const auto it = std::find_if(out.begin(), out.end(), [&, &wanted = name](const FieldType& f) {
      return f.name == wanted;
    });
    if (it == out.end()) {
      std::vector<std::string> names;
      for (const FieldType& f : samples) names.push_back(f.name);
      fail(ErrorCode::kConfig, "the model's input '", name,
           "' is not a field of the data, which has ", join(names, ", "),
           did_you_mean(name, names));
    }
    const Shape& sample = it->type.shape;
    if (type.shape.size() != sample.size() + 1)
      fail(ErrorCode::kConfig, "the model's input '", name, "' is ", type,
           ", a batch of the data's field ", text(it->type.dtype), "[batch, …] has ",
           sample.size() + 1, " dimensions");
    for (size_t d = 0; d < sample.size(); ++d) {
      const Dim& declared = type.shape[d + 1];
      if (sample[d].is_symbol() && !declared.is_unknown())
        declared_symbols.emplace(sample[d].text(), declared);
      if (!sample[d].is_constant()) continue;
      if (declared.is_symbol()) symbol_of_size.emplace(sample[d].value(), declared);
      if (declared.is_constant() && declared.value() != sample[d].value())
        fail(ErrorCode::kConfig, "the model's input '", name, "' is ", type,
             ", a sample of the data's field is ", text(it->type.dtype), text(sample));
    }
    if (type.dtype != it->type.dtype)
      fail(ErrorCode::kConfig, "the model's input '", name, "' is ", text(type.dtype),
           ", the data's field is ", text(it->type.dtype),
           "; add a transform such as 'cast' or 'scale' to the data");
  }
  for (FieldType& field : out) {
    const auto it = std::find_if(inputs.begin(), inputs.end(),
                                 [&](const auto& i) { return i.first == field.name; });
    if (it != inputs.end()) {
      field.type = it->second;
    } else {
      for (Dim& d : field.type.shape)
        if (d.is_constant()) {
          const auto symbol = symbol_of_size.find(d.value());
          if (symbol != symbol_of_size.end()) d = symbol->second;
        } else if (d.is_symbol()) {
          const auto symbol = declared_symbols.find(d.text());
          if (symbol != declared_symbols.end()) d = symbol->second;
        }
      field.type.shape.insert(field.type.shape.begin(), batch);
    }
    if (use_float64 && field.type.dtype == DType::kF32) field.type.dtype = DType::kF64;
  }
  return out;
}

program::FieldUse Session::field_use() {
  ir::Function f("ranges");
  program::FieldUseWatch watch;
  program::FieldUse use;
  trace_part(
      f, Part::kEvaluate,
      [&](ir::Tracer&, program::TraceBinding&, const StepOutputs& out) {
        const lang::EntryPoint& entry = step_->definition().exported().model;
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

std::vector<MetricBinding> Session::bind_metrics(int64_t ignored_label) {
  ir::Function f("metrics");
  std::vector<MetricBinding> bindings;
  trace_part(f, Part::kEvaluate, [&](ir::Tracer&, program::TraceBinding&, const StepOutputs& out) {
    size_t at = 0;
    for (const MetricDefinition& metric : step_->definition().metrics)
      for ([[maybe_unused]] const MetricCall& call : metric.calls) try {
          bindings.push_back(
              metric_binding(out.metrics[at++], fields_[0].type.shape[0], ignored_label));
        } catch (const Error& e) {
          throw Error(e.code(), "metric '" + metric.name + "': " + e.message(),
                      metric.where.location());
        }
  });
  return bindings;
}

std::vector<NormCall> Session::norm_calls() {
  ir::Function f("norms");
  NormWatch watch;
  trace_part(
      f, Part::kForward, [](auto&&...) {}, &watch);
  return watch.calls();
}

namespace {

/// The text of a function with its run-time symbols ($7) numbered by their first appearance: their
/// own numbers count all that the process has made.
std::string with_numbered_symbols(const std::string& text) {
  std::map<std::string, size_t> numbers;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (text[at] == '$')
      while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    const std::string part = text.substr(at, end - at);
    out += end == at + 1 ? part : str("$", numbers.try_emplace(part, numbers.size()).first->second);
    at = end;
  }
  return out;
}

}  // namespace

uint32_t Session::forward_digest() {
  ir::Function f("forward", options_.compile.target);
  ir::Tracer tracer(f);
  const InterpreterScope scope(tracer);
  Tensor random;
  const StepInputs inputs = trace_inputs(tracer, Part::kForward, false, random);
  const RandomScope random_scope(random);
  program::TraceBinding ports(store_, options_.use_float64, tracer);
  ports.known_dims = sizes_;
  connect_tables(ports, inputs, Part::kForward);
  tracer.output({ir::PortKind::kValue, "loss"}, step_->forward(ports, inputs, true).loss);
  for (ir::Value& value : f.values()) value.name.clear();  // those of variables may change
  std::istringstream lines(with_numbered_symbols(ir::print(f)));
  uint32_t digest = 0;
  for (std::string line; std::getline(lines, line);) {
    line.resize(std::min(line.size(), line.rfind("  // ")));  // the place
    digest = crc32(std::as_bytes(std::span(line.data(), line.size())), digest);
  }
  return digest;
}

std::optional<int64_t> Session::stated_batch() const {
  for (const FieldType& field : fields_)
    if (field.type.shape[0].is_constant()) return field.type.shape[0].value();
  return std::nullopt;
}

std::optional<int64_t> Session::size_of(const Dim& dim, int64_t samples,
                                        const std::vector<data::Field>& fields) const {
  std::map<std::string, int64_t> sizes;
  for (size_t i = 0; i < fields_.size(); ++i) {
    const Shape& shape = fields_[i].type.shape;
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

LossForm Session::loss_form() {
  ir::Function f("loss");
  LossForm form;
  trace_part(f, Part::kEvaluate,
             [&](ir::Tracer& tracer, program::TraceBinding&, const StepOutputs& out) {
               form = train::loss_form(f, *tracer.value_of(out.loss));
             });
  form.divisor = nullptr;
  return form;
}

}  // namespace paddle::train
