#pragma once
// Strict mode (PADDLE_STRICT in the environment, set in tests): internal errors propagate even
// where the caller has a slower fallback, so that a fallback cannot hide a bug.

namespace paddle {

bool internal_errors_are_fatal();

}  // namespace paddle
