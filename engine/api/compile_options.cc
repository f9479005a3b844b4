#include "api/compile_options.h"

#include <limits>
#include <utility>

#include "base/text.h"
#include "runtime/execute.h"

namespace paddle::v0 {

TargetInfo target_of(const std::string& device, uint64_t memory) {
  runtime::register_backends();  // which register the devices
  TargetInfo out;
  out.device = parse_device(device.empty() ? "cpu" : device);
  if (memory > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    fail(paddle::ErrorCode::kUsage, "memory: ", memory, " bytes are more than any machine has");
  out.memory = static_cast<int64_t>(memory);
  return out;
}

void leave_out(compiler::CompileOptions& compile, const std::vector<std::string>& optimizations) {
  const std::pair<const char*, bool*> known[] = {
      {"fusion", &compile.fusion},           {"layout", &compile.layout},
      {"rewrites", &compile.rewrites},       {"batch_tiling", &compile.batch_tiling},
      {"codegen", &compile.prepare.codegen}, {"winograd", &compile.prepare.allow_winograd},
  };
  for (const std::string& name : optimizations) {
    bool found = false;
    std::vector<std::string> names;
    for (const auto& [each, value] : known) {
      names.emplace_back(each);
      if (name != each) continue;
      *value = false;
      found = true;
    }
    if (!found)
      fail(paddle::ErrorCode::kUsage, "leave_out: there is no optimization '", name,
           "', expected one of ", join(names, ", "));
  }
}

}  // namespace paddle::v0
