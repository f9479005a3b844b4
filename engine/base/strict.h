#pragma once
// Whether a caller that could go on without what failed must still pass an internal error on. Set
// in tests, by PADDLE_STRICT in the environment, so that no defect hides behind a slower path.

namespace paddle {

bool internal_errors_are_fatal();

}  // namespace paddle
