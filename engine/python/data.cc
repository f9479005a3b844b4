// The data of a config as batches of tensors.

#include "data/open_data.h"
#include "python/core.h"
#include "sections/sections.h"
#include "train/config/run_config.h"

namespace paddle::python {
namespace {

struct State {
  data::OpenData data;
  std::unique_ptr<data::Loader> own;  ///< in place of one that has ended
  data::Loader* loader = nullptr;
  bool at_end = false;  ///< of an epoch
};

struct DataObject {
  PyObject ob_base;
  State* state;
};

State& state_of(PyObject* object) { return *reinterpret_cast<DataObject*>(object)->state; }

PyObject* construct(PyTypeObject* type, PyObject* arguments, PyObject* /*names*/) {
  return guarded<PyObject*>(nullptr, [&] {
    const char *path = nullptr, *part = nullptr;
    PyObject* overrides = nullptr;
    if (!PyArg_ParseTuple(arguments, "ssO:Data", &path, &part, &overrides)) throw PythonError();
    const std::vector<std::string> changes = texts_of(overrides);
    auto state = std::make_unique<State>();
    const std::string name = part;
    require_threads();
    {
      const WithoutLock others;
      register_sections();
      const train::RunConfig config = train::read_config(path, changes);
      state->data = data::open_data(config.document, config.data);
    }
    if (name == "train") state->loader = state->data.train_loader.get();
    if (name == "valid") state->loader = state->data.valid_loader.get();
    if (name == "test") state->loader = state->data.test_loader.get();
    if (!state->loader)
      fail(ErrorCode::kUsage, "io.open: the config has no data.", name,
           "; parts are 'train', 'valid' and 'test'");
    Ref out = checked(PyType_GenericAlloc(type, 0));
    reinterpret_cast<DataObject*>(out.get())->state = state.release();
    return out.release();
  });
}

void destroy(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  State* const state = reinterpret_cast<DataObject*>(object)->state;
  {
    const WithoutLock others;  // waits for the loader's threads
    delete state;
  }
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

/// Each `for` goes through one epoch; the next one through the next.
PyObject* iterate(PyObject* self) {
  return guarded<PyObject*>(nullptr, [&] {
    State& state = state_of(self);
    state.at_end = false;
    const data::LoaderPosition position = state.loader->position();
    if (position.sample != 0) {
      const WithoutLock others;
      state.loader->seek({position.epoch + 1, 0});
    }
    return Py_NewRef(self);
  });
}

PyObject* next(PyObject* self) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    State& state = state_of(self);
    if (state.at_end) return nullptr;
    std::optional<data::Batch> batch;
    {
      const WithoutLock others;
      batch = state.loader->next();
      if (!batch) {  // it has ended: begin again
        state.own = state.loader->again();
        state.loader = state.own.get();
        batch = state.loader->next();
      }
    }
    if (!batch) return nullptr;
    state.at_end = batch->last_of_epoch;
    Ref out = checked(PyDict_New());
    const std::vector<data::Field>& fields = state.loader->fields();
    for (size_t i = 0; i < fields.size() && i < batch->arrays.size(); ++i) {
      const Ref value = python_tensor(Tensor(batch->arrays[i]));
      checked(PyDict_SetItemString(out.get(), fields[i].name.c_str(), value.get()));
    }
    return out.release();
  });
}

Py_ssize_t length(PyObject* self) {
  return guarded<Py_ssize_t>(
      -1, [&] { return static_cast<Py_ssize_t>(state_of(self).loader->batches_per_epoch()); });
}

PyObject* get_fields(PyObject* self, void*) {
  return guarded<PyObject*>(nullptr, [&] {
    Ref out = checked(PyDict_New());
    for (const data::Field& field : state_of(self).loader->fields()) {
      const Ref text = python_text(field.text());
      checked(PyDict_SetItemString(out.get(), field.name.c_str(), text.get()));
    }
    return out.release();
  });
}

PyGetSetDef attributes[] = {
    {"fields", get_fields, nullptr, "Types and shapes of one sample's fields, by name.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(construct)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                       {Py_tp_iter, reinterpret_cast<void*>(iterate)},
                       {Py_tp_iternext, reinterpret_cast<void*>(next)},
                       {Py_mp_length, reinterpret_cast<void*>(length)},
                       {Py_tp_getset, attributes},
                       {0, nullptr}};
PyType_Spec spec = {"paddle_toolchain._paddle.Data", sizeof(DataObject), 0, Py_TPFLAGS_DEFAULT,
                    slots};

}  // namespace

void add_data(PyObject* module) { add_type(module, spec, "Data"); }

}  // namespace paddle::python
