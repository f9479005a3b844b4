// Operations as Python functions: one dispatcher over the registry serves all of them.

#include <memory>
#include <set>
#include <unordered_map>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "base/parallel.h"
#include "ops/generated/math.h"
#include "python/capture.h"
#include "python/lazy.h"

namespace paddle::python {
namespace {

/// Where the random operations of the process are; Python's lock guards it.
uint64_t random_seed = 0, random_calls = 0;

/// The setting of amp.auto_cast on this thread.
struct MixedPrecision {
  explicit MixedPrecision(autograd::AutocastOptions given)
      : options(std::move(given)), interpreter(options) {}
  autograd::AutocastOptions options;
  autograd::Autocast interpreter;
};
thread_local std::unique_ptr<MixedPrecision> mixed_precision;
thread_local std::string precision_text;

/// Whether other Python threads are let in meanwhile. Calls that are deferred take no time.
bool is_long(const Tensors& operands) {
  if (deferring()) return false;
  int64_t elements = 0;
  for (const Tensor& t : operands)
    if (const Array* array = t.defined() ? t.concrete() : nullptr) elements += array->size();
  return elements > kMaxWithLock;
}

}  // namespace

Computing::Computing(Precision precision) {
  require_threads();
  if (current_trace())
    place_.emplace(python_location());
  else
    eager_.emplace(random_seed, ++random_calls);
  if (Capture* const capture = current_capture()) random_.emplace(capture->next_random_state());
  if (eager_ && precision == Precision::kMixed && deferring()) deferring_.emplace(*deferring());
  if (mixed_precision && precision == Precision::kMixed)
    precision_.emplace(mixed_precision->interpreter);
}

Array take_random_state(int64_t calls) {
  Array out = Array::from<uint64_t>({random_seed, random_calls + 1}, {2});
  count_calls(calls);
  return out;
}

void count_calls(int64_t calls) { random_calls += static_cast<uint64_t>(calls); }

namespace {

/// Under no_grad, no gradient flows through what is traced.
Tensors without_gradients(Tensors results) {
  if (current_capture() && !autograd::is_recording())
    for (Tensor& t : results)
      if (t.defined() && is_differentiable(t.dtype())) t = ops::detach(t);
  return results;
}

}  // namespace

Tensors apply_operation(const Op& op, Tensors operands, Attrs attrs) {
  const Computing scope;
  const WithoutLock others(is_long(operands));
  return without_gradients(call_visible(op, std::move(operands), std::move(attrs)));
}

// --- functions ---

namespace {

/// The object that the function of an operation is bound to.
struct BoundOperation {
  PyObject ob_base;
  const Op* op;
  PyObject* self;  ///< the first argument; null if there is none
};
PyTypeObject* bound_type = nullptr;

void destroy_bound(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  Py_XDECREF(reinterpret_cast<BoundOperation*>(object)->self);
  PyObject_Free(object);
  Py_DECREF(type);
}

Tensors bind_and_apply(const BoundOperation& bound, PyObject* const* arguments, Py_ssize_t count,
                       PyObject* names, bool hidden) {
  std::vector<Argument> positional;
  positional.reserve(static_cast<size_t>(count) + 1);
  if (bound.self) positional.emplace_back(argument_of(bound.self));
  for (Py_ssize_t i = 0; i < count; ++i) positional.push_back(argument_of(arguments[i]));
  std::vector<std::pair<std::string, Argument>> named;
  if (names)
    for (Py_ssize_t i = 0; i < PyTuple_Size(names); ++i) {
      std::string name = text_of(PyTuple_GetItem(names, i));
      if (name == "name" && bound.op->operand_index("name") < 0 && bound.op->attr_index("name") < 0)
        continue;  // of the result in a graph
      named.emplace_back(std::move(name), argument_of(arguments[count + i]));
    }
  const Computing scope;  // numbers for operands become tensors
  Bound call_of = bind_arguments(*bound.op, std::move(positional), std::move(named));
  const WithoutLock others(is_long(call_of.operands));
  return without_gradients(
      hidden ? call(*call_of.op, std::move(call_of.operands), std::move(call_of.attrs))
             : call_visible(*call_of.op, std::move(call_of.operands), std::move(call_of.attrs)));
}

PyObject* call_operation(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                         PyObject* names) {
  return guarded<PyObject*>(nullptr, [&] {
    const auto& bound = *reinterpret_cast<const BoundOperation*>(self);
    return python_results(bind_and_apply(bound, arguments, count, names, false)).release();
  });
}

struct Described {
  std::string name, doc;
  PyMethodDef method;
};

PyMethodDef& method_of(const Op& op) {
  static std::unordered_map<const Op*, Described> methods;
  auto [it, inserted] = methods.try_emplace(&op);
  Described& described = it->second;
  if (inserted) {
    described.name = op.name();
    described.doc = str(op.name(), op.def->signature, "\n\n", op.def->doc);
    described.method = {described.name.c_str(),
                        reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(call_operation)),
                        METH_FASTCALL | METH_KEYWORDS, described.doc.c_str()};
  }
  return described.method;
}

const Op* operation_named(PyObject* name) { return find_op(text_of(name)); }

PyObject* function(PyObject* /*module*/, PyObject* name) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    const Op* const op = operation_named(name);
    if (!op) Py_RETURN_NONE;
    return operation_function(*op, nullptr).release();
  });
}

