#pragma once
// Ctrl-C in long work: what is done lies on the disk, and the job ends where it can continue.

#include "base/error.h"
#include "base/interrupt.h"

namespace paddle::quant {

class Interrupted : public Error {
 public:
  Interrupted() : Error(ErrorCode::kDifference, "interrupted") {}
};

/// Throws Interrupted if the process was asked to stop (base/interrupt.h).
inline void stop_if_interrupted() {
  if (pending_interrupt() != 0) throw Interrupted();
}

}  // namespace paddle::quant
