#pragma once
// Runs test cases in the layout of the ONNX project's suite: folders that hold `model.onnx` and
// `test_data_set_N/input_I.pb`, `output_I.pb`. Each case runs in a child process, is compared with
// the suite's tolerances and held against a list of known failures.

#include <functional>
#include <string>
#include <vector>

#include "inspect/isolate.h"
#include "onnx/graph/session.h"

namespace paddle::inspect {

struct SuiteOptions {
  std::string filter;              ///< pattern of case names; "" for all
  std::vector<std::string> known;  ///< files of "name: reason" lines, the cases that may fail
  onnx::Mode mode = onnx::Mode::kAutomatic;
  bool by_operator = false;  ///< a line for each operator that has failures
  IsolationOptions isolation;
};

struct SuiteResult {
  size_t passed = 0, failed = 0;
  size_t unexpected = 0;  ///< failures that are not known, and known ones that pass
};

/// `folders` are cases or hold cases; `print` gets a line at a time.
SuiteResult run_onnx_suite(const std::vector<std::string>& folders, const SuiteOptions& options,
                           const std::function<void(const std::string&)>& print);

}  // namespace paddle::inspect
