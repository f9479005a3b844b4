// Plug-ins that a program loads.

#include "plugin/plugin.h"

#include "config/document.h"
#include "python/core.h"

namespace paddle::python {
namespace {

Ref described(const plugin::Plugin& plugin) {
  Ref out = checked(PyDict_New());
  const auto set = [&](const char* name, const Ref& value) {
    checked(PyDict_SetItemString(out.get(), name, value.get()));
  };
  set("name", python_text(plugin.provider.name));
  set("version", python_text(plugin.provider.version));
  set("path", python_text(plugin.path));
  set("sha256", python_text(plugin.sha256));
  set("summary", python_text(plugin.summary));
  for (const auto& [kind, names] : plugin.parts()) set(kind, python_texts(*names));
  return out;
}

PyObject* load(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    const char *path = nullptr, *sha256 = nullptr, *options = nullptr;
    if (!PyArg_ParseTuple(arguments, "sss:load_plugin", &path, &sha256, &options))
      throw PythonError();
    plugin::LoadOptions how;
    how.sha256 = sha256;
    config::Node given;
    if (*options) {
      given = config::parse_document(options, "the options of a plug-in");
      how.options = &given;
    }
    return described(plugin::load(path, how)).release();
  });
}

PyObject* loaded(PyObject* /*module*/, PyObject* /*unused*/) {
  return guarded<PyObject*>(nullptr, [&] {
    Ref out = checked(PyList_New(0));
    for (const plugin::Plugin* const each : plugin::loaded())
      checked(PyList_Append(out.get(), described(*each).get()));
    return out.release();
  });
}

PyMethodDef functions[] = {
    {"load_plugin", load, METH_VARARGS, "Loads a plug-in and describes it."},
    {"loaded_plugins", loaded, METH_NOARGS, "Descriptions of the plug-ins that are loaded."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_plugins(PyObject* module) { add_functions(module, functions); }

}  // namespace paddle::python
