// Models as ONNX files, the job of paddle-export.

#include "exporter/export_job.h"
#include "python/core.h"

namespace paddle::python {
namespace {

PyObject* export_onnx(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    const char *model = nullptr, *output = nullptr;
    long long opset = 0;
    if (!PyArg_ParseTuple(arguments, "ssL:export_onnx", &model, &output, &opset))
      throw PythonError();
    exporter::ExportJob job;
    job.model = model;
    job.output = output;
    job.opset = opset;
    job.overwrite = true;
    job.producer = "paddle_toolchain";
    const WithoutLock others;
    for (const exporter::ExportResult& result : exporter::run_export(job, [](const auto&) {}))
      if (!result.passed())
        fail(ErrorCode::kModel, result.file, ": the file computes something else than the model");
    return Py_NewRef(Py_None);
  });
}

PyMethodDef functions[] = {
    {"export_onnx", export_onnx, METH_VARARGS, "Writes a saved model as an ONNX file."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_exporting(PyObject* module) { add_functions(module, functions); }

}  // namespace paddle::python
