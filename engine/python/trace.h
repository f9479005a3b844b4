#pragma once
// Recording of a Python function as a function of the IR, for jit.save. Not for use outside the
// room.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/tracer.h"
#include "python/core.h"

namespace paddle::python {

/// While one is current, calls on its thread are recorded instead of computed.
class Trace {
 public:
  /// `names`: tensors that become parameters of the function where it uses them, by object.
  Trace(std::string function, std::map<PyObject*, std::string> names);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  ir::Tracer& tracer() { return tracer_; }
  const std::shared_ptr<ir::Function>& function() const { return function_; }
  /// The parameter that stands for a tensor; null if the tensor has no name.
  Tensor* parameter(PyObject* object);
  /// Whether a tensor was made outside of the branch or loop that is being recorded.
  bool is_outside(const Tensor& tensor) const;
  /// Whether a branch or a loop is being recorded.
  bool is_inside() const { return !firsts_.empty(); }
  /// Values from this number on are those of the branch or loop that begins.
  void enter(int first_value) { firsts_.push_back(first_value); }
  void leave() { firsts_.pop_back(); }
  /// The names and tensors of the parameters that were used.
  const std::map<std::string, PyObject*>& used() const { return used_; }

 private:
  std::shared_ptr<ir::Function> function_;
  ir::Tracer tracer_;
  std::map<PyObject*, std::string> names_;
  std::map<PyObject*, Tensor> parameters_;
  std::map<std::string, PyObject*> used_;
  std::vector<int> firsts_;
  Trace* previous_;
};

/// The innermost one of this thread; null if calls are computed.
Trace* current_trace();

/// The file and line of Python outside of the package that is running: "model.py:12"; "" if there
/// is none.
std::string python_location();

/// A size that is not known while a function is recorded, or the int of a known one.
Ref python_dim(const Dim& dim);
bool is_dim(PyObject* object);
const Dim& dim_of(PyObject* object);

}  // namespace paddle::python
