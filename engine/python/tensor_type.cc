// The type Tensor: a value of the engine as an object of Python.

#include <cstddef>

#include "autograd/autograd.h"
#include "ops/core/operators.h"
#include "python/capture.h"
#include "python/lazy.h"

#include <structmember.h>

namespace paddle::python {
namespace {

PyTypeObject* tensor_type = nullptr;

TensorObject& object_of(PyObject* object) { return *reinterpret_cast<TensorObject*>(object); }

/// The value of a tensor object; a view is first read again if its base was written, which takes
/// operations.
Tensor& value_in(PyObject* object) {
  Tensor& value = object_of(object).value;
  if (Capture* const capture = current_capture(); capture && value.is_concrete())
    capture->take(object);
  if (value.is_view()) {
    std::optional<EagerScope> scope;
    if (!current_trace()) scope.emplace(0, 0);
    static_cast<void>(value.version());
  }
  return value;
}

/// The value if it is known; null for one that is traced or deferred.
const Array* known_array(const Tensor& value) {
  return is_deferred(value) ? nullptr : value.concrete();
}

/// The cell of a tensor from outside of a function that is traced; null for others.
Cell* outside_cell(PyObject* object) {
  Capture* const capture = current_capture();
  if (!capture) return nullptr;
  static_cast<void>(value_in(object));
  return capture->find(object);
}
Ref make_tensor(PyTypeObject* type, Tensor value) {
  // While a function is traced, a tensor with a known value is one from outside of it.
  if (Capture* const capture = current_capture(); capture && value.is_concrete()) {
    ir::Tracer& tracer = capture->trace().tracer();
    value = tracer.tensor_of(tracer.value_of(value));
  }
  Ref out = checked(PyType_GenericAlloc(type, 0));
  new (&object_of(out.get()).value) Tensor(std::move(value));
  return out;
}

// --- construction ---

PyObject* construct(PyTypeObject* type, PyObject* arguments, PyObject* names) {
  return guarded<PyObject*>(nullptr, [&] {
    static const char* keys[] = {"data", "dtype", "stop_gradient", nullptr};
    PyObject *data = nullptr, *dtype = nullptr;
    int stop_gradient = 1;
    if (!PyArg_ParseTupleAndKeywords(arguments, names, "O|Op:Tensor", const_cast<char**>(keys),
                                     &data, &dtype, &stop_gradient))
      throw PythonError();
    Tensor value = value_of(data, dtype_argument(dtype));
    if (!stop_gradient) {
      if (!is_differentiable(value.dtype()))
        fail(ErrorCode::kUsage, "stop_gradient=False needs floats, found ", value.type());
      value = autograd::variable(value);
    }
    return make_tensor(type, std::move(value)).release();
  });
}

void destroy(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  if (object_of(object).weak_references) PyObject_ClearWeakRefs(object);
  object_of(object).value.~Tensor();
  const auto release = reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free));
  release(object);
  Py_DECREF(type);
}

// --- arithmetic ---

/// The operand of an operator; undefined for objects that operators do not take.
Tensor operand_of(PyObject* object) {
  if (is_tensor(object)) return operand_value(object);
  if (PyBool_Check(object)) return Tensor::boolean(object == Py_True);
  if (PyFloat_Check(object)) return Tensor::number(PyFloat_AsDouble(object));
  if (PyLong_Check(object) || PyComplex_Check(object)) {
    const AttrValue number = attr_of(object);
    return number.is_int() ? Tensor::number(number.as_int()) : Tensor::number(number.as_complex());
  }
  if (PyList_Check(object) || PyTuple_Check(object) || PyUnicode_Check(object) || object == Py_None)
    return {};
  if (auto array = array_of_buffer(object, Memory::kCopied)) return Tensor(std::move(*array));
  return {};
}

PyObject* apply_binary(const Op& op, PyObject* a, PyObject* b) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    Tensors operands{operand_of(a), operand_of(b)};
    for (size_t i = 0; i < 2;
         ++i) {  // a size promotes as the int that it is when the function runs
      PyObject* const object = i == 0 ? a : b;
      const Tensor& other = operands[1 - i];
      if (is_dim(object) && other.defined())
        operands[i] =
            dim_value(dim_of(object), is_integer(other.dtype()) ? other.dtype() : DType::kI64);
    }
    if (!operands[0].defined() || !operands[1].defined()) return Py_NewRef(Py_NotImplemented);
    Tensors results = apply_operation(op, std::move(operands), default_attrs(op));
    return python_tensor(std::move(results[0])).release();
  });
}

