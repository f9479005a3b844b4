#pragma once
// The checks of the parts of training that files NAME.plugin.yaml state: optimizers, schedules,
// metrics and transforms, and rules for several ranks. Each returns "" or one line: what is wrong;
// one that begins with kSkip says why there was nothing to check.

#include <optional>
#include <string>
#include <vector>

#include "config/schema.h"
#include "conformance/calls.h"
#include "ops/core/op.h"

namespace paddle::conformance {

/// "modes", "shards", …
std::vector<std::string> optimizer_checks();
/// `keys`: "beta=0.8", for those that have no default; others are ignored.
std::string check_optimizer(const std::string& name, const std::vector<std::string>& keys,
                            const std::string& check, const Extent& extent);
/// Factors are finite, not negative, and functions of the number of the update.
std::string check_schedule(const std::string& name, const std::vector<std::string>& keys);
/// The value does not depend on how the data is divided, on the operands of its samples.
std::string check_metric(const std::string& name);
/// The results of shares of the operands of each sample, combined as the rule for several ranks
/// says, against those of whole operands.
std::string check_sharding(const Op& op);
/// Results have the type that was known before, and are functions of the sample and its random
/// numbers.
std::string check_transform(const std::string& name, const std::vector<std::string>& keys);

/// The keys of a schema among those given, as a map; nothing, and the reason in `why`, where one
/// without a default is missing.
std::optional<config::Node> own_keys(const config::Schema& schema,
                                     const std::vector<std::string>& given, std::string& why);

}  // namespace paddle::conformance
