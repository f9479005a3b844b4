// Any bytes as a model file in YAML: read, checked, and traced as far as shapes go.

#include <string>

#include "base/error.h"
#include "fuzz/fuzz_target.h"
#include "lang/eval/summary.h"
#include "lang/syntax/program.h"
#include "runtime/execute.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace paddle;
  if (size > 1 << 14) return 0;
  runtime::register_backends();
  const std::string text(reinterpret_cast<const char*>(data), size);
  fuzz::expect_documented_end([&] {
    try {
      const auto program = lang::read_program(config::parse_document(text, "m.yaml"));
      lang::summarize(*program, program->model, {}, false);
    } catch (const Error& e) {
      if (e.code() != ErrorCode::kConfig && e.code() != ErrorCode::kUsage) throw;
    }
  });
  return 0;
}
