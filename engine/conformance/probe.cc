#include "conformance/probe.h"

#include "base/text.h"
#include "conformance/crash_lines.h"
#include "inspect/isolate.h"
#include "plugin/plugin.h"

namespace paddle::conformance {
namespace {

constexpr char kProbeSeparator = '\x1f';

}  // namespace

Probe probe_plugin(const std::string& path, double timeout_seconds) {
  Probe out;
  try {
    const plugin::Info info = plugin::read_info(path);
    out.name = info.name;
    out.version = info.version;
  } catch (const Error& e) {
    out.fault = e.what();
    return out;
  }
  const CrashLines crashes;
  std::string answer;
  inspect::run_isolated(
      1,
      [&](size_t) {
        crashes.receive();
        const plugin::Plugin& loaded = plugin::load(path);
        std::string line;
        for (const auto& [part, names] : loaded.parts())
          line += kProbeSeparator + join(*names, ",");
        return line;
      },
      [&](size_t, const std::string& line) { answer = crashes.with_line(line); },
      {1, timeout_seconds});
  const std::vector<std::string> fields = split(answer, kProbeSeparator);
  const auto parts = plugin::Plugin().parts();
  if (fields.size() != parts.size() + 1 || !fields[0].empty()) {
    out.fault = answer;
    return out;
  }
  for (size_t i = 0; i < parts.size(); ++i)
    if (!fields[i + 1].empty()) out.parts.emplace_back(parts[i].first, split(fields[i + 1], ','));
  return out;
}

}  // namespace paddle::conformance
