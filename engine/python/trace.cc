#include "python/trace.h"

#include <filesystem>
#include <limits>

#include "autograd/autograd.h"
#include "base/files.h"
#include "lang/eval/shape_interpreter.h"
#include "program/checkpoint.h"
#include "program/prediction.h"
#include "runtime/compile.h"

namespace paddle::python {
namespace {

thread_local Trace* innermost = nullptr;

}  // namespace

Trace::Trace(std::string function, std::map<PyObject*, std::string> names)
    : function_(std::make_shared<ir::Function>(std::move(function), TargetInfo{})),
      tracer_(*function_),
      names_(std::move(names)),
      previous_(innermost) {
  innermost = this;
}

Trace::~Trace() { innermost = previous_; }

Tensor* Trace::parameter(PyObject* object) {
  const auto name = names_.find(object);
  if (name == names_.end()) return nullptr;
  const auto [it, added] = parameters_.try_emplace(object);
  if (added) {
    const Array& value = reinterpret_cast<TensorObject*>(object)->value.array();
    it->second = tracer_.input({ir::PortKind::kParameter, name->second},
                               {value.dtype, to_shape(value.shape)});
    used_.emplace(name->second, object);
  }
  return &it->second;
}

bool Trace::is_outside(const Tensor& tensor) const {
  const ir::Value* const value = ir::traced_value(tensor);
  return !firsts_.empty() && value && value->id < firsts_.back();
}

Trace* current_trace() { return innermost; }

std::string python_location() {
  Ref frame = Ref::to(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame && frame.get() != Py_None) {
    const Ref code = checked(PyObject_GetAttrString(frame.get(), "f_code"));
    const Ref file = checked(PyObject_GetAttrString(code.get(), "co_filename"));
    const std::string name = text_of(file.get());
    if (name.find("/paddle_toolchain/") == std::string::npos) {
      const Ref line = checked(PyObject_GetAttrString(frame.get(), "f_lineno"));
      const Ref text = checked(PyObject_Str(line.get()));
      return str(std::filesystem::path(name).filename().string(), ":", text_of(text.get()));
    }
    frame = checked(PyObject_GetAttrString(frame.get(), "f_back"));
  }
  return "";
}

// --- sizes ---

namespace {

struct DimObject {
  PyObject ob_base;
  Dim dim;
};
PyTypeObject* dim_type = nullptr;

void destroy_dim(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  reinterpret_cast<DimObject*>(object)->dim.~Dim();
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

/// A size or an int; nullopt for other objects.
std::optional<Dim> size_of(PyObject* object) {
  if (is_dim(object)) return dim_of(object);
  if (!PyLong_Check(object) || PyBool_Check(object)) return std::nullopt;
  return attr_of(object).as_dim();
}

template <class Compute>
PyObject* computed(PyObject* a, PyObject* b, Compute&& compute) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    const auto left = size_of(a), right = size_of(b);
    if (!left || !right) return Py_NewRef(Py_NotImplemented);
    return python_dim(compute(*left, *right)).release();
  });
}
PyObject* add(PyObject* a, PyObject* b) {
  return computed(a, b, [](const Dim& x, const Dim& y) { return x + y; });
}
PyObject* subtract(PyObject* a, PyObject* b) {
  return computed(a, b, [](const Dim& x, const Dim& y) { return x - y; });
}
PyObject* multiply(PyObject* a, PyObject* b) {
  return computed(a, b, [](const Dim& x, const Dim& y) { return x * y; });
}
PyObject* divide(PyObject* a, PyObject* b) {
  return computed(a, b, [](const Dim& x, const Dim& y) { return floor_divide(x, y); });
}
PyObject* remainder(PyObject* a, PyObject* b) {
  return computed(a, b, [](const Dim& x, const Dim& y) { return modulo(x, y); });
}

PyObject* negate(PyObject* object) {
  return guarded<PyObject*>(nullptr, [&] { return python_dim(Dim(0) - dim_of(object)).release(); });
}

[[noreturn]] void reject_unknown(const Dim& dim) {
  fail(ErrorCode::kUsage, "the size ", dim.text(), " is not known while a function is recorded");
}

