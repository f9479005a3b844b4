#include "program/native_model.h"

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "config/overrides.h"
#include "formats/safetensors.h"
#include "lang/eval/evaluator.h"
#include "program/model_config.h"
#include "program/prediction.h"
#include "runtime/compile.h"
#include "runtime/execute.h"

namespace paddle::program {
namespace {

namespace fs = std::filesystem;

/// Traces that are kept, of a model that asks for `static(dim)`.
constexpr size_t kMaxTraces = 8;

/// Parameters, and states that no run changes, are constants: passes may fold them, and kernels
/// bring them into their own layouts once.
void bind_weights(ir::Function& function, const ParameterStore& store) {
  for (size_t i = function.inputs.size(); i-- > 0;) {
    const ir::Port port = function.inputs[i];
    const bool changes = std::any_of(
        function.outputs.begin(), function.outputs.end(),
        [&](const ir::Port& out) { return out.kind == port.kind && out.name == port.name; });
    if (changes) continue;
    if (port.kind == ir::PortKind::kParameter)
      function.bind_input(i, store.parameters.at(port.name).value);
    else if (port.kind == ir::PortKind::kState)
      function.bind_input(i, store.states.at(port.name));
  }
}

}  // namespace

NativeModel::NativeModel(const LoadOptions& options)
    : profile_(options.profile), observe_(options.observe), compile_(options.compile) {
  store_.seed = options.seed;
}

std::unique_ptr<Model> NativeModel::open_folder(const std::string& path,
                                                const LoadOptions& options) {
  std::unique_ptr<NativeModel> model(new NativeModel(options));
  model->read_model_folder(path);
  return model;
}

std::unique_ptr<Model> NativeModel::open_file(const std::string& path, const LoadOptions& options) {
  std::unique_ptr<NativeModel> model(new NativeModel(options));
  model->read_model_file(path, options);
  return model;
}

void NativeModel::read_model_folder(const std::string& path) {
  const fs::path folder(path);
  const std::string file = (folder / "module.txt").string();
  const ir::Module module = ir::parse(read_file(file, uint64_t{1} << 30, ErrorCode::kModel), file);
  ir::verify(module);
  name_ = module.name;
  const fs::path inference = folder / "inference";  // of a checkpoint
  metadata_ = read_metadata(is_directory(inference.string()) ? inference : folder);
  const auto weights =
      std::make_shared<formats::SafetensorsReader>((folder / "model.safetensors").string());
  std::shared_ptr<ir::Function> found;
  for (const auto& f : module.functions)
    if (f->name == "predict") found = f;
  // Weights are used where they lie in the file.
  fill_store_ = [this, weights](const ir::Function& function) {
    for (size_t i = 0; i < function.inputs.size(); ++i) {
      const ir::Port& port = function.inputs[i];
      if (port.kind != ir::PortKind::kParameter && port.kind != ir::PortKind::kState) continue;
      const TensorType& type = function.body.arguments[i]->type;
      const Array value = weights->read(port.name);
      if (value.dtype != type.dtype || value.shape != concrete(type.shape))
        fail(ErrorCode::kModel, weights->path(), ": '", port.name, "' is ", text(value.dtype),
             str(value.shape), ", the module needs ", type);
      if (port.kind == ir::PortKind::kParameter)
        store_.parameters[port.name].value = value;
      else
        store_.states[port.name] = value;
    }
  };
  if (found) return add_trace(found, {});
  // A checkpoint holds the functions of training, and a model that asks for the values of dims has
  // a function for each of them; the config says how to predict.
  if (!metadata_.config) fail(ErrorCode::kModel, file, ": has no function 'predict'");
  program_ = read_model(*metadata_.config);
  entry_ = &program_->model;
  const config::Node* precision = metadata_.config->find("precision");
  use_float64_ = precision && precision->text == "float64";
  trace({});
}

void NativeModel::read_model_file(const std::string& path, const LoadOptions& options) {
  lang::ProgramOptions program_options;
  const auto [file, variant] = lang::split_variant(path);
  if (!file_exists(file)) fail(ErrorCode::kUsage, file, ": there is no such file or folder");
  program_options.variant = variant;
  for (const std::string& o : options.overrides)
    program_options.overrides.push_back(config::parse_override(o));
  const auto program = lang::read_program(file, program_options);
  lang::check_program(*program);
  const lang::EntryPoint* entry = program->find_entry(options.function);
  if (!entry) {
    std::vector<std::string> names = {"model"};
    for (const lang::EntryPoint& f : program->functions) names.push_back(f.name);
    fail(ErrorCode::kUsage, file, ": has no function '", options.function, "'",
         did_you_mean(options.function, names), "; it has ", join(names, ", "));
  }
  if (!options.weights.empty() && !file_exists(options.weights))
    fail(ErrorCode::kUsage, options.weights, ": there is no such file");
  name_ = program->name;
  program_ = program;
  entry_ = entry;
  if (!options.weights.empty()) {
    fill_store_ = [this, options](const ir::Function&) { load_weights(options); };
    const auto file = std::make_shared<formats::SafetensorsReader>(options.weights);
    store_.preset = [file](const std::string& parameter, const Dims& shape,
                           DType dtype) -> std::optional<Array> {
      const formats::SafetensorsEntry* entry = file->find(parameter);
      if (!entry || entry->shape != shape || entry->dtype != dtype) return std::nullopt;
      return file->read(*entry);
    };
  }
  trace({});
}

void NativeModel::load_weights(const LoadOptions& options) {
  // Weights that belong to another entry of the same file are not unused.
  ParameterStore whole = store_;
  const auto collect = [&](const lang::EntryPoint& entry) {
    StaticDims dims;
    if (&entry != entry_) trace_prediction(*program_, entry, whole, false, &dims);
  };
  collect(program_->model);
  for (const lang::EntryPoint& entry : program_->functions) collect(entry);
  LoadReport report = program::load_weights(options.weights, store_, false);
  std::erase_if(report.unused, [&](const std::string& n) {
    return whole.parameters.count(n) || whole.states.count(n);
  });
  check_report(report, options.weights, options.allow_missing, options.allow_unused);
  report_ = report;
}

bool NativeModel::trace(const std::map<std::string, int64_t>& known) {
  StaticDims dims{known, {}};
  const auto function = trace_prediction(*program_, *entry_, store_, use_float64_, &dims);
  if (function) {
    add_trace(function, dims.fixed);
    return true;
  }
  inputs_ = lang::input_types(*program_, *entry_);
  outputs_ = lang::output_names(*entry_);
  declared_outputs_.clear();
  for (const std::string& name : outputs_)
    declared_outputs_.push_back({name, {.dtype = DType::kF32, .shape = {}, .ranked = false}});
  for (auto& [name, type] : inputs_)
    if (use_float64_ && type.dtype == DType::kF32) type.dtype = DType::kF64;
  return false;
}

void NativeModel::add_trace(std::shared_ptr<ir::Function> function,
                            std::map<std::string, int64_t> fixed) {
  if (fill_store_) fill_store_(*function);
  Trace trace;
  trace.fixed = std::move(fixed);
  trace.function = function;
  scales_.clear();
  declared_outputs_.clear();
  for (size_t i = 0; i < function->outputs.size(); ++i)
    if (function->outputs[i].kind == ir::PortKind::kValue) {
      scales_.push_back(output_scale(*function, i));
      declared_outputs_.push_back({function->outputs[i].name, function->body.results[i]->type});
    }
  bind_weights(*function, store_);
  trace.executable =
      runtime::compile(function, compile_, {.plan = {.profile = profile_}}, observe_);
  trace.arrays.resize(function->inputs.size());
  inputs_.clear();
  outputs_.clear();
  for (size_t i = 0; i < function->inputs.size(); ++i) {
    const ir::Port& port = function->inputs[i];
    trace.user_input.push_back(-1);
    switch (port.kind) {
      case ir::PortKind::kValue:
        trace.user_input.back() = static_cast<int>(inputs_.size());
        inputs_.push_back({port.name, function->body.arguments[i]->type});
        break;
      case ir::PortKind::kParameter:
        trace.arrays[i] = store_.parameters.at(port.name).value.contiguous();
        break;
      case ir::PortKind::kState:
        // A run writes into its states, but not into what they begin with.
        trace.arrays[i] =
            live_states_.try_emplace(port.name, runtime::copied(store_.states.at(port.name)))
                .first->second;
        break;
      case ir::PortKind::kRandom:
        trace.arrays[i] = Array::from<uint64_t>({store_.seed, 0}, {2});
        break;
    }
  }
  for (size_t i = 0; i < function->outputs.size(); ++i)
    if (function->outputs[i].kind == ir::PortKind::kValue) {
      trace.user_output.push_back(i);
      outputs_.push_back(function->outputs[i].name);
    }
  traces_.push_front(std::move(trace));
  if (traces_.size() > kMaxTraces) traces_.pop_back();
}

NativeModel::Trace& NativeModel::trace_for(const std::vector<Array>& inputs) {
  if (!traces_.empty() && traces_.front().fixed.empty()) return traces_.front();
  std::map<std::string, int64_t> known;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = inputs_[i].second.shape;
    for (size_t d = 0; d < shape.size() && d < inputs[i].shape.size(); ++d)
      if (shape[d].is_symbol()) known.try_emplace(shape[d].text(), inputs[i].shape[d]);
  }
  for (auto it = traces_.begin(); it != traces_.end(); ++it) {
    const bool fits = std::all_of(it->fixed.begin(), it->fixed.end(), [&](const auto& dim) {
      return known.count(dim.first) && known.at(dim.first) == dim.second;
    });
    if (!fits) continue;
    traces_.splice(traces_.begin(), traces_, it);
    return traces_.front();
  }
  if (!trace(known)) fail(ErrorCode::kData, "the inputs do not give the dims that the model needs");
  return traces_.front();
}

