// The loss and the metrics of a trained model, the job of paddle-eval.

#include "python/core.h"
#include "sections/sections.h"
#include "train/runs/evaluated_model.h"

namespace paddle::python {
namespace {

class Warnings final : public train::TrainObserver {
 public:
  void warn(const std::string& line) override { lines.push_back(line); }
  std::vector<std::string> lines;
};

/// The evaluation of a run, model or checkpoint folder on a part of its data, or other data.
PyObject* evaluate(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    const char *folder = nullptr, *part = nullptr;
    PyObject* overrides = nullptr;
    int eager = 0;
    if (!PyArg_ParseTuple(arguments, "sOsp:evaluate", &folder, &overrides, &part, &eager))
      throw PythonError();
    const std::vector<std::string> changes = texts_of(overrides);
    std::optional<train::LogLine> line;
    Warnings warnings;
    require_threads();
    {
      const WithoutLock others;
      register_sections();
      auto [model, config, options] = train::open_evaluated_folder(folder, changes);
      train::choose_evaluation_data(config, part, "evaluate");
      train::settle_for_evaluation(config);
      options.eager = eager != 0;
      train::Trainer trainer(std::move(config), options, warnings);
      trainer.prepare().require_fit();
      line = trainer.evaluate();
    }
    for (const std::string& each : warnings.lines)
      checked(PyErr_WarnEx(PyExc_UserWarning, each.c_str(), 2));
    if (!line) raise(PyExc_KeyboardInterrupt, "the evaluation was interrupted");
    Ref out = checked(Py_BuildValue("{s:L,s:d}", "samples", static_cast<long long>(line->samples),
                                    "loss", line->loss));
    for (const auto& [name, value] : line->metrics) {
      const Ref number = checked(PyFloat_FromDouble(value));
      checked(PyDict_SetItemString(out.get(), name.c_str(), number.get()));
    }
    return out.release();
  });
}

PyMethodDef functions[] = {
    {"evaluate", evaluate, METH_VARARGS, "The loss and the metrics of a trained model."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_evaluation(PyObject* module) { add_functions(module, functions); }

}  // namespace paddle::python
