#include "inspect/check.h"

#include <regex>

#include "inspect/numeric.h"

namespace paddle::inspect {
namespace {

class Filter {
 public:
  explicit Filter(const std::string& pattern) : all_(pattern.empty()) {
    try {
      if (!all_) expression_ = std::regex(pattern);
    } catch (const std::regex_error& e) {
      fail(ErrorCode::kUsage, "--filter: '", pattern, "' is not a regular expression");
    }
  }
  bool takes(const std::string& name) const { return all_ || std::regex_search(name, expression_); }

 private:
  bool all_;
  std::regex expression_;
};

CheckResult run_all(const std::vector<std::string>& names,
                    const std::function<std::string(size_t)>& job, const CheckOptions& options,
                    const FailureReport& report) {
  CheckResult result;
  run_isolated(
      names.size(), job,
      [&](size_t i, const std::string& bad) {
        ++(bad.empty() ? result.passed : result.failed);
        if (!bad.empty()) report(str(names[i], ": ", bad));
      },
      options.isolation);
  return result;
}

}  // namespace

CheckResult check_table(const std::string& path, const CheckOptions& options,
                        const FailureReport& report) {
  CaseTable table = read_case_table(path);
  const Filter filter(options.filter);
  std::erase_if(table.cases, [&](const Case& c) { return !filter.takes(c.name); });
  std::vector<std::string> names;
  for (const Case& c : table.cases) names.push_back(c.name);
  return run_all(
      names, [&](size_t i) { return run_case(table.cases[i], table.arrays.get(), options.cases); },
      options, report);
}

CheckResult check_gradients(int order, const CheckOptions& options, const FailureReport& report) {
  const Filter filter(options.filter);
  std::vector<const Op*> ops;
  std::vector<std::string> names;
  for (const Op* op : all_ops()) {
    if (!op->differentiable() || op->has(kControlFlow) || !filter.takes(std::string(op->name())))
      continue;
    ops.push_back(op);
    names.emplace_back(op->name());
  }
  return run_all(
      names,
      [&](size_t i) {
        return check_gradient(*ops[i], order, options.cases.modes, options.cases.device);
      },
      options, report);
}

}  // namespace paddle::inspect
