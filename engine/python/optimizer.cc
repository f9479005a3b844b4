// Optimizers for eager programs: the update rules of the engine, by the names that configs use.

#include "optim/optimizer.h"
#include "autograd/autograd.h"
#include "optim/loss_scaler.h"
#include "python/trace.h"

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

/// Updates each parameter that has a gradient.
void step(State& state, const std::vector<std::string>& names, const Tensors& parameters,
          double rate) {
  Tensors gradients;
  for (const Tensor& p : parameters)
    gradients.push_back(p.requires_grad() && autograd::is_leaf(p) ? autograd::leaf_gradient(p)
                                                                  : Tensor());
  const Tensors squares = optim::sums_of_squares(gradients, state.clip);
  const Tensors scales = optim::gradient_scales(gradients, squares, state.clip, {});
  optim::UpdateInputs inputs;
  inputs.lr = Tensor(Array::scalar(static_cast<float>(rate)));
  inputs.step = Tensor(Array::scalar(state.updates + 1));
  inputs.bound = state.clip.value;
  state.states.resize(std::max(state.states.size(), parameters.size()));
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!gradients[i].defined()) continue;
    Tensors& states = state.states[i];
    if (states.empty()) states = first_states(state.optimizer, names[i], parameters[i]);
    inputs.scale = i < scales.size() ? scales[i] : Tensor();
    Tensors next =
        state.optimizer.update(names[i], detached(parameters[i]), gradients[i], states, inputs);
    autograd::set_leaf_value(parameters[i], next[0]);
    for (size_t s = 0; s < states.size(); ++s) states[s] = next[s + 1];
  }
  ++state.updates;
}

/// The scale of a loss and its counters (good, bad) after an update: those of training by a config.
PyObject* next_loss_scale(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    float scale = 0;
    long long good = 0, bad = 0, growth = 0, backoff = 0;
    int finite = 0;
    optim::LossScaling options;
    if (!PyArg_ParseTuple(arguments, "(fLL)p(ddLL):next_loss_scale", &scale, &good, &bad, &finite,
                          &options.growth_factor, &options.backoff_factor, &growth, &backoff))
      throw PythonError();
    options.growth_interval = growth;
    options.backoff_interval = backoff;
    const auto count = [](int64_t number) { return Tensor(Array::scalar(number)); };
    const Computing scope(Computing::Precision::kFull);
    const optim::ScalerState next = optim::next_state(
        {Tensor(Array::scalar(scale)), count(good), count(bad), count(0), count(0)},
        Tensor::boolean(finite != 0), options);
    return checked(Py_BuildValue("(dLL)", next.scale.array().number(),
                                 static_cast<long long>(next.good.array().integer()),
                                 static_cast<long long>(next.bad.array().integer())))
        .release();
  });
}

PyObject* update(PyObject* self, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    PyObject *names = nullptr, *parameters = nullptr;
    double rate = 0;
    if (!PyArg_ParseTuple(arguments, "OOd:step", &names, &parameters, &rate)) throw PythonError();
    if (current_trace())
      fail(ErrorCode::kUsage, "an optimizer makes a step while a function is recorded");
    const std::vector<std::string> its_names = texts_of(names);
    const Tensors tensors = tensors_of(parameters, "optimizer: parameters");
    if (its_names.size() != tensors.size())
      raise(PyExc_ValueError, "optimizer: a name for each parameter is expected");
    const Computing scope(Computing::Precision::kFull);
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
    {"step", update, METH_VARARGS, "Updates each parameter that has a gradient."},
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
