#pragma once
// Tracing of a Python function that will be called again (jit.to_static): tensors that exist before
// the call become inputs of the traced function, and those that it writes become results. Not for
// use outside the room.

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "python/trace.h"

namespace paddle::python {

/// A value that lives outside of the traced function: each call reads it, writes it, or both.
struct Cell {
  enum class Kind : uint8_t {
    kTensor,    ///< of a Python object
    kGradient,  ///< of the tensor of another cell
    kPlace,     ///< read and written by functions
  };
  Kind kind = Kind::kPlace;
  Ref object = {};                              ///< kTensor
  Cell* owner = nullptr;                        ///< kGradient: the tensor's
  std::function<Tensor()> get = {};             ///< kPlace; undefined if there is no value
  std::function<void(const Tensor&)> set = {};  ///< kPlace that the function may write
  bool requires_grad = false;                   ///< of a tensor, when the function was traced
  Tensor before = {};                           ///< when the function was traced
  Tensor input = {};                            ///< undefined if the function does not read it
  Tensor now = {};                              ///< at this point of the trace
  bool is_written() const {
    return now.defined() != before.defined() ||
           (now.defined() && (!input.defined() || now.content() != input.content()));
  }
};
/// Gives a tensor object another value of its type. A leaf stays the leaf that it is.
void store_value(PyObject* tensor, const Tensor& next);

class Capture {
 public:
  /// The sizes of a tensor that are symbols in the trace; constants elsewhere.
  using Sizes = std::map<PyObject*, Shape>;

  explicit Capture(Sizes sizes);
  ~Capture();  ///< all values are again those from before
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  Trace& trace() { return trace_; }
  /// Makes the value of a tensor object an input of the traced function. Called for each access to
  /// a tensor with a known value.
  void take(PyObject* object);
  /// The cell of a tensor object; null if it has not been taken.
  Cell* find(PyObject* object);
  /// The cell of a place in memory other than a tensor object; the first time it is added, with its
  /// value before the trace.
  Cell& cell_of(const void* place, std::function<Tensor()> get,
                std::function<void(const Tensor&)> set = {});
  /// Counts a step of an optimizer.
  void note_update() { ++updates_; }
  int64_t updates() const { return updates_; }

  /// The gradient of a tensor that `backward` adds to.
  Cell& gradient_of(PyObject* object);
  /// Adds to the gradients of all leaves that were taken.
  void backward(const Tensors& outputs, const Tensors& cotangents);
  bool has_backward() const { return has_backward_; }

  /// The random state of the next call of an operation, made when it is needed.
  std::function<Tensor()> next_random_state();
  int64_t random_calls() const { return random_calls_; }
  /// The index of the input with the random state; -1 if no operation needs one.
  int random_input() const { return random_input_; }

  std::list<Cell>& cells() { return cells_; }
  const std::list<Cell>& cells() const { return cells_; }
  /// Sets all values to those from before the trace. Cells keep what the function wrote.
  void restore();

 private:
  /// Adds a cell, whose value the function reads if it is defined.
  Cell& add(Cell cell);

  Sizes sizes_;
  Trace trace_;
  std::optional<InterpreterScope> scope_;
  std::list<Cell> cells_;  ///< in the order of first use; addresses are stable
  std::map<PyObject*, Cell*> tensors_, gradients_;
  std::map<const void*, Cell*> places_;
  Tensor random_;
  int64_t random_calls_ = 0, updates_ = 0;
  int random_input_ = -1;
  bool has_backward_ = false, is_restored_ = false;
  Capture* previous_;
};

/// The innermost one of this thread; null if no function is traced for calls.
Capture* current_capture();

}  // namespace paddle::python
