#pragma once
// Running a model: evaluates bodies and chains under whatever interpreter is active, so that the
// same text traces a module, runs eagerly or only checks shapes. Parameters and states live in the
// caller's ParameterProvider.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lang/eval/host.h"
#include "lang/eval/values.h"
#include "lang/syntax/program.h"
#include "tensor/tensor.h"

namespace paddle::lang {

/// One call of an operation, layer or block, for summaries.
struct CallRecord {
  std::string path;  ///< of layers and blocks with a name of their own; empty for operations
  std::string callee;
  bool is_block = false;
  int depth = 0;  ///< of enclosing blocks
  SourcePosition where;
  std::vector<TensorType> inputs;
  std::vector<TensorType> outputs;
  std::vector<std::pair<std::string, TensorType>> parameters;  ///< path and type, made or used here
};

struct EvaluationOptions {
  bool training = false;
  ParameterProvider* store = nullptr;
  /// Called after each call; a block's record follows those of its body.
  std::function<void(const CallRecord&)> observer;
  /// Functions of the host, by name; they win over operations.
  std::map<std::string, HostFunction> functions;
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// Names and declared types of an entry's inputs; names in shapes that are not params are symbols.
std::vector<std::pair<std::string, TensorType>> input_types(const Program& program,
                                                            const EntryPoint& entry);
/// The output names: the declared ones, or "output".
std::vector<std::string> output_names(const EntryPoint& entry);

/// Runs an entry on its inputs, in the declared order. Gives the outputs in the order of
/// `output_names`. Errors of the text are kConfig, inputs that do not fit kData.
std::vector<NamedTensor> run_entry(const Program& program, const EntryPoint& entry,
                                   const Tensors& inputs, const EvaluationOptions& options);

/// Runs a body or chain that stands outside a model file (a config's `loss:` or `step:`), with
/// `names` as its arguments. Gives what it returns; a body that is one expression gives its value.
/// `assigned`, if given, receives the names that it assigned.
Value run_code(const Code& code, const NamedValues& names, const EvaluationOptions& options,
               std::map<std::string, Value>* assigned = nullptr);

/// check_names against the registry of operations; throws all errors as one.
void check_program(const Program& program, const EvaluationOptions& options = {});

}  // namespace paddle::lang