PyObject* apply_unary(const Op& op, PyObject* x) {
  return guarded<PyObject*>(nullptr, [&] {
    return python_tensor(apply_operation(op, {operand_value(x)}, default_attrs(op))[0]).release();
  });
}

template <OpName name>
PyObject* binary(PyObject* a, PyObject* b) {
  return apply_binary(op_of<name>(), a, b);
}
template <OpName name>
PyObject* unary(PyObject* x) {
  return apply_unary(op_of<name>(), x);
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) return Py_NewRef(Py_NotImplemented);
  return apply_binary(op_of<"pow">(), a, b);
}

PyObject* positive(PyObject* x) { return Py_NewRef(x); }

PyObject* compare(PyObject* a, PyObject* b, int how) {
  switch (how) {
    case Py_EQ:
      return apply_binary(op_of<"equal">(), a, b);
    case Py_NE:
      return apply_binary(op_of<"not_equal">(), a, b);
    case Py_LT:
      return apply_binary(op_of<"less_than">(), a, b);
    case Py_LE:
      return apply_binary(op_of<"less_equal">(), a, b);
    case Py_GT:
      return apply_binary(op_of<"greater_than">(), a, b);
    default:
      return apply_binary(op_of<"greater_equal">(), a, b);
  }
}

Py_hash_t hash(PyObject* object) {
  return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(object) >> 4);
}

int truth(PyObject* object) {
  return guarded<int>(-1, [&] { return PyObject_IsTrue(element_of(object).get()); });
}
PyObject* as_int(PyObject* object) {
  return guarded<PyObject*>(
      nullptr, [&] { return checked(PyNumber_Long(element_of(object).get())).release(); });
}
PyObject* as_index(PyObject* object) {
  return guarded<PyObject*>(nullptr, [&] {
    if (!is_integer(value_in(object).dtype()))
      raise(PyExc_TypeError,
            str("only a tensor of integers is an index, found ", value_in(object).type()));
    return element_of(object).release();
  });
}
PyObject* as_float(PyObject* object) {
  return guarded<PyObject*>(
      nullptr, [&] { return checked(PyNumber_Float(element_of(object).get())).release(); });
}

// --- sequence ---

Py_ssize_t length(PyObject* object) {
  return guarded<Py_ssize_t>(-1, [&] {
    const Tensor& value = value_in(object);
    if (value.ndim() == 0) raise(PyExc_TypeError, "a 0-D tensor has no length");
    const auto size = value.dim(0).constant();
    if (!size)
      fail(ErrorCode::kUsage, "the size ", value.dim(0).text(),
           " is not known while a function is recorded");
    return static_cast<Py_ssize_t>(*size);
  });
}

PyObject* subscript(PyObject* object, PyObject* index) {
  return guarded<PyObject*>(nullptr, [&] {
    const Computing scope;
    return python_tensor(index_read(operand_value(object), index)).release();
  });
}

/// In-place writes: a leaf stays the leaf that it is, and may be written only where nothing is
/// recorded.
template <class Write>
void write_in_place(PyObject* object, Write&& write) {
  Tensor& value = value_in(object);
  require_writable(value);
  if (const Cell* const cell = outside_cell(object);
      cell && cell->requires_grad && autograd::is_recording())
    fail(ErrorCode::kUsage, "a tensor whose stop_gradient is False is written in place");
  if (!value.requires_grad() || !autograd::is_leaf(value)) return write(value);
  if (autograd::is_recording())
    fail(ErrorCode::kUsage,
         "a leaf whose stop_gradient is False is written in place; do it under paddle.no_grad()");
  const std::shared_ptr<Content> record = value.record();
  write(value);
  value.set_record(record);
}

int assign_subscript(PyObject* object, PyObject* index, PyObject* value) {
  return guarded<int>(-1, [&] {
    if (!value) raise(PyExc_TypeError, "elements of a tensor cannot be deleted");
    const Computing scope;
    write_in_place(object, [&](const Tensor& base) { index_write(base, index, value); });
    return 0;
  });
}

