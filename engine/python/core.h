#pragma once
// Helpers of all files of the extension: owned references, the translation of errors, and values in
// both directions. Only the limited API of Python 3.11 is used, so that one file serves all later
// versions. Not for use outside the room.

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <cxxabi.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "api/eager_scope.h"
#include "base/error.h"
#include "ir/tracer.h"
#include "ops/core/call.h"
#include "tensor/tensor.h"

namespace paddle::python {

/// An owned reference; null is possible.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : object_(owned) {}
  static Ref to(PyObject* borrowed) {
    Py_XINCREF(borrowed);
    return Ref(borrowed);
  }
  ~Ref() { Py_XDECREF(object_); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  Ref(const Ref&) = delete;
  Ref& operator=(const Ref&) = delete;
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

/// Thrown after a function of Python's interface failed, whose exception is set.
struct PythonError {};

/// The reference; PythonError for null.
inline Ref checked(PyObject* owned) {
  if (!owned) throw PythonError();
  return Ref(owned);
}
inline void checked(int status) {
  if (status < 0) throw PythonError();
}
/// Sets an exception of the type and throws PythonError.
[[noreturn]] void raise(PyObject* type, const std::string& message);

/// Python ends other threads than the main one at the end of the process, by an exception in
/// functions that take its lock. Keeps such a thread until the process is gone, since destructors
/// must not touch Python's objects any more.
[[noreturn]] void wait_for_end();

/// Sets the Python exception for the one that is being handled.
void set_exception();
/// The exception classes, added to the module.
void add_exceptions(PyObject* module);

/// Calls `body`; exceptions become Python's, with `failed` as the value.
template <class Result, class Body>
Result guarded(Result failed, Body&& body) {
  try {
    return body();
  } catch (abi::__forced_unwind&) {
    wait_for_end();
  } catch (...) {
    set_exception();
    return failed;
  }
}

/// A reference that may be given up on any thread, with or without Python's lock. At the end of the
/// process it is kept.
std::shared_ptr<PyObject> kept(PyObject* borrowed);

/// Calls on more elements than this take long enough for other threads to be let in.
constexpr int64_t kMaxWithLock = int64_t{1} << 14;

/// Throws ForkedProcessError in a process that was made by fork and would use several threads: the
/// threads of its parent do not exist there. The caller holds the GIL.
void require_threads();

/// Lets other Python threads run for a scope.
class WithoutLock {
 public:
  explicit WithoutLock(bool active = true) : state_(active ? PyEval_SaveThread() : nullptr) {}
  ~WithoutLock() {
    try {
      if (state_) PyEval_RestoreThread(state_);
    } catch (abi::__forced_unwind&) {
      wait_for_end();
    }
  }
  WithoutLock(const WithoutLock&) = delete;
  WithoutLock& operator=(const WithoutLock&) = delete;

 private:
  PyThreadState* state_;
};

/// Takes Python's lock in a scope, on any thread.
class WithLock {
 public:
  WithLock() {
    try {
      state_ = PyGILState_Ensure();
    } catch (abi::__forced_unwind&) {
      wait_for_end();
    }
  }
  ~WithLock() { PyGILState_Release(state_); }
  WithLock(const WithLock&) = delete;
  WithLock& operator=(const WithLock&) = delete;

 private:
  PyGILState_STATE state_;
};

// --- values.cc ---

std::string text_of(PyObject* object);  ///< of a str
std::vector<std::string> texts_of(PyObject* sequence);
std::string path_of(PyObject* path);  ///< of a str or an os.PathLike
Ref python_text(const std::string& text);
Ref python_texts(const std::vector<std::string>& texts);  ///< a list
/// A number, text, none, or (nested) list of these; TypeError for other objects.
AttrValue attr_of(PyObject* object);
Ref python_ints(const std::vector<int64_t>& numbers);  ///< a list
Ref python_list(const Tensors& tensors);               ///< None for undefined ones
/// The element at a place in row-major order, of an array on the host.
Ref python_element(const Array& array, int64_t at);
/// An argument of an operation: a tensor, a list of tensors, what has a buffer (as a copy), or the
/// value of an attribute.
Argument argument_of(PyObject* object);
/// A value from (nested lists of) numbers, a buffer or a tensor; `dtype` none: that of the data,
/// float32 for Python's floats.
Tensor value_of(PyObject* object, std::optional<DType> dtype);
/// None for None.
std::optional<DType> dtype_argument(PyObject* object);

// --- tensor_type.cc, tensor_methods.cc ---

struct TensorObject {
  PyObject ob_base;
  PyObject* weak_references;
  Tensor value;  ///< defined
};
void add_tensor_type(PyObject* module);
extern PyMethodDef tensor_methods[];  ///< of tensor_methods.cc
bool is_tensor(PyObject* object);
Tensor& tensor_of(PyObject* object);  ///< TypeError for other objects
/// The tensor as an operand: in a trace, one that has a name is a parameter.
Tensor& operand_value(PyObject* object);
/// UsageError in a trace, which cannot record writes to tensors that it did not make.
void require_writable(const Tensor& tensor);
Ref element_of(PyObject* tensor);  ///< the only one; UsageError if there are others
Ref python_tensor(Tensor value);
/// One tensor, or a tuple of several; None for results that are absent.
Ref python_results(Tensors results);
Tensors tensors_of(PyObject* sequence, const char* what);

// --- buffers.cc ---

/// Where the elements of a buffer are: kShared copies those that are not aligned, kSharedWritable
/// is a BufferError for them.
enum class Memory { kCopied, kShared, kSharedWritable };
/// The elements that an object with the buffer protocol has. Empty if it has no buffer; TypeError
/// for elements that no tensor can have.
std::optional<Array> array_of_buffer(PyObject* object, Memory memory);
int get_buffer(PyObject* self, Py_buffer* view, int flags);
void release_buffer(PyObject* self, Py_buffer* view);
PyObject* to_dlpack(PyObject* self, PyObject* args, PyObject* kwargs);
PyObject* dlpack_device(PyObject* self, PyObject* unused);
PyObject* from_dlpack(PyObject* module, PyObject* capsule);

// --- indexing.cc ---

Tensor index_read(const Tensor& base, PyObject* index);
void index_write(const Tensor& base, PyObject* index, PyObject* value);

// --- calls.cc ---

/// A scope in which calls compute at once and draw the process's next random numbers, in mixed
/// precision where amp.auto_cast says so. In a trace they are recorded instead, with the line of
/// Python that makes them. Calls in mixed precision may be deferred (lazy.h).
class Computing {
 public:
  enum class Precision { kMixed, kFull };
  explicit Computing(Precision precision = Precision::kMixed);

 private:
  std::optional<EagerScope> eager_;
  std::optional<ir::LocationScope> place_;
  std::optional<InterpreterScope> deferring_, precision_;
  std::optional<RandomScope> random_;
};
/// The random state for the next `calls` calls of operations, which are then counted.
Array take_random_state(int64_t calls);
/// Counts calls of operations that draw no random numbers.
void count_calls(int64_t calls);
/// The name of an operation as a template argument.
template <size_t N>
struct OpName {
  char text[N];
  constexpr OpName(const char (&name)[N]) { std::copy_n(name, N, text); }  // NOLINT
};

template <OpName name>
const Op& op_of() {
  static const Op& op = get_op(name.text);
  return op;
}

/// All results that callers see; other Python threads run while it computes for long.
Tensors apply_operation(const Op& op, Tensors operands, Attrs attrs);
/// Adds to the gradients of leaves; UsageError if the outputs depend on none.
void backward_from(const Tensors& outputs, const Tensors& cotangents);
/// The function of an operation, which takes its arguments by position and by name. With `self`,
/// its first argument is bound.
Ref operation_function(const Op& op, PyObject* self);
void add_calls(PyObject* module);

// --- optimizer.cc, data.cc, trainer.cc, evaluation.cc, model.cc, model_layer.cc,
// language_model.cc, plugins.cc, readers.cc, trace.cc, compiled_function.cc, lazy.cc, exporting.cc
// ---

void add_optimizer(PyObject* module);
void add_data(PyObject* module);
void add_trainer(PyObject* module);
void add_evaluation(PyObject* module);
void add_model(PyObject* module);
void add_model_layers(PyObject* module);
void add_language_models(PyObject* module);
void add_plugins(PyObject* module);
void add_readers(PyObject* module);
void add_distributed(PyObject* module);
void add_traces(PyObject* module);
void add_compiled_functions(PyObject* module);
void add_lazy(PyObject* module);
void add_exporting(PyObject* module);

/// An object of Python that owns one of the library.
template <class Owned>
struct Holder {
  PyObject ob_base;
  Owned* owned;

  static Owned& of(PyObject* object) { return *reinterpret_cast<Holder*>(object)->owned; }
  static Ref make(PyTypeObject* type, Owned owned) {
    Ref out = checked(PyType_GenericAlloc(type, 0));
    reinterpret_cast<Holder*>(out.get())->owned = new Owned(std::move(owned));
    return out;
  }
  static void destroy(PyObject* object) {
    PyTypeObject* const type = Py_TYPE(object);
    delete reinterpret_cast<Holder*>(object)->owned;
    reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
  }
};

/// Adds a type of this name to the module.
PyTypeObject* add_type(PyObject* module, PyType_Spec& spec, const char* name);
void add_functions(PyObject* module, PyMethodDef* methods);

}  // namespace paddle::python
