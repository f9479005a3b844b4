// Python's values as the engine's, and back.

#include "python/trace.h"

namespace paddle::python {

std::string text_of(PyObject* object) {
  if (!PyUnicode_Check(object)) {
    const Ref type = checked(PyObject_Str(reinterpret_cast<PyObject*>(Py_TYPE(object))));
    raise(PyExc_TypeError, str("expected a str, found ", text_of(type.get())));
  }
  Py_ssize_t size = 0;
  const char* const data = PyUnicode_AsUTF8AndSize(object, &size);
  if (!data) throw PythonError();
  return {data, static_cast<size_t>(size)};
}

std::vector<std::string> texts_of(PyObject* sequence) {
  std::vector<std::string> out;
  const Ref items = checked(PySequence_Tuple(sequence));
  for (Py_ssize_t i = 0; i < PyTuple_Size(items.get()); ++i)
    out.push_back(text_of(PyTuple_GetItem(items.get(), i)));
  return out;
}

std::string path_of(PyObject* path) {
  const Ref text = checked(PyOS_FSPath(path));
  return text_of(text.get());
}

Ref python_text(const std::string& text) {
  return checked(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

namespace {

/// A list of what `make` gives for each item.
template <class Items, class Make>
Ref python_list_of(const Items& items, Make&& make) {
  Ref out = checked(PyList_New(static_cast<Py_ssize_t>(items.size())));
  for (size_t i = 0; i < items.size(); ++i)
    checked(PyList_SetItem(out.get(), static_cast<Py_ssize_t>(i), make(items[i]).release()));
  return out;
}

}  // namespace

Ref python_texts(const std::vector<std::string>& texts) {
  return python_list_of(texts, python_text);
}

Ref python_element(const Array& array, int64_t at) {
  if (is_bool(array.dtype)) return checked(PyBool_FromLong(array.integer(at) != 0));
  if (is_complex(array.dtype)) {
    const std::complex<double> z = array.complex_number(at);
    return checked(PyComplex_FromDoubles(z.real(), z.imag()));
  }
  if (is_float(array.dtype)) return checked(PyFloat_FromDouble(array.number(at)));
  if (array.dtype == DType::kU64)
    return checked(PyLong_FromUnsignedLongLong(static_cast<uint64_t>(array.integer(at))));
  return checked(PyLong_FromLongLong(array.integer(at)));
}

Ref python_ints(const std::vector<int64_t>& numbers) {
  return python_list_of(numbers,
                        [](int64_t number) { return checked(PyLong_FromLongLong(number)); });
}

Ref python_list(const Tensors& tensors) {
  return python_list_of(tensors, [](const Tensor& each) {
    return each.defined() ? python_tensor(each) : Ref::to(Py_None);
  });
}

std::shared_ptr<PyObject> kept(PyObject* borrowed) {
  return {Py_NewRef(borrowed), [](PyObject* object) {
            if (!Py_IsInitialized()) return;
            const WithLock lock;
            Py_DECREF(object);
          }};
}

std::optional<DType> dtype_argument(PyObject* object) {
  if (!object || object == Py_None) return std::nullopt;
  const std::string name = text_of(object);
  if (const auto dtype = parse_dtype(name)) return dtype;
  const auto names = dtype_names();
  fail(ErrorCode::kUsage, "'", name, "' is not a dtype", did_you_mean(name, names));
}

namespace {

int64_t integer_of(PyObject* object) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow) raise(PyExc_OverflowError, "an integer is beyond 64 bits");
  if (value == -1 && PyErr_Occurred()) throw PythonError();
  return value;
}

[[noreturn]] void reject_type(PyObject* object) {
  const Ref type =
      checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__name__"));
  raise(PyExc_TypeError,
        str("expected a tensor, a number, a str or a list, found ", text_of(type.get())));
}

bool is_sequence(PyObject* object) { return PyList_Check(object) || PyTuple_Check(object); }

Py_ssize_t length_of(PyObject* object) {
  return PyList_Check(object) ? PyList_Size(object) : PyTuple_Size(object);
}

PyObject* item_of(PyObject* object, Py_ssize_t i) {
  return PyList_Check(object) ? PyList_GetItem(object, i) : PyTuple_GetItem(object, i);
}

/// Numbers of other packages, such as numpy.float32 and numpy.int64.
std::optional<AttrValue> number_of(PyObject* object) {
  if (PyIndex_Check(object)) {
    const Ref number = checked(PyNumber_Index(object));
    return AttrValue(integer_of(number.get()));
  }
  if (PyObject_HasAttrString(object, "__float__")) {
    const Ref number = checked(PyNumber_Float(object));
    return AttrValue(PyFloat_AsDouble(number.get()));
  }
  return std::nullopt;
}

AttrValue attr_of_scalar(const Array& array) {
  if (is_bool(array.dtype)) return array.integer() != 0;
  if (is_complex(array.dtype)) return array.complex_number();
  return is_float(array.dtype) ? AttrValue(array.number()) : AttrValue(array.integer());
}

}  // namespace

AttrValue attr_of(PyObject* object) {
  if (object == Py_None) return {};
  if (PyBool_Check(object)) return object == Py_True;
  if (PyLong_Check(object)) return integer_of(object);
  if (is_dim(object)) return dim_of(object);
  if (PyFloat_Check(object)) return PyFloat_AsDouble(object);
  if (PyUnicode_Check(object)) return text_of(object);
  if (PyComplex_Check(object))
    return std::complex<double>(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object));
  if (is_tensor(object)) {
    const Array array = tensor_of(object).array();
    if (array.size() != 1) raise(PyExc_TypeError, "expected a number, found a tensor");
    return attr_of_scalar(array);
  }
  if (is_sequence(object)) {
    AttrValue::List items;
    for (Py_ssize_t i = 0; i < length_of(object); ++i) items.push_back(attr_of(item_of(object, i)));
    return items;
  }
  if (auto number = number_of(object)) return *number;
  reject_type(object);
}

