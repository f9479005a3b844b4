// Any bytes as a config: YAML ('y' in front) or JSON, with its references resolved, laid on itself
// and changed by an override.

#include <string>

#include "base/error.h"
#include "config/overrides.h"
#include "fuzz/fuzz_target.h"

namespace {

void run(const std::string& text, const std::string& name) {
  using namespace paddle;
  config::Node document = config::parse_document(text, name);
  config::Diagnostics diagnostics;
  config::Node base = document;
  config::merge(base, document);
  config::resolve_references(document, diagnostics);
  const std::string first = text.substr(0, text.find('\n'));
  if (config::is_override(first)) config::apply_override(base, config::parse_override(first));
  config::dump_yaml(base);
  diagnostics.raise();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace paddle;
  if (size == 0 || size > 1 << 16) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  fuzz::expect_documented_end([&] {
    try {
      run(text, data[0] == 'y' ? "c.yaml" : "c.json");
    } catch (const Error& e) {
      if (e.code() != ErrorCode::kConfig && e.code() != ErrorCode::kUsage) throw;
    }
  });
  return 0;
}