PyObject* call_all(PyObject* /*module*/, PyObject* const* arguments, Py_ssize_t count,
                   PyObject* names) {
  return guarded<PyObject*>(nullptr, [&] {
    if (count < 1) raise(PyExc_TypeError, "call_all: the name of an operation is missing");
    const BoundOperation bound{{}, &get_op(text_of(arguments[0])), nullptr};
    return python_results(bind_and_apply(bound, arguments + 1, count - 1, names, true)).release();
  });
}

PyObject* operations(PyObject* /*module*/, PyObject* /*unused*/) {
  return guarded<PyObject*>(nullptr, [&] {
    Ref out = checked(PyDict_New());
    for (const Op* op : all_ops()) {
      const Ref family = python_text(op->def->family);
      checked(PyDict_SetItemString(out.get(), op->def->name, family.get()));
    }
    return out.release();
  });
}

// --- gradients ---

Tensors seeds_of(PyObject* object, size_t count) {
  if (!object || object == Py_None) return {};
  Tensors seeds = is_tensor(object) ? Tensors{operand_value(object)}
                                    : tensors_of(object, "the gradients of outputs");
  if (seeds.size() != count)
    fail(ErrorCode::kUsage, seeds.size(), " gradients are given for ", count, " tensors");
  return seeds;
}

Tensors list_of(PyObject* object, const char* what) {
  return is_tensor(object) ? Tensors{operand_value(object)} : tensors_of(object, what);
}

}  // namespace

void backward_from(const Tensors& outputs, const Tensors& cotangents) {
  compute(outputs);
  compute(cotangents);
  const Computing scope(Computing::Precision::kFull);
  if (Capture* const capture = current_capture()) return capture->backward(outputs, cotangents);
  for (const Tensor& t : outputs)
    if (!t.requires_grad())
      fail(ErrorCode::kUsage,
           "backward: the tensor depends on no tensor whose stop_gradient is False");
  const WithoutLock others;
  autograd::backward_to_leaves(outputs, cotangents);
}

namespace {

PyObject* backward(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    PyObject *tensors = nullptr, *seeds = nullptr;
    if (!PyArg_ParseTuple(arguments, "O|O", &tensors, &seeds)) throw PythonError();
    const Tensors outputs = list_of(tensors, "backward");
    backward_from(outputs, seeds_of(seeds, outputs.size()));
    return Py_NewRef(Py_None);
  });
}

PyObject* gradients(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    PyObject *outputs = nullptr, *inputs = nullptr, *seeds = nullptr;
    int create_graph = 0, allow_unused = 0;
    if (!PyArg_ParseTuple(arguments, "OOOpp", &outputs, &inputs, &seeds, &create_graph,
                          &allow_unused))
      throw PythonError();
    const Tensors of = list_of(outputs, "grad: outputs"), by = list_of(inputs, "grad: inputs");
    for (const Tensor& t : by)
      if (!t.requires_grad() && !current_capture())
        fail(ErrorCode::kUsage, "grad: stop_gradient of an input is True");
    const Tensors cotangents = seeds_of(seeds, of.size());
    for (const Tensors* const each : {&of, &by, &cotangents}) compute(*each);
    Tensors found;
    {
      const Computing scope(Computing::Precision::kFull);
      const WithoutLock others;
      const bool before = autograd::is_recording();
      autograd::set_recording(before && create_graph);
      try {
        found = autograd::grad(of, by, cotangents);
      } catch (...) {
        autograd::set_recording(before);
        throw;
      }
      autograd::set_recording(before);
    }
    for (size_t i = 0; i < found.size(); ++i)
      if (!found[i].defined() && !allow_unused)
        fail(ErrorCode::kUsage, "grad: the outputs do not depend on input ", i,
             "; allow_unused=True gives None for it");
    return python_list(found).release();
  });
}

PyObject* is_recording(PyObject* /*module*/, PyObject* /*unused*/) {
  return PyBool_FromLong(autograd::is_recording());
}

PyObject* set_recording(PyObject* /*module*/, PyObject* value) {
  const int truth = PyObject_IsTrue(value);
  if (truth < 0) return nullptr;
  autograd::set_recording(truth != 0);
  return Py_NewRef(Py_None);
}

