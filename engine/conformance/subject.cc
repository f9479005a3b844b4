#include "conformance/subject.h"

#include <algorithm>

#include "config/overrides.h"
#include "conformance/crash_lines.h"
#include "conformance/operators.h"
#include "conformance/readers.h"
#include "inspect/isolate.h"
#include "plugin/text_rules.h"

namespace paddle::conformance {
namespace {

constexpr char kFieldSeparator = '\x1f';

std::vector<std::string> operations_of(const plugin::Plugin& loaded) {
  std::vector<std::string> names = loaded.operations;
  for (const std::string& kernel : loaded.kernels)  // those of ranks are checked as collectives
    if (std::ranges::find(names, kernel) == names.end() && !get_op(kernel).has(kAccessesRanks))
      names.push_back(kernel);
  return names;
}

/// In a child: what the plug-in states of an operation, as fields.
std::string described(const plugin::Plugin& loaded, size_t i) {
  const Op& op = get_op(operations_of(loaded).at(i));
  const auto has = [&](const std::vector<std::string>& names) {
    return std::ranges::find(names, std::string(op.name())) != names.end();
  };
  std::vector<std::string> devices;
  bool kernel = false;
  for (size_t k = 0; k < loaded.kernels.size(); ++k) {
    if (loaded.kernels[k] != op.name()) continue;
    const std::string& backend = loaded.kernel_backends[k];
    if (std::ranges::find(loaded.devices, backend) == loaded.devices.end())
      kernel = true;
    else if (std::ranges::find(devices, backend) == devices.end())
      devices.push_back(backend);
  }
  const std::string none = plugin::has_surrogate_gradient(op)
                               ? "it states that its gradient is that of a surrogate"
                           : op.differentiable()  ? ""
                           : *op.def->no_gradient ? op.def->no_gradient
                                                  : "it has no gradient";
  return str(kFieldSeparator, op.name(), kFieldSeparator,
             kernel || has(loaded.operations) ? "1" : "0", kFieldSeparator, kernel ? "1" : "0",
             kFieldSeparator, op.has(kSumsByThread) ? "1" : "0", kFieldSeparator, none,
             kFieldSeparator, join(tested_traits(op), ","), kFieldSeparator, join(devices, ","));
}

Description parse_description(const std::string& line) {
  const std::vector<std::string> words = split(line, kFieldSeparator);
  if (words.size() != 8 || !words[0].empty())
    fail(ErrorCode::kInternal, "the operation cannot be described: ", line);
  Description out{words[1], words[2] == "1", words[3] == "1", words[4] == "1", words[5], {}, {}};
  if (!words[6].empty()) out.traits = split(words[6], ',');
  if (!words[7].empty()) out.devices = split(words[7], ',');
  return out;
}

}  // namespace

Subject::Subject(std::string path, const std::vector<std::string>& options)
    : path_(std::move(path)) {
  if (options.empty()) return;
  config::Node map = config::parse_document("{}", "--option");
  for (const std::string& text : options) {
    const auto [name, value] = key_and_value(text, "--option");
    map.set(name, config::make_scalar(value, map.source));
  }
  options_ = std::make_shared<const config::Node>(std::move(map));
}

const plugin::Plugin& Subject::plugin() const {
  return plugin::load(path_, {.options = options_.get()});
}

void Subject::load() const {
  if (!path_.empty()) (void)plugin();
}

std::unique_ptr<Contents> describe(const Subject& subject, double timeout_seconds,
                                   std::string& why) {
  const inspect::IsolationOptions isolation{1, timeout_seconds};
  const CrashLines crashes;
  std::string answer;
  inspect::run_isolated(
      1,
      [&](size_t) {
        crashes.receive();
        const plugin::Plugin& loaded = subject.plugin();
        std::string out = str(kFieldSeparator, operations_of(loaded).size());
        for (const auto* names :
             {&loaded.passes, &loaded.rules, &loaded.transports, &loaded.tables, &loaded.readers,
              &loaded.devices, &loaded.compilers, &loaded.optimizers, &loaded.schedules,
              &loaded.metrics, &loaded.transforms, &loaded.sharding})
          out += str(kFieldSeparator, join(*names, ","));
        return out;
      },
      [&](size_t, const std::string& line) { answer = crashes.with_line(line); }, isolation);
  const std::vector<std::string> fields = split(answer, kFieldSeparator);
  if (fields.size() != 14 || !fields[0].empty()) {
    why = answer;
    return nullptr;
  }
  auto contents = std::make_unique<Contents>();
  Contents& out = *contents;
  size_t field = 2;
  for (std::vector<std::string>* names :
       {&out.passes, &out.rules, &out.kinds.transports, &out.kinds.tables, &out.kinds.readers,
        &out.kinds.devices, &out.kinds.compilers, &out.kinds.optimizers, &out.kinds.schedules,
        &out.kinds.metrics, &out.kinds.transforms, &out.kinds.sharding})
    if (const std::string& text = fields[field++]; !text.empty()) *names = split(text, ',');
  inspect::run_isolated(
      std::stoul(fields[1]), [&](size_t i) { return described(subject.plugin(), i); },
      [&](size_t, const std::string& line) { out.operations.push_back(parse_description(line)); },
      isolation);
  return contents;
}

}  // namespace paddle::conformance
