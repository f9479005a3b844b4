// The text form of a target: what differs from the default. The CPU of this machine is the default,
// so that what is compiled for it reads alike everywhere.

#include "ir/module.h"
#include "ops/core/op.h"

namespace paddle::ir {

std::string text(const TargetInfo& target) {
  static const TargetInfo kDefault;
  if (target == kDefault || target == resolved(kDefault)) return "";
  std::string out;
  const auto add = [&](const char* key, const std::string& value) {
    out += str(out.empty() ? "target {" : ", ", key, " = ", value);
  };
  const auto add_number = [&](const char* key, int64_t value, int64_t usual) {
    if (value != usual) add(key, std::to_string(value));
  };
  if (target.device != kDefault.device) add("device", AttrValue(target.device.text()).text());
  if (!target.architecture.empty()) add("architecture", AttrValue(target.architecture).text());
  if (!target.features.empty()) {
    std::string list;
    for (const std::string& feature : target.features)
      list += (list.empty() ? "[" : ", ") + AttrValue(feature).text();
    add("features", list + "]");
  }
  add_number("channels_last", target.images.channels_last, kDefault.images.channels_last);
  add_number("also_channels_last", target.images.also_channels_last,
             kDefault.images.also_channels_last);
  add_number("fused_operations", target.fusion.operations, kDefault.fusion.operations);
  add_number("fused_operands", target.fusion.operands, kDefault.fusion.operands);
  add_number("fused_reductions", target.fusion.reductions, kDefault.fusion.reductions);
  add_number("tile_bytes", target.tile_bytes, kDefault.tile_bytes);
  add_number("alignment", target.alignment, kDefault.alignment);
  add_number("memory", target.memory, kDefault.memory);
  return out.empty() ? out : out + "}";
}

}  // namespace paddle::ir
