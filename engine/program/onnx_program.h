#pragma once
// A model in an ONNX file as a program that can be trained: its floating initializers are
// parameters that begin with the file's values.

#include <map>
#include <memory>
#include <string>

#include "lang/syntax/program.h"

namespace paddle::program {

/// Names for inputs and outputs of the file: the program's name first, the file's second. Those
/// that are left out keep the file's name, with `_` for what a name cannot hold. If an output is a
/// value inside of the file's graph, the program has these outputs only, and the inputs that they
/// need.
struct OnnxNames {
  std::map<std::string, std::string> inputs, outputs;
};

/// kModel if the file is not a model that can be trained, kConfig if a name is not in it.
std::shared_ptr<const lang::Program> read_onnx_program(const std::string& path,
                                                       const OnnxNames& names = {});

}  // namespace paddle::program
