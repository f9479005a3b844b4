// Models of the model language as layers: their parameters and states are tensors of Python.

#include "config/document.h"
#include "lang/eval/evaluator.h"
#include "lang/eval/shape_interpreter.h"
#include "python/core.h"

namespace paddle::python {
namespace {

struct Model {
  std::shared_ptr<const lang::Program> program;
  const lang::EntryPoint* entry = nullptr;
};

using ModelObject = Holder<Model>;

PyObject* construct(PyTypeObject* type, PyObject* arguments, PyObject* /*names*/) {
  return guarded<PyObject*>(nullptr, [&] {
    const char *path = nullptr, *text = nullptr, *variant = nullptr, *function = nullptr;
    if (!PyArg_ParseTuple(arguments, "ssss:Program", &path, &text, &variant, &function))
      throw PythonError();
    lang::ProgramOptions options;
    options.variant = variant;
    Model model;
    model.program = *text ? lang::read_program(config::parse_document(text, "the model"), options)
                          : lang::read_program(path, options);
    lang::check_program(*model.program);
    model.entry = model.program->find_entry(function);
    if (!model.entry)
      fail(ErrorCode::kUsage, model.program->file, ": function '", function, "' not found");
    return ModelObject::make(type, std::move(model)).release();
  });
}

/// The object of a path in a dict; null if there is none.
PyObject* object_at(PyObject* values, const std::string& path) {
  return PyDict_GetItemString(values, path.c_str());
}

/// Parameters and states of a layer, by path.
class LayerValues final : public lang::ParameterProvider {
 public:
  LayerValues(PyObject* parameters, PyObject* states) : parameters_(parameters), states_(states) {}

  Tensor parameter(const std::string& path, const Dims& shape, DType dtype,
                   const lang::Initializer&) override {
    return value(parameters_, "parameter", path, shape, dtype);
  }
  Tensor state(const std::string& path, const Dims& shape, DType dtype, const lang::Initializer&,
               lang::StateScope) override {
    return value(states_, "state", path, shape, dtype);
  }
  void update(const std::string& path, const Tensor& next) override {
    PyObject* const object = object_at(states_, path);
    ensure(object != nullptr, "a state is missing: ", path);
    const Tensor& state = tensor_of(object);
    require_writable(state);
    Tensor plain(next.type(), next.content());
    if (plain.dtype() != state.dtype()) {
      Attrs attrs;
      attrs.values = {AttrValue(state.dtype())};
      plain = call_single(op_of<"cast">(), {plain}, std::move(attrs));
    }
    state.assign(plain);
  }

 private:
  static Tensor value(PyObject* values, const char* what, const std::string& path,
                      const Dims& shape, DType dtype) {
    PyObject* const object = object_at(values, path);
    if (!object)
      fail(ErrorCode::kUsage, "the ", what, " '", path, "' depends on the inputs of the call");
    const Tensor& tensor = operand_value(object);
    if (tensor.dtype() != dtype || !same_shape(to_shape(shape), tensor.shape()))
      fail(ErrorCode::kModel, what, " '", path, "' is ", tensor.type(), ", the model needs ",
           text(dtype), str(shape));
    return tensor;
  }

  PyObject *parameters_, *states_;
};

/// Makes them, while only types are computed.
class NewValues final : public lang::ParameterProvider {
 public:
  explicit NewValues(uint64_t seed) : seed_(seed) {}

  Tensor parameter(const std::string& path, const Dims& shape, DType dtype,
                   const lang::Initializer& init) override {
    return made(parameters, path, shape, dtype, init);
  }
  Tensor state(const std::string& path, const Dims& shape, DType dtype,
               const lang::Initializer& init, lang::StateScope) override {
    return made(states, path, shape, dtype, init);
  }
  void update(const std::string&, const Tensor&) override {}

  std::vector<std::pair<std::string, Array>> parameters, states;  ///< in the order of first use

