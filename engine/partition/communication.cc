#include "partition/communication.h"

#include "base/text.h"
#include "comm/collectives.h"
#include "partition/rules.h"

namespace paddle::partition {

int64_t bytes_of(const ir::Value& value) {
  const Dims shape = concrete(value.type.shape);
  return storage_bytes(value.type.dtype, element_count(std::span(shape)));
}

std::map<std::string, Traffic> communication(const ir::Function& function) {
  std::map<std::string, Traffic> out;
  ir::for_each_operation(function.body, [&](const ir::Operation& o) {
    std::string name(o.op->name());
    if (!name.starts_with("comm.") || name == "comm.wait") return;
    // An exchange that begins early is the same exchange.
    if (const size_t early = name.find("start_"); early != name.npos)
      name.erase(early, std::string_view("start_").size());
    uint64_t bytes = 0;
    for (const ir::Value* v : o.operands) bytes += static_cast<uint64_t>(bytes_of(*v));
    Traffic& traffic = out[name];
    ++traffic.calls;
    // Messages between two ranks count where they leave.
    if (name == "comm.permute" || name == "comm.send" || name == "comm.recv") {
      traffic.bytes += bytes;
      return;
    }
    const size_t ranks = attribute(o, "ranks").as_ints().size();
    if (name == "comm.all_reduce")
      traffic.bytes += comm::all_reduce_sent_bytes(bytes, ranks);
    else if (name == "comm.reduce_scatter")
      traffic.bytes += bytes - static_cast<uint64_t>(bytes_of(*o.results[0]));
    else if (name == "comm.all_to_all")  // at most: how many rows leave is known at run time
      traffic.bytes += static_cast<uint64_t>(bytes_of(*o.operands[0]));
    else
      traffic.bytes += bytes * (ranks - 1);
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
