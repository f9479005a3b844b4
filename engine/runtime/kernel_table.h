#pragma once
// A table of kernel choices by problem (operation, layouts, attributes) that was timed on one
// processor with one number of threads. Its file is text, a line for each choice:
//
//   paddle-kernels 1
//   AMD EPYC 9654 (family 25, model 17), avx512, 2 threads
//   chwn algorithm conv2d float32[64, 6, 14, 14] float32[16, 6, 5, 5] … -> … {padding = 2}

#include <map>
#include <string>

#include "ops/core/kernel.h"

namespace paddle::runtime {

/// The name of a problem in a table.
std::string problem_text(const KernelRequest& request, ChoiceLevel level);

class KernelTable final : public KernelChoices {
 public:
  std::string choose(const KernelRequest& request, ChoiceLevel level,
                     std::span<const std::string> names) override;
  void set(std::string problem, std::string name) { names_[std::move(problem)] = std::move(name); }
  bool empty() const { return names_.empty(); }
  size_t size() const { return names_.size(); }

  std::string text() const;
  /// kData with the line if the text has another form, or was timed under other conditions than
  /// `conditions`.
  static KernelTable parse(const std::string& text, const std::string& path,
                           const std::string& conditions);

 private:
  std::map<std::string, std::string> names_;  ///< by problem
};

/// The table of a file, kept to the end of the process. Null, with the reason in `problem`, if it
/// cannot be read or is of other conditions: results do not need it, so nothing else happens.
KernelChoices* open_kernel_table(const std::string& path, std::string& problem);

}  // namespace paddle::runtime
