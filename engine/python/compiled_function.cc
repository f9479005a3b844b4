// Functions that jit.to_static compiled: called with the tensors that they read, they return the
// tensors that the Python function would return, write what it would write, and have its gradient.

#include <mutex>
#include <set>

#include "autograd/autograd.h"
#include "ir/clone.h"
#include "ir/replay.h"
#include "python/capture.h"
#include "runtime/compile.h"

namespace paddle::python {
namespace {

/// The gradient of a compiled function. It takes all inputs of the function, values that the
/// function computed, and the gradients of the outputs.
struct Backward {
  std::shared_ptr<ir::Function> joint;  ///< (inputs, gradients of outputs) -> gradients
  std::unique_ptr<runtime::Executable> run;
  std::vector<size_t> outputs;  ///< those that have a gradient, by index
  std::vector<size_t> inputs;   ///< those whose gradients `run` returns, by cell
  std::mutex mutex;
};

/// A cell of a compiled function.
struct CompiledCell {
  Cell cell;
  size_t owner = 0;  ///< kGradient: the index of the tensor
};

struct Compiled {
  std::shared_ptr<ir::Function> function;
  std::unique_ptr<runtime::Executable> run;
  std::vector<CompiledCell> cells;
  std::vector<size_t> read;     ///< the cell of each input
  std::vector<size_t> written;  ///< the cells of the results after the outputs
  std::vector<size_t> removed;  ///< cells without a value after a call
  std::vector<size_t> given;    ///< tensor cells that come with each call
  bool writes_tensors = false;
  std::set<const void*> fixed_roots;  ///< of tensors that do not, if it writes tensors
  std::vector<std::function<void()>> after_run;
  size_t outputs = 0, residuals = 0;
  int random_input = -1;
  int64_t random_calls = 0;
  bool is_long = false;
  std::shared_ptr<Backward> backward;
  std::mutex mutex;
};

using CompiledObject = Holder<std::shared_ptr<Compiled>>;
PyTypeObject* compiled_type = nullptr;

// --- compilation ---

using Values = std::vector<ir::Value*>;

/// A function of `inputs` that computes `results` by the operations that `takes` chooses.
template <class Takes>
std::shared_ptr<ir::Function> extract(const ir::Function& from, const std::vector<ir::Port>& ports,
                                      const Values& inputs, const Values& results, Takes&& takes) {
  auto out = std::make_shared<ir::Function>(from.name, from.target);
  ir::Copies copies;
  for (size_t i = 0; i < inputs.size(); ++i)
    copies[inputs[i]] = out->add_input(ports[i], inputs[i]->type);
  for (const auto& operation : from.body.operations)
    if (takes(*operation)) ir::clone_operation(*out, out->body, *operation, copies);
  for (size_t i = 0; i < results.size(); ++i) {
    ir::Value* const value = results[i];
    ir::Value* copy = copies.count(value) ? copies[value] : nullptr;
    if (!copy) {
      ensure(value->constant.has_value(), "to_static: a value is missing");
      copy = copies[value] = out->add_constant(*value->constant);
    }
    out->add_output({ir::PortKind::kValue, str("result_", i)}, copy);
  }
  out->constraints = from.constraints;
  return out;
}

/// Values that depend on the gradients of the outputs, which are inputs from `first` on.
std::set<const ir::Value*> values_of_backward(const ir::Function& function, size_t first) {
  std::set<const ir::Value*> out(
      function.body.arguments.begin() + static_cast<std::ptrdiff_t>(first),
      function.body.arguments.end());
  for (const auto& operation : function.body.operations) {
    bool depends = false;
    ir::for_each_read(*operation, [&](const ir::Value* v) { depends |= out.count(v) > 0; });
    if (depends) out.insert(operation->results.begin(), operation->results.end());
  }
  return out;
}

std::unique_ptr<runtime::Executable> compiled(std::shared_ptr<ir::Function> function, bool exact) {
  ir::verify(*function);
  compiler::CompileOptions options;
  options.exact = exact;
  return runtime::compile(std::move(function), options);
}

/// Adds the gradient of the outputs by the cells that require one, and splits the function into one
/// that also returns what the gradient needs, and the gradient.
void add_backward(Compiled& out, Capture& capture, const Tensors& outputs, bool exact) {
  ir::Function& function = *capture.trace().function();
  ir::Tracer& tracer = capture.trace().tracer();
  auto backward = std::make_shared<Backward>();
  Tensors by, of, cotangents;
  std::vector<size_t> cells;
  for (size_t i = 0; i < out.cells.size(); ++i)
    if (const Cell& cell = out.cells[i].cell; cell.requires_grad && cell.input.defined()) {
      cells.push_back(i);
      by.push_back(cell.input);
    }
  const size_t first = function.inputs.size();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!is_differentiable(outputs[i].dtype())) continue;
    of.push_back(outputs[i]);
    backward->outputs.push_back(i);
    cotangents.push_back(tracer.input({ir::PortKind::kValue, str("gradient_", i)},
                                      {outputs[i].dtype(), outputs[i].shape()}));
  }
  const Tensors found =
      of.empty() || by.empty() ? Tensors(by.size()) : autograd::grad(of, by, cotangents);
  Values results;
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i].defined()) {
      backward->inputs.push_back(cells[i]);
      results.push_back(tracer.value_of(found[i]));
    }
  const Values arguments(function.body.arguments.begin(), function.body.arguments.end());
  const Values own(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(first));
  const std::vector<ir::Port> ports(function.inputs.begin(),
                                    function.inputs.begin() + static_cast<std::ptrdiff_t>(first));
  const auto late = values_of_backward(function, first);
  const auto is_late = [&](const ir::Operation& operation) {
    return !operation.results.empty() && late.count(operation.results[0]) > 0;
  };
  Values forward;
  for (ir::Value* v : function.body.results) forward.push_back(v);
  if (results.empty()) {
    out.function =
        extract(function, ports, own, forward, [&](const ir::Operation& o) { return !is_late(o); });
    return;
  }
  // The gradient reads the inputs of the function, and values that it computes.
  Values residuals;
  std::set<const ir::Value*> seen(arguments.begin(), arguments.end());
  const auto note = [&](const ir::Value* v) {
    if (v->constant || late.count(v) || !seen.insert(v).second) return;
    residuals.push_back(const_cast<ir::Value*>(v));
  };
  for (const auto& operation : function.body.operations) {
    if (!is_late(*operation)) continue;
    std::set<const ir::Value*> inner;
    for (const auto& region : operation->regions) {
      ir::for_each_operation(*region, [&](const ir::Operation& o) {
        inner.insert(o.results.begin(), o.results.end());
        for (const auto& nested : o.regions)
          inner.insert(nested->arguments.begin(), nested->arguments.end());
      });
      inner.insert(region->arguments.begin(), region->arguments.end());
    }
    for (const ir::Value* v : operation->operands)
      if (v) note(v);
    for (const auto& region : operation->regions)
      for (const ir::Value* v : ir::captures(*region))
        if (!inner.count(v)) note(v);
  }
  for (const ir::Value* v : results) note(v);
  forward.insert(forward.end(), residuals.begin(), residuals.end());
  out.residuals = residuals.size();
  Values inputs = own;
  std::vector<ir::Port> backward_ports = ports;
  for (size_t i = 0; i < residuals.size(); ++i) {
    inputs.push_back(residuals[i]);
    backward_ports.push_back({ir::PortKind::kValue, str("residual_", i)});
  }
  for (size_t i = first; i < arguments.size(); ++i) {
    inputs.push_back(arguments[i]);
    backward_ports.push_back(function.inputs[i]);
  }
  backward->run = compiled(extract(function, backward_ports, inputs, results, is_late), exact);
  backward->joint = extract(function, function.inputs, arguments, results,
                            [](const ir::Operation&) { return true; });
  out.function =
      extract(function, ports, own, forward, [&](const ir::Operation& o) { return !is_late(o); });
  out.backward = std::move(backward);
}

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
      out->random_input = capture.random_input();
      out->random_calls = capture.random_calls();
      out->after_run = std::move(capture.after_runs());
      out->function = capture.trace().function();
      const bool has_gradient =
          wants_gradient && !capture.has_backward() &&
          std::any_of(out->cells.begin(), out->cells.end(),
                      [](const CompiledCell& c) { return c.cell.requires_grad; });
      if (has_gradient) {
        const InterpreterScope scope(tracer);
        add_backward(*out, capture, outputs, exact != 0);
      }
    }
    {
      const WithoutLock others;
      out->run = compiled(out->function, exact != 0);
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

std::vector<Array> input_arrays(const Compiled& compiled, const Tensors& values) {
  std::vector<Array> out;
  out.reserve(compiled.read.size() + 1);
  for (const size_t i : compiled.read) out.push_back(values[i].array().contiguous());
  if (compiled.random_input >= 0)
    out.insert(out.begin() + compiled.random_input, take_random_state(compiled.random_calls));
  return out;
}

/// Runs, without Python's lock if that may take long or another thread runs the function.
std::vector<Array> run_locked(runtime::Executable& run, std::mutex& mutex,
                              const std::vector<Array>& inputs, bool is_long) {
  std::unique_lock lock(mutex, std::try_to_lock);
  const WithoutLock others(is_long || !lock);
  if (!lock) lock.lock();
  return run.run_on_device(inputs);
}

/// The outputs with a record of the call, through which gradients flow.
Tensors with_gradient(const std::shared_ptr<Compiled>& compiled, const Tensors& values,
                      std::vector<Array> inputs, std::vector<Array> residuals, Tensors outputs) {
  const std::shared_ptr<Backward> backward = compiled->backward;
  Tensors operands, of;
  for (const size_t i : backward->inputs) operands.push_back(values[i]);
  for (const size_t i : backward->outputs) of.push_back(outputs[i]);
  const auto vjp = [=, inputs = std::move(inputs), residuals = std::move(residuals)](
                       const Tensors& cotangents, const std::vector<bool>&) -> Tensors {
    Tensors seeds = cotangents;
    for (size_t i = 0; i < seeds.size(); ++i)
      if (!seeds[i].defined()) seeds[i] = Tensor(Array::zeros(of[i].dtype(), of[i].array().shape));
    if (autograd::is_recording()) {
      // The gradient of this gradient: all is computed again from the operands, and recorded.
      Tensors all;
      size_t next = 0;
      for (size_t i = 0; i < inputs.size(); ++i) {
        const bool is_random = static_cast<int>(i) == compiled->random_input;
        const size_t cell = is_random ? compiled->cells.size() : compiled->read[next++];
        const auto at = std::find(backward->inputs.begin(), backward->inputs.end(), cell);
        all.push_back(at == backward->inputs.end()
                          ? Tensor(inputs[i])
                          : operands[static_cast<size_t>(at - backward->inputs.begin())]);
      }
      all.insert(all.end(), seeds.begin(), seeds.end());
      return ir::replay(*backward->joint, all);
    }
    std::vector<Array> arrays = inputs;
    arrays.insert(arrays.end(), residuals.begin(), residuals.end());
    for (const Tensor& seed : seeds) arrays.push_back(seed.array().contiguous());
    const std::lock_guard lock(backward->mutex);
    Tensors out;
    for (Array& each : backward->run->run_on_device(arrays)) out.emplace_back(std::move(each));
    return out;
  };
  const Tensors recorded = autograd::with_vjp(of, operands, vjp);
  for (size_t i = 0; i < recorded.size(); ++i) outputs[backward->outputs[i]] = recorded[i];
  return outputs;
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
    std::vector<Array> inputs = input_arrays(*compiled, values);
    std::vector<Array> results =
        run_locked(*compiled->run, compiled->mutex, inputs, compiled->is_long);
    Tensors outputs;
    for (size_t i = 0; i < compiled->outputs; ++i) outputs.emplace_back(results[i]);
    for (size_t i = 0; i < compiled->written.size(); ++i) {
      write_cell(*compiled, objects, compiled->written[i], Tensor(results[compiled->outputs + i]));
    }
    for (const size_t i : compiled->removed) write_cell(*compiled, objects, i, {});
    for (const auto& each : compiled->after_run) each();
    if (compiled->backward) {
      const auto first = static_cast<std::ptrdiff_t>(compiled->outputs + compiled->written.size());
      outputs = with_gradient(compiled, values, std::move(inputs),
                              {results.begin() + first, results.end()}, std::move(outputs));
    }
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
                       "{s:L,s:L,s:L,s:s}", "updates",
                       static_cast<long long>(compiled.after_run.size()), "operations",
                       static_cast<long long>(compiled.function->operation_count()), "backward",
                       static_cast<long long>(
                           compiled.backward ? compiled.backward->run->function().operation_count()
                                             : 0),
                       "text", ir::print(*compiled.function).c_str()))
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