void NativeModel::Trace::set_inputs(const std::vector<Array>& inputs) {
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (user_input[i] < 0) continue;
    const Array& input = inputs[static_cast<size_t>(user_input[i])];
    if (input.is_contiguous())
      arrays[i] = input;  // a copy of the pointer; shape and strides keep their room
    else
      arrays[i] = input.contiguous();
  }
}

const std::vector<Array>& NativeModel::run(const std::vector<Array>& inputs) {
  Trace& trace = trace_for(inputs);
  trace.set_inputs(inputs);
  const std::vector<Array>& results = trace.executable->run(trace.arrays);
  results_.resize(trace.user_output.size());
  for (size_t i = 0; i < results_.size(); ++i) results_[i] = results[trace.user_output[i]];
  return results_;
}

Scores NativeModel::scores(size_t i) const {
  const auto scale = i < scales_.size() ? scales_[i] : OutputScale::kUnknown;
  if (scale == OutputScale::kSoftmax) return Scores::kProbabilities;
  if (scale == OutputScale::kLogSoftmax) return Scores::kLogProbabilities;
  return outputs_[i] == metadata_.scored_output ? metadata_.scores : Scores::kUnknown;
}

bool NativeModel::is_sigmoid(size_t i) const {
  return i < scales_.size() && scales_[i] == OutputScale::kSigmoid;
}

double NativeModel::flops(const std::vector<Array>& inputs) {
  Trace& trace = trace_for(inputs);
  trace.set_inputs(inputs);
  std::vector<Layout> layouts;
  for (const Array& array : trace.arrays) layouts.push_back(Layout::of(array));
  return trace.executable->plan(layouts).flops();
}

void NativeModel::reset() {
  for (auto& [name, state] : live_states_) {
    const Array begin = store_.states.at(name).contiguous();
    std::memcpy(state.raw(), begin.raw(),
                static_cast<size_t>(storage_bytes(state.dtype, state.size())));
  }
}

}  // namespace paddle::program
