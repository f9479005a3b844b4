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
  for (const std::string& name : optimizations) compiler::leave_out(compile, name);
}

}  // namespace paddle::v0
