#pragma once
// Probability distributions in the language: `normal(0, 1).log_prob(x)`. Names that are also random
// operations (normal, bernoulli, poisson, binomial) still draw a tensor, which knows what it was
// drawn from; the other names, and parameters given by the names of the distribution, make a
// distribution only. Not for use outside the room.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lang/eval/evaluation.h"

namespace paddle::lang {

/// Names of distributions and transforms, and the functions on them.
bool is_distribution_word(std::string_view name);
std::vector<std::string> distribution_words();

/// The value of a call of such a name; nullopt where it means the operation of that name.
std::optional<Value> call_distribution(Evaluation& evaluation, const Callable& target,
                                       Arguments& arguments, const Site& site, Frame& frame);
/// `base.name(…)` for distributions, transforms and drawn tensors; nullopt where a tensor has the
/// method itself.
std::optional<Value> call_distribution_method(Evaluation& evaluation, const Value& base,
                                              const std::string& name, Arguments& arguments,
                                              const Site& site, Frame& frame);
/// `base.name`, in the same way.
std::optional<Value> distribution_attribute(Evaluation& evaluation, const Value& base,
                                            const std::string& name, const SourcePosition& where);

}  // namespace paddle::lang
