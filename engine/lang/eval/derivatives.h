#pragma once
// The functions of the language that differentiate: `grad(y, x)`, `vjp(y, x, v)`, `jvp(y, x, v)`,
// `jacobian(y, x)` and `hessian(y, x)`, in models, steps and metrics. The tensors are those of the
// running trace or, in eager mode, of the tape.

#include <string>
#include <string_view>
#include <vector>

#include "lang/eval/values.h"
#include "lang/syntax/program.h"

namespace paddle::lang {

bool is_derivative_word(std::string_view name);
std::vector<std::string> derivative_words();

/// The value of a call of such a word; kConfig for arguments that do not fit.
Value call_derivative(std::string_view name, const std::vector<Value>& positional,
                      const NamedValues& named);

/// Whether the code calls such a word.
bool differentiates(const Code& code);
/// Whether a body of the program does, a block's included.
bool differentiates(const Program& program);

}  // namespace paddle::lang