/// The results with a record, through which gradients flow by a function of lists.
PyObject* with_vjp(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    PyObject *results = nullptr, *operands = nullptr, *function = nullptr;
    if (!PyArg_ParseTuple(arguments, "OOO:with_vjp", &results, &operands, &function))
      throw PythonError();
    const Tensors of = tensors_of(operands, "PyLayer: inputs");
    const Tensors outputs = tensors_of(results, "PyLayer: outputs");
    compute(of);
    compute(outputs);
    const auto call = [function = kept(function), of](const Tensors& cotangents,
                                                      const std::vector<bool>& needed) {
      const WithLock lock;
      const Ref given = python_list(cotangents);
      const Ref found = checked(PyObject_CallFunctionObjArgs(function.get(), given.get(), nullptr));
      const Ref items = checked(PySequence_Tuple(found.get()));
      Tensors out(of.size());
      for (size_t i = 0; i < of.size(); ++i) {
        PyObject* const item = PyTuple_GetItem(items.get(), static_cast<Py_ssize_t>(i));
        if (!item) throw PythonError();
        if (item == Py_None || !needed[i]) continue;
        out[i] = tensor_of(item);
        if (!same_type(out[i].type(), of[i].type()))
          fail(ErrorCode::kUsage, "PyLayer: the gradient of input ", i, " is ", out[i].type(),
               ", the input ", of[i].type());
      }
      return out;
    };
    return python_list(autograd::with_vjp(outputs, of, call)).release();
  });
}

PyObject* add_hook(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    PyObject *tensor = nullptr, *function = nullptr;
    if (!PyArg_ParseTuple(arguments, "OO:add_hook", &tensor, &function)) throw PythonError();
    if (!PyCallable_Check(function)) raise(PyExc_TypeError, "register_hook: expected a function");
    compute({tensor_of(tensor)});
    const int64_t number = autograd::add_hook(
        tensor_of(tensor), [function = kept(function)](const Tensor& gradient) -> Tensor {
          const WithLock lock;
          const Ref given = python_tensor(gradient);
          const Ref found =
              checked(PyObject_CallFunctionObjArgs(function.get(), given.get(), nullptr));
          if (found.get() == Py_None) return {};
          Tensor next = tensor_of(found.get());
          if (!same_type(next.type(), gradient.type()))
            fail(ErrorCode::kUsage, "register_hook: the hook gives ", next.type(),
                 ", the gradient is ", gradient.type());
          return next;
        });
    return checked(PyLong_FromLongLong(number)).release();
  });
}

PyObject* remove_hook(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    PyObject* tensor = nullptr;
    long long number = 0;
    if (!PyArg_ParseTuple(arguments, "OL:remove_hook", &tensor, &number)) throw PythonError();
    autograd::remove_hook(tensor_of(tensor), number);
    return Py_NewRef(Py_None);
  });
}

std::set<const Op*> operations_of(PyObject* names) {
  std::set<const Op*> out;
  for (const std::string& name : texts_of(names)) out.insert(&get_op(name));
  return out;
}

/// The dtype, "" for full precision; whether all operations compute in it; and operations that do
/// and do not.
PyObject* set_autocast(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    const char* dtype = nullptr;
    int all = 0;
    PyObject *low = nullptr, *full = nullptr;
    if (!PyArg_ParseTuple(arguments, "spOO:set_autocast", &dtype, &all, &low, &full))
      throw PythonError();
    autograd::AutocastOptions options;
    if (*dtype) {
      const auto wanted = parse_dtype(dtype);
      if (wanted != DType::kBF16 && wanted != DType::kF16)
        fail(ErrorCode::kUsage, "auto_cast: dtype must be 'bfloat16' or 'float16', found '", dtype,
             "'");
      options = {*wanted, all != 0, operations_of(low), operations_of(full)};
    }
    precision_text =
        *dtype ? str(dtype, all, ' ', join(texts_of(low), ","), ' ', join(texts_of(full), ","))
               : "";
    mixed_precision = *dtype ? std::make_unique<MixedPrecision>(std::move(options)) : nullptr;
    return Py_NewRef(Py_None);
  });
}

/// Whether calls are recorded, and the precision of auto_cast, for guards of compiled functions.
PyObject* mode_text(PyObject* /*module*/, PyObject* /*unused*/) {
  return guarded<PyObject*>(nullptr, [&] {
    return python_text(str(autograd::is_recording() ? "recording " : "", precision_text)).release();
  });
}

PyObject* seed(PyObject* /*module*/, PyObject* value) {
  const unsigned long long number = PyLong_AsUnsignedLongLong(value);
  if (PyErr_Occurred()) return nullptr;
  random_seed = number;
  random_calls = 0;
  return Py_NewRef(Py_None);
}

PyObject* get_rng_state(PyObject* /*module*/, PyObject* /*unused*/) {
  return Py_BuildValue("(KK)", static_cast<unsigned long long>(random_seed),
                       static_cast<unsigned long long>(random_calls));
}

