// Deferred calls: the interpreter, and the object of Python that has those of a function.

#include "python/lazy.h"

#include "autograd/autograd.h"
#include "python/deferred_calls.h"
#include "tensor/shared_storage.h"

namespace paddle::python {
namespace {

/// Whether a call can be deferred: its result is known by its type, and it does nothing else.
bool can_defer(const OpCall& call) {
  constexpr uint32_t kNever = kRunTimeShape | kEffect | kControlFlow | kAccessesFiles |
                              kAccessesProcesses | kAccessesNetwork | kAccessesTerminal |
                              kAccessesRanks;
  if ((call.op.def->traits & kNever) != 0 || call.results.empty()) return false;
  for (const TensorType& type : call.results) {
    if (!type.ranked || type.dtype == DType::kString) return false;
    for (const Dim& dim : type.shape)
      if (!dim.is_constant()) return false;
  }
  return true;
}

/// Storage that other packages may write.
bool is_shared(const Tensor& tensor) {
  const Array* const array = tensor.concrete();
  return array && paddle::is_shared(*array);
}

class Deferring final : public Interpreter {
 public:
  explicit Deferring(std::shared_ptr<Segments> segments)
      : segments_(std::move(segments)), recording_(std::make_shared<Recording>(segments_)) {}

  Tensors apply(const OpCall& call) override {
    const bool records = requires_gradient(call);
    // As the tape and the executor do, so that random numbers are drawn here.
    const bool is_recorded_in_parts =
        records && !call.op.def->vjp && call.op.def->decompose && !*call.op.def->no_gradient;
    if (is_recorded_in_parts || is_decomposed(call, TargetInfo{})) return decompose(call);
    std::vector<Operand> operands;
    if (can_defer(call) && (!records || call.op.def->vjp) &&
        describe(call.op, call.operands, operands)) {
      if (recording_->calls() >= kMaxCalls) {
        finish();
        operands.clear();
        describe(call.op, call.operands, operands);
      }
      Tensors results;
      if (call.op.def->view && recording_->follow(call.op, call.attrs, operands, results))
        return results;
      results = recording_->add(call, std::move(operands), python_location());
      if (!results.empty()) return results;
    }
    return compute_now(call);
  }

  bool apply_known(const Op& op, const Tensors& operands, const Attrs& attrs,
                   Tensors& results) override {
    if (op.def->view || recording_->calls() >= kMaxCalls) return false;  // views have links to make
    for (const Tensor& each : operands)
      if (each.defined() && each.type().weak) return false;  // promoted first
    std::vector<Operand> described;
    return describe(op, operands, described) && recording_->follow(op, attrs, described, results);
  }

  /// Notes a small tensor of a Python object; large ones are inputs in any case.
  void note(const Tensor& tensor) {
    const Array* const array = tensor.defined() ? tensor.concrete() : nullptr;
    if (!array || !is_small(*array)) return;
    if (noted_.size() >= kMaxNoted) noted_.clear();
    noted_.emplace(tensor.content().get(), tensor.content());
  }

  /// Computes what is in use of what was deferred.
  void finish() {
    const std::shared_ptr<Recording> recording = recording_;
    recording_ = std::make_shared<Recording>(segments_);
    recording->run();
  }

 private:
  static bool requires_gradient(const OpCall& call) {
    return autograd::is_recording() && !call.op.has(kStopGradient) &&
           std::any_of(call.operands.begin(), call.operands.end(), [](const Tensor& t) {
             return t.defined() && t.requires_grad() && is_differentiable(t.dtype());
           });
  }

  /// The operands as they are known again; false if the call must be computed at once.
  bool describe(const Op& op, const Tensors& operands, std::vector<Operand>& out) {
    for (const Tensor& each : operands) {
      // A value that another recording has deferred is computed first, which may end this one.
      if (!each.defined()) continue;
      const auto* const deferred = deferred_content(each);
      if (deferred && deferred->recording != recording_) static_cast<void>(deferred->concrete());
      if (!is_pending(each.content().get()) && is_shared(each)) return false;
    }
    if (recording_->is_over()) recording_ = std::make_shared<Recording>(segments_);
    const int state = op.has(kRandom) ? op.operand_index("rng") : -1;
    for (size_t i = 0; i < operands.size(); ++i) {
      const Tensor& each = operands[i];
      const bool is_state = state >= 0 && each.defined() && each.dtype() == DType::kU64;
      out.push_back(recording_->operand(
          each, is_state || (each.defined() && noted_.count(each.content().get()) > 0)));
    }
    return true;
  }

