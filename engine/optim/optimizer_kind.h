#pragma once
// The optimizers by the names that configs use. Each is one object: its keys with documentation,
// defaults and ranges, its properties, and the rule that it makes of a config's values. The schema
// of `optimizer:`, the reference, the states in checkpoints and the training step all follow from
// it. docs/design/new_optimizer.md shows how to add one.

#include <functional>
#include <memory>
#include <string>

#include "base/registry.h"
#include "config/schema.h"
#include "optim/update_rule.h"

namespace paddle::optim {

struct OptimizerKind {
  std::string name = {};
  std::string lr = {};  ///< default of the key `lr`
  /// Keys besides those that all optimizers have (`lr`, `weight_decay`, `groups`, …).
  config::Schema keys = {};
  /// Whether weight decay shrinks the parameter itself; else it is an L2 penalty in the gradient.
  bool decouples_weight_decay = false;
  /// Whether a row-sparse gradient updates the rows that it holds and no others.
  bool supports_sparse_update = false;
  /// Whether an update reads norms of the whole parameter, so that shards of it cannot be updated
  /// one by one.
  bool needs_whole_parameters = false;
  /// Whether the rule is a Minimizer: of the common keys it has only those of the rate.
  bool is_minimizer = false;
  /// The rule for the values of `keys`, which are checked and complete.
  std::function<std::shared_ptr<const UpdateRule>(const config::Section&)> make = {};
};

/// All optimizers; more may be added while the program runs.
Registry<OptimizerKind>& optimizer_kinds();

/// A kind and the rule that it made: what an Optimizer (optim/optimizer.h) applies.
struct OptimizerRule {
  std::shared_ptr<const OptimizerKind> kind;
  std::shared_ptr<const UpdateRule> rule;
};
/// The rule of a section whose `name` is that of an optimizer.
OptimizerRule read_rule(const config::Section& section);
/// The rule of an optimizer for its own keys as YAML, `{beta1: 0.8}`. kConfig for an unknown name
/// and for bad values.
OptimizerRule make_rule(const std::string& name, const std::string& keys = "{}");

}  // namespace paddle::optim
