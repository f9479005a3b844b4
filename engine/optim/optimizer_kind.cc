#include "optim/optimizer_kind.h"

namespace paddle::optim {
namespace {

OptimizerRule rule_of(const std::string& name, const config::Section& keys) {
  std::shared_ptr<const OptimizerKind> kind = optimizer_kinds().find(name);
  if (!kind)
    throw Error(
        ErrorCode::kConfig,
        str("unknown optimizer '", name, "'", did_you_mean(name, optimizer_kinds().names())),
        keys.node().location());
  std::shared_ptr<const UpdateRule> rule = kind->make(keys);
  ensure(kind->is_minimizer == (dynamic_cast<const Minimizer*>(rule.get()) != nullptr),
         "optimizer '", name, "': is_minimizer does not fit its rule");
  return {std::move(kind), std::move(rule)};
}

}  // namespace

OptimizerRule read_rule(const config::Section& section) {
  return rule_of(section.text("name"), section);
}

OptimizerRule make_rule(const std::string& name, const std::string& keys) {
  config::Node node = config::parse_document(keys, "optimizer " + name);
  if (const auto kind = optimizer_kinds().find(name)) {
    config::Diagnostics diagnostics;
    kind->keys.resolve(node, "", diagnostics);
    diagnostics.raise();
  }
  return rule_of(name, config::Section(node));
}

}  // namespace paddle::optim
