#pragma once
// A call of an operation on concrete tensors, with its arguments by name: what a case of a table, a
// generated sample or a command line states. The tensors given for operands are its inputs, so
// that the call can be repeated on others, traced ones included.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ops/core/call.h"

namespace paddle::inspect {

class NamedCall {
 public:
  NamedCall(const Op& op, std::vector<std::pair<std::string, Argument>> arguments);

  const Op& op() const { return *op_; }
  /// Arrays of the operands, in the order of the arguments; lists element by element.
  const std::vector<Array>& inputs() const { return inputs_; }
  /// Positions in `inputs` of an argument's tensors; throws kUsage if it holds none.
  const std::vector<size_t>& positions(const std::string& argument) const;
  bool has_tensors(const std::string& argument) const { return positions_.contains(argument); }
  /// Name of the argument that an input belongs to.
  std::string input_name(size_t input) const;
  /// False for an argument that a word marked as constant.
  bool varies(size_t input) const { return !constants_.contains(input); }
  void hold(const std::string& argument);
  /// Calls the operation with these tensors in place of the inputs; hidden results are left out.
  Tensors operator()(const Tensors& inputs) const;
  /// Operands and attributes as the operation gets them.
  Bound bind(const Tensors& inputs) const;

 private:
  const Op* given_;  ///< as named
  const Op* op_;     ///< the form of it that takes these arguments
  std::vector<std::pair<std::string, Argument>> arguments_;
  std::vector<Array> inputs_;
  std::map<std::string, std::vector<size_t>> positions_;
  std::set<size_t> constants_;
};

/// The declared attribute of that name, or null.
const AttrDef* find_attr(const Op& op, const std::string& name);

/// Reads arguments as a command line gives them, `name=value`, in words:
///   x=@file.npy         an array of a file (`file.npz:key` of an archive)
///   x=f32[2,3]          random normal numbers; integers from 0 to 9, bools at random
///   x=f64[2,3]{0.1,2}   uniform in the range; integers below its end
///   x=[f32[2],f32[3]]   a list of tensors
///   x=i64(0,2,1)        a 1-D tensor of these numbers; `i64[3,1](0,2,1)` gives it a shape
///   x=f64[2,3]!         a `!` at the end: no gradient is asked for it
///   axis=1 padding=SAME shape=[2,-1] dtype=float32 p=inf
/// Throws kUsage, naming the argument.
NamedCall parse_call(const Op& op, const std::vector<std::string>& words);

}  // namespace paddle::inspect
