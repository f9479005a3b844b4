// Optimizers for eager programs: the update rules of the engine, by the names that configs use.

#include "optim/optimizer.h"
#include "autograd/autograd.h"
#include "ops/core/operators.h"
#include "ops/generated/math.h"
#include "optim/loss_scaler.h"
#include "python/capture.h"

namespace paddle::python {
namespace {

struct State {
  optim::Optimizer optimizer;
  optim::ClipOptions clip;
  std::vector<Tensors> states = {};  ///< per parameter; empty before its first update
  int64_t updates = 0;
};

struct OptimizerObject {
  PyObject ob_base;
  State* state;
};

State& state_of(PyObject* object) { return *reinterpret_cast<OptimizerObject*>(object)->state; }

PyObject* construct(PyTypeObject* type, PyObject* arguments, PyObject* /*names*/) {
  return guarded<PyObject*>(nullptr, [&] {
    const char *name = nullptr, *keys = nullptr, *clip = nullptr;
    double lr = 0, decay = 0, bound = 0;
    if (!PyArg_ParseTuple(arguments, "ssddsd:Optimizer", &name, &keys, &lr, &decay, &clip, &bound))
      throw PythonError();
    optim::OptimizerOptions options;
    options.rule = optim::make_rule(name, keys);
    options.lr = lr;
    options.weight_decay = decay;
    State state{optim::Optimizer(std::move(options)), {}};
    const std::string kind = clip;
    if (kind == "value") state.clip.value = bound;
    if (kind == "norm") state.clip.norm = bound;
    if (kind == "global_norm") state.clip.global_norm = bound;
    if (state.optimizer.minimizer())
      fail(ErrorCode::kUsage, "optimizer: '", name,
           "' evaluates the loss itself, which only training by a config does");
    Ref out = checked(PyType_GenericAlloc(type, 0));
    reinterpret_cast<OptimizerObject*>(out.get())->state = new State(std::move(state));
    return out.release();
  });
}

void destroy(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  delete reinterpret_cast<OptimizerObject*>(object)->state;
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

Tensor detached(const Tensor& t) { return {t.type(), t.content()}; }

Tensors first_states(const optim::Optimizer& optimizer, const std::string& name,
                     const Tensor& parameter) {
  Tensors out;
  const Array& value = parameter.array();
  for (const optim::StateSlot& slot : optimizer.slots(name, value.shape)) {
    Array state = slot.is_copy ? value.contiguous().cast(value.dtype)
                               : Array::zeros(value.dtype, slot.shape.value_or(value.shape));
    if (!slot.is_copy && slot.initial != 0) {
      const Array initial = Array::scalar(slot.initial).cast(value.dtype);
      const auto item = static_cast<size_t>(item_size(value.dtype));
      for (int64_t i = 0; i < state.size(); ++i)
        std::memcpy(static_cast<std::byte*>(state.raw()) + static_cast<size_t>(i) * item,
                    initial.raw(), item);
    }
    out.emplace_back(std::move(state));
  }
  return out;
}

/// The next value and states of each parameter that has a gradient; nothing for the others.
/// `states`: those of each parameter.
std::vector<Tensors> next_values(const State& state, const std::vector<std::string>& names,
                                 const Tensors& parameters, const Tensors& gradients,
                                 const std::vector<Tensors>& states, optim::UpdateInputs inputs) {
  const Tensors squares = optim::sums_of_squares(gradients, state.clip);
  const Tensors scales = optim::gradient_scales(gradients, squares, state.clip, {});
  inputs.bound = state.clip.value;
  std::vector<Tensors> out(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!gradients[i].defined()) continue;
    inputs.scale = i < scales.size() ? scales[i] : Tensor();
    out[i] =
        state.optimizer.update(names[i], detached(parameters[i]), gradients[i], states[i], inputs);
  }
  return out;
}

/// The states of parameter `i`, which are made for its first update.
Tensors& states_of(State& state, size_t i, const std::string& name, const Tensor& parameter) {
  if (state.states.size() <= i) state.states.resize(i + 1);
  if (state.states[i].empty()) state.states[i] = first_states(state.optimizer, name, parameter);
  return state.states[i];
}

/// The rate that a Python function returns.
Tensor rate_of(PyObject* function) {
  const Ref rate = checked(PyObject_CallNoArgs(function));
  const double value = PyFloat_AsDouble(rate.get());
  if (PyErr_Occurred()) throw PythonError();
  return Tensor(Array::scalar(static_cast<float>(value)));
}

/// Updates each parameter that has a gradient.
void step(State& state, const std::vector<std::string>& names, const Tensors& parameters,
          const Tensor& rate) {
  Tensors gradients;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& p = parameters[i];
    gradients.push_back(p.requires_grad() && autograd::is_leaf(p) ? autograd::leaf_gradient(p)
                                                                  : Tensor());
    if (gradients.back().defined()) states_of(state, i, names[i], p);
  }
  state.states.resize(std::max(state.states.size(), parameters.size()));
  optim::UpdateInputs inputs;
  inputs.lr = rate;
  inputs.step = Tensor(Array::scalar(state.updates + 1));
  const std::vector<Tensors> next =
      next_values(state, names, parameters, gradients, state.states, inputs);
  for (size_t i = 0; i < next.size(); ++i) {
    if (next[i].empty()) continue;
    autograd::set_leaf_value(parameters[i], next[i][0]);
    state.states[i].assign(next[i].begin() + 1, next[i].end());
  }
  ++state.updates;
}

/// The same in a function that is traced. `rate`: the Python function of the rate, since schedules
/// change it between calls. `condition`: whether the step is made, a tensor; undefined: it is.
void trace_step(Capture& capture, PyObject* self, const std::vector<std::string>& names,
                PyObject* parameters, PyObject* rate, const Tensor& condition) {
  State& state = state_of(self);
  const std::shared_ptr<PyObject> owner = kept(self);
  const Ref items = checked(PySequence_Tuple(parameters));
  Tensors values, gradients;
  std::vector<std::vector<Cell*>> cells(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    PyObject* const object = PyTuple_GetItem(items.get(), static_cast<Py_ssize_t>(i));
    values.push_back(tensor_of(object));
    const Cell* const cell = capture.find(object);
    if (!cell) fail(ErrorCode::kUsage, "an optimizer updates a tensor that the function makes");
    gradients.push_back(cell->requires_grad ? capture.gradient_of(object).now : Tensor());
    if (!gradients.back().defined()) continue;
    for (size_t s = 0; s < states_of(state, i, names[i], cell->before).size(); ++s) {
      const auto place = [owner, i, s]() -> Tensor& {
        return state_of(owner.get()).states.at(i).at(s);
      };
      cells[i].push_back(
          &capture.cell_of(&place(), place, [place](const Tensor& next) { place() = next; }));
    }
  }
  state.states.resize(std::max(state.states.size(), names.size()));
  std::vector<Tensors> states(names.size());
  for (size_t i = 0; i < cells.size(); ++i)
    for (const Cell* const cell : cells[i]) states[i].push_back(cell->now);
  optim::UpdateInputs inputs;
  const std::shared_ptr<PyObject> get_rate = kept(rate);
  inputs.lr = capture.cell_of(&state, [get_rate] { return rate_of(get_rate.get()); }).now;
  Cell& number = capture.cell_of(
      &state.updates, [owner] { return Tensor(Array::scalar(state_of(owner.get()).updates + 1)); },
      [owner](const Tensor& next) { state_of(owner.get()).updates = next.array().integer() - 1; });
  inputs.step = number.now;
  capture.note_update();
  if (condition.defined()) inputs.skip = ops::logical_not(condition);
  const std::vector<Tensors> next = next_values(state, names, values, gradients, states, inputs);
  for (size_t i = 0; i < next.size(); ++i) {
    if (next[i].empty()) continue;
    PyObject* const object = PyTuple_GetItem(items.get(), static_cast<Py_ssize_t>(i));
    tensor_of(object) = detached(next[i][0]);
    for (size_t s = 0; s < cells[i].size(); ++s) cells[i][s]->now = next[i][s + 1];
  }
  number.now = number.now + (condition.defined() ? ops::cast(condition, DType::kI64)
                                                 : Tensor(Array::scalar(int64_t{1})));
}

/// The scale of a loss and its counters (good, bad) after an update: those of training by a config.
/// All are tensors.
PyObject* next_loss_scale(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    PyObject *state = nullptr, *finite = nullptr;
    long long growth = 0, backoff = 0;
    optim::LossScaling options;
    if (!PyArg_ParseTuple(arguments, "OO(ddLL):next_loss_scale", &state, &finite,
                          &options.growth_factor, &options.backoff_factor, &growth, &backoff))
      throw PythonError();
    options.growth_interval = growth;
    options.backoff_interval = backoff;
    const Tensors now = tensors_of(state, "next_loss_scale");
    if (now.size() != 3) raise(PyExc_ValueError, "next_loss_scale: expected three tensors");
    const Tensor none(Array::scalar(int64_t{0}));
    const Computing scope(Computing::Precision::kFull);
    const optim::ScalerState next =
        optim::next_state({now[0], now[1], now[2], none, none}, operand_value(finite), options);
    return python_list({next.scale, next.good, next.bad}).release();
  });
}

