#include "conformance/probe.h"

#include "base/text.h"
#include "conformance/crash_lines.h"
#include "inspect/isolate.h"
#include "plugin/plugin.h"

namespace paddle::conformance {
namespace {

constexpr char kProbeSeparator = '\x1f';

constexpr const char* kProbedParts[] = {"operations", "kernels", "devices", "passes",   "rules",
                                        "transports", "tables",  "readers", "compilers"};

/// The parts of a plug-in, in the order of kProbedParts.
std::vector<const std::vector<std::string>*> parts_of(const plugin::Plugin& p) {
  return {&p.operations, &p.kernels, &p.devices, &p.passes,   &p.rules,
          &p.transports, &p.tables,  &p.readers, &p.compilers};
}

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
        for (const auto* names : parts_of(loaded)) line += kProbeSeparator + join(*names, ",");
        return line;
      },
      [&](size_t, const std::string& line) { answer = crashes.with_line(line); },
      {1, timeout_seconds});
  const std::vector<std::string> fields = split(answer, kProbeSeparator);
  if (fields.size() != std::size(kProbedParts) + 1 || !fields[0].empty()) {
    out.fault = answer;
    return out;
  }
  for (size_t i = 0; i < std::size(kProbedParts); ++i)
    if (!fields[i + 1].empty()) out.parts.emplace_back(kProbedParts[i], split(fields[i + 1], ','));
  return out;
}

}  // namespace paddle::conformance
