// The module `paddle_toolchain._paddle`.

#include <cstring>

#include "formats/safetensors.h"
#include "python/core.h"
#include "runtime/execute.h"

namespace paddle::python {

PyTypeObject* add_type(PyObject* module, PyType_Spec& spec, const char* name) {
  Ref type = checked(PyType_FromModuleAndSpec(module, &spec, nullptr));
  checked(PyModule_AddObjectRef(module, name, type.get()));
  return reinterpret_cast<PyTypeObject*>(type.release());  // for ever
}

void add_functions(PyObject* module, PyMethodDef* methods) {
  checked(PyModule_AddFunctions(module, methods));
}

namespace {

PyObject* to_tensor(PyObject* module, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    PyObject *data = nullptr, *dtype = nullptr;
    if (!PyArg_ParseTuple(arguments, "O|O:to_tensor", &data, &dtype)) throw PythonError();
    static_cast<void>(module);
    return python_tensor(value_of(data, dtype_argument(dtype))).release();
  });
}

/// A tensor of the bytes that `_bytes` gave.
PyObject* from_bytes(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    const char* data = nullptr;
    Py_ssize_t size = 0;
    PyObject *dtype = nullptr, *shape = nullptr;
    if (!PyArg_ParseTuple(arguments, "y#OO:from_bytes", &data, &size, &dtype, &shape))
      throw PythonError();
    const AttrValue sizes = attr_of(shape);
    const Dims dims = sizes.as_ints();
    int64_t count = 1;
    for (const int64_t dim : dims) {
      if (dim < 0 || (dim > 0 && count > (int64_t{1} << 48) / dim))
        fail(ErrorCode::kData, "a tensor of the shape ", dims, " cannot be read");
      count *= dim;
    }
    const auto wanted = dtype_argument(dtype);
    if (!wanted || *wanted == DType::kString || storage_bytes(*wanted, count) != size)
      fail(ErrorCode::kData, size, " bytes are not a tensor of the shape ", dims);
    Array out = Array::empty(*wanted, dims);
    std::memcpy(out.raw(), data, static_cast<size_t>(size));
    return python_tensor(Tensor(std::move(out))).release();
  });
}

PyObject* from_buffer(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    PyObject* object = nullptr;
    int writable = 0;
    if (!PyArg_ParseTuple(arguments, "Op:from_numpy", &object, &writable)) throw PythonError();
    auto array = array_of_buffer(object, writable ? Memory::kSharedWritable : Memory::kShared);
    if (!array) raise(PyExc_TypeError, "from_numpy: the object has no buffer");
    return python_tensor(Tensor(std::move(*array))).release();
  });
}

PyObject* save(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    const char* path = nullptr;
    PyObject *names = nullptr, *values = nullptr;
    if (!PyArg_ParseTuple(arguments, "sOO:save", &path, &names, &values)) throw PythonError();
    const Ref items = checked(PySequence_Tuple(names));
    const Tensors tensors = tensors_of(values, "save");
    if (static_cast<size_t>(PyTuple_Size(items.get())) != tensors.size())
      raise(PyExc_ValueError, "save: a name for each tensor is expected");
    std::map<std::string, Array> arrays;
    for (size_t i = 0; i < tensors.size(); ++i)
      arrays[text_of(PyTuple_GetItem(items.get(), static_cast<Py_ssize_t>(i)))] =
          tensors[i].array().contiguous();
    const WithoutLock others;
    std::vector<formats::SafetensorsEntry> entries;
    for (const auto& [name, array] : arrays) entries.push_back({name, array.dtype, array.shape});
    formats::SafetensorsWriter writer(path, std::move(entries));
    for (const formats::SafetensorsEntry& entry : writer.entries())
      writer.add(arrays.at(entry.name));
    writer.close();
    return Py_NewRef(Py_None);
  });
}

PyObject* load(PyObject* /*module*/, PyObject* path) {
  return guarded<PyObject*>(nullptr, [&] {
    const formats::SafetensorsReader reader(text_of(path));
    Ref out = checked(PyDict_New());
    for (const formats::SafetensorsEntry& entry : reader.entries()) {
      const Ref value = python_tensor(Tensor(reader.read(entry)));
      checked(PyDict_SetItemString(out.get(), entry.name.c_str(), value.get()));
    }
    return out.release();
  });
}

PyMethodDef functions[] = {
    {"to_tensor", to_tensor, METH_VARARGS, "A tensor with a copy of the data."},
    {"from_bytes", from_bytes, METH_VARARGS, "A tensor of bytes, a dtype and a shape."},
    {"from_buffer", from_buffer, METH_VARARGS, "A tensor that shares a buffer's memory."},
    {"from_dlpack", from_dlpack, METH_O, "A tensor of a DLPack capsule."},
    {"save", save, METH_VARARGS, "Writes named tensors as safetensors."},
    {"load", load, METH_O, "The tensors of a safetensors file."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "paddle_toolchain._paddle",
                          "The engine's tensors, operations and jobs.",
                          -1,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace paddle::python

// The name that Python looks for: PyInit_ and the module's.
extern "C" __attribute__((visibility("default"))) PyObject* PyInit__paddle() {  // NOLINT
  using namespace paddle::python;
  return guarded<PyObject*>(nullptr, [] {
    Ref module = checked(PyModule_Create(&definition));
    paddle::runtime::register_backends();
    add_exceptions(module.get());
    add_tensor_type(module.get());
    add_calls(module.get());
    add_optimizer(module.get());
    add_data(module.get());
    add_trainer(module.get());
    add_evaluation(module.get());
    add_model(module.get());
    add_model_layers(module.get());
    add_language_models(module.get());
    add_plugins(module.get());
    add_readers(module.get());
    add_distributed(module.get());
    add_traces(module.get());
    add_compiled_functions(module.get());
    add_lazy(module.get());
    add_exporting(module.get());
    add_functions(module.get(), functions);
    return module.release();
  });
}
