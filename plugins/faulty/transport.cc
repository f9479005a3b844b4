// The transport of plugins/ring with a fault: what `paddle plugin check` has to find (faults.txt).

#include "example.h"

#include "../ring/ring.cc"

#pragma pop_macro("PADDLE_PLUGIN")

namespace {

class FaultyRing : public Ring {
 public:
  using Ring::Ring;

  void exchange(uint32_t kind, Messages sends, Messages receives) {
    Ring::exchange(kind, sends, receives);
    if (!fault_is("tail_lost")) return;
    for (const paddle_message* const message : receives)
      for (uint32_t i = 0; i < message->piece_count; ++i)
        if (const size_t size = message->sizes[i]; size > 65536)
          std::memset(static_cast<std::byte*>(message->pieces[i]) + 65536, 0, size - 65536);
  }
  void post(int32_t peer, uint32_t tag, const void* bytes, size_t size) {
    Ring::post(peer, fault_is("tags_mixed") ? 0 : tag, bytes, size);
  }
  void take(int32_t peer, uint32_t tag, void* bytes, size_t size) {
    Ring::take(peer, fault_is("tags_mixed") ? 0 : tag, bytes, size);
  }
};

}  // namespace

PADDLE_PLUGIN(faulty, "1.0.0", plugin) { plugin.transport<FaultyRing>("ring", "a ring"); }
