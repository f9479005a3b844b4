// Memory shared with others: Python's buffer protocol, which NumPy reads and offers, and DLPack.

#include <cstring>

#include "python/core.h"
#include "tensor/dlpack.h"
#include "tensor/shared_storage.h"

namespace paddle::python {
namespace {

/// The format characters of Python's struct module. bfloat16 has none.
struct Format {
  DType dtype;
  const char* text;
};
constexpr Format kFormats[] = {{DType::kBool, "?"}, {DType::kI8, "b"},   {DType::kI16, "h"},
                               {DType::kI32, "i"},  {DType::kI64, "q"},  {DType::kU8, "B"},
                               {DType::kU16, "H"},  {DType::kU32, "I"},  {DType::kU64, "Q"},
                               {DType::kF16, "e"},  {DType::kF32, "f"},  {DType::kF64, "d"},
                               {DType::kC64, "Zf"}, {DType::kC128, "Zd"}};

const char* format_of(DType dtype) {
  for (const Format& format : kFormats)
    if (format.dtype == dtype) return format.text;
  return nullptr;
}

/// By format and size, since C's `long` may be either of two types.
std::optional<DType> dtype_of_format(const char* text, Py_ssize_t item) {
  std::string_view format = text ? text : "B";
  if (!format.empty() && (format[0] == '@' || format[0] == '=' || format[0] == '<'))
    format.remove_prefix(1);
  if (format == "l" || format == "n") format = item == 8 ? "q" : "i";
  if (format == "L" || format == "N") format = item == 8 ? "Q" : "I";
  for (const Format& known : kFormats)
    if (format == known.text && item == item_size(known.dtype)) return known.dtype;
  return std::nullopt;
}

/// The owner of an exported buffer.
struct Exported {
  Array array;
  std::vector<Py_ssize_t> shape, strides;
};

}  // namespace

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  return guarded<int>(-1, [&] {
    const Array array = tensor_of(self).array();
    const char* const format = format_of(array.dtype);
    if (!format)
      raise(PyExc_BufferError, str("buffers have no elements of type ", text(array.dtype),
                                   "; use astype('float32') or DLPack"));
    if (!array.device().is_cpu()) raise(PyExc_BufferError, "the tensor is not on the CPU");
    const bool writable = is_shared_writable(array);
    if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE && !writable)
      raise(PyExc_BufferError,
            "a view of a tensor is read-only; copy it to write, or use numpy(writable=True)");
    const bool contiguous = array.is_contiguous();
    if (!contiguous && (flags & PyBUF_STRIDES) != PyBUF_STRIDES)
      raise(PyExc_BufferError, "the tensor is not contiguous");
    auto exported = std::make_unique<Exported>();
    exported->array = array;
    const int64_t item = item_size(array.dtype);
    for (size_t i = 0; i < array.shape.size(); ++i) {
      exported->shape.push_back(array.shape[i]);
      exported->strides.push_back(array.strides[i] * item);
    }
    view->buf = array.raw();
    view->len = array.size() * item;
    view->itemsize = item;
    view->readonly = writable ? 0 : 1;
    view->ndim = static_cast<int>(array.shape.size());
    view->format = (flags & PyBUF_FORMAT) ? const_cast<char*>(format) : nullptr;
    view->shape = (flags & PyBUF_ND) ? exported->shape.data() : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? exported->strides.data() : nullptr;
    view->suboffsets = nullptr;
    view->internal = exported.release();
    view->obj = Py_NewRef(self);
    return 0;
  });
}

void release_buffer(PyObject* /*self*/, Py_buffer* view) {
  delete static_cast<Exported*>(view->internal);
  view->internal = nullptr;
}

std::optional<Array> array_of_buffer(PyObject* object, Memory memory) {
  if (!PyObject_CheckBuffer(object)) return std::nullopt;
  auto view = std::make_unique<Py_buffer>();
  const bool writable = memory == Memory::kSharedWritable;
  checked(PyObject_GetBuffer(object, view.get(), writable ? PyBUF_RECORDS : PyBUF_RECORDS_RO));
  // The buffer is released with the last array that uses it, maybe on a thread without the lock.
  const std::shared_ptr<Py_buffer> owner(view.release(), [](Py_buffer* held) {
    if (Py_IsInitialized()) {
      const WithLock lock;
      PyBuffer_Release(held);
    }
    delete held;
  });
  const auto dtype = dtype_of_format(owner->format, owner->itemsize);
  if (!dtype)
    raise(PyExc_TypeError,
          str("no dtype has elements of the format '", owner->format ? owner->format : "B", "'"));
  const int64_t item = owner->itemsize;
  Dims shape, strides;
  bool shareable = reinterpret_cast<uintptr_t>(owner->buf) % static_cast<uintptr_t>(item) == 0;
  for (int i = 0; i < owner->ndim; ++i) {
    shape.push_back(owner->shape[i]);
    strides.push_back(owner->strides[i] / item);
    shareable = shareable && owner->strides[i] % item == 0;
  }
  if (!shareable && writable)
    raise(PyExc_BufferError,
          "memory that is not aligned to its elements cannot be written through");
  if (!shareable) {  // PyBuffer_ToContiguous copies what is not aligned
    Array out = Array::empty(*dtype, shape);
    checked(PyBuffer_ToContiguous(out.raw(), owner.get(), owner->len, 'C'));
    return out;
  }
  Array out = dlpack::borrowed(*dtype, owner->buf, std::move(shape), std::move(strides), owner);
  if (memory == Memory::kCopied) return dlpack::own_copy(out);
  writable ? share_writable(out.storage) : share(out.storage);
  return out;
}

