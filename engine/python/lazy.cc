// Deferred calls. Each function has a tree of the calls that it made: a call that was made before
// at the same place follows its branch without type inference. A sequence of calls that is needed
// a second time, with the same results in use, is compiled.

#include "python/lazy.h"

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>

#include "autograd/autograd.h"
#include "autograd/pending.h"
#include "ops/core/operators.h"
#include "ops/generated/math.h"
#include "python/compiled_graph.h"
#include "python/trace.h"

namespace paddle::python {
namespace {

constexpr size_t kMaxCalls = 2000;  ///< deferred at a time
constexpr size_t kMaxNodes = 4096;  ///< of a function, which then computes at once
constexpr size_t kMaxNoted = 1000;
constexpr int64_t kMaxConstantBytes = 64;  ///< larger ones are inputs

bool is_small(const Array& array) {
  return storage_bytes(array.dtype, array.size()) <= kMaxConstantBytes;
}

/// An operand of a deferred call. A small one that is of no Python object is a constant.
struct Operand {
  enum class Kind : uint8_t { kAbsent, kInput, kResult, kConstant };
  Kind kind = Kind::kAbsent;
  size_t index = 0;  ///< of the input, or among all results
  bool requires_grad = false;
  TensorType type = {};  ///< kInput
  Array constant = {};   ///< kConstant
  Tensor value = {};     ///< kInput, while it is matched

  bool is_same(const Operand& other) const {
    if (kind != other.kind || index != other.index || requires_grad != other.requires_grad)
      return false;
    if (kind == Kind::kInput) return same_type(type, other.type);
    if (kind != Kind::kConstant) return true;
    return constant.dtype == other.constant.dtype && constant.shape == other.constant.shape &&
           std::memcmp(constant.raw(), other.constant.raw(), bytes()) == 0;
  }
  size_t bytes() const {
    return static_cast<size_t>(storage_bytes(constant.dtype, constant.size()));
  }
};

/// A call at its place in a function.
struct Node {
  Node* before = nullptr;
  const Op* op = nullptr;
  Attrs attrs = {};
  std::vector<Operand> operands = {};
  bool is_recorded = false;
  std::string location = {};
  std::vector<std::shared_ptr<const TensorType>> results = {};
  std::vector<bool> requires_grad = {};  ///< of each result
  std::vector<std::unique_ptr<Node>> after = {};
  /// Compiled functions of all calls up to here, by the results that are in use; null where they
  /// were computed once.
  std::map<std::vector<size_t>, std::unique_ptr<CompiledGraph>> graphs = {};
  bool compiles = true;

  bool takes_gradients() const {
    return std::any_of(operands.begin(), operands.end(),
                       [](const Operand& each) { return each.requires_grad; });
  }
  bool is_call(const Op& its_op, const Attrs& its_attrs, const std::vector<Operand>& its_operands,
               bool recorded) const {
    return op == &its_op && is_recorded == recorded && operands.size() == its_operands.size() &&
           std::equal(operands.begin(), operands.end(), its_operands.begin(),
                      [](const Operand& a, const Operand& b) { return a.is_same(b); }) &&
           attrs == its_attrs;
  }
};

/// The calls of a function.
struct Segments {
  bool exact = false;
  std::mutex mutex;
  Node root;
  std::atomic<size_t> nodes = 0;
};

class Recording;

/// The result of a deferred call.
struct Deferred : Content {
  std::shared_ptr<Recording> recording;
  size_t index = 0;
  std::shared_ptr<Content> record;       ///< null if it requires no gradient
  std::shared_ptr<const Content> value;  ///< when it is computed
  mutable std::atomic<bool> is_computed = false;

  const Array* concrete() const override;
};

const Deferred* deferred_content(const Tensor& tensor) {
  return tensor.defined() ? dynamic_cast<const Deferred*>(tensor.content().get()) : nullptr;
}

bool is_pending(const Content* content) {
  const auto* const deferred = dynamic_cast<const Deferred*>(content);
  return deferred && !deferred->is_computed;
}

/// Calls from the last needed value to the next one.
class Recording : public std::enable_shared_from_this<Recording> {
 public:
  explicit Recording(std::shared_ptr<Segments> segments)
      : segments_(std::move(segments)), at_(&segments_->root) {}

  bool is_over() const { return is_over_; }
  size_t calls() const { return calls_; }
  /// The results of a call that was made at this place before; false if there was none, or if the
  /// recording is over.
  bool follow(const Op& op, const Attrs& attrs, std::vector<Operand>& operands, Tensors& results);
  /// The results of one that was not; none if the recording is over.
  Tensors add(const OpCall& call, std::vector<Operand> operands, std::string location);
  /// How an operand is known again. `noted`: whether it is that of a Python object.
  Operand operand(const Tensor& tensor, bool noted) const;
  /// Gives operands that are new the next indices of inputs.
  void number(std::vector<Operand>& operands) const;
  /// Computes the results that are in use. Errors come again with each use of a result.
  void run();

