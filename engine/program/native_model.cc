#include "program/native_model.h"

#include <algorithm>

#include "base/files.h"
#include "lang/eval/evaluator.h"
#include "program/mixed_prediction.h"
#include "program/model_source.h"
#include "program/prediction.h"
#include "runtime/compile.h"
#include "runtime/execute.h"

namespace paddle::program {
namespace {

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
    : options_(options),
      profile_(options.profile),
      observe_(options.observe),
      compile_(options.compile) {
  store_.seed = options.seed;
  precision_ = options.precision;
}

void NativeModel::check_precision() {
  const bool is_mixed = precision_ != DType::kF32;
  if (is_mixed && (use_float64_ || quantization_))
    fail(ErrorCode::kUsage, "a precision of ", text(precision_), " is for models in float32; ",
         name_, " is ", use_float64_ ? "in float64" : "quantized");
  if (use_float64_) precision_ = DType::kF64;
}

std::unique_ptr<Model> NativeModel::open_folder(const std::string& path,
                                                const LoadOptions& options) {
  std::unique_ptr<NativeModel> model(new NativeModel(options));
  model->read_model_folder(path, options.function);
  return model;
}

std::unique_ptr<Model> NativeModel::open_file(const std::string& path, const LoadOptions& options) {
  std::unique_ptr<NativeModel> model(new NativeModel(options));
  model->read_model_file(path, options);
  return model;
}

void NativeModel::read_model_folder(const std::string& path, const std::string& function) {
  ModelFolder folder = open_model_folder(path, function);
  path_ = path;
  functions_ = folder.functions;
  name_ = folder.name;
  metadata_ = std::move(folder.metadata);
  fill_store_ = [weights = folder.weights](const ir::Function& function, ParameterStore& store) {
    read_weights(*weights, function, store);
    return std::nullopt;
  };
  use_float64_ = folder.use_float64;
  quantization_ = folder.quantization;
  check_precision();
  tables_ = folder.tables;
  if (folder.predict) return add_trace(folder.predict, {});
  program_ = folder.program;
  entry_ = folder.entry;
  read_tables(folder, store_);
  if (quantization_) preset_weights(store_, folder.weights->path());
  trace({});
}

void NativeModel::read_model_file(const std::string& path, const LoadOptions& options) {
  const ModelFile file = open_model_file(path, options);
  path_ = path;
  for (const lang::EntryPoint& each : file.program->functions) functions_.push_back(each.name);
  name_ = file.program->name;
  program_ = file.program;
  entry_ = file.entry;
  if (!options.weights.empty()) {
    fill_store_ = [file, options](const ir::Function&, ParameterStore& store) {
      return std::optional(load_file_weights(file, options, {}, store));
    };
    preset_weights(store_, options.weights);
  }
  if (options.preset) store_.preset = options.preset;
  trace({});
}

bool NativeModel::trace(const std::map<std::string, int64_t>& known) {
  const std::lock_guard lock(*tracing_);
  StaticDims dims{known, {}};
  const auto function =
      trace_prediction(*program_, *entry_, store_, use_float64_, &dims, quantization_.get(),
                       nullptr, compile_.target, tables_.get());
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
  function->target = compile_.target;
  if (fill_store_)
    if (auto report = fill_store_(*function, store_)) report_ = std::move(report);
  const ir::Function& exact = *function;
  const auto kept = function;
  if (precision_ == DType::kBF16 || precision_ == DType::kF16)
    function = in_mixed_precision(*kept, precision_);
  Trace trace;
  trace.fixed = std::move(fixed);
  trace.function = function;
  scales_.clear();
  declared_outputs_.clear();
  for (size_t i = 0; i < function->outputs.size(); ++i)
    if (function->outputs[i].kind == ir::PortKind::kValue) {
      scales_.push_back(output_scale(exact, i));
      declared_outputs_.push_back({function->outputs[i].name, function->body.results[i]->type});
    }
  bind_weights(*function, store_);
  trace.executable = runtime::compile(
      function, compile_, {.plan = {.profile = profile_}, .adapt_threads = true}, observe_);
  inputs_.clear();
  outputs_.clear();
  for (size_t i = 0; i < function->inputs.size(); ++i) {
    const ir::Port& port = function->inputs[i];
    trace.user_input.push_back(-1);
    if (port.kind != ir::PortKind::kValue || parse_rows_port(port.name)) continue;
    trace.user_input.back() = static_cast<int>(inputs_.size());
    inputs_.push_back({port.name, function->body.arguments[i]->type});
  }
  for (size_t i = 0; i < function->inputs.size(); ++i)
    if (const auto rows = parse_rows_port(function->inputs[i].name))
      add_row_input(trace, i, rows->first, rows->second);
  bind_arrays(trace);
  for (size_t i = 0; i < function->outputs.size(); ++i)
    if (function->outputs[i].kind == ir::PortKind::kValue) {
      trace.user_output.push_back(i);
      outputs_.push_back(function->outputs[i].name);
    }
  traces_.add(std::move(trace), kMaxTraces);
}

void NativeModel::add_row_input(Trace& trace, size_t input, const std::string& table,
                                const std::string& field) const {
  const auto keys = std::find_if(inputs_.begin(), inputs_.end(),
                                 [&](const auto& each) { return each.first == field; });
  const ServedTables none;
  const ServedTables& tables = tables_ ? *tables_ : none;
  const auto known = tables.all().find(table);
  if (known == tables.all().end() || keys == inputs_.end())
    fail(ErrorCode::kModel, path_, ": lacks the table '", table, "' or its keys '", field, "'");
  const TensorType& rows = trace.function->body.arguments[input]->type;
  tables_->open({table,
                 rows.shape.empty() ? 0 : rows.shape.back().constant().value_or(0),
                 rows.dtype,
                 {},
                 keys->second.dtype == DType::kU64 ? DType::kU64 : DType::kI64});
  trace.row_inputs.push_back({input, static_cast<int>(keys - inputs_.begin()), known->second});
}

void NativeModel::bind_arrays(Trace& trace) {
  const ir::Function& function = *trace.function;
  trace.arrays.resize(function.inputs.size());
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    const ir::Port& port = function.inputs[i];
    switch (port.kind) {
      case ir::PortKind::kValue:
        break;  // by each run
      case ir::PortKind::kParameter:
        trace.arrays[i] =
            store_.parameters.at(port.name).value.contiguous().to(compile_.target.device);
        break;
      case ir::PortKind::kState:
        // A run writes into its states, but not into what they begin with.
        trace.arrays[i] =
            live_states_
                .try_emplace(
                    port.name,
                    runtime::copied(store_.states.at(port.name)).to(compile_.target.device))
                .first->second;
        break;
      case ir::PortKind::kRandom:
        trace.arrays[i] = Array::from<uint64_t>({store_.seed, 0}, {2});
        break;
    }
  }
}

NativeModel::NativeModel(const NativeModel& other)
    : Model(other),
      options_(other.options_),
      path_(other.path_),
      functions_(other.functions_),
      scales_(other.scales_),
      store_(other.store_),
      program_(other.program_),
      entry_(other.entry_),
      tables_(other.tables_),
      use_float64_(other.use_float64_),
      quantization_(other.quantization_),
      fill_store_(other.fill_store_),
      tracing_(other.tracing_),
      report_(other.report_),
      profile_(other.profile_),
      observe_(other.observe_),
      compile_(other.compile_) {
  for (const Trace& trace : other.traces_) {
    Trace& own = traces_.add_oldest({});
    own.fixed = trace.fixed;
    own.function = trace.function;
    own.executable = trace.executable->clone();
    own.user_input = trace.user_input;
    own.user_output = trace.user_output;
    own.row_inputs = trace.row_inputs;
    bind_arrays(own);
  }
}

std::unique_ptr<Model> NativeModel::clone() const {
  if (!live_states_.empty())
    fail(ErrorCode::kUsage, name_, " hands its state '", live_states_.begin()->first,
         "' on from batch to batch, so it runs in one stream");
  return std::unique_ptr<Model>(new NativeModel(*this));
}

std::unique_ptr<Model> NativeModel::other_function(const std::string& name) const {
  if (std::find(functions_.begin(), functions_.end(), name) == functions_.end()) return nullptr;
  LoadOptions options = options_;
  options.function = name;
  return is_directory(path_) ? open_folder(path_, options) : open_file(path_, options);
}

int64_t NativeModel::cache_slots() const {
  int64_t slots = 0;
  for (const Trace& trace : traces_)
    for (const auto& operation : trace.function->body.operations) {
      if (operation->op->name() != "cached_attention") continue;
      const auto values = operation->operands[2]->type.shape[0].constant();
      if (values && (slots == 0 || *values < slots)) slots = *values;
    }
  return slots;
}

NativeModel::Trace& NativeModel::trace_for(const std::vector<Array>& inputs) {
  if (!traces_.empty() && traces_.front().fixed.empty()) return traces_.front();
  std::map<std::string, int64_t> known;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = inputs_[i].second.shape;
    for (size_t d = 0; d < shape.size() && d < inputs[i].shape.size(); ++d)
      if (shape[d].is_symbol()) known.try_emplace(shape[d].text(), inputs[i].shape[d]);
  }
  const auto fits = [&](const Trace& trace) {
    return std::all_of(trace.fixed.begin(), trace.fixed.end(), [&](const auto& dim) {
      return known.count(dim.first) && known.at(dim.first) == dim.second;
    });
  };
  if (Trace* const found = traces_.find(fits)) return *found;
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
  for (const RowInput& each : row_inputs) {
    const Array keys = inputs[static_cast<size_t>(each.user_input)].on_host().contiguous();
    const DType dtype = function->body.arguments[each.input]->type.dtype;
    look_up(*each.table, keys, dtype, arrays[each.input]);
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

std::vector<Array> NativeModel::run_on_device(const std::vector<Array>& inputs) {
  Trace& trace = trace_for(inputs);
  for (const Array& input : inputs)
    if (!input.is_contiguous())
      fail(ErrorCode::kUsage, name_, ": an input on a device is not contiguous");
  trace.set_inputs(inputs);
  std::vector<Array> all = trace.executable->run_on_device(trace.arrays), results;
  for (const size_t output : trace.user_output) results.push_back(std::move(all[output]));
  return results;
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
    runtime::copy_into(state, store_.states.at(name));
  }
}

}  // namespace paddle::program
