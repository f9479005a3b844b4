#pragma once
// The search for kernels: records the problems for which a plan had a choice, times the
// alternatives of each in isolation, and keeps those that beat the default in a table.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ops/core/kernel.h"
#include "runtime/kernel_table.h"
#include "tune/findings.h"
#include "tune/target.h"

namespace paddle::tune {

/// A request with several backends or algorithms, kept beyond its plan.
struct KernelProblem {
  const Op* op = nullptr;
  Attrs attrs;
  std::vector<Layout> operands, results;
  std::vector<std::shared_ptr<Storage>> constants;  ///< what `constant` of operands points into
  TargetInfo target;
  PrepareOptions prepare;
  ChoiceLevel level = ChoiceLevel::kBackend;
  std::vector<std::string> names;
  int64_t uses = 0;  ///< in the plans that were made
};

/// Records problems while plans are made, which choose as `inner` does; null: the default order.
class KernelRecorder final : public KernelChoices {
 public:
  explicit KernelRecorder(KernelChoices* inner = nullptr) : inner_(inner) {}
  std::string choose(const KernelRequest& request, ChoiceLevel level,
                     std::span<const std::string> names) override;
  std::vector<KernelProblem> problems() const;

 private:
  KernelChoices* inner_;
  std::map<std::string, KernelProblem> problems_;  ///< by problem_text
};

class KernelSearch {
 public:
  /// Times the alternatives of problems that were not timed yet, the most costly first. The name
  /// of a table with those that are faster, or "" if there are none.
  std::string find(const std::vector<KernelProblem>& problems, const Budget& budget);
  /// The table of that name; null for others.
  KernelChoices* table(const std::string& name);
  /// Writes the table into the folder and returns the name of the file.
  std::string publish(const std::string& name, const std::string& folder);
  Findings& findings() { return findings_; }
  const Findings& findings() const { return findings_; }

 private:
  runtime::KernelTable* open(const std::string& name);

  Findings findings_{"kernels", ".txt"};
  std::map<std::string, runtime::KernelTable> tables_;  ///< those in use
};

}  // namespace paddle::tune