 private:
  Tensors results_of(const Node& node, std::vector<Operand>& operands);
  std::vector<const Node*> path() const;
  Tensors compute_eagerly(const std::vector<const Node*>& path) const;
  std::unique_ptr<CompiledGraph> compile(const std::vector<const Node*>& path,
                                         const std::vector<size_t>& used) const;
  /// The values of the results in use, by number.
  Tensors computed(const std::vector<size_t>& used);

  std::shared_ptr<Segments> segments_;
  std::mutex mutex_;
  Node* at_;
  size_t calls_ = 0;
  Tensors inputs_;
  std::unordered_map<const Content*, size_t> input_numbers_;
  std::vector<std::shared_ptr<Deferred>> results_;
  std::vector<bool> requires_grad_;
  std::atomic<bool> is_over_ = false;
  std::exception_ptr error_;
};

const Array* Deferred::concrete() const {
  if (!is_computed) recording->run();
  ensure(value != nullptr, "a deferred value was not computed");
  return value->concrete();
}

/// Sets whether calls are recorded for gradients in a scope.
class RecordingScope {
 public:
  explicit RecordingScope(bool recording) : before_(autograd::is_recording()) {
    autograd::set_recording(recording);
  }
  ~RecordingScope() { autograd::set_recording(before_); }
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;