PyObject* update(PyObject* self, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    PyObject *names = nullptr, *parameters = nullptr, *get_rate = nullptr, *condition = Py_None;
    if (!PyArg_ParseTuple(arguments, "OOO|O:step", &names, &parameters, &get_rate, &condition))
      throw PythonError();
    const std::vector<std::string> its_names = texts_of(names);
    if (Capture* const capture = current_capture()) {
      if (capture->trace().is_inside())
        fail(ErrorCode::kUsage, "an optimizer makes a step where the value of a tensor decides");
      const Computing scope(Computing::Precision::kFull);
      trace_step(*capture, self, its_names, parameters, get_rate,
                 condition == Py_None ? Tensor() : operand_value(condition));
      return Py_NewRef(Py_None);
    }
    if (current_trace())
      fail(ErrorCode::kUsage, "an optimizer makes a step while a function is recorded");
    const Tensor rate = rate_of(get_rate);
    const Tensors tensors = tensors_of(parameters, "optimizer: parameters");
    if (its_names.size() != tensors.size())
      raise(PyExc_ValueError, "optimizer: a name for each parameter is expected");
    const Computing scope(Computing::Precision::kFull);
    if (condition != Py_None && !PyObject_IsTrue(condition)) return Py_NewRef(Py_None);
    const autograd::NoGradScope unrecorded;
    const WithoutLock others;
    step(state_of(self), its_names, tensors, rate);
    return Py_NewRef(Py_None);
  });
}

