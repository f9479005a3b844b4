#pragma once
// A model at a glance (`paddle show`): its layers and blocks in the order of the text, with output
// shapes, parameters and floating-point operations. Found on types only; nothing is computed.

#include <map>
#include <string>
#include <vector>

#include "lang/eval/evaluator.h"

namespace paddle::lang {

struct SummaryLine {
  std::string path;  ///< of layers and blocks; empty for operations without parameters
  std::string callee;
  int depth = 0;  ///< of enclosing blocks
  bool is_block = false;
  std::string output;      ///< "float32[batch, 10]"
  int64_t parameters = 0;  ///< elements of the parameters first used here; of a block, all in it
  double flops = 0;        ///< of the forward pass here; of a block, all in it
  SourcePosition where;
};

struct Summary {
  std::string name;
  std::vector<std::pair<std::string, TensorType>> inputs;
  std::vector<std::pair<std::string, TensorType>> outputs;
  std::vector<SummaryLine> lines;
  std::vector<std::pair<std::string, TensorType>> parameters;  ///< in the order of their making
  std::vector<std::pair<std::string, TensorType>> states;
  /// Tables of rows by key, with the type of a row: "float32[8]".
  std::vector<std::pair<std::string, TensorType>> tables;
  int64_t parameter_count = 0;
  int64_t state_count = 0;
  double flops = 0;                     ///< of one forward pass; a multiply-add counts as two
  std::map<std::string, int64_t> dims;  ///< the sizes that the operations were counted with
  std::vector<std::string> notes;       ///< blocks that hide an operation, …
};

/// Runs an entry on types. Dims that `dims` does not give count as 1 in `flops`; loops on tensors
/// count as one iteration, and of branches on tensors both sides.
Summary summarize(const Program& program, const EntryPoint& entry,
                  const std::map<std::string, int64_t>& dims = {}, bool training = false);

/// The summary as a table for a terminal; lines deeper than `max_depth` are left out.
std::string text(const Summary& summary, int max_depth = 1);

}  // namespace paddle::lang
