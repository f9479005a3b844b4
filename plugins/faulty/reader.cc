// The reader of plugins/fvecs with a fault: what `paddle plugin check` has to find (faults.txt).

#include "example.h"

#include <sched.h>

#include <atomic>

#include "../fvecs/fvecs.cc"

#pragma pop_macro("PADDLE_PLUGIN")

namespace {

class FaultyVectors : public Vectors {
 public:
  using Vectors::Vectors;

  void read(int64_t index, const paddle::plugin::Sample& sample) const {
    if (fault_is("one_after_another")) return Vectors::read(next_++ % size(), sample);
    if (!fault_is("one_buffer")) return Vectors::read(index, sample);
    // All threads pass through one place.
    place_ = index;
    sched_yield();
    Vectors::read(place_, sample);
  }

 private:
  mutable std::atomic<int64_t> next_ = 0, place_ = 0;
};

}  // namespace

PADDLE_PLUGIN(faulty, "1.0.0", plugin) {
  plugin.reader<FaultyVectors>("vectors", "vectors in a file .fvecs", R"(
path: {type: path, required: true, doc: the file}
limit: {type: integer, default: 0, doc: vectors that are used; 0 for all}
)");
}