 private:
  bool before_;
};

/// The value without its record.
Tensor without_record(const Operand& /*operand*/, const Tensor& value) {
  return {value.type(), value.content()};
}

/// The traced value, through which no gradient flows.
Tensor without_gradient(const Tensor& value) {
  return is_differentiable(value.dtype()) ? ops::detach(value) : value;
}

// --- recording ---

Operand Recording::operand(const Tensor& tensor, bool noted) const {
  Operand out;
  if (!tensor.defined()) return out;
  out.requires_grad = tensor.requires_grad();
  const std::shared_ptr<const Content>& content = tensor.content();
  if (const auto* const deferred = dynamic_cast<const Deferred*>(content.get());
      deferred && !deferred->is_computed && deferred->recording.get() == this) {
    out.kind = Operand::Kind::kResult;
    out.index = deferred->index;
    return out;
  }
  const Array& array = tensor.array();
  if (is_small(array) && !noted && !out.requires_grad && !input_numbers_.count(content.get())) {
    out.kind = Operand::Kind::kConstant;
    out.constant = array.contiguous();
    return out;
  }
  out.kind = Operand::Kind::kInput;
  out.type = tensor.type();
  out.value = tensor;
  return out;
}

void Recording::number(std::vector<Operand>& operands) const {
  std::map<const Content*, size_t> fresh;
  for (Operand& each : operands) {
    if (each.kind != Operand::Kind::kInput) continue;
    const Content* const content = each.value.content().get();
    const auto it = input_numbers_.find(content);
    each.index = it != input_numbers_.end()
                     ? it->second
                     : fresh.try_emplace(content, inputs_.size() + fresh.size()).first->second;
  }
}

Tensors Recording::results_of(const Node& node, std::vector<Operand>& operands) {
  for (Operand& each : operands) {
    if (each.kind != Operand::Kind::kInput) continue;
    // The value as it is now: later writes in place change the tensor.
    Tensor value = each.value.fresh_cell();
    if (input_numbers_.try_emplace(value.content().get(), each.index).second)
      inputs_.push_back(std::move(value));
    each.value = {};
  }
  Tensors out;
  for (size_t i = 0; i < node.results.size(); ++i) {
    auto result = std::make_shared<Deferred>();
    result->recording = shared_from_this();
    result->index = results_.size();
    if (node.requires_grad[i]) result->record = autograd::pending_record();
    Tensor tensor(node.results[i], result);
    if (result->record) tensor.set_record(result->record);
    results_.push_back(std::move(result));
    requires_grad_.push_back(node.requires_grad[i]);
    out.push_back(std::move(tensor));
  }
  ++calls_;
  return out;
}

bool Recording::follow(const Op& op, const Attrs& attrs, std::vector<Operand>& operands,
                       Tensors& results) {
  const std::lock_guard lock(mutex_);
  const std::lock_guard tree(segments_->mutex);
  if (is_over_) return false;
  number(operands);
  for (const auto& next : at_->after) {
    if (!next->is_call(op, attrs, operands, autograd::is_recording())) continue;
    results = results_of(*next, operands);
    at_ = next.get();
    return true;
  }
  return false;
}

Tensors Recording::add(const OpCall& call, std::vector<Operand> operands, std::string location) {
  const std::lock_guard lock(mutex_);
  const std::lock_guard tree(segments_->mutex);
  if (is_over_) return {};
  number(operands);
  auto node = std::make_unique<Node>();
  node->before = at_;
  node->op = &call.op;
  node->attrs = call.attrs;
  node->is_recorded = autograd::is_recording();
  node->location = std::move(location);
  const bool records = node->is_recorded && !call.op.has(kStopGradient) &&
                       std::any_of(call.operands.begin(), call.operands.end(), [](const Tensor& t) {
                         return t.defined() && t.requires_grad() && is_differentiable(t.dtype());
                       });
  for (const TensorType& type : call.results) {
    node->results.push_back(std::make_shared<const TensorType>(type));
    node->requires_grad.push_back(records && is_differentiable(type.dtype));
  }
  Tensors out = results_of(*node, operands);
  node->operands = std::move(operands);
  at_ = at_->after.emplace_back(std::move(node)).get();
  ++segments_->nodes;
  return out;
}

// --- computing ---

std::vector<const Node*> Recording::path() const {
  std::vector<const Node*> out;
  for (const Node* node = at_; node->op; node = node->before) out.push_back(node);
  std::reverse(out.begin(), out.end());
  return out;
}

/// The operands of a call, from all inputs and results. `plain(operand, value)`: the value of one
/// through which no gradient flows.
template <class Plain>
Tensors operands_of(const Node& node, const Tensors& inputs, const Tensors& results,
                    Plain&& plain) {
  Tensors out;
  for (const Operand& each : node.operands) {
    switch (each.kind) {
      case Operand::Kind::kAbsent:
        out.emplace_back();
        break;
      case Operand::Kind::kConstant:
        out.emplace_back(each.constant);
        break;
      default: {
        const Tensor& value = (each.kind == Operand::Kind::kInput ? inputs : results)[each.index];
        out.push_back(each.requires_grad ? value : plain(each, value));
      }
    }
  }
  return out;
}

Tensors Recording::compute_eagerly(const std::vector<const Node*>& path) const {
  const EagerScope eager(0, 0);
  Tensors results;
  for (const Node* const node : path) {
    const RecordingScope scope(node->is_recorded);
    try {
      for (const Tensor& each :
           call(*node->op, operands_of(*node, inputs_, results, without_record), node->attrs))
        results.push_back(each.fresh_cell());
    } catch (Error& error) {
      throw error.note(str("deferred from ", node->location));
    }
  }
  return results;
}

std::unique_ptr<CompiledGraph> Recording::compile(const std::vector<const Node*>& path,
                                                  const std::vector<size_t>& used) const {
  ir::Function function("segment", TargetInfo{});
  ir::Tracer tracer(function);
  const InterpreterScope scope(tracer);
  Tensors inputs, results;
  std::vector<size_t> by, of;
  for (const Tensor& each : inputs_) {
    if (each.requires_grad()) by.push_back(inputs.size());
    inputs.push_back(
        tracer.input({ir::PortKind::kValue, str("input_", inputs.size())}, each.type()));
  }
  const auto plain = [&](const Operand& operand, const Tensor& value) {
    const bool has_gradient = operand.kind == Operand::Kind::kInput
                                  ? inputs_[operand.index].requires_grad()
                                  : requires_grad_[operand.index];
    return has_gradient ? without_gradient(value) : value;
  };
  for (const Node* const node : path) {
    const ir::LocationScope location(node->location);
    const Tensors found = call(*node->op, operands_of(*node, inputs, results, plain), node->attrs);
    for (size_t i = 0; i < found.size(); ++i)
      results.push_back(node->requires_grad[i] || !node->takes_gradients()
                            ? found[i]
                            : without_gradient(found[i]));
  }
  for (const size_t i : used) {
    if (requires_grad_[i]) of.push_back(function.outputs.size());
    tracer.output({ir::PortKind::kValue, str("result_", i)}, results[i]);
  }
  return std::make_unique<CompiledGraph>(tracer, by, of, segments_->exact);
}

Tensors Recording::computed(const std::vector<size_t>& used) {
  CompiledGraph* graph = nullptr;
  const std::vector<const Node*> calls = path();
  {
    const std::lock_guard tree(segments_->mutex);
    const auto [it, is_first] = at_->graphs.try_emplace(used);
    if (!is_first && !it->second && at_->compiles) {
      try {
        it->second = compile(calls, used);
      } catch (const Error&) {
        at_->compiles = false;  // what cannot be compiled is computed call by call
      }
    }
    graph = it->second.get();
  }
  if (graph) {
    const RecordingScope scope(true);
    return graph->run(inputs_);
  }
  const Tensors all = compute_eagerly(calls);
  Tensors out;
  for (const size_t i : used) out.push_back(all[i]);
  return out;
}

void Recording::run() {
  // Given up after the lock is: they may be Python's.
  Tensors inputs;
  std::vector<std::shared_ptr<Deferred>> results;
  const std::lock_guard lock(mutex_);
  if (is_over_) {
    if (error_) std::rethrow_exception(error_);
    return;
  }
  is_over_ = true;
  std::vector<size_t> used;
  for (size_t i = 0; i < results_.size(); ++i)
    if (results_[i].use_count() > 1) used.push_back(i);
  try {
    if (!used.empty()) {
      const Tensors values = computed(used);
      for (size_t i = 0; i < used.size(); ++i) {
        Deferred& result = *results_[used[i]];
        if (result.record) autograd::complete_record(*result.record, values[i]);
        result.value = values[i].content();
        result.is_computed = true;
      }
    }
  } catch (...) {
    error_ = std::current_exception();
  }
  inputs.swap(inputs_);
  results.swap(results_);
  input_numbers_.clear();
  if (error_) std::rethrow_exception(error_);
}

// --- the interpreter ---

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
  return array && is_imported(*array);
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
