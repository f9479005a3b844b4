#pragma once
// Operations on values: calls through the registry, where values become operands and attributes and
// results become values (operations.cc), and the operators of expressions (arithmetic.cc). Not for
// use outside the room.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lang/eval/frame.h"
#include "lang/eval/trace_context.h"
#include "ops/core/op.h"

namespace paddle::lang {

class Operations {
 public:
  explicit Operations(TraceContext& context) : context_(context) {}

  /// Calls an operation by name.
  Value op(std::string_view name, std::vector<Value> positional, const SourcePosition& where,
           NamedValues named = {});
  /// `all`: takes every result, those that the text does not ask for among them.
  Value invoke(const Op& op, const Arguments& arguments, const SourcePosition& where,
               Tensors* all = nullptr);
  /// A number, dim or tensor as a tensor.
  Tensor to_tensor(const Value& value, const SourcePosition& where, std::string_view what);

  Value binary(std::string_view op, const Value& a, const Value& b, const SourcePosition& where);
  Value unary(std::string_view op, const Value& a, const SourcePosition& where);
  Value compare(std::string_view op, const Value& a, const Value& b, const SourcePosition& where);

 private:
  TraceContext& context_;
};

/// The declared parameter with a name; null if there is none.
const ParamDef* find_param(const Op& op, std::string_view name);

/// Gives an error about one argument of a call that argument's place.
template <class F>
auto with_argument_location(const std::map<std::string, SourcePosition>& places, F&& f)
    -> decltype(f()) {
  try {
    return f();
  } catch (const Error& error) {
    if (error.location().line > 0 || !error.location().file.empty()) throw;
    // Messages name the argument as "operation: argument: …" or "… argument 'name'…".
    const std::string& message = error.message();
    for (const auto& [name, where] : places) {
      if (message.find(": " + name + ": ") == std::string::npos &&
          message.find(": " + name + " ") == std::string::npos &&
          message.find("argument '" + name + "'") == std::string::npos) {
        continue;
      }
      const ErrorCode code = error.code() == ErrorCode::kUsage ? ErrorCode::kConfig : error.code();
      throw Error(code, message, where.location());
    }
    throw;
  }
}

}  // namespace paddle::lang
