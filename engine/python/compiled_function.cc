// Functions that jit.to_static compiled: called with the tensors that they read, they return the
// tensors that the Python function would return, write what it would write, and have its gradient.

#include <set>

#include "autograd/autograd.h"
#include "python/capture.h"
#include "python/compiled_graph.h"

namespace paddle::python {
namespace {

/// A cell of a compiled function.
struct CompiledCell {
  Cell cell;
  size_t owner = 0;  ///< kGradient: the index of the tensor
};

struct Compiled {
  std::unique_ptr<CompiledGraph> graph;
  std::vector<CompiledCell> cells;
  std::vector<size_t> read;     ///< the cell of each input
  std::vector<size_t> written;  ///< the cells of the results after the outputs
  std::vector<size_t> removed;  ///< cells without a value after a call
  std::vector<size_t> given;    ///< tensor cells that come with each call
  bool writes_tensors = false;
  bool has_backward = false;
  std::set<const void*> fixed_roots;  ///< of tensors that do not, if it writes tensors
  size_t outputs = 0;
  int random_input = -1;
  int64_t random_calls = 0, updates = 0;
  bool is_long = false;
};

using CompiledObject = Holder<std::shared_ptr<Compiled>>;
PyTypeObject* compiled_type = nullptr;

// --- compilation ---

/// The sizes that are symbols, by tensor object: pairs of a tensor and a list with a name or None
/// for each axis.
Capture::Sizes sizes_of(PyObject* pairs) {
  Capture::Sizes out;
  const Ref items = checked(PySequence_Tuple(pairs));
  for (Py_ssize_t i = 0; i < PyTuple_Size(items.get()); ++i) {
    PyObject* const pair = PyTuple_GetItem(items.get(), i);
    PyObject* const tensor = PyTuple_GetItem(pair, 0);
    const Ref names = checked(PySequence_Tuple(PyTuple_GetItem(pair, 1)));
    Shape shape = tensor_of(tensor).shape();
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      PyObject* const name = PyTuple_GetItem(names.get(), static_cast<Py_ssize_t>(axis));
      // Sizes of 0 and 1 are constants, since they change what operations do.
      if (name && name != Py_None) shape[axis] = Dim::symbol(text_of(name), 2);
    }
    out.emplace(tensor, std::move(shape));
  }
  return out;
}

/// Rejects a function that writes a tensor of which another one is a view: they are two inputs, and
/// the write would not reach the other one.
void check_views(const Capture& capture) {
  std::map<const void*, const Cell*> roots;
  for (const Cell& cell : capture.cells()) {
    if (cell.kind != Cell::Kind::kTensor) continue;
    const auto [it, added] = roots.emplace(cell.before.root(), &cell);
    if (!added && (cell.is_written() || it->second->is_written()))
      fail(ErrorCode::kUsage, "a tensor is written of which a view is used, too");
    if (cell.is_written()) it->second = &cell;
  }
}

/// Adds the cells, and what the function writes to them as further results.
void add_cells(Compiled& out, Capture& capture) {
  check_views(capture);
  ir::Function& traced = *capture.trace().function();
  std::map<const Cell*, size_t> indices;
  for (Cell& cell : capture.cells()) {
    const size_t index = out.cells.size();
    indices[&cell] = index;
    if (cell.input.defined()) out.read.push_back(index);
    if (cell.is_written() && !cell.now.defined()) {
      out.removed.push_back(index);
    } else if (cell.is_written()) {
      if (cell.before.defined() && !same_type(cell.now.type(), cell.input.type()))
        fail(ErrorCode::kUsage, "a tensor ", cell.input.type(), " becomes ", cell.now.type());
      out.written.push_back(index);
      out.writes_tensors |= cell.kind == Cell::Kind::kTensor;
      traced.add_output({ir::PortKind::kValue, str("written_", index)},
                        capture.trace().tracer().value_of(cell.now));
    }
    if (const Array* const array = cell.input.defined() ? cell.before.concrete() : nullptr)
      out.is_long |= array->size() > kMaxWithLock;
    const size_t owner = cell.owner ? indices.at(cell.owner) : 0;
    cell.now = cell.before = {};
    out.cells.push_back({std::move(cell), owner});
  }
}

/// The inputs that a gradient flows to, by index.
std::vector<size_t> recorded_inputs(const Compiled& compiled) {
  std::vector<size_t> out;
  for (size_t i = 0; i < compiled.read.size(); ++i)
    if (compiled.cells[compiled.read[i]].cell.requires_grad)
      out.push_back(
          i + (compiled.random_input >= 0 && i >= static_cast<size_t>(compiled.random_input)));
  return out;
}

/// The outputs that a gradient flows from, by index.
std::vector<size_t> recorded_outputs(const Tensors& outputs) {
  std::vector<size_t> out;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (is_differentiable(outputs[i].dtype())) out.push_back(i);
  return out;
}

/// Traces `function`, which takes no arguments and returns a list of tensors, and compiles it.
PyObject* compile_function(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    PyObject *function = nullptr, *sizes = nullptr;
    int exact = 0;
    if (!PyArg_ParseTuple(arguments, "OOp:compile_function", &function, &sizes, &exact))
      throw PythonError();
    auto out = std::make_shared<Compiled>();
    {
      const bool wants_gradient = autograd::is_recording();
      Capture capture(sizes_of(sizes));
      const Ref list = checked(PyObject_CallNoArgs(function));
      const Tensors outputs = tensors_of(list.get(), "to_static: the result");
      ir::Tracer& tracer = capture.trace().tracer();
      ir::Function& traced = *capture.trace().function();
      for (const Tensor& output : outputs)
        traced.add_output({ir::PortKind::kValue, str("result_", traced.outputs.size())},
                          tracer.value_of(output));
      out->outputs = outputs.size();
      capture.restore();
      add_cells(*out, capture);
      out->has_backward = capture.has_backward();
      out->random_input = capture.random_input();
      out->random_calls = capture.random_calls();
      out->updates = capture.updates();
      std::vector<size_t> by;
      if (wants_gradient && !capture.has_backward()) by = recorded_inputs(*out);
      const WithoutLock others;
      out->graph =
          std::make_unique<CompiledGraph>(tracer, by, recorded_outputs(outputs), exact != 0);
    }
    return CompiledObject::make(compiled_type, std::move(out)).release();
  });
}

