#pragma once
// The host's side of the interface: the table of functions that plug-ins call, and what a call
// carries.

#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "ops/core/kernel.h"
#include "paddle/plugin/host.h"

namespace paddle::plugin {
struct TypesOfCall;
struct ValuesOfCall;
}  // namespace paddle::plugin

/// The opaque type of abi.h.
struct paddle_call {
  paddle_status status = PADDLE_INTERNAL;  ///< of the error that `message` tells
  std::string message;
  paddle::SourceLocation location;
  paddle::ResultAllocator* allocator = nullptr;      ///< of a kernel that runs
  std::vector<bool> results_allocated;               ///< by it
  std::string text;                                  ///< what the plug-in has written
  bool too_long = false;                             ///< and that it was more than a call may write
  paddle::comm::Collectives* collectives = nullptr;  ///< of the run that a kernel belongs to
  paddle::plugin::TypesOfCall* types = nullptr;      ///< while `infer` runs
  paddle::plugin::ValuesOfCall* values = nullptr;    ///< while `decompose` or `vjp` runs
};

namespace paddle::plugin {

/// The table, which is the same for all plug-ins.
const paddle_host& host();

/// Throws the error of a call whose function returned `status`. `what` is the function, "acme: run
/// of acme.twice".
[[noreturn]] void throw_status(const paddle_call& call, paddle_status status,
                               const std::string& what);

/// Sets the error of a call, which may be null; gives `status`.
paddle_status set_error(paddle_call* call, paddle_status status, const std::string& message,
                        const SourceLocation& location) noexcept;

/// Calls `f` for a plug-in that called the host: errors become those of the call.
template <class F>
paddle_status guarded(paddle_call* call, F&& f) noexcept {
  try {
    f();
    return PADDLE_OK;
  } catch (const Error& e) {
    return set_error(call, static_cast<paddle_status>(e.code()), e.message(), e.location());
  } catch (const std::exception& e) {
    return set_error(call, PADDLE_INTERNAL, e.what(), {});
  }
}

/// The target of paddle_request::operation.
struct RequestData {
  const Op& op;
  const Attrs& attrs;
};

paddle_dtype c_dtype(DType dtype);
/// The dtype of a number of C; nullopt if there is none.
std::optional<DType> dtype_of_c(paddle_dtype dtype);

}  // namespace paddle::plugin
