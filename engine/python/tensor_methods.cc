// The methods of the type Tensor that do not come from operations.

#include "autograd/autograd.h"
#include "python/capture.h"
#include "python/lazy.h"
#include "tensor/dlpack.h"
#include "tensor/shared_storage.h"

namespace paddle::python {
namespace {

PyObject* item(PyObject* object, PyObject* /*unused*/) {
  return guarded<PyObject*>(nullptr, [&] { return element_of(object).release(); });
}

Ref nested_list(const Array& array, size_t axis, int64_t& flat) {
  if (axis == array.shape.size()) return python_element(array, flat++);
  const auto count = static_cast<Py_ssize_t>(array.shape[axis]);
  Ref out = checked(PyList_New(count));
  for (Py_ssize_t i = 0; i < count; ++i)
    checked(PyList_SetItem(out.get(), i, nested_list(array, axis + 1, flat).release()));
  return out;
}

PyObject* tolist(PyObject* object, PyObject* /*unused*/) {
  return guarded<PyObject*>(nullptr, [&] {
    int64_t flat = 0;
    compute({tensor_of(object)});
    return nested_list(tensor_of(object).array().on_host(), 0, flat).release();
  });
}

/// Lets others write the memory of a tensor. Values that share it without the tensor's knowledge,
/// such as the operand of an operation that did nothing, keep theirs: the tensor moves to memory of
/// its own then.
void make_writable(PyObject* object) {
  Tensor& value = tensor_of(object);
  require_writable(value);
  compute({value});
  if (is_shared_writable(value.array())) return;
  const bool is_leaf = value.requires_grad() && autograd::is_leaf(value);
  if (value.requires_grad() && !is_leaf)
    fail(ErrorCode::kUsage, "numpy: writable: the tensor is recorded; use detach() first");
  if (!value.array().device().is_cpu()) raise(PyExc_BufferError, "the tensor is not on the CPU");
  if (value.content().use_count() > 1 || value.array().storage.use_count() > 1) {
    const Tensor own(dlpack::own_copy(value.array()));
    if (is_leaf)
      autograd::set_leaf_value(value, own);
    else
      value.assign(own);
  }
  share_writable(value.array().storage);
}

/// NumPy makes its array of the buffer, so it is imported only here.
PyObject* numpy(PyObject* object, PyObject* arguments, PyObject* names) {
  return guarded<PyObject*>(nullptr, [&] {
    static const char* keys[] = {"copy", "writable", nullptr};
    int copy = 0, writable = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, names, "|pp:numpy", const_cast<char**>(keys), &copy,
                                     &writable))
      throw PythonError();
    const Ref module = checked(PyImport_ImportModule("numpy"));
    if (copy) return checked(PyObject_CallMethod(module.get(), "array", "O", object)).release();
    if (writable) make_writable(object);
    Ref out = checked(PyObject_CallMethod(module.get(), "asarray", "O", object));
    if (!writable && is_shared_writable(tensor_of(object).content().get()))
      checked(PyObject_CallMethod(out.get(), "setflags", "O", Py_False));
    return out.release();
  });
}

PyObject* backward(PyObject* object, PyObject* arguments, PyObject* names) {
  return guarded<PyObject*>(nullptr, [&] {
    static const char* keys[] = {"grad_tensor", "retain_graph", nullptr};
    PyObject* seed = nullptr;
    int retain = 0;  // the record lives as long as the tensors
    if (!PyArg_ParseTupleAndKeywords(arguments, names, "|Op:backward", const_cast<char**>(keys),
                                     &seed, &retain))
      throw PythonError();
    Tensors cotangents;
    if (seed && seed != Py_None) cotangents.push_back(tensor_of(seed));
    backward_from({tensor_of(object)}, cotangents);
    return Py_NewRef(Py_None);
  });
}

PyObject* clear_grad(PyObject* object, PyObject* /*unused*/) {
  return guarded<PyObject*>(nullptr, [&] {
    const Tensor& value = tensor_of(object);
    if (Capture* const capture = current_capture()) {
      const Cell* const cell = capture->find(object);
      if (cell && cell->requires_grad) capture->gradient_of(object).now = {};
    } else if (value.requires_grad()) {
      autograd::set_leaf_gradient(value, {});
    }
    return Py_NewRef(Py_None);
  });
}

/// An object with `remove`, as autograd.py makes it.
PyObject* register_hook(PyObject* object, PyObject* function) {
  return guarded<PyObject*>(nullptr, [&] {
    const Ref module = checked(PyImport_ImportModule("paddle_toolchain.autograd"));
    return checked(PyObject_CallMethod(module.get(), "_hooked", "OO", object, function)).release();
  });
}