// --- calls ---

/// Whether the value has the type that the input was traced with; binds symbols.
bool fits(const Tensor& value, const Cell& cell, std::map<std::string, int64_t>& symbols) {
  const Array* const array = value.concrete();
  const TensorType& type = cell.input.type();
  if (!array || array->dtype != type.dtype || array->shape.size() != type.shape.size() ||
      (cell.kind == Cell::Kind::kTensor && value.requires_grad() != cell.requires_grad))
    return false;
  for (size_t axis = 0; axis < array->shape.size(); ++axis) {
    const Dim& dim = type.shape[axis];
    const int64_t size = array->shape[axis];
    if (dim.is_constant()) {
      if (dim.value() != size) return false;
    } else {
      const auto [it, added] = symbols.try_emplace(dim.text(), size);
      if (size < 2 || it->second != size) return false;
    }
  }
  return true;
}

Tensor value_of_cell(const CompiledCell& each, const std::vector<PyObject*>& objects,
                     size_t index) {
  switch (each.cell.kind) {
    case Cell::Kind::kTensor:
      return tensor_of(objects[index]);
    case Cell::Kind::kGradient: {
      const Tensor& owner = tensor_of(objects[each.owner]);
      return owner.requires_grad() && autograd::is_leaf(owner) ? autograd::leaf_gradient(owner)
                                                               : Tensor();
    }
    default:
      return each.cell.get();
  }
}

/// The values of all cells, in `values`; false if one does not fit.
bool read_cells(const Compiled& compiled, const std::vector<PyObject*>& objects, Tensors& values) {
  std::map<std::string, int64_t> symbols;
  values.resize(compiled.cells.size());
  for (size_t i = 0; i < compiled.cells.size(); ++i) {
    const Cell& cell = compiled.cells[i].cell;
    values[i] = value_of_cell(compiled.cells[i], objects, i);
    if (cell.input.defined() != values[i].defined()) return false;
    if (compiled.has_backward && cell.kind == Cell::Kind::kTensor && cell.requires_grad &&
        values[i].requires_grad() && autograd::has_hooks(values[i]))
      return false;
    if (values[i].defined() && !fits(values[i], cell, symbols)) return false;
  }
  return true;
}

void write_cell(const Compiled& compiled, const std::vector<PyObject*>& objects, size_t index,
                const Tensor& value) {
  const CompiledCell& each = compiled.cells[index];
  switch (each.cell.kind) {
    case Cell::Kind::kTensor:
      return store_value(objects[index], value);
    case Cell::Kind::kGradient:
      return autograd::set_leaf_gradient(tensor_of(objects[each.owner]), value);
    default:
      each.cell.set(value);
  }
}

/// The inputs of the graph, from the values of all cells.
Tensors graph_inputs(const Compiled& compiled, const Tensors& values) {
  Tensors out;
  out.reserve(compiled.read.size() + 1);
  for (const size_t i : compiled.read) out.push_back(values[i]);
  if (compiled.random_input >= 0)
    out.insert(out.begin() + compiled.random_input,
               Tensor(take_random_state(compiled.random_calls)));
  else
    count_calls(compiled.random_calls);  // later calls draw the numbers that follow
  return out;
}