  Tensors compute_now(const OpCall& call) {
    for (const Tensor& each : call.operands)
      if (each.defined()) static_cast<void>(each.concrete());
    Interpreter& below = next();
    const ScopedInterpreter scope(below);
    return below.apply(call);
  }

  std::shared_ptr<Segments> segments_;
  std::shared_ptr<Recording> recording_;
  std::unordered_map<const Content*, std::shared_ptr<const Content>> noted_;
};

thread_local std::unique_ptr<Deferring> active;

// --- the object of Python ---

using SegmentsObject = Holder<std::shared_ptr<Segments>>;
PyTypeObject* segments_type = nullptr;

PyObject* make_segments(PyTypeObject* type, PyObject* arguments, PyObject* /*names*/) {
  return guarded<PyObject*>(nullptr, [&] {
    int exact = 0;
    if (!PyArg_ParseTuple(arguments, "p:Segments", &exact)) throw PythonError();
    auto segments = std::make_shared<Segments>();
    segments->exact = exact != 0;
    return SegmentsObject::make(type, std::move(segments)).release();
  });
}

PyObject* enter(PyObject* self, PyObject* /*unused*/) {
  return guarded<PyObject*>(nullptr, [&] {
    const std::shared_ptr<Segments>& segments = SegmentsObject::of(self);
    if (active || current_trace() || segments->nodes > kMaxNodes) return PyBool_FromLong(0);
    active = std::make_unique<Deferring>(segments);
    return PyBool_FromLong(1);
  });
}

PyObject* leave(PyObject* /*self*/, PyObject* /*unused*/) {
  return guarded<PyObject*>(nullptr, [&] {
    const std::unique_ptr<Deferring> ended = std::move(active);
    if (ended) {
      const WithoutLock others;
      ended->finish();
    }
    return Py_NewRef(Py_None);
  });
}

void collect(const Node& node, const Ref& out) {
  for (const auto& [used, graph] : node.graphs)
    if (graph) {
      const Ref count =
          checked(PyLong_FromLongLong(static_cast<long long>(graph->function().operation_count())));
      checked(PyList_Append(out.get(), count.get()));
    }
  for (const auto& next : node.after) collect(*next, out);
}

PyObject* describe(PyObject* self, PyObject* /*unused*/) {
  return guarded<PyObject*>(nullptr, [&] {
    Segments& segments = *SegmentsObject::of(self);
    const std::lock_guard lock(segments.mutex);
    Ref out = checked(PyList_New(0));
    collect(segments.root, out);
    return out.release();
  });
}

PyMethodDef methods[] = {
    {"enter", enter, METH_NOARGS, "Defers the calls of this thread; whether it does."},
    {"leave", leave, METH_NOARGS, "Computes what is deferred; calls compute at once again."},
    {"describe", describe, METH_NOARGS, "The numbers of operations of compiled segments."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make_segments)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(SegmentsObject::destroy)},
                       {Py_tp_methods, methods},
                       {0, nullptr}};
PyType_Spec spec = {"paddle_toolchain._paddle.Segments", sizeof(SegmentsObject), 0,
                    Py_TPFLAGS_DEFAULT, slots};

}  // namespace

Interpreter* deferring() { return active.get(); }

bool is_deferred(const Tensor& tensor) {
  return tensor.defined() && is_pending(tensor.content().get());
}

void compute(const Tensors& tensors) {
  if (std::none_of(tensors.begin(), tensors.end(), is_deferred)) return;
  const WithoutLock others;
  for (const Tensor& each : tensors)
    if (each.defined()) static_cast<void>(each.concrete());
}

void note_operand(const Tensor& tensor) {
  if (active && !is_deferred(tensor)) active->note(tensor);
}

void add_lazy(PyObject* module) { segments_type = add_type(module, spec, "Segments"); }

}  // namespace paddle::python
