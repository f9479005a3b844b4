#pragma once
// The search for kernels: records the problems for which a plan had a choice, times the
// alternatives of each in isolation, and keeps those that beat the default in a table.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ops/core/kernel.h"
#include "runtime/kernel_table.h"

namespace paddle::tune {

/// A request with several backends or algorithms, kept beyond its plan.
struct KernelProblem {
  const Op* op = nullptr;
  Attrs attrs;
  std::vector<Layout> operands, results;
  std::vector<std::shared_ptr<Storage>> constants;  ///< what `constant` of operands points into
  ExecutionPolicy policy;
  ChoiceLevel level = ChoiceLevel::kBackend;
  std::vector<std::string> names;
  int64_t uses = 0;  ///< in the plans that were made
};

/// Records problems while plans are made; the default order stays.
class KernelRecorder final : public KernelChoices {
 public:
  std::string choose(const KernelRequest& request, ChoiceLevel level,
                     std::span<const std::string> names) override;
  std::vector<KernelProblem> take();

 private:
  std::map<std::string, KernelProblem> problems_;  ///< by problem_text
};

class KernelSearch {
 public:
  /// Times alternatives for about `seconds`. The name of a table with those that are faster, or ""
  /// if there is none. Searches once; later calls return the same.
  std::string find(const std::vector<KernelProblem>& problems, double seconds);
  /// The table of that name; null for others.
  KernelChoices* table(const std::string& name);
  /// Writes the table into the folder and returns the name of the file.
  std::string publish(const std::string& name, const std::string& folder) const;
  bool searched() const { return searched_; }

 private:
  bool searched_ = false;
  runtime::KernelTable table_;
};

}  // namespace paddle::tune