PyObject* compare_dims(PyObject* a, PyObject* b, int how) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    const auto left = size_of(a), right = size_of(b);
    if (!left || !right) return Py_NewRef(Py_NotImplemented);
    std::optional<bool> answer;
    if (how == Py_EQ || how == Py_NE) {
      answer = left->equals(*right);
      if (answer && how == Py_NE) answer = !*answer;
    } else {
      const bool swapped = how == Py_GT || how == Py_LE;
      answer = swapped ? right->less(*left) : left->less(*right);
      if (answer && (how == Py_GE || how == Py_LE)) answer = !*answer;
    }
    if (!answer) reject_unknown(left->is_constant() ? *right : *left);
    return PyBool_FromLong(*answer);
  });
}
Py_hash_t hash_dim(PyObject* object) {
  return static_cast<Py_hash_t>(std::hash<std::string>()(dim_of(object).text()) >> 1);
}
PyObject* represent_dim(PyObject* object) {
  return guarded<PyObject*>(nullptr, [&] { return python_text(dim_of(object).text()).release(); });
}
PyObject* reject_number(PyObject* object) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* { reject_unknown(dim_of(object)); });
}
int reject_truth(PyObject* object) {
  return guarded<int>(-1, [&]() -> int { reject_unknown(dim_of(object)); });
}

template <class F>
void* slot(F* function) {
  return reinterpret_cast<void*>(function);
}
PyType_Slot dim_slots[] = {
    {Py_tp_dealloc, slot(destroy_dim)},
    {Py_tp_repr, slot(represent_dim)},
    {Py_tp_hash, slot(hash_dim)},
    {Py_tp_richcompare, slot(compare_dims)},
    {Py_nb_add, slot(add)},
    {Py_nb_subtract, slot(subtract)},
    {Py_nb_multiply, slot(multiply)},
    {Py_nb_floor_divide, slot(divide)},
    {Py_nb_remainder, slot(remainder)},
    {Py_nb_negative, slot(negate)},
    {Py_nb_int, slot(reject_number)},
    {Py_nb_float, slot(reject_number)},
    {Py_nb_index, slot(reject_number)},
    {Py_nb_bool, slot(reject_truth)},
    {Py_tp_doc, const_cast<char*>("A size that is not known while a function is recorded.")},
    {0, nullptr}};
PyType_Spec dim_spec = {"paddle_toolchain.Dim", sizeof(DimObject), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, dim_slots};

}  // namespace

bool is_dim(PyObject* object) { return Py_TYPE(object) == dim_type; }
const Dim& dim_of(PyObject* object) { return reinterpret_cast<DimObject*>(object)->dim; }

Ref python_dim(const Dim& dim) {
  if (const auto size = dim.constant()) return checked(PyLong_FromLongLong(*size));
  Ref out = checked(PyType_GenericAlloc(dim_type, 0));
  new (&reinterpret_cast<DimObject*>(out.get())->dim) Dim(dim);
  return out;
}

// --- recording ---

namespace {

/// "float32[batch, 1, 28, 28]"
TensorType type_of(const std::string& name, const std::string& text) {
  const size_t open = text.find('[');
  const auto dtype = parse_dtype(trim(text.substr(0, open)));
  if (!dtype || open == std::string::npos || !text.ends_with(']'))
    fail(ErrorCode::kUsage, "jit.save: the input '", name, "' is '", text,
         "', expected a type such as 'float32[batch, 3]'");
  TensorType out{*dtype, {}};
  const std::string sizes = text.substr(open + 1, text.size() - open - 2);
  if (trim(sizes).empty()) return out;
  for (const std::string& size : split(sizes, ','))
    out.shape.push_back(Dim::parse(trim(std::string_view(size))));
  return out;
}

/// Records `function`, which takes a list of tensors and gives (name, tensor) for each output.
/// `inputs`: their types by name; `named`: tensors that become parameters, by name.
PyObject* save_function(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    PyObject *function = nullptr, *inputs = nullptr, *named = nullptr;
    const char *folder = nullptr, *name = nullptr;
    if (!PyArg_ParseTuple(arguments, "OssO!O!:save_function", &function, &folder, &name,
                          &PyDict_Type, &inputs, &PyDict_Type, &named))
      throw PythonError();
    std::map<PyObject*, std::string> names;
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(named, &at, &key, &value);) {
      static_cast<void>(tensor_of(value));  // TypeError for other objects
      names.emplace(value, text_of(key));
    }
    program::ParameterStore store;
    std::shared_ptr<ir::Function> traced;
    {
      Trace trace(std::string(program::kPrediction), std::move(names));
      const InterpreterScope scope(trace.tracer());
      const autograd::NoGradScope no_grad;
      Tensors given;
      for (Py_ssize_t at = 0; PyDict_Next(inputs, &at, &key, &value);) {
        const std::string input = text_of(key);
        given.push_back(
            trace.tracer().input({ir::PortKind::kValue, input}, type_of(input, text_of(value))));
      }
      const RandomScope random(
          trace.tracer().input({ir::PortKind::kRandom, "seed_and_step"}, {DType::kU64, {Dim(2)}}));
      const Ref list = python_list(given);
      const Ref outputs = checked(PyObject_CallFunctionObjArgs(function, list.get(), nullptr));
      const Ref items = checked(PySequence_Tuple(outputs.get()));
      for (Py_ssize_t i = 0; i < PyTuple_Size(items.get()); ++i) {
        PyObject* const item = PyTuple_GetItem(items.get(), i);
        trace.tracer().output({ir::PortKind::kValue, text_of(PyTuple_GetItem(item, 0))},
                              operand_value(PyTuple_GetItem(item, 1)));
      }
      for (const auto& [path, object] : trace.used())
        store.parameters[path].value = tensor_of(object).array().contiguous();
      traced = trace.function();
    }
    const WithoutLock others;
    ir::verify(*traced);
    runtime::optimize_for_saving(*traced);
    ensure_directory(folder);
    const std::filesystem::path to(folder);
    program::write_weights((to / "model.safetensors").string(), store);
    write_file_atomically((to / "module.txt").string(),
                          ir::print(program::prediction_module(traced, name, store)));
    return Py_NewRef(Py_None);
  });
}

