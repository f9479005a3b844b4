#include "base/instruction_set.h"

#include <cstdlib>
#include <string_view>

#include "base/error.h"

namespace paddle {

InstructionSet allowed_instructions() {
  const char* given = std::getenv("PADDLE_MAX_ISA");
  const std::string_view word = given ? given : "";
  if (word.empty()) return InstructionSet::kAny;
  if (word == "sse4") return InstructionSet::kSse4;
  if (word == "avx2") return InstructionSet::kAvx2;
  if (word == "avx512") return InstructionSet::kAvx512;
  fail(ErrorCode::kUsage, "PADDLE_MAX_ISA: expected sse4, avx2 or avx512, found '", word, "'");
}

}  // namespace paddle
