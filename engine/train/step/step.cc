#include "train/step/step.h"

#include <algorithm>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "lang/eval/derivatives.h"
#include "ops/core/operators.h"
#include "ops/core/row_sparse.h"
#include "ops/generated/creation.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "program/scoped_parameters.h"

namespace paddle::train {
namespace {

DType full_type(const Tensor& t) {
  return t.dtype() == DType::kF16 || t.dtype() == DType::kBF16 ? DType::kF32 : t.dtype();
}

/// 16-bit gradients in float32; undefined ones stay so.
Tensor in_full(const Tensor& g) {
  return !g.defined() || full_type(g) == g.dtype() ? g : ops::cast(g, DType::kF32);
}

Tensor loss_scale(program::ParameterBinding& ports) {
  return ports.slot("amp/scale", {}, DType::kF32, 1);
}

optim::ScalerState scaler_state(program::ParameterBinding& ports) {
  const auto counter = [&](const char* name) { return ports.slot(name, {}, DType::kI64, 0); };
  return {loss_scale(ports), counter("amp/good"), counter("amp/bad"), counter("amp/updates"),
          counter("amp/skipped")};
}

void set_scaler_state(program::ParameterBinding& ports, const optim::ScalerState& state) {
  ports.set_slot("amp/scale", state.scale);
  ports.set_slot("amp/good", state.good);
  ports.set_slot("amp/bad", state.bad);
  ports.set_slot("amp/updates", state.updates);
  ports.set_slot("amp/skipped", state.skipped);
}

/// The loss as a number that can be differentiated; kConfig at `where` if it is none.
void check_loss(const Tensor& loss, const SourceLocation& where) {
  if (loss.ndim() != 0)
    throw Error(
        ErrorCode::kConfig,
        str("loss: expected one number, found ", loss.type(), "; reduce it with mean or sum"),
        where);
  if (!is_float(loss.dtype()))
    throw Error(ErrorCode::kConfig, str("loss: expected a floating value, found ", loss.type()),
                where);
}

std::string optimizer_slot(const std::string& optimizer, const std::string& parameter,
                           const std::string& slot) {
  return (optimizer.empty() ? "optimizer/" : "optimizer:" + optimizer + "/") + parameter + "/" +
         slot;
}

/// The equal average after update `step`, whose result is `value`; the weights themselves until the
/// average begins.
Tensor equally_averaged(const Averaging& options, const Tensor& average, const Tensor& value,
                        const Tensor& step) {
  const auto every = static_cast<double>(options.every);
  const Tensor since = ops::cast(step, DType::kF64) - static_cast<double>(options.start);
  const Tensor before = ops::floor(since / every);  // how many weights the average holds
  const Tensor move = ops::cast(1.0 / (before + 1.0), average.dtype());
  const Tensor joined = average + (value - average) * move;
  const Tensor is_due = ops::equal(before * every, since);
  const Tensor zero = full_of({}, 0, DType::kF64);
  return ops::where(ops::less_equal(since, zero), value, ops::where(is_due, joined, average));
}

/// The average after update `step`, whose result is `value`.
Tensor averaged(const Averaging& options, const Tensor& average, const Tensor& value,
                const Tensor& step) {
  if (options.every > 0) return equally_averaged(options, average, value, step);
  Tensor move = full_of({}, 1 - options.decay, DType::kF64);
  if (options.warmup) {
    const Tensor updates = ops::cast(step, DType::kF64);
    move = ops::maximum(move, 9.0 / (updates + 10.0));
  }
  return average + (value - average) * ops::cast(move, average.dtype());
}

}  // namespace

const optim::LossScaling* StepDefinition::scaling() const {
  static constexpr optim::LossScaling kUnscaled{.dynamic = false, .initial = 1};
  if (mixed && mixed->scaling) return &*mixed->scaling;
  return skips_nonfinite ? &kUnscaled : nullptr;
}

bool StepDefinition::is_frozen(const std::string& path) const {
  return std::all_of(optimizers.begin(), optimizers.end(),
                     [&](const NamedOptimizer& o) { return o.optimizer->is_frozen(path); });
}

std::string Step::counter(const std::string& optimizer) {
  return "optimizer:" + optimizer + "/updates";
}

std::string Step::optimizer_state(const std::string& parameter, const std::string& slot) {
  return optimizer_slot("", parameter, slot);
}

std::string Step::gradient_state(const std::string& parameter) { return "gradient/" + parameter; }

const optim::Optimizer* Step::minimizer() const {
  const optim::Optimizer& only = *d_.optimizers.front().optimizer;
  return only.minimizer() ? &only : nullptr;
}

Step::Step(StepDefinition definition) : d_(std::move(definition)) {
  if (!d_.mixed) return;
  // Casts come below fake quantization, which sees parameters in full precision.
  d_.interpreters.insert(d_.interpreters.begin(), [this](program::ParameterBinding& ports, bool) {
    return std::make_unique<autograd::Autocast>(
        d_.mixed->cast, [&ports](const Tensor& operand) { ports.note_kept(operand); });
  });
}

namespace {

/// Whether something besides the updates differentiates: a model, the step itself or a metric.
bool differentiates(const StepDefinition& definition) {
  const auto in_call = [](const MetricCall& call) { return lang::differentiates(call.code); };
  return lang::differentiates(definition.loss) || calls(definition.loss, "minimize_bfgs") ||
         calls(definition.loss, "minimize_lbfgs") ||
         std::any_of(definition.models.begin(), definition.models.end(),
                     [](const program::NamedModel& model) {
                       return lang::differentiates(*model.program);
                     }) ||
         std::any_of(definition.metrics.begin(), definition.metrics.end(),
                     [&](const MetricDefinition& metric) {
                       return std::any_of(metric.calls.begin(), metric.calls.end(), in_call);
                     });
}

}  // namespace

class Step::Scope {
 public:
  Scope(const StepDefinition& definition, program::ParameterBinding& ports, bool training) {
    for (const InterpreterFactory& make : definition.interpreters)
      installed_.push_back(
          std::make_unique<InterpreterScope>(*interpreters_.emplace_back(make(ports, training))));
    options_.training = training;
    options_.store = &ports;
    if (!definition.adapters) return;
    options_.store = &adapted_.emplace(ports, *definition.adapters);
    if (!definition.adapters->base) return;
    interpreters_.push_back(std::make_unique<PackedProducts>(adapted_->packed()));
    installed_.push_back(std::make_unique<InterpreterScope>(*interpreters_.back()));
  }
  ~Scope() {
    while (!installed_.empty()) installed_.pop_back();  // the innermost one first
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  const lang::EvaluationOptions& options() const { return options_; }

 private:
  std::vector<std::unique_ptr<Interpreter>> interpreters_;
  std::vector<std::unique_ptr<InterpreterScope>> installed_;
  std::optional<AdaptedParameters> adapted_;
  lang::EvaluationOptions options_;
};

StepOutputs Step::run(program::ParameterBinding& ports, const StepInputs& inputs, bool training,
                      const OnUpdate& on_update) const {
  StepOutputs out;
  const SourceLocation where = d_.loss.where.location();
  Interpreter& outermost = current_interpreter();
  const bool named = !d_.optimizers.front().name.empty();
  if (named) out.losses.resize(d_.optimizers.size());
  const auto reach = [&](const UpdateCall& call) {
    check_loss(call.loss, where);
    const auto add = [&](Tensor& sum) {
      sum = sum.defined() ? sum + ops::cast(call.loss, sum.dtype()) : call.loss;
    };
    add(out.loss);
    if (named) add(out.losses[call.optimizer]);
    const UpdateKind& kind = out.updates.emplace_back(UpdateKind{call.optimizer, call.every});
    if (!on_update) return;
    const bool due = kind.is_due(inputs.step_number);
    if (call.every > 1) out.conditions.push_back({call.every, due});
    const ScopedInterpreter below(outermost);
    on_update(call, out.updates.size() - 1, due);
  };

  const Scope scope(d_, ports, training);
  const lang::EvaluationOptions& options = scope.options();
  lang::NamedValues names;
  if (calls(d_.loss, "update")) {
    run_step_body(d_, inputs.fields, options, names, reach);
  } else {
    const std::map<std::string, Tensor> fields =
        differentiates(d_) ? variables(inputs.fields) : inputs.fields;
    for (const auto& [name, tensor] : fields) names.push_back({name, lang::Value(tensor)});
    for (const auto& [name, array] : d_.constants)
      names.push_back({name, lang::Value(Tensor(array))});
    for (auto& output : run_model(d_.exported(), fields, options)) names.push_back(output);
    const lang::Value loss = lang::run_code(d_.loss, names, options);
    if (!loss.is_tensor())
      throw Error(ErrorCode::kConfig, "loss: expected a tensor, found " + loss.describe(), where);
    Tensor total = loss.tensor();
    if (d_.distillation && training) {
      const Distillation& distillation = *d_.distillation;
      program::ScopedParameters parameters(*options.store, Distillation::kName);
      lang::EvaluationOptions of_teacher = options;
      of_teacher.training = false;
      of_teacher.store = &parameters;
      const lang::NamedValues taught =
          run_model(*distillation.model.program, inputs.fields, of_teacher);
      const Tensor student = names.at(inputs.fields.size() + d_.constants.size()).second.tensor();
      total = total * (1 - distillation.weight) +
              distance(distillation, student, taught.at(0).second.tensor()) * distillation.weight;
    }
    reach({.loss = total});
  }
  for (size_t i = 0; i < out.losses.size(); ++i)
    if (!out.losses[i].defined())
      throw Error(ErrorCode::kConfig,
                  "step: no update uses the optimizer '" + d_.optimizers[i].name + "'", where);
  if (used_.empty()) used_ = ports.used();
  if (training) return out;
  out.names = names;
  const PredictedTokens predicted = name_predicted(inputs, options, names);
  for (const MetricDefinition& metric : d_.metrics)
    for (const MetricCall& call : metric.calls) {
      out.metrics.push_back(bind_metric(call, names, options));
      if (call.predicted != MetricCall::Predicted::kNot) out.metrics.back().predicted = predicted;
    }
  return out;
}

Tensor Step::scores(const StepInputs& inputs, const lang::EvaluationOptions& options,
                    const std::string& output) const {
  program::ScopedParameters parameters(*options.store, d_.models.front().name);
  lang::EvaluationOptions inside = options;
  inside.store = &parameters;
  for (const auto& [name, value] : run_model(d_.exported(), inputs.fields, inside))
    if (name == output) return value.tensor();
  fail(ErrorCode::kConfig, "predict.scores: '", output, "' is not an output of the model");
}

namespace {

/// The likeliest class of each step, with -1 in place of repetitions and blanks.
Tensor best_path(const Tensor& scores, int64_t blank) {
  if (scores.ndim() != 3)
    fail(ErrorCode::kConfig, "predict.scores: expected scores [batch, steps, classes], found ",
         scores.type());
  const Tensor path = ops::argmax(scores, 2);
  const Tensor none =
      ops::full_like(ops::slice(path, {1}, {Dim(0)}, {Dim(1)}), AttrValue(int64_t{-1}));
  const Tensor before =
      ops::concat({none, ops::slice(path, {1}, {Dim(0)}, {path.dim(1) - Dim(1)})}, 1);
  const Tensor drops =
      ops::logical_or(ops::equal(path, before), ops::equal(path, Tensor::number(blank)));
  return ops::where(drops, Tensor::number(int64_t{-1}), path);
}

}  // namespace

PredictedTokens Step::name_predicted(const StepInputs& inputs,
                                     const lang::EvaluationOptions& options,
                                     lang::NamedValues& names) const {
  using Predicted = MetricCall::Predicted;
  const auto find = [&](std::string_view name) {
    return std::find_if(names.begin(), names.end(),
                        [&](const auto& each) { return each.first == name; });
  };
  const MetricDefinition* user = nullptr;
  bool elsewhere = false;
  for (const MetricDefinition& metric : d_.metrics)
    for (const MetricCall& call : metric.calls) {
      if (call.predicted == Predicted::kNot) continue;
      if (!user || call.predicted == Predicted::kElsewhere) user = &metric;
      elsewhere = elsewhere || call.predicted == Predicted::kElsewhere;
    }
  if (!user || find(kPredicted) != names.end()) return PredictedTokens::kNone;
  const auto reject = [&](const std::string& reason) {
    throw Error(ErrorCode::kConfig, "metric '" + user->name + "': " + reason,
                user->where.location());
  };
  if (d_.prediction)
    if (const auto* ctc = std::get_if<program::CtcPrediction>(&*d_.prediction)) {
      const auto known = find(ctc->scores);
      const Tensor scores = known != names.end() && known->second.is_tensor()
                                ? known->second.tensor()
                                : this->scores(inputs, options, ctc->scores);
      names.push_back({std::string(kPredicted), lang::Value(best_path(scores, ctc->blank))});
      return PredictedTokens::kComputed;
    }
  const auto* sequence =
      d_.prediction ? std::get_if<program::SequencePrediction>(&*d_.prediction) : nullptr;
  if (!sequence)
    reject(
        "'predicted' is what a section `predict:` of kind ctc or sequence makes of the outputs, "
        "and the config has none");
  if (elsewhere)
    reject(
        "'predicted' of a sequence is the first argument of wer, cer, sacrebleu, edit_rate or "
        "bleu, by itself");
  names.push_back({std::string(kPredicted), lang::Value(inputs.fields.at(sequence->target))});
  return PredictedTokens::kWritten;
}

StepOutputs Step::predict(program::ParameterBinding& ports, const StepInputs& inputs) const {
  const autograd::NoGradScope no_grad;
  const Scope scope(d_, ports, false);
  StepOutputs out;
  out.prediction = scores(inputs, scope.options(),
                          std::get<program::SequencePrediction>(d_.prediction.value()).scores);
  return out;
}

std::vector<std::string> Step::trainable(const program::ParameterBinding& ports,
                                         const UpdateCall& call) const {
  const optim::Optimizer& optimizer = *d_.optimizers[call.optimizer].optimizer;
  std::vector<std::string> names;
  for (const std::string& pattern : call.only)
    if (std::none_of(ports.used().begin(), ports.used().end(),
                     [&](const std::string& name) { return matches_pattern(pattern, name); }))
      throw Error(
          ErrorCode::kConfig,
          str("update: only=\"", pattern,
              "\" matches none of the parameters that the step "
              "has used: ",
              join(std::span(ports.used()).subspan(0, std::min<size_t>(4, ports.used().size())),
                   ", "),
              ports.used().size() > 4 ? ", …" : ""),
          d_.loss.where.location());
  for (const std::string& name : ports.used()) {
    if (optimizer.is_frozen(name)) continue;
    if (call.only.empty() ||
        std::any_of(call.only.begin(), call.only.end(),
                    [&](const std::string& pattern) { return matches_pattern(pattern, name); }))
      names.push_back(name);
  }
  return names;
}

Tensors Step::gradients(program::ParameterBinding& ports, const Tensor& loss,
                        const std::vector<std::string>& names, const Tensors& rows) const {
  Tensors parameters;
  for (const std::string& name : names) parameters.push_back(ports.existing(name));
  parameters.insert(parameters.end(), rows.begin(), rows.end());
  const autograd::NoGradScope no_second_order;
  if (!scaling()) return autograd::grad({loss}, parameters, {}, true);
  const Tensor scale = ops::cast(loss_scale(ports), loss.dtype());
  return autograd::grad({loss}, parameters, {scale}, true);
}

Tensors Step::update(program::ParameterBinding& ports, const StepInputs& inputs, size_t optimizer,
                     const std::vector<std::string>& names, Tensors gradients, bool unscaled,
                     const Tensors& further) const {
  const autograd::NoGradScope no_grad;
  const auto& [optimizer_name, rule] = d_.optimizers[optimizer];
  optim::UpdateInputs update{
      .lr = inputs.learning_rates[optimizer], .step = inputs.step, .bound = d_.clip.value};
  if (!optimizer_name.empty()) {
    update.step =
        ports.slot(counter(optimizer_name), {}, DType::kI64, 0) + Tensor::number(int64_t{1});
    ports.set_slot(counter(optimizer_name), update.step);
  }
  // Gradients are read once for norms, which tell at the same time whether all are finite, and once
  // by the updates, which take factors and bounds along.
  optim::ClipOptions norms = d_.clip;
  if (d_.keeps_gradient_norm && !norms.norm) norms.global_norm = norms.global_norm.value_or(1);
  Tensors squares = optim::sums_of_squares(gradients, norms);
  gradients.resize(gradients.size() + further.size());
  squares.insert(squares.end(), further.begin(), further.end());
  Tensor unscale;
  if (scaling()) {
    const optim::ScalerState state = scaler_state(ports);
    const Tensor finite = optim::all_finite(squares.empty() ? gradients : squares);
    update.skip = ops::logical_not(finite);
    if (d_.skips_nonfinite) ports.keep_states_where(update.skip);
    update.step = state.updates + Tensor::number(int64_t{1});
    if (!unscaled) unscale = 1.0 / state.scale;
    set_scaler_state(ports, optim::next_state(state, finite, *scaling()));
  }
  if (d_.keeps_gradient_norm) {
    Tensor total = Tensor::number(0.0);
    for (const Tensor& sum : squares)
      if (sum.defined()) total = total + sum;
    Tensor norm = ops::cast(ops::sqrt(total), DType::kF64);
    if (unscale.defined()) norm = norm * ops::cast(unscale, DType::kF64);
    ports.slot(kGradientNorm, {}, DType::kF64, 0);
    ports.set_slot(kGradientNorm, norm);
  }
  const Tensors scales = optim::gradient_scales(gradients, squares, d_.clip, unscale);
  const double layer_decay = rule->options().layer_decay;
  std::map<std::string, double> layers;
  if (layer_decay != 1)
    layers = optim::layer_factors(used_.empty() ? ports.used() : used_, layer_decay);
  for (size_t i = 0; i < names.size(); ++i) {
    if (!gradients[i].defined()) continue;  // has no part in the loss
    const auto layer = layers.find(names[i]);
    update.lr = inputs.learning_rates[optimizer];
    if (layer != layers.end() && layer->second != 1) update.lr = update.lr * layer->second;
    const Tensor parameter = ports.existing(names[i]);
    const Dims shape = concrete(parameter.shape());
    Tensors states;
    std::vector<std::string> slots;
    const auto open = [&](const optim::StateSlot& slot) {
      const std::string path = optimizer_slot(optimizer_name, names[i], slot.name);
      return slot.is_copy
                 ? ports.slot_like(path, names[i])
                 : ports.slot(path, slot.shape.value_or(shape), full_type(parameter), slot.initial);
    };
    for (const optim::StateSlot& slot : rule->slots(names[i], shape)) {
      slots.push_back(optimizer_slot(optimizer_name, names[i], slot.name));
      states.push_back(open(slot));
    }
    update.master = ports.master(names[i]);
    update.scale = scales[i];
    Tensors updated = rule->update(names[i], parameter, gradients[i], states, update);
    if (std::any_of(d_.keep_zeros.begin(), d_.keep_zeros.end(),
                    [&](const std::string& p) { return matches_pattern(p, names[i]); })) {
      const Tensor exact = update.master.defined() ? update.master : parameter;
      const Tensor zero = ops::equal(exact, Tensor::number(0.0));
      updated[0] = ops::where(zero, parameter, updated[0]);
      if (update.master.defined()) updated.back() = ops::where(zero, exact, updated.back());
    }
    // Later gradients in the step must not flow through this update.
    ports.set_parameter(names[i], optimizer_name.empty()
                                      ? updated[0]
                                      : autograd::variable(ops::detach(updated[0])));
    for (size_t s = 0; s < slots.size(); ++s) ports.set_slot(slots[s], updated[s + 1]);
    if (update.master.defined()) ports.set_master(names[i], updated.back());
    if (!d_.average) continue;
    const optim::StateSlot slot{.name = optim::kEvaluationSlot, .is_copy = true};
    const Tensor average = open(slot);
    const Tensor& value = update.master.defined() ? updated.back() : updated[0];
    const Tensor next = averaged(*d_.average, average, value, update.step);
    ports.set_slot(optimizer_slot(optimizer_name, names[i], slot.name),
                   update.skip.defined() ? ops::where(update.skip, average, next) : next);
  }
  return scales;
}

std::vector<std::string> Step::copies(const std::string& parameter, const Dims& shape) const {
  std::vector<std::string> out;
  for (const auto& [name, rule] : d_.optimizers) {
    for (const optim::StateSlot& slot : rule->slots(parameter, shape))
      if (slot.is_copy) out.push_back(optimizer_slot(name, parameter, slot.name));
    if (d_.average) out.push_back(optimizer_slot(name, parameter, optim::kEvaluationSlot));
  }
  return out;
}

StepOutputs Step::train(program::ParameterBinding& ports, const StepInputs& inputs) const {
  if (minimizer()) {
    StepOutputs sums;
    return run(ports, inputs, true, [&](const UpdateCall& call, size_t, bool is_due) {
      if (is_due) add_gradients(ports, inputs, call, sums);
    });
  }
  std::vector<TableGradient> tables;
  StepOutputs out = run(ports, inputs, true, [&](const UpdateCall& call, size_t, bool is_due) {
    if (is_due) update_all(ports, inputs, call, tables);
  });
  out.tables = std::move(tables);
  return out;
}

namespace {

std::string sum_slot(const std::string& parameter) { return Step::gradient_state(parameter); }
std::string touched_slot(const std::string& parameter) { return "touched_rows/" + parameter; }

}  // namespace

void Step::note_touched_rows(program::ParameterBinding& ports, const std::string& name,
                             const RowSparse& rows) const {
  const int64_t count = concrete(ports.existing(name).shape())[0];
  const Tensor touched = ports.slot(touched_slot(name), {count, 1}, DType::kF32, 0);
  const Tensor ones = full_of({rows.indices.dim(0), Dim(1)}, 1, DType::kF32);
  ports.set_slot(touched_slot(name), touched + ops::embedding_grad(rows.indices, ones, Dim(count)));
}

Tensor Step::accumulated(program::ParameterBinding& ports, const std::string& name) const {
  const Tensor parameter = ports.existing(name);
  const Dims shape = concrete(parameter.shape());
  const Tensor sum = ports.slot(sum_slot(name), shape, full_type(parameter), 0);
  if (!ports.store().states.contains(touched_slot(name))) return sum;
  const Tensor touched = ports.slot(touched_slot(name), {shape[0], 1}, DType::kF32, 0);
  const Tensor rows = ops::arange(AttrValue(0), AttrValue(shape[0]));
  const Tensor indices =
      ops::where(ops::greater_than(ops::reshape(touched, {Dim(-1)}), Tensor::number(0.0)), rows,
                 Tensor::number(int64_t{-1}));
  return make_row_sparse(indices, sum, Dim(shape[0]));
}

void Step::add_gradients(program::ParameterBinding& ports, const StepInputs& inputs,
                         const UpdateCall& call, StepOutputs& out) const {
  const auto names = trainable(ports, call);
  LossGradients found = loss_gradients(ports, call, names);
  const Tensors& grads = found.parameters;
  const autograd::NoGradScope no_grad;
  for (TableGradient& each : found.tables) {
    each.rows = each.rows * ops::cast(inputs.weight, each.rows.dtype());
    out.tables.push_back(std::move(each));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (!grads[i].defined()) continue;
    const Tensor parameter = ports.existing(names[i]);
    const std::string slot = sum_slot(names[i]);
    if (const RowSparse* rows = row_sparse(grads[i]);
        rows && d_.optimizers[call.optimizer].optimizer->supports_sparse_update())
      note_touched_rows(ports, names[i], *rows);
    const DType dtype = full_type(parameter);
    const Tensor sum = ports.slot(slot, concrete(parameter.shape()), dtype, 0);
    Tensor weight = ops::cast(inputs.weight, dtype);
    if (scaling()) weight = weight / loss_scale(ports);
    ports.set_slot(slot, sum + in_full(grads[i]) * weight);
    out.accumulated.push_back(names[i]);
  }
}

StepOutputs Step::accumulate(program::ParameterBinding& ports, const StepInputs& inputs,
                             size_t update) const {
  StepOutputs mine;
  const bool several = !d_.optimizers.front().name.empty();
  StepOutputs out =
      run(ports, inputs, true, [&](const UpdateCall& call, size_t number, bool is_due) {
        if (number < update) {
          // After an update states and parameters are those that it has left.
          ports.give_up_updates();
          const autograd::NoGradScope no_grad;
          if (is_due)
            for (const std::string& name : trainable(ports, call))
              mine.reread.push_back(ports.reread(name));
        } else if (number == update) {
          mine.loss = call.loss;
          if (is_due) add_gradients(ports, inputs, call, mine);
          if (several) ports.hold_updates();
        }
      });
  mine.updates = std::move(out.updates);
  mine.conditions = std::move(out.conditions);
  return mine;
}

StepOutputs Step::apply(program::ParameterBinding& ports, const StepInputs& inputs,
                        size_t optimizer, const std::vector<std::string>& parameters) const {
  Tensors sums, squares;
  for (const std::string& name : parameters) sums.push_back(accumulated(ports, name));
  for (const auto& [table, sum] : inputs.table_squares) squares.push_back(sum);
  const Tensors scales = update(ports, inputs, optimizer, parameters, sums, true, squares);
  StepOutputs out;
  for (size_t i = 0; i < squares.size(); ++i)
    if (const Tensor& scale = scales[parameters.size() + i]; scale.defined())
      out.table_scales.emplace_back(inputs.table_squares[i].first, scale);
  const auto clear = [&](const std::string& slot) {
    const Array& kept = ports.store().states.at(slot);
    ports.set_slot(slot, full_of(to_shape(kept.shape), 0, kept.dtype));
  };
  for (const std::string& name : parameters) {
    clear(sum_slot(name));
    if (ports.store().states.contains(touched_slot(name))) clear(touched_slot(name));
  }
  return out;
}

StepOutputs Step::evaluate(program::ParameterBinding& ports, const StepInputs& inputs) const {
  std::optional<autograd::NoGradScope> no_grad;
  if (!differentiates(d_)) no_grad.emplace();
  return forward(ports, inputs, false);
}

StepOutputs Step::output_gradients(program::ParameterBinding& ports,
                                   const StepInputs& inputs) const {
  if (calls(d_.loss, "update"))
    throw Error(ErrorCode::kConfig, "step: has no single loss to differentiate; expected 'loss:'",
                d_.loss.where.location());
  StepOutputs out = forward(ports, inputs, false);
  out.metrics.clear();
  const std::vector<std::string> names = lang::output_names(d_.exported().model);
  std::vector<std::string> of_outputs;
  Tensors outputs;
  for (const auto& [name, value] : out.names) {
    if (!value.is_tensor() || inputs.fields.contains(name) ||
        std::find(names.begin(), names.end(), name) == names.end())
      continue;
    of_outputs.push_back(name);
    outputs.push_back(value.tensor());
  }
  const Tensors gradients = autograd::grad({out.loss}, outputs);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (gradients[i].defined()) out.gradients.emplace_back(of_outputs[i], gradients[i]);
  return out;
}

}  // namespace paddle::train
