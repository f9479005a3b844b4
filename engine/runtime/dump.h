#pragma once
// Dumps a function as text after each pass (`--dump-ir`).

#include <string>

#include "compiler/pipeline.h"

namespace paddle::runtime {

/// Returns an observer that writes each stage as a module into `folder` (created if absent), for
/// example `predict.04.rewrite.txt`, and a text that a pass of a plug-in gave and that is not a
/// valid module as `PASS.invalid.txt`. Constants of more than 1024 elements are in files of the
/// folder `constants` there (runtime/constant_files.h), to which the texts refer. kDevice if a file
/// cannot be written.
compiler::Observer dump_stages(const std::string& folder, const std::string& module_name);

}  // namespace paddle::runtime
