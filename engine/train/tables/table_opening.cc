#include "train/tables/table_opening.h"

#include <utility>

namespace paddle::train {

const TablePolicy* TableOpening::policy_of(const std::string& path) const {
  return find_policy(policies, path);
}

std::shared_ptr<const optim::Optimizer> TableOpening::rule_of(const TablePolicy* policy) const {
  if (!policy || !policy->optimizer) return rule;
  const TableOptimizer& own = *policy->optimizer;
  const double base = rule->options().lr;
  if (base == 0 && own.lr > 0)
    fail(ErrorCode::kConfig, "tables: the rate of '", policy->pattern,
         "' follows that of the config's optimizer, whose lr is 0");
  optim::OptimizerOptions options{
      .rule = own.rule, .lr = base, .weight_decay = own.weight_decay, .groups = {{}}};
  options.groups[0].match = {"*"};
  options.groups[0].lr = own.lr;
  return std::make_shared<optim::Optimizer>(std::move(options));
}

std::unique_ptr<program::RowTable> TableOpening::open(program::TableSpec declared,
                                                      uint64_t seed) const {
  const TablePolicy* const policy = policy_of(declared.path);
  const KindChoice& chosen = policy && policy->store ? *policy->store : kind;
  const auto found = program::table_kinds().find(chosen.name);
  if (!found)
    fail(ErrorCode::kConfig, "tables: unknown kind '", chosen.name, "', expected one of ",
         join(program::table_kinds().names(), ", "));
  if (updates.is_geo() && chosen.name != "memory")
    fail(ErrorCode::kConfig, "tables: rows of the table '", declared.path, "' are of the kind ",
         chosen.name, "; parameter_server.mode: geo is for rows in memory");
  declared.tracks_changes = max_deltas > 0;
  if (policy && updates.is_geo() &&
      (policy->policy.observes() || policy->policy.wide_columns > 0 ||
       policy->policy.divides_by_show))
    fail(ErrorCode::kConfig, "tables: '", policy->pattern, "', for the table '", declared.path,
         "': entry, statistics, evict, wide and optimizer.scale are for parameter_server.mode sync "
         "and async, not geo");
  if (policy) {
    declared.policy = policy->policy;
    if (policy->init) declared.init = *policy->init;
    if (policy->key && *policy->key != declared.key)
      fail(ErrorCode::kConfig, "tables: '", policy->pattern, "' states ", text(*policy->key),
           " keys, and the keys of the table '", declared.path, "' are ", text(declared.key),
           "; the type of a table is that of its field");
  }
  if ((declared.policy.observes() || declared.policy.row_moment) && chosen.name != "memory")
    fail(ErrorCode::kConfig, "tables: the table '", declared.path,
         "' has an entry, statistics, eviction or a sum of squares for each row, which the kind ",
         chosen.name, " does not have; expected memory");
  if (declared.policy.wide_columns >= declared.width)
    fail(ErrorCode::kConfig, "tables: wide.dim is ", declared.policy.wide_columns, ", the table '",
         declared.path, "' has ", declared.width, " columns, of which at least one is not wide");
  return found->open(std::move(declared), rule_of(policy), seed, chosen.options);
}

}  // namespace paddle::train
