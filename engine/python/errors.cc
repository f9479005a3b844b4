// Python's exceptions for the errors of the engine.

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>

#include "base/parallel.h"
#include "paddle/error.h"
#include "python/core.h"

namespace paddle::python {
namespace {

struct Kind {
  ErrorCode code;
  const char* name;
  const char* base;  ///< a second base class, "" for none
  PyObject* type = nullptr;
};
std::array<Kind, 7> kinds{{{ErrorCode::kUsage, "UsageError", "ValueError"},
                           {ErrorCode::kConfig, "ConfigError", "ValueError"},
                           {ErrorCode::kData, "DataError", ""},
                           {ErrorCode::kModel, "ModelError", ""},
                           {ErrorCode::kDevice, "DeviceError", "RuntimeError"},
                           {ErrorCode::kPeer, "PeerError", "ConnectionError"},
                           {ErrorCode::kInternal, "InternalError", ""}}};
PyObject* base_type = nullptr;
PyObject* forked_type = nullptr;
std::atomic<bool> is_forked = false;  ///< this process was made by fork after the import

void set(ErrorCode code, const char* what, const SourceLocation& place,
         const std::vector<std::string>& lines) {
  PyObject* type = base_type;
  for (const Kind& kind : kinds)
    if (kind.code == code) type = kind.type;
  const Ref exception(PyObject_CallFunction(type, "s", what));
  if (!exception) return;
  const auto add = [&](const char* name, PyObject* owned) {
    const Ref value(owned);
    if (!value || PyObject_SetAttrString(exception.get(), name, value.get()) < 0) PyErr_Clear();
  };
  add("code", PyLong_FromLong(static_cast<long>(code)));
  add("file", PyUnicode_FromString(place.file.c_str()));
  add("line", PyLong_FromLong(place.line));
  add("column", PyLong_FromLong(place.column));
  Ref notes(PyList_New(0));
  for (const std::string& line : lines)
    if (const Ref text(PyUnicode_FromString(line.c_str()));
        !text || PyList_Append(notes.get(), text.get()))
      PyErr_Clear();
  add("notes", notes.release());
  PyErr_SetObject(type, exception.get());
}

}  // namespace

void wait_for_end() {
  while (true) pause();
}

void require_threads() {
  if (is_forked && thread_count() > 1)
    raise(forked_type,
          "a process that was made by fork has no threads to compute with: start processes with "
          "multiprocessing.get_context('spawn'), or call paddle.set_num_threads(1) first");
}

void raise(PyObject* type, const std::string& message) {
  PyErr_SetString(type, message.c_str());
  throw PythonError();
}

void set_exception() {
  try {
    throw;
  } catch (const PythonError&) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "an exception is missing");
  } catch (const Error& error) {
    set(error.code(), error.what(), error.location(), error.notes());
  } catch (const v0::Error& error) {
    set(static_cast<ErrorCode>(error.code()), error.what(),
        {error.file(), error.line(), error.column()}, error.notes());
  } catch (const std::bad_alloc&) {
    PyErr_SetString(PyExc_MemoryError, "out of memory");
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

void add_exceptions(PyObject* module) {
  base_type = PyErr_NewExceptionWithDoc(
      "paddle_toolchain.Error",
      "An error of the engine: `code` is the exit status of the tools, `file`, `line` and `column` "
      "the place in a text file, `notes` further lines.",
      PyExc_Exception, nullptr);
  checked(PyModule_AddObjectRef(module, "Error", base_type));
  const Ref builtins = checked(PyImport_ImportModule("builtins"));
  for (Kind& kind : kinds) {
    Ref bases = Ref::to(base_type);
    if (*kind.base) {
      const Ref second = checked(PyObject_GetAttrString(builtins.get(), kind.base));
      bases = checked(PyTuple_Pack(2, base_type, second.get()));
    }
    const std::string name = str("paddle_toolchain.", kind.name);
    kind.type = PyErr_NewException(name.c_str(), bases.get(), nullptr);
    checked(PyModule_AddObjectRef(module, kind.name, kind.type));
  }
  const Ref bases = checked(PyTuple_Pack(2, base_type, PyExc_RuntimeError));
  forked_type = PyErr_NewException("paddle_toolchain.ForkedProcessError", bases.get(), nullptr);
  checked(PyModule_AddObjectRef(module, "ForkedProcessError", forked_type));
  pthread_atfork(nullptr, nullptr, [] { is_forked = true; });
}

}  // namespace paddle::python
