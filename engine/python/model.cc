// Trained models, ready to predict.

#include "paddle/model.h"

#include "api/access.h"
#include "python/core.h"

namespace paddle::python {
namespace {

using ModelObject = Holder<v0::Model>;

PyObject* construct(PyTypeObject* type, PyObject* arguments, PyObject* names) {
  return guarded<PyObject*>(nullptr, [&] {
    static const char* keys[] = {"path", "weights",   "function", "overrides",
                                 "raw",  "precision", nullptr};
    PyObject *path = nullptr, *overrides = nullptr;
    const char *weights = "", *function = "model", *precision = "float32";
    int raw = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, names, "O|ssOps:Model", const_cast<char**>(keys),
                                     &path, &weights, &function, &overrides, &raw, &precision))
      throw PythonError();
    v0::ModelOptions options;
    options.weights = weights;
    options.function = function;
    options.precision = precision;
    options.raw = raw != 0;
    if (overrides) options.overrides = texts_of(overrides);
    const std::string file = path_of(path);
    std::optional<v0::Model> model;
    require_threads();
    {
      const WithoutLock others;
      model.emplace(file, options);
    }
    return ModelObject::make(type, std::move(*model)).release();
  });
}

/// An input of a model: a contiguous array of a type that the library has.
v0::Array input_of(PyObject* object) {
  const Tensor value = is_tensor(object) ? tensor_of(object) : value_of(object, std::nullopt);
  v0::public_dtype(value.dtype(), "the input");
  return v0::Access::handle(value.array().contiguous());
}

PyObject* predict(PyObject* self, PyObject* arguments, PyObject* names) {
  return guarded<PyObject*>(nullptr, [&] {
    v0::Model& model = ModelObject::of(self);
    const std::vector<v0::TensorInfo> inputs = model.inputs();
    const Py_ssize_t count = PyTuple_Size(arguments);
    if (static_cast<size_t>(count) > inputs.size())
      raise(PyExc_TypeError,
            str("predict: ", count, " arrays are given, the model has ", inputs.size(), " inputs"));
    std::map<std::string, v0::Array> given;
    for (Py_ssize_t i = 0; i < count; ++i)
      given[inputs[static_cast<size_t>(i)].name] = input_of(PyTuple_GetItem(arguments, i));
    PyObject *name = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; names && PyDict_Next(names, &at, &name, &value);)
      if (!given.emplace(text_of(name), input_of(value)).second)
        raise(PyExc_TypeError, str("predict: '", text_of(name), "' is given twice"));
    std::map<std::string, v0::Array> results;
    require_threads();
    {
      const WithoutLock others;
      results = model.predict(given);
    }
    Ref out = checked(PyDict_New());
    for (const v0::TensorInfo& output : model.outputs()) {
      const Ref tensor = python_tensor(Tensor(v0::Access::engine(results.at(output.name))));
      checked(PyDict_SetItemString(out.get(), output.name.c_str(), tensor.get()));
    }
    return out.release();
  });
}

PyObject* clone(PyObject* self, PyObject* /*unused*/) {
  return guarded<PyObject*>(nullptr, [&] {
    return ModelObject::make(Py_TYPE(self), ModelObject::of(self).clone()).release();
  });
}

/// {"image": "float32[batch, 1, 28, 28]"}
Ref described(const std::vector<v0::TensorInfo>& tensors) {
  Ref out = checked(PyDict_New());
  for (const v0::TensorInfo& tensor : tensors) {
    const Ref text = python_text(str(v0::dtype_name(tensor.dtype), "[",
                                     tensor.ranked ? join(tensor.dims, ", ") : "...", "]"));
    checked(PyDict_SetItemString(out.get(), tensor.name.c_str(), text.get()));
  }
  return out;
}

PyObject* get_inputs(PyObject* self, void*) {
  return guarded<PyObject*>(nullptr,
                            [&] { return described(ModelObject::of(self).inputs()).release(); });
}
PyObject* get_outputs(PyObject* self, void*) {
  return guarded<PyObject*>(nullptr,
                            [&] { return described(ModelObject::of(self).outputs()).release(); });
}
PyObject* get_name(PyObject* self, void*) {
  return guarded<PyObject*>(nullptr,
                            [&] { return python_text(ModelObject::of(self).name()).release(); });
}
PyObject* get_classes(PyObject* self, void*) {
  return guarded<PyObject*>(
      nullptr, [&] { return python_texts(ModelObject::of(self).classes()).release(); });
}

PyMethodDef methods[] = {
    {"predict", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(predict)),
     METH_VARARGS | METH_KEYWORDS,
     "The outputs by name for inputs by position or by name: tensors, arrays or lists."},
    {"clone", clone, METH_NOARGS,
     "A model with the same weights in memory, for predictions on another thread."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef attributes[] = {
    {"inputs", get_inputs, nullptr, "Types and shapes of the inputs by name.", nullptr},
    {"outputs", get_outputs, nullptr, "Types and shapes of the outputs by name.", nullptr},
    {"name", get_name, nullptr, "The name of the model.", nullptr},
    {"classes", get_classes, nullptr, "Names of the classes of a classifier.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(construct)},
    {Py_tp_dealloc, reinterpret_cast<void*>(ModelObject::destroy)},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_doc, const_cast<char*>("A trained model: a run or model folder, a checkpoint, an ONNX "
                                  "file or a model file.")},
    {0, nullptr}};
PyType_Spec spec = {"paddle_toolchain.Model", sizeof(ModelObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

}  // namespace

void add_model(PyObject* module) { add_type(module, spec, "Model"); }

}  // namespace paddle::python
