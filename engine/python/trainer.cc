// Training by a config, the job of paddle-train.

#include "paddle/trainer.h"

#include <csignal>

#include "base/interrupt.h"
#include "python/core.h"

namespace paddle::python {
namespace {

Ref python_line(const v0::LogLine& line) {
  Ref metrics = checked(PyDict_New());
  for (const auto& [name, value] : line.metrics) {
    const Ref number = checked(PyFloat_FromDouble(value));
    checked(PyDict_SetItemString(metrics.get(), name.c_str(), number.get()));
  }
  return checked(
      Py_BuildValue("{s:s,s:L,s:L,s:d,s:d,s:d,s:d,s:O}", "kind", line.kind.c_str(), "step",
                    static_cast<long long>(line.step), "epoch", static_cast<long long>(line.epoch),
                    "loss", line.loss, "learning_rate", line.learning_rate, "samples_per_second",
                    line.samples_per_second, "seconds", line.seconds, "metrics", metrics.get()));
}

/// Hands lines to the Python function, which asks to stop by returning "stop".
class Listener {
 public:
  explicit Listener(PyObject* function) : function_(function) {}

  void line(const char* kind, const v0::LogLine& line) const {
    const WithLock lock;
    tell(kind, python_line(line));
  }
  void step(const v0::TrainStep& step) const {
    const WithLock lock;
    tell("step",
         checked(Py_BuildValue("{s:L,s:L,s:d,s:d}", "step", static_cast<long long>(step.step),
                               "epoch", static_cast<long long>(step.epoch), "loss", step.loss,
                               "learning_rate", step.learning_rate)));
  }
  void text(const char* kind, const std::string& line) const {
    const WithLock lock;
    tell(kind, python_text(line));
  }

 private:
  void tell(const char* kind, const Ref& payload) const {
    const Ref answer = checked(PyObject_CallFunction(function_, "sO", kind, payload.get()));
    if (PyUnicode_Check(answer.get()) && text_of(answer.get()) == "stop")
      request_interrupt(SIGTERM);
  }

  PyObject* function_;
};

/// The engine's handlers of SIGINT and SIGTERM for a scope, on the main thread; the step that runs
/// is finished, a checkpoint is written, and the run ends.
class Interruptible {
 public:
  Interruptible() {
    clear_interrupt();
    sigaction(SIGINT, nullptr, &on_interrupt_);
    sigaction(SIGTERM, nullptr, &on_terminate_);
    watch_for_interrupts();
  }
  ~Interruptible() {
    sigaction(SIGINT, &on_interrupt_, nullptr);
    sigaction(SIGTERM, &on_terminate_, nullptr);
    clear_interrupt();
  }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  struct sigaction on_interrupt_ {
  }, on_terminate_{};
};

PyObject* train(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    const char *config = nullptr, *output = nullptr;
    PyObject *overrides = nullptr, *listen = nullptr;
    int resume = 0, overwrite = 0, eager = 0, steps = 0;
    if (!PyArg_ParseTuple(arguments, "sOsppppO:train", &config, &overrides, &output, &resume,
                          &overwrite, &eager, &steps, &listen))
      throw PythonError();
    v0::TrainOptions options;
    options.overrides = texts_of(overrides);
    options.output = output;
    options.resume = resume != 0;
    options.overwrite = overwrite != 0;
    options.eager = eager != 0;
    const Listener listener(listen);
    options.on_log = [&](const v0::LogLine& line) { listener.line("log", line); };
    options.on_note = [&](const std::string& line) { listener.text("note", line); };
    options.on_checkpoint = [&](const std::string& folder) { listener.text("checkpoint", folder); };
    if (steps) options.on_step = [&](const v0::TrainStep& step) { listener.step(step); };
    options.on_warning = [&](const std::string& line) { listener.text("warning", line); };
    v0::TrainResult result;
    bool interrupted = false;
    require_threads();
    {
      const Interruptible signals;
      {
        const WithoutLock others;
        result = v0::Trainer(config, options).run();
      }
      interrupted = pending_interrupt() == SIGINT;
    }
    if (interrupted) raise(PyExc_KeyboardInterrupt, "the run was interrupted; it can be resumed");
    Ref log = checked(PyList_New(0));
    for (const v0::LogLine& line : result.log)
      checked(PyList_Append(log.get(), python_line(line).get()));
    const Ref valid = result.last_valid ? python_line(*result.last_valid) : Ref::to(Py_None);
    return checked(Py_BuildValue("{s:L,s:s,s:s,s:s,s:O,s:O}", "steps",
                                 static_cast<long long>(result.steps), "folder",
                                 result.run_folder.c_str(), "model_folder",
                                 result.model_folder.c_str(), "checkpoint",
                                 result.checkpoint.c_str(), "log", log.get(), "valid", valid.get()))
        .release();
  });
}

PyObject* resolved(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    const char* config = nullptr;
    PyObject* overrides = nullptr;
    if (!PyArg_ParseTuple(arguments, "sO:resolved_config", &config, &overrides))
      throw PythonError();
    v0::TrainOptions options;
    options.overrides = texts_of(overrides);
    return python_text(v0::Trainer(config, options).resolved_config()).release();
  });
}

PyObject* config_name(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    const char* config = nullptr;
    PyObject* overrides = nullptr;
    if (!PyArg_ParseTuple(arguments, "sO:config_name", &config, &overrides)) throw PythonError();
    v0::TrainOptions options;
    options.overrides = texts_of(overrides);
    return python_text(v0::Trainer(config, options).name()).release();
  });
}

PyMethodDef functions[] = {
    {"train", train, METH_VARARGS, "Trains as a config says."},
    {"config_name", config_name, METH_VARARGS, "The name that a config gives to its runs."},
    {"resolved_config", resolved, METH_VARARGS, "A config with its defaults, as YAML."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_trainer(PyObject* module) { add_functions(module, functions); }

}  // namespace paddle::python