PyObject* is_in_branch(PyObject* /*module*/, PyObject* /*unused*/) {
  return PyBool_FromLong(current_trace() && current_trace()->is_inside());
}

// --- control flow ---

/// A branch or a loop of the trace, if there is one.
class Inside {
 public:
  explicit Inside(int first_value) : trace_(current_trace()) {
    if (trace_) trace_->enter(first_value);
  }
  ~Inside() {
    if (trace_) trace_->leave();
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  Trace* trace_;
};

/// The first value of a region with these arguments.
int first_value(const Tensors& arguments) {
  Trace* const trace = current_trace();
  if (!trace) return 0;
  const ir::Value* const value = arguments.empty() ? nullptr : ir::traced_value(arguments[0]);
  return value ? value->id : trace->function()->value_count();
}

/// The function of tensors that a Python function of a list is; it gives a list.
TensorFn tensor_function(PyObject* function) {
  return [function](const Tensors& arguments) {
    const Inside inside(first_value(arguments));
    const Ref list = python_list(arguments);
    const Ref result = checked(PyObject_CallFunctionObjArgs(function, list.get(), nullptr));
    return tensors_of(result.get(), "the result of a branch or a loop");
  };
}

/// Calls a function without recording it, for the types of what it gives.
PyObject* dry_run(PyObject* /*module*/, PyObject* function) {
  return guarded<PyObject*>(nullptr, [&] {
    ensure(current_trace() != nullptr, "dry_run: nothing is recorded");
    lang::ShapeInterpreter types;
    const InterpreterScope scope(types);
    const Inside inside(std::numeric_limits<int>::max());
    return checked(PyObject_CallNoArgs(function)).release();
  });
}

PyObject* is_known(PyObject* /*module*/, PyObject* tensor) {
  return guarded<PyObject*>(nullptr,
                            [&] { return PyBool_FromLong(tensor_of(tensor).is_concrete()); });
}

PyObject* is_traced(PyObject* /*module*/, PyObject* /*unused*/) {
  return PyBool_FromLong(current_trace() != nullptr);
}

PyObject* branch(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    PyObject *condition = nullptr, *yes = nullptr, *no = nullptr;
    if (!PyArg_ParseTuple(arguments, "OOO:branch", &condition, &yes, &no)) throw PythonError();
    const Computing scope;
    return python_list(current_interpreter().branch(operand_value(condition), tensor_function(yes),
                                                    tensor_function(no)))
        .release();
  });
}

PyObject* loop(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    PyObject *condition = nullptr, *body = nullptr, *carried = nullptr;
    if (!PyArg_ParseTuple(arguments, "OOO:loop", &condition, &body, &carried)) throw PythonError();
    const Tensors values = tensors_of(carried, "while_loop: variables");
    const Computing scope;
    return python_list(current_interpreter().loop(tensor_function(condition), tensor_function(body),
                                                  values, -1))
        .release();
  });
}

PyMethodDef functions[] = {
    {"save_function", save_function, METH_VARARGS, "Records a function and saves it as a model."},
    {"is_in_branch", is_in_branch, METH_NOARGS, "Whether a branch or a loop is recorded."},
    {"dry_run", dry_run, METH_O, "What a function gives, as types."},
    {"is_tracing", is_traced, METH_NOARGS, "Whether calls are recorded in a function."},
    {"is_known", is_known, METH_O, "Whether the value of a tensor is known."},
    {"branch", branch, METH_VARARGS, "One of two functions, by a tensor."},
    {"loop", loop, METH_VARARGS, "A function again and again while another one says so."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_traces(PyObject* module) {
  dim_type = add_type(module, dim_spec, "Dim");
  add_functions(module, functions);
}

}  // namespace paddle::python