/// Whether no tensor that comes with the call is another one of the function, or a view of it.
bool are_distinct(const Compiled& compiled, const std::vector<PyObject*>& objects) {
  std::vector<const void*> roots;
  for (const size_t i : compiled.given) {
    const void* const root = tensor_of(objects[i]).root();
    if (compiled.fixed_roots.count(root) || std::count(roots.begin(), roots.end(), root))
      return false;
    roots.push_back(root);
  }
  return true;
}

/// The outputs; None if a tensor is not of the type that the function was compiled for.
PyObject* call(PyObject* self, PyObject* arguments, PyObject* /*names*/) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    const std::shared_ptr<Compiled> compiled = CompiledObject::of(self);
    std::vector<PyObject*> objects(compiled->cells.size());
    for (size_t i = 0; i < objects.size(); ++i) objects[i] = compiled->cells[i].cell.object.get();
    ensure(static_cast<size_t>(PyTuple_Size(arguments)) == compiled->given.size(),
           "to_static: a wrong number of tensors");
    for (size_t i = 0; i < compiled->given.size(); ++i)
      objects[compiled->given[i]] = PyTuple_GetItem(arguments, static_cast<Py_ssize_t>(i));
    if (compiled->writes_tensors && !are_distinct(*compiled, objects)) return Py_NewRef(Py_None);
    Tensors values;
    if (!read_cells(*compiled, objects, values)) return Py_NewRef(Py_None);
    const EagerScope eager(0, 0);
    Tensors outputs = (*compiled->graph)(graph_inputs(*compiled, values), compiled->is_long);
    for (size_t i = 0; i < compiled->written.size(); ++i)
      write_cell(*compiled, objects, compiled->written[i], outputs[compiled->outputs + i]);
    outputs.resize(compiled->outputs);
    for (const size_t i : compiled->removed) write_cell(*compiled, objects, i, {});
    return python_list(outputs).release();
  });
}

/// The tensors that the function reads or writes, in order; `give` replaces them.
PyObject* tensors(PyObject* self, PyObject* /*unused*/) {
  return guarded<PyObject*>(nullptr, [&] {
    Ref out = checked(PyList_New(0));
    for (const CompiledCell& each : CompiledObject::of(self)->cells)
      if (each.cell.object) checked(PyList_Append(out.get(), each.cell.object.get()));
    return out.release();
  });
}

/// Sets which of the tensors come with each call, as their indices in `tensors`. The others are
/// those that the function was traced with.
PyObject* give(PyObject* self, PyObject* indices) {
  return guarded<PyObject*>(nullptr, [&] {
    Compiled& compiled = *CompiledObject::of(self);
    std::vector<size_t> tensor_cells;
    for (size_t i = 0; i < compiled.cells.size(); ++i)
      if (compiled.cells[i].cell.object) tensor_cells.push_back(i);
    compiled.given.clear();
    for (const int64_t index : attr_of(indices).as_ints()) {
      compiled.given.push_back(tensor_cells.at(static_cast<size_t>(index)));
      compiled.cells[compiled.given.back()].cell.object = {};
    }
    if (compiled.writes_tensors)
      for (const size_t i : tensor_cells)
        if (PyObject* const object = compiled.cells[i].cell.object.get())
          compiled.fixed_roots.insert(tensor_of(object).root());
    return Py_NewRef(Py_None);
  });
}

/// Numbers of operations, and the text of the function.
PyObject* describe(PyObject* self, PyObject* /*unused*/) {
  return guarded<PyObject*>(nullptr, [&] {
    const Compiled& compiled = *CompiledObject::of(self);
    return checked(Py_BuildValue(
                       "{s:L,s:L,s:L,s:s}", "updates", static_cast<long long>(compiled.updates),
                       "operations",
                       static_cast<long long>(compiled.graph->function().operation_count()),
                       "backward", static_cast<long long>(compiled.graph->backward_operations()),
                       "text", ir::print(compiled.graph->function()).c_str()))
        .release();
  });
}

PyMethodDef methods[] = {
    {"tensors", tensors, METH_NOARGS, "The tensors that the function reads or writes."},
    {"give", give, METH_O, "Sets which of its tensors come with each call."},
    {"describe", describe, METH_NOARGS, "The size and the text of the function."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(CompiledObject::destroy)},
                       {Py_tp_call, reinterpret_cast<void*>(call)},
                       {Py_tp_methods, methods},
                       {0, nullptr}};
PyType_Spec spec = {"paddle_toolchain._paddle.Compiled", sizeof(CompiledObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
PyMethodDef functions[] = {
    {"compile_function", compile_function, METH_VARARGS, "Traces and compiles a function."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_compiled_functions(PyObject* module) {
  compiled_type = add_type(module, spec, "Compiled");
  add_functions(module, functions);
}

}  // namespace paddle::python