PyObject* iterate(PyObject* object) {
  return guarded<PyObject*>(nullptr, [&] {
    const Py_ssize_t count = length(object);
    if (count < 0) throw PythonError();
    Ref list = checked(PyList_New(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      const Ref at = checked(PyLong_FromSsize_t(i));
      checked(PyList_SetItem(list.get(), i, checked(subscript(object, at.get())).release()));
    }
    return checked(PyObject_GetIter(list.get())).release();
  });
}

// --- attributes ---

PyObject* get_shape(PyObject* object, void*) {
  return guarded<PyObject*>(nullptr, [&] {
    const Tensor& value = value_in(object);
    if (const Array* const array = known_array(value)) return python_ints(array->shape).release();
    Ref out = checked(PyList_New(0));
    for (const Dim& dim : value.shape()) checked(PyList_Append(out.get(), python_dim(dim).get()));
    return out.release();
  });
}
PyObject* get_dtype(PyObject* object, void*) {
  const std::string_view name = info(value_in(object).dtype()).name;
  return PyUnicode_InternFromString(std::string(name).c_str());
}
PyObject* get_ndim(PyObject* object, void*) { return PyLong_FromLongLong(value_in(object).ndim()); }
PyObject* get_size(PyObject* object, void*) {
  return guarded<PyObject*>(nullptr, [&] {
    const Tensor& value = value_in(object);
    if (const Array* const array = known_array(value)) return PyLong_FromLongLong(array->size());
    return python_dim(element_count(std::span<const Dim>(value.shape()))).release();
  });
}
PyObject* get_place(PyObject* object, void*) {
  return guarded<PyObject*>(nullptr, [&] {
    const Array* const array = known_array(value_in(object));
    return python_text((array ? array->device() : Device::cpu()).text()).release();
  });
}
PyObject* get_leaf(PyObject* object, void*) {
  const Tensor& value = value_in(object);
  return PyBool_FromLong(!value.requires_grad() || autograd::is_leaf(value));
}
PyObject* get_stop_gradient(PyObject* object, void*) {
  return guarded<PyObject*>(nullptr, [&] {
    if (const Cell* const cell = outside_cell(object)) return PyBool_FromLong(!cell->requires_grad);
    return PyBool_FromLong(!value_in(object).requires_grad());
  });
}
int set_stop_gradient(PyObject* object, PyObject* flag, void*) {
  return guarded<int>(-1, [&] {
    const int stop = flag ? PyObject_IsTrue(flag) : -1;
    if (stop < 0) raise(PyExc_TypeError, "stop_gradient must be True or False");
    if (outside_cell(object))
      fail(ErrorCode::kUsage, "stop_gradient of a tensor from outside of the function is set");
    Tensor& value = value_in(object);
    if (stop && value.requires_grad()) value = Tensor(value.type(), value.content());
    if (stop || value.requires_grad()) return 0;
    if (!is_differentiable(value.dtype()))
      fail(ErrorCode::kUsage, "stop_gradient=False needs floats, found ", value.type());
    value = autograd::variable(value);
    return 0;
  });
}
PyObject* get_grad(PyObject* object, void*) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    const Tensor& value = value_in(object);
    if (const Cell* const cell = outside_cell(object)) {
      const Tensor now =
          cell->requires_grad ? current_capture()->gradient_of(object).now : Tensor();
      return now.defined() ? python_tensor(now).release() : Py_NewRef(Py_None);
    }
    if (!value.requires_grad() || !autograd::is_leaf(value)) return Py_NewRef(Py_None);
    const Tensor gradient = autograd::leaf_gradient(value);
    return gradient.defined() ? python_tensor(gradient).release() : Py_NewRef(Py_None);
  });
}
int set_grad(PyObject* object, PyObject* gradient, void*) {
  return guarded<int>(-1, [&] {
    const Tensor& value = value_in(object);
    const bool none = !gradient || gradient == Py_None;
    const Cell* const cell = outside_cell(object);
    if (cell && !cell->requires_grad)
      fail(ErrorCode::kUsage, "the gradient of a tensor is set whose stop_gradient is True");
    if (!none && !same_type(tensor_of(gradient).type(), value.type()))
      fail(ErrorCode::kUsage, "the gradient is ", tensor_of(gradient).type(), ", the tensor ",
           value.type());
    const Tensor next = none ? Tensor() : tensor_of(gradient);
    if (cell)
      current_capture()->gradient_of(object).now = next;
    else
      autograd::set_leaf_gradient(value, next);
    return 0;
  });
}
PyObject* get_transposed(PyObject* object, void*) {
  return guarded<PyObject*>(nullptr, [&] {
    std::vector<int64_t> perm;
    for (int64_t i = value_in(object).ndim(); i-- > 0;) perm.push_back(i);
    const Op& op = op_of<"transpose">();
    Attrs attrs = default_attrs(op);
    attrs[0] = AttrValue(perm);
    return python_tensor(apply_operation(op, {operand_value(object)}, attrs)[0]).release();
  });
}

