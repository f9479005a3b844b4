#pragma once
// Algorithm selection: a kernel that can compute an operation in several ways lists them in a table
// and takes the best one that applies.

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/core/kernel.h"

namespace paddle::cpu {

/// One way to compute an operation. A `Problem` is what the algorithms of a table read: the
/// `request`, and what they have in common, such as a geometry.
template <class Problem>
struct Algorithm {
  std::string_view name;
  /// Estimated speedup over the table's algorithm of speedup 1; 0 where the algorithm does not
  /// apply.
  double (*speedup)(const Problem& problem);
  /// May still return null, for instance where an activation has no vector loop.
  std::unique_ptr<Kernel> (*prepare)(const Problem& problem);
};

/// Speedup of algorithms that are preferred wherever they apply.
inline constexpr double kPreferred = std::numeric_limits<double>::infinity();

/// Speedup of an algorithm that applies everywhere.
template <class Problem>
double baseline(const Problem& /*problem*/) {
  return 1;
}

/// The kernel of the best algorithm that applies; of equal ones the first in the table. A choice of
/// the policy comes before the estimates. Null if none has a kernel.
template <class Problem>
std::unique_ptr<Kernel> prepare_best(std::span<const Algorithm<Problem>> table,
                                     const Problem& problem) {
  struct Candidate {
    double speedup;
    const Algorithm<Problem>* algorithm;
  };
  std::vector<Candidate> candidates;
  for (const Algorithm<Problem>& algorithm : table)
    if (const double speedup = algorithm.speedup(problem); speedup > 0)
      candidates.push_back({speedup, &algorithm});
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.speedup > b.speedup; });
  if (KernelChoices* const choices = problem.request.prepare.choices;
      choices && candidates.size() > 1) {
    std::vector<std::string> names;
    for (const Candidate& candidate : candidates) names.emplace_back(candidate.algorithm->name);
    const std::string wanted = choices->choose(problem.request, ChoiceLevel::kAlgorithm, names);
    std::stable_partition(candidates.begin(), candidates.end(), [&](const Candidate& candidate) {
      return candidate.algorithm->name == wanted;
    });
  }
  for (const Candidate& candidate : candidates)
    if (auto kernel = candidate.algorithm->prepare(problem)) return kernel;
  return nullptr;
}

}  // namespace paddle::cpu
