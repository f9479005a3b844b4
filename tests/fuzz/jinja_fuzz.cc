// Any bytes as a template, rendered with a small conversation.

#include "fuzz/fuzz_target.h"
#include "text/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace paddle;
  static const jinja::Value variables = jinja::from_json(parse_json(
      R"({"messages": [{"role": "user", "content": " é "}], "n": 3, "l": [1, "a", null, 2.5]})",
      "variables"));
  fuzz::expect_documented_end([&] {
    const jinja::Template chat(std::string(reinterpret_cast<const char*>(data), size), "t");
    chat.render(variables, {.steps = 20'000, .bytes = 1 << 20});
  });
  return 0;
}