/// Methods of operations: `x.softmax(axis=-1)`, and in place `x.add_(y)`.
PyObject* write_result(PyObject* bound, PyObject* arguments, PyObject* names) {
  return guarded<PyObject*>(nullptr, [&] {
    PyObject* const object = PyTuple_GetItem(bound, 0);
    const Ref result = checked(PyObject_Call(PyTuple_GetItem(bound, 1), arguments, names));
    Tensor value = tensor_of(result.get());
    const Computing scope;
    write_in_place(object, [&](const Tensor& base) {
      if (value.dtype() != base.dtype()) {
        Attrs attrs;
        attrs.values = {AttrValue(base.dtype())};
        value = call_single(op_of<"cast">(), {value}, attrs);
      }
      base.assign(value);
    });
    return Py_NewRef(object);
  });
}
PyMethodDef write_method = {"in_place",
                            reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(write_result)),
                            METH_VARARGS | METH_KEYWORDS, "Writes the result into the tensor."};

const Op* method_operation(const std::string& name) {
  const Op* const op = find_op(name);
  return op && !op->params().empty() && op->params()[0].is_operand ? op : nullptr;
}

PyObject* get_attribute(PyObject* object, PyObject* name) {
  PyObject* const found = PyObject_GenericGetAttr(object, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    std::string text = text_of(name);
    if (text.starts_with("_")) return nullptr;
    const Op* op = method_operation(text);
    const bool in_place = !op && text.ends_with("_");
    if (text == "fill_")
      op = &op_of<"full_like">();
    else if (text == "zero_")
      op = &op_of<"zeros_like">();
    else if (in_place)
      op = method_operation(text.substr(0, text.size() - 1));
    if (!op) return nullptr;
    PyErr_Clear();
    Ref function = operation_function(*op, object);
    if (!in_place) return function.release();
    const Ref bound = checked(PyTuple_Pack(2, object, function.get()));
    return checked(PyCFunction_NewEx(&write_method, bound.get(), nullptr)).release();
  });
}

PyObject* represent(PyObject* object) {
  return guarded<PyObject*>(nullptr, [&] {
    const Tensor& value = value_in(object);
    if (!value.is_concrete()) return python_text(str("Tensor(", value.type(), ")")).release();
    const Array array = value.array().on_host();
    std::string out = str("Tensor(shape=", str(array.shape), ", dtype=", text(array.dtype),
                          ", stop_gradient=", value.requires_grad() ? "False" : "True", ",\n");
    out += "       ";
    for (const char c : text(array.contiguous())) {
      out += c;
      if (c == '\n') out += "       ";
    }
    return python_text(out + ")").release();
  });
}

