#include "api/c_handles.h"

namespace paddle::c_api {

std::string& last_error() {
  thread_local std::string text;
  return text;
}

paddle_status failed(paddle_status status, const char* what) noexcept {
  try {
    last_error() = what;
  } catch (...) {
    last_error().clear();  // no memory even for the message
  }
  return status;
}

paddle_status status_of_exception(const char* function) noexcept {
  try {
    throw;
  } catch (const BadCall& e) {
    try {
      return failed(PADDLE_USAGE, str(function, ": ", e.why).c_str());
    } catch (...) {
      return failed(PADDLE_USAGE, function);
    }
  } catch (const v0::Error& e) {
    return failed(static_cast<paddle_status>(e.code()), e.what());
  } catch (const std::bad_alloc&) {
    return failed(PADDLE_DEVICE, "out of memory");
  } catch (const std::exception& e) {
    return failed(PADDLE_INTERNAL, e.what());
  } catch (...) {
    return failed(PADDLE_INTERNAL, "unknown exception");
  }
}

}  // namespace paddle::c_api