// --- DLPack ---

namespace {

constexpr const char *kOldName = "dltensor", *kOldUsed = "used_dltensor";
constexpr const char *kNewName = "dltensor_versioned", *kNewUsed = "used_dltensor_versioned";

template <class Managed>
constexpr const char* kName = std::is_same_v<Managed, dlpack::Versioned> ? kNewName : kOldName;

template <class Managed>
void destroy_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kName<Managed>)) return;  // taken
  auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, kName<Managed>));
  if (managed && managed->deleter) managed->deleter(managed);
}

template <class Managed>
Ref capsule_of(Array array, uint64_t flags) {
  Managed* const managed = dlpack::managed<Managed>(std::move(array), flags);
  PyObject* const out = PyCapsule_New(managed, kName<Managed>, destroy_capsule<Managed>);
  if (!out) managed->deleter(managed);
  return checked(out);
}

/// The tensor of a capsule whose name says that it is used now.
template <class Managed>
Ref tensor_of_managed(Managed* managed) {
  const std::shared_ptr<void> owner(managed, [](void* held) {
    auto* const it = static_cast<Managed*>(held);
    if (it->deleter) it->deleter(it);
  });
  try {
    Array array = dlpack::array_of(managed->tensor, owner);
    share(array.storage);
    return python_tensor(Tensor(std::move(array)));
  } catch (const Error& error) {
    raise(PyExc_BufferError, error.message());
  }
}

}  // namespace

PyObject* to_dlpack(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded<PyObject*>(nullptr, [&] {
    static const char* keys[] = {"stream", "max_version", "dl_device", "copy", nullptr};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOOO:__dlpack__", const_cast<char**>(keys),
                                     &stream, &version, &device, &copy))
      throw PythonError();
    const Tensor& value = tensor_of(self);
    if (value.requires_grad())
      raise(PyExc_BufferError, "__dlpack__: the tensor is recorded; use detach() first");
    if (device != Py_None) {
      int type = 0, id = 0;
      if (!PyArg_ParseTuple(device, "ii", &type, &id)) throw PythonError();
      if (type != dlpack::kCpu || id != 0)
        raise(PyExc_BufferError, "__dlpack__: the tensor is on the CPU");
    }
    if (!dlpack::type_of(value.dtype()))
      raise(PyExc_BufferError, str("__dlpack__: DLPack has no type ", text(value.dtype())));
    const int copied = copy == Py_None ? 0 : PyObject_IsTrue(copy);
    checked(copied);
    Array array = value.array();
    if (copied) array = dlpack::own_copy(array);
    long major = 0;
    if (version != Py_None) {
      const Ref number = checked(PySequence_GetItem(version, 0));
      major = PyLong_AsLong(number.get());
      if (PyErr_Occurred()) throw PythonError();
    }
    const uint64_t read_only = is_shared_writable(array) ? 0 : dlpack::kReadOnly;
    if (major >= 1)
      return capsule_of<dlpack::Versioned>(std::move(array), copied ? dlpack::kCopied : read_only)
          .release();
    return capsule_of<dlpack::Managed>(std::move(array), 0).release();
  });
}

PyObject* dlpack_device(PyObject* /*self*/, PyObject* /*unused*/) {
  return Py_BuildValue("ii", dlpack::kCpu, 0);
}

PyObject* from_dlpack(PyObject* /*module*/, PyObject* capsule) {
  return guarded<PyObject*>(nullptr, [&] {
    const bool versioned = PyCapsule_IsValid(capsule, kNewName);
    if (!versioned && !PyCapsule_IsValid(capsule, kOldName))
      raise(PyExc_BufferError, "from_dlpack: expected a DLPack capsule that was not used before");
    if (versioned) {
      auto* const managed =
          static_cast<dlpack::Versioned*>(PyCapsule_GetPointer(capsule, kNewName));
      if (managed->major != 1)
        raise(PyExc_BufferError, str("from_dlpack: DLPack ", managed->major, " is not 1"));
      checked(PyCapsule_SetName(capsule, kNewUsed));
      return tensor_of_managed(managed).release();
    }
    auto* const managed = static_cast<dlpack::Managed*>(PyCapsule_GetPointer(capsule, kOldName));
    checked(PyCapsule_SetName(capsule, kOldUsed));
    return tensor_of_managed(managed).release();
  });
}

}  // namespace paddle::python