PyGetSetDef attributes[] = {
    {"shape", get_shape, nullptr, "The sizes of the axes, a list of ints.", nullptr},
    {"dtype", get_dtype, nullptr, "The type of the elements, a str such as 'float32'.", nullptr},
    {"ndim", get_ndim, nullptr, "The number of axes.", nullptr},
    {"size", get_size, nullptr, "The number of elements.", nullptr},
    {"place", get_place, nullptr, "The device, 'cpu'.", nullptr},
    {"is_leaf", get_leaf, nullptr, "Whether the tensor is not the result of a recorded call.",
     nullptr},
    {"stop_gradient", get_stop_gradient, set_stop_gradient,
     "False for tensors through which gradients flow.", nullptr},
    {"grad", get_grad, set_grad, "The gradient of a leaf that `backward` has added up, or None.",
     nullptr},
    {"T", get_transposed, nullptr, "The tensor with its axes in reverse order.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

template <class F>
void* slot(F* function) {
  return reinterpret_cast<void*>(function);
}

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot slots[] = {
    {Py_tp_new, slot(construct)},
    {Py_tp_members, members},
    {Py_tp_dealloc, slot(destroy)},
    {Py_tp_repr, slot(represent)},
    {Py_tp_hash, slot(hash)},
    {Py_tp_richcompare, slot(compare)},
    {Py_tp_iter, slot(iterate)},
    {Py_tp_getattro, slot(get_attribute)},
    {Py_tp_methods, tensor_methods},
    {Py_tp_getset, attributes},
    {Py_nb_add, slot(binary<"add">)},
    {Py_nb_subtract, slot(binary<"subtract">)},
    {Py_nb_multiply, slot(binary<"multiply">)},
    {Py_nb_true_divide, slot(binary<"divide">)},
    {Py_nb_floor_divide, slot(binary<"floor_divide">)},
    {Py_nb_remainder, slot(binary<"remainder">)},
    {Py_nb_matrix_multiply, slot(binary<"matmul">)},
    {Py_nb_and, slot(binary<"bitwise_and">)},
    {Py_nb_or, slot(binary<"bitwise_or">)},
    {Py_nb_xor, slot(binary<"bitwise_xor">)},
    {Py_nb_power, slot(power)},
    {Py_nb_negative, slot(unary<"neg">)},
    {Py_nb_positive, slot(positive)},
    {Py_nb_absolute, slot(unary<"abs">)},
    {Py_nb_invert, slot(unary<"bitwise_not">)},
    {Py_nb_bool, slot(truth)},
    {Py_nb_int, slot(as_int)},
    {Py_nb_index, slot(as_index)},
    {Py_nb_float, slot(as_float)},
    {Py_mp_length, slot(length)},
    {Py_mp_subscript, slot(subscript)},
    {Py_mp_ass_subscript, slot(assign_subscript)},
    {Py_bf_getbuffer, slot(get_buffer)},
    {Py_bf_releasebuffer, slot(release_buffer)},
    {Py_tp_doc, const_cast<char*>("A value of the engine. Operators and the methods of "
                                  "operations compute at once.")},
    {0, nullptr}};
PyType_Spec spec = {"paddle_toolchain.Tensor", sizeof(TensorObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

}  // namespace

bool is_tensor(PyObject* object) { return PyObject_TypeCheck(object, tensor_type) != 0; }

Tensor& tensor_of(PyObject* object) {
  if (!is_tensor(object)) {
    const Ref name =
        checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__name__"));
    raise(PyExc_TypeError, str("expected a Tensor, found ", text_of(name.get())));
  }
  return value_in(object);
}

Tensor& operand_value(PyObject* object) {
  if (Trace* const trace = current_trace())
    if (Tensor* const parameter = trace->parameter(object)) return *parameter;
  Tensor& value = tensor_of(object);
  note_operand(value);
  return value;
}

void require_writable(const Tensor& tensor) {
  const Trace* const trace = current_trace();
  if (trace && (tensor.is_concrete() || trace->is_outside(tensor)))
    fail(ErrorCode::kUsage, "a tensor ", tensor.type(), " from outside of what is recorded is ",
         "written in place; assign a new value to its name");
}

Ref element_of(PyObject* object) {
  compute({value_in(object)});
  const Array array = value_in(object).array().on_host();
  if (array.size() != 1)
    fail(ErrorCode::kUsage, "only a tensor of one element is a number, found ",
         value_in(object).type());
  return python_element(array, 0);
}

Ref python_tensor(Tensor value) { return make_tensor(tensor_type, std::move(value)); }

Ref python_results(Tensors results) {
  const auto one = [](Tensor& t) {
    return t.defined() ? python_tensor(std::move(t)) : Ref::to(Py_None);
  };
  if (results.size() == 1) return one(results[0]);
  Ref out = checked(PyTuple_New(static_cast<Py_ssize_t>(results.size())));
  for (size_t i = 0; i < results.size(); ++i)
    checked(PyTuple_SetItem(out.get(), static_cast<Py_ssize_t>(i), one(results[i]).release()));
  return out;
}

Tensors tensors_of(PyObject* sequence, const char* what) {
  const Ref items(PySequence_Tuple(sequence));
  if (!items) {
    PyErr_Clear();
    raise(PyExc_TypeError, str(what, ": expected a list of tensors"));
  }
  Tensors out;
  for (Py_ssize_t i = 0; i < PyTuple_Size(items.get()); ++i)
    out.push_back(operand_value(PyTuple_GetItem(items.get(), i)));
  return out;
}

void add_tensor_type(PyObject* module) {
  tensor_type = add_type(module, spec, "Tensor");
  // NumPy's operators leave `array + tensor` to the tensor.
  const Ref priority = checked(PyLong_FromLong(1000));
  checked(PyObject_SetAttrString(reinterpret_cast<PyObject*>(tensor_type), "__array_priority__",
                                 priority.get()));
}

}  // namespace paddle::python