PyObject* set_rng_state(PyObject* /*module*/, PyObject* arguments) {
  unsigned long long number = 0, calls = 0;
  if (!PyArg_ParseTuple(arguments, "(KK):set_rng_state", &number, &calls)) return nullptr;
  random_seed = number;
  random_calls = calls;
  return Py_NewRef(Py_None);
}

PyObject* set_num_threads(PyObject* /*module*/, PyObject* value) {
  return guarded<PyObject*>(nullptr, [&] {
    const long count = PyLong_AsLong(value);
    if (PyErr_Occurred()) throw PythonError();
    if (count < 1 || count > 1024)
      fail(ErrorCode::kUsage, "set_num_threads: expected 1 to 1024, found ", count);
    set_thread_count(static_cast<int>(count));
    return Py_NewRef(Py_None);
  });
}

PyObject* get_num_threads(PyObject* /*module*/, PyObject* /*unused*/) {
  return PyLong_FromLong(thread_count());
}

PyMethodDef functions[] = {
    {"function", function, METH_O, "The function of an operation; None if there is none."},
    {"call_all", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(call_all)),
     METH_FASTCALL | METH_KEYWORDS, "All results of an operation, hidden ones too."},
    {"operations", operations, METH_NOARGS, "The families of all operations, by name."},
    {"backward", backward, METH_VARARGS, "Adds gradients to leaves."},
    {"gradients", gradients, METH_VARARGS, "Gradients of outputs by inputs."},
    {"is_recording", is_recording, METH_NOARGS, "Whether calls are recorded."},
    {"set_recording", set_recording, METH_O, "Sets whether calls are recorded."},
    {"with_vjp", with_vjp, METH_VARARGS, "Results with a gradient of their own."},
    {"add_hook", add_hook, METH_VARARGS, "Calls a function with each gradient of a tensor."},
    {"remove_hook", remove_hook, METH_VARARGS, "Removes a hook by its number."},
    {"set_autocast", set_autocast, METH_VARARGS, "Sets mixed precision on this thread."},
    {"mode", mode_text, METH_NOARGS, "What calls of operations depend on besides their operands."},
    {"seed", seed, METH_O, "Sets the seed of random operations."},
    {"get_rng_state", get_rng_state, METH_NOARGS, "Where the random operations are."},
    {"set_rng_state", set_rng_state, METH_VARARGS, "Takes what get_rng_state gave."},
    {"set_num_threads", set_num_threads, METH_O, "Sets the number of threads."},
    {"get_num_threads", get_num_threads, METH_NOARGS, "The number of threads."},
    {nullptr, nullptr, 0, nullptr}};

/// Python pickles a function as an attribute of the object that it is bound to.
PyObject* get_bound_attribute(PyObject* object, PyObject* name) {
  PyObject* const found = PyObject_GenericGetAttr(object, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    const auto& bound = *reinterpret_cast<BoundOperation*>(object);
    if (text_of(name) != bound.op->name()) return nullptr;
    PyErr_Clear();
    return operation_function(*bound.op, bound.self).release();
  });
}

PyObject* reduce_bound(PyObject* object, PyObject* /*unused*/) {
  return guarded<PyObject*>(nullptr, [&] {
    const auto& bound = *reinterpret_cast<BoundOperation*>(object);
    const Ref module = checked(PyImport_ImportModule("paddle_toolchain._pickle"));
    return checked(PyObject_CallMethod(module.get(), "reduce_operation", "sO",
                                       std::string(bound.op->name()).c_str(),
                                       bound.self ? bound.self : Py_None))
        .release();
  });
}

PyMethodDef bound_methods[] = {{"__reduce__", reduce_bound, METH_NOARGS, "For pickle and copy."},
                               {nullptr, nullptr, 0, nullptr}};
PyType_Slot bound_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(destroy_bound)},
                             {Py_tp_getattro, reinterpret_cast<void*>(get_bound_attribute)},
                             {Py_tp_methods, bound_methods},
                             {0, nullptr}};
PyType_Spec bound_spec = {"paddle_toolchain._paddle.BoundOperation", sizeof(BoundOperation), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, bound_slots};

}  // namespace

Ref operation_function(const Op& op, PyObject* self) {
  Ref bound = checked(reinterpret_cast<PyObject*>(PyObject_New(BoundOperation, bound_type)));
  auto& content = *reinterpret_cast<BoundOperation*>(bound.get());
  content.op = &op;
  content.self = Py_XNewRef(self);
  return checked(PyCFunction_NewEx(&method_of(op), bound.get(), nullptr));
}

void add_calls(PyObject* module) {
  bound_type = add_type(module, bound_spec, "BoundOperation");
  add_functions(module, functions);
}

}  // namespace paddle::python