 private:
  Tensor made(std::vector<std::pair<std::string, Array>>& values, const std::string& path,
              const Dims& shape, DType dtype, const lang::Initializer& init) const {
    const bool is_new =
        std::none_of(values.begin(), values.end(), [&](const auto& v) { return v.first == path; });
    if (is_new) values.emplace_back(path, lang::initial_value(init, path, shape, dtype, seed_));
    return lang::abstract_tensor({dtype, to_shape(shape)});
  }
  uint64_t seed_;
};

Ref pairs_of(std::vector<std::pair<std::string, Array>>& values) {
  Ref out = checked(PyList_New(0));
  for (auto& [path, array] : values) {
    const Ref name = python_text(path), tensor = python_tensor(Tensor(std::move(array)));
    const Ref pair = checked(PyTuple_Pack(2, name.get(), tensor.get()));
    checked(PyList_Append(out.get(), pair.get()));
  }
  return out;
}

/// First values of parameters and of states, as lists of pairs.
PyObject* initialize(PyObject* self, PyObject* seed) {
  return guarded<PyObject*>(nullptr, [&] {
    const Model& model = ModelObject::of(self);
    const unsigned long long number = PyLong_AsUnsignedLongLong(seed);
    if (PyErr_Occurred()) throw PythonError();
    NewValues values(number);
    {
      lang::ShapeInterpreter types;
      const InterpreterScope scope(types);
      const RandomScope random(lang::abstract_tensor({DType::kU64, {Dim(2)}}));
      Tensors inputs;
      for (const auto& [name, type] : lang::input_types(*model.program, *model.entry))
        inputs.push_back(lang::abstract_tensor(type));
      lang::EvaluationOptions options;
      options.training = true;
      options.store = &values;
      lang::run_entry(*model.program, *model.entry, inputs, options);
    }
    const Ref parameters = pairs_of(values.parameters), states = pairs_of(values.states);
    return checked(PyTuple_Pack(2, parameters.get(), states.get())).release();
  });
}

/// The outputs by name, for inputs in their order.
PyObject* run(PyObject* self, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    const Model& model = ModelObject::of(self);
    PyObject *inputs = nullptr, *parameters = nullptr, *states = nullptr;
    int training = 0;
    if (!PyArg_ParseTuple(arguments, "OO!O!p:run", &inputs, &PyDict_Type, &parameters, &PyDict_Type,
                          &states, &training))
      throw PythonError();
    const Tensors given = tensors_of(inputs, "the inputs of a model");
    LayerValues values(parameters, states);
    lang::EvaluationOptions options;
    options.training = training != 0;
    options.store = &values;
    const Computing scope;
    Ref out = checked(PyDict_New());
    for (const lang::NamedTensor& each :
         lang::run_entry(*model.program, *model.entry, given, options)) {
      const Ref tensor = python_tensor(each.tensor);
      checked(PyDict_SetItemString(out.get(), each.name.c_str(), tensor.get()));
    }
    return out.release();
  });
}

PyObject* get_inputs(PyObject* self, void*) {
  return guarded<PyObject*>(nullptr, [&] {
    const Model& model = ModelObject::of(self);
    Ref out = checked(PyDict_New());
    for (const auto& [name, type] : lang::input_types(*model.program, *model.entry)) {
      const Ref text = python_text(type.text());
      checked(PyDict_SetItemString(out.get(), name.c_str(), text.get()));
    }
    return out.release();
  });
}

PyMethodDef methods[] = {
    {"initialize", initialize, METH_O, "First values of parameters and of states, for a seed."},
    {"run", run, METH_VARARGS, "The outputs by name."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef attributes[] = {
    {"inputs", get_inputs, nullptr, "Types of the inputs by name.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(construct)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(ModelObject::destroy)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, attributes},
                       {0, nullptr}};
PyType_Spec spec = {"paddle_toolchain._paddle.Program", sizeof(ModelObject), 0, Py_TPFLAGS_DEFAULT,
                    slots};

}  // namespace

void add_model_layers(PyObject* module) { add_type(module, spec, "Program"); }

}  // namespace paddle::python
