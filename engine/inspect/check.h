#pragma once
// The two checks of `paddle op check`: a table of reference cases, and gradients against finite
// differences. Each job runs in a child process.

#include <functional>
#include <string>
#include <vector>

#include "inspect/case_table.h"
#include "inspect/isolate.h"

namespace paddle::inspect {

struct CheckOptions {
  CaseOptions cases;
  std::string filter;  ///< regular expression on names of cases or operations; "" for all
  IsolationOptions isolation;
};

struct CheckResult {
  int64_t passed = 0, failed = 0;
};

/// One line per failure: "NAME: what failed".
using FailureReport = std::function<void(const std::string& line)>;

CheckResult check_table(const std::string& path, const CheckOptions& options,
                        const FailureReport& report);
/// Every differentiable operation on its samples, to first or second order.
CheckResult check_gradients(int order, const CheckOptions& options, const FailureReport& report);

}  // namespace paddle::inspect
