#pragma once
// Rules as text: how an operation from outside, such as one of a plug-in, says which of its dims
// correspond.
//
//     "[rows, inner], [inner, columns] -> [rows, columns]"
//
// One list for each operand and result, one word for each dim. Dims with the same word correspond;
// a word that a result lacks is summed over in it. "_" is a dim of which the operation needs all
// elements, "..." stands for any further dims, which are those of all other lists with "...", and
// "?" for an operand or result that the rule says nothing about, which is whole. After the lists,
// "max" or "min" says how parts are combined where that is not by their sum.

#include <string>
#include <string_view>

#include "partition/rules.h"

namespace paddle::partition {

/// The rule of this text. kUsage if the text is none. Operations whose operands or results do not
/// fit it, in number, rank or size, have no rule.
RuleFn parse_rule(std::string_view text);

/// Adds or replaces the rule of the operation with this name.
void register_rule(std::string_view operation, std::string_view text);

}  // namespace paddle::partition