PyObject* get_updates(PyObject* self, void*) { return PyLong_FromLongLong(state_of(self).updates); }

int set_updates(PyObject* self, PyObject* value, void*) {
  return guarded<int>(-1, [&] {
    const long long count = value ? PyLong_AsLongLong(value) : -1;
    if (PyErr_Occurred()) throw PythonError();
    if (count < 0) raise(PyExc_ValueError, "the number of updates must not be negative");
    state_of(self).updates = count;
    return 0;
  });
}

/// Names and values of the states of parameter `i`, as pairs.
PyObject* get_states(PyObject* self, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    int at = 0;
    const char* name = nullptr;
    PyObject* parameter = nullptr;
    if (!PyArg_ParseTuple(arguments, "isO:states", &at, &name, &parameter)) throw PythonError();
    State& state = state_of(self);
    Ref out = checked(PyList_New(0));
    if (at < 0 || static_cast<size_t>(at) >= state.states.size()) return out.release();
    const auto slots = state.optimizer.slots(name, tensor_of(parameter).array().shape);
    const Tensors& states = state.states[static_cast<size_t>(at)];
    for (size_t i = 0; i < states.size(); ++i) {
      const Ref label = python_text(slots[i].name), value = python_tensor(states[i]);
      const Ref pair = checked(PyTuple_Pack(2, label.get(), value.get()));
      checked(PyList_Append(out.get(), pair.get()));
    }
    return out.release();
  });
}

PyObject* put_states(PyObject* self, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    int at = 0;
    const char* name = nullptr;
    PyObject *parameter = nullptr, *values = nullptr;
    if (!PyArg_ParseTuple(arguments, "isOO:set_states", &at, &name, &parameter, &values))
      throw PythonError();
    State& state = state_of(self);
    const Tensors fresh = first_states(state.optimizer, name, tensor_of(parameter));
    const Tensors given = tensors_of(values, "optimizer: states");
    if (given.size() != fresh.size())
      fail(ErrorCode::kUsage, "optimizer: ", name, " has ", fresh.size(), " states, ", given.size(),
           " are given");
    for (size_t i = 0; i < fresh.size(); ++i)
      if (!same_type(fresh[i].type(), given[i].type()))
        fail(ErrorCode::kUsage, "optimizer: a state of ", name, " is ", fresh[i].type(), ", not ",
             given[i].type());
    if (at < 0 || at > 1 << 24) raise(PyExc_IndexError, "optimizer: no such parameter");
    const auto place = static_cast<size_t>(at);
    state.states.resize(std::max(state.states.size(), place + 1));
    state.states[place] = given;
    return Py_NewRef(Py_None);
  });
}

PyMethodDef methods[] = {
    {"step", update, METH_VARARGS,
     "Updates each parameter that has a gradient, at the rate that a function returns; "
     "not if a tensor is given that is false."},
    {"states", get_states, METH_VARARGS, "Names and values of the states of a parameter."},
    {"set_states", put_states, METH_VARARGS, "Replaces the states of a parameter."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef attributes[] = {
    {"updates", get_updates, set_updates, "The number of updates so far.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef functions[] = {
    {"next_loss_scale", next_loss_scale, METH_VARARGS, "The scale of a loss after an update."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(construct)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, attributes},
                       {0, nullptr}};
PyType_Spec spec = {"paddle_toolchain._paddle.Optimizer", sizeof(OptimizerObject), 0,
                    Py_TPFLAGS_DEFAULT, slots};

}  // namespace

void add_optimizer(PyObject* module) {
  add_type(module, spec, "Optimizer");
  add_functions(module, functions);
}

}  // namespace paddle::python
