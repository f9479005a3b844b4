#pragma once
// The host's side of the interface: the table of functions that plug-ins call, and what a call
// carries.

#include <string>

#include "base/error.h"
#include "ops/core/kernel.h"
#include "paddle/plugin/host.h"

/// The opaque type of abi.h.
struct paddle_call {
  paddle::ErrorCode code = paddle::ErrorCode::kInternal;
  std::string message;
  paddle::SourceLocation location;
};

namespace paddle::plugin {

/// The table, which is the same for all plug-ins.
const paddle_host& host();

/// Throws the error of a call whose function returned `status`. `what` is the function, "acme: run
/// of acme.twice".
[[noreturn]] void throw_status(const paddle_call& call, paddle_status status,
                               const std::string& what);

/// The target of paddle_request::operation.
struct RequestData {
  const Op& op;
  const Attrs& attrs;
};

paddle_dtype c_dtype(DType dtype);

}  // namespace paddle::plugin