PyObject* detach(PyObject* object, PyObject* /*unused*/) {
  return guarded<PyObject*>(nullptr, [&] {
    const Tensor& value = tensor_of(object);
    if (current_capture())
      return python_tensor(call_single(op_of<"detach">(), {value}, {})).release();
    return python_tensor(Tensor(value.type(), value.content())).release();
  });
}

PyObject* astype(PyObject* object, PyObject* dtype) {
  return guarded<PyObject*>(nullptr, [&] {
    const auto wanted = dtype_argument(dtype);
    if (!wanted) raise(PyExc_TypeError, "astype: a dtype is missing");
    Attrs attrs;
    attrs.values = {AttrValue(*wanted)};
    return python_tensor(apply_operation(op_of<"cast">(), {operand_value(object)}, attrs)[0])
        .release();
  });
}

/// For pickle and copy: what makes the tensor again, and its arguments.
PyObject* reduce(PyObject* object, PyObject* protocol) {
  return guarded<PyObject*>(nullptr, [&] {
    static_cast<void>(protocol);
    const Ref module = checked(PyImport_ImportModule("paddle_toolchain._pickle"));
    return checked(PyObject_CallMethod(module.get(), "reduce_tensor", "O", object)).release();
  });
}

/// The elements as bytes, in row-major order.
PyObject* bytes_of(PyObject* object, PyObject* /*unused*/) {
  return guarded<PyObject*>(nullptr, [&] {
    const Array array = tensor_of(object).array().on_host().contiguous();
    return checked(PyBytes_FromStringAndSize(
                       static_cast<const char*>(array.raw()),
                       static_cast<Py_ssize_t>(storage_bytes(array.dtype, array.size()))))
        .release();
  });
}

/// Puts another tensor in its place: of another type, or on the way to one.
PyObject* replace(PyObject* object, PyObject* other) {
  return guarded<PyObject*>(nullptr, [&] {
    Tensor& value = tensor_of(object);
    require_writable(value);
    const Tensor& next = tensor_of(other);
    const bool is_variable = value.requires_grad() && is_differentiable(next.dtype());
    value = is_variable ? autograd::variable(Tensor(next.type(), next.content()))
                        : Tensor(next.type(), next.content());
    return Py_NewRef(Py_None);
  });
}

PyObject* apply(PyObject* object, PyObject* function) {
  return PyObject_CallFunctionObjArgs(function, object, nullptr);
}

PyObject* set_value(PyObject* object, PyObject* given) {
  return guarded<PyObject*>(nullptr, [&] {
    Tensor& value = tensor_of(object);
    require_writable(value);
    const Tensor next = value_of(given, value.dtype());
    if (value.requires_grad())
      autograd::set_leaf_value(value, next);
    else
      value.assign(next);
    return Py_NewRef(Py_None);
  });
}

PyCFunction with_keywords(PyCFunctionWithKeywords function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

}  // namespace

PyMethodDef tensor_methods[] = {
    {"item", item, METH_NOARGS, "The only element as a number."},
    {"tolist", tolist, METH_NOARGS, "The elements as nested lists."},
    {"numpy", with_keywords(numpy), METH_VARARGS | METH_KEYWORDS,
     "A read-only view as a NumPy array; with copy=True an array of its own."},
    {"backward", with_keywords(backward), METH_VARARGS | METH_KEYWORDS,
     "Adds to `grad` of each leaf its gradient of the sum of this tensor."},
    {"clear_grad", clear_grad, METH_NOARGS, "Removes the gradient."},
    {"clear_gradient", clear_grad, METH_NOARGS, "Removes the gradient."},
    {"register_hook", register_hook, METH_O,
     "Calls a function with each gradient of the tensor; what it returns replaces the gradient."},
    {"detach", detach, METH_NOARGS, "The same value without a record."},
    {"astype", astype, METH_O, "The value in another dtype."},
    {"apply", apply, METH_O, "What a function gives for the tensor."},
    {"__reduce_ex__", reduce, METH_O, "For pickle and copy."},
    {"_bytes", bytes_of, METH_NOARGS, "The elements as bytes."},
    {"_replace", replace, METH_O, "Takes the value of another tensor, of any type."},
    {"set_value", set_value, METH_O, "Replaces the value by one of the same shape."},
    {"__dlpack__", with_keywords(to_dlpack), METH_VARARGS | METH_KEYWORDS,
     "The value as a DLPack capsule that shares the memory."},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, "The device as DLPack names it."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace paddle::python