Argument argument_of(PyObject* object) {
  if (is_tensor(object)) return operand_value(object);
  if (object == Py_None || PyBool_Check(object) || PyLong_Check(object) || PyFloat_Check(object) ||
      PyUnicode_Check(object))
    return attr_of(object);
  if (is_sequence(object)) {
    const Py_ssize_t count = length_of(object);
    Py_ssize_t tensors = 0;
    for (Py_ssize_t i = 0; i < count; ++i) tensors += is_tensor(item_of(object, i)) ? 1 : 0;
    if (count == 0 || tensors != count) return attr_of(object);
    Tensors out;
    for (Py_ssize_t i = 0; i < count; ++i) out.push_back(operand_value(item_of(object, i)));
    return out;
  }
  if (auto array = array_of_buffer(object, Memory::kCopied)) {
    // Numbers of NumPy have a buffer, too.
    if (array->shape.empty()) return attr_of_scalar(*array);
    return Tensor(std::move(*array));
  }
  return attr_of(object);
}

namespace {

/// The shape of nested lists, and what kinds of numbers they have.
struct Nested {
  Dims shape;
  bool any_float = false, any_int = false, any_bool = false;
  std::vector<double> floats;
  std::vector<int64_t> ints;

  void visit(PyObject* object, size_t depth) {
    if (is_sequence(object)) {
      const int64_t count = length_of(object);
      if (depth > 32) raise(PyExc_ValueError, "to_tensor: lists are nested too deeply");
      if (depth == shape.size() && floats.empty()) shape.push_back(count);
      if (depth >= shape.size() || shape[depth] != count)
        raise(PyExc_ValueError, "to_tensor: nested lists have different lengths");
      for (Py_ssize_t i = 0; i < count; ++i) visit(item_of(object, i), depth + 1);
      return;
    }
    if (depth != shape.size()) raise(PyExc_ValueError, "to_tensor: nested lists are uneven");
    const AttrValue value = attr_of(object);
    if (value.is_bool()) {
      any_bool = true;
      ints.push_back(value.as_bool() ? 1 : 0);
      floats.push_back(value.as_bool() ? 1 : 0);
    } else if (value.is_int()) {
      any_int = true;
      ints.push_back(value.as_int());
      floats.push_back(static_cast<double>(value.as_int()));
    } else if (value.is_float()) {
      any_float = true;
      ints.push_back(0);
      floats.push_back(value.as_double());
    } else {
      reject_type(object);
    }
  }
};

}  // namespace

Tensor value_of(PyObject* object, std::optional<DType> dtype) {
  Array array;
  if (is_tensor(object) && !tensor_of(object).is_concrete()) {  // of a function that is traced
    const Tensor& given = tensor_of(object);
    Attrs attrs;
    if (!dtype || *dtype == given.dtype())
      return call_single(op_of<"assign">(), {given}, std::move(attrs));
    attrs.values = {AttrValue(*dtype)};
    return call_single(op_of<"cast">(), {given}, std::move(attrs));
  }
  if (is_tensor(object)) {
    array = tensor_of(object).array();
  } else if (auto shared =
                 is_sequence(object) ? std::nullopt : array_of_buffer(object, Memory::kShared)) {
    array = std::move(*shared);
  } else {
    Nested nested;
    nested.visit(object, 0);
    if (nested.any_float || nested.floats.empty())
      array = Array::from(nested.floats, nested.shape).cast(DType::kF32);
    else
      array = Array::from(nested.ints, nested.shape);
    if (dtype && nested.any_float) array = Array::from(nested.floats, nested.shape).cast(*dtype);
    if (nested.any_bool && !nested.any_int && !nested.any_float) array = array.cast(DType::kBool);
  }
  // A copy in any case: what was given may change.
  const Array cast = array.cast(dtype.value_or(array.dtype));
  if (cast.storage != array.storage) return Tensor(cast);
  Array own = Array::empty(cast.dtype, cast.shape);
  std::memcpy(own.raw(), cast.raw(), static_cast<size_t>(storage_bytes(own.dtype, own.size())));
  return Tensor(std::move(own));
}

}  // namespace paddle::python
