// Any bytes as a regular expression ('r' in front) or a JSON Schema, and texts of its grammar.

#include <string>

#include "base/error.h"
#include "fuzz/fuzz_target.h"
#include "text/grammar/json_schema.h"
#include "text/grammar/matcher.h"
#include "text/grammar/regex.h"

namespace {

void run(bool is_regex, const std::string& text) {
  using namespace paddle;
  grammar::Matcher matcher(is_regex ? grammar::compile_regex(text)
                                    : grammar::compile_json_schema(parse_json(text, "schema")));
  // A walk through the grammar that prefers other bytes at each step.
  grammar::StateId state = matcher.start();
  for (int step = 0; step < 64 && state != grammar::kNoState; ++step) {
    grammar::StateId next = grammar::kNoState;
    for (int i = 0; i < 256 && next == grammar::kNoState; ++i)
      next = matcher.next(state, static_cast<uint8_t>(i + 37 * step));
    state = next;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace paddle;
  if (size == 0 || size > 4096) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  fuzz::expect_documented_end([&] {
    try {
      run(data[0] == 'r', text);
    } catch (const Error& e) {
      // A usage error is the right end for what users write.
      if (e.code() != ErrorCode::kUsage) throw;
    }
  });
  return 0;
}
