// Any bytes as a file of rewrite rules.

#include <string_view>

#include "base/error.h"
#include "compiler/passes/rules/rule.h"
#include "fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace paddle;
  if (size > 1 << 16) return 0;
  fuzz::expect_documented_end([&] {
    try {
      passes::parse_rules({reinterpret_cast<const char*>(data), size}, "r.rules");
    } catch (const Error& e) {
      if (e.code() != ErrorCode::kConfig && e.code() != ErrorCode::kUsage) throw;
    }
  });
  return 0;
}
