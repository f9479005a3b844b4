#include "partition/communication.h"

#include "base/text.h"
#include "comm/communicator.h"
#include "ops/generated/comm.h"

namespace paddle::partition {

std::map<std::string, Traffic> communication(const ir::Function& function) {
  std::map<std::string, Traffic> out;
  ir::for_each_operation(function.body, [&](const ir::Operation& o) {
    const std::string name(o.op->name());
    if (!name.starts_with("comm.")) return;
    const TensorType& type = o.operands[0]->type;
    const Dims shape = concrete(type.shape);
    const auto bytes =
        static_cast<uint64_t>(storage_bytes(type.dtype, element_count(std::span(shape))));
    Traffic& traffic = out[name];
    ++traffic.calls;
    if (name == "comm.all_reduce")
      traffic.bytes += comm::Communicator::all_reduce_sent_bytes(
          bytes, CommAllReduceAttrs(o.attrs).ranks.size());
    else
      traffic.bytes += bytes * (CommAllGatherAttrs(o.attrs).ranks.size() - 1);
  });
  return out;
}

std::string text(const std::map<std::string, Traffic>& traffic) {
  std::string out;
  for (const auto& [name, t] : traffic)
    out += str(out.empty() ? "" : ", ", human_bytes(t.bytes), " in ", t.calls, " ", name);
  return out.empty() ? "nothing" : out;
}

}  // namespace paddle::partition
