#include "conformance/check.h"

#include <fenv.h>

#include <algorithm>
#include <chrono>
#include <clocale>
#include <csignal>
#include <functional>
#include <optional>

#include "base/elapsed.h"
#include "base/files.h"
#include "base/parallel.h"
#include "base/sha256.h"
#include "conformance/crash_lines.h"
#include "conformance/devices.h"
#include "conformance/every_operation.h"
#include "conformance/kinds.h"
#include "conformance/operators.h"
#include "conformance/passes.h"
#include "inspect/isolate.h"
#include "inspect/numeric.h"
#include "plugin/plugin.h"
#include "plugin/text_rules.h"

namespace paddle::conformance {
namespace {

/// A case and what it calls in its child process.
struct Job {
  Case result;
  std::function<std::string()> run;
};

constexpr char kSeparator = '\x1f';

std::string quoted_path(const std::string& path) {
  const bool plain = std::ranges::all_of(path, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/._-+").find(c) != std::string_view::npos;
  });
  if (plain) return path;
  std::string out = "'";
  for (const char c : path) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

/// The state of the process that loading a plug-in must not change.
struct Environment {
  std::string locale = std::setlocale(LC_ALL, nullptr);
  int rounding = fegetround();
  int exceptions = fegetexcept();
  std::vector<void (*)(int)> handlers;
  Environment() {
    for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGCHLD, SIGALRM}) {
      struct sigaction action {};
      sigaction(signal, nullptr, &action);
      handlers.push_back(action.sa_handler);
    }
  }
  std::string change(const Environment& to) const {
    if (locale != to.locale) return "it changes the locale";
    if (rounding != to.rounding) return "it changes the rounding mode";
    if (exceptions != to.exceptions) return "it changes the traps of the floating-point unit";
    if (handlers != to.handlers) return "it changes the handlers of signals";
    return "";
  }
};

std::string check_environment(const std::string& path) {
  const Environment before;
  plugin::load(path);
  return before.change(Environment());
}

std::string check_twice(const std::string& path) {
  const plugin::Plugin& one = plugin::load(path);
  return &one == &plugin::load(path) ? "" : "it is loaded twice";
}

std::string check_exports(const std::string& path) {
  for (const std::string& symbol : plugin::read_info(path).exported)
    if (symbol != "paddle_plugin_main" && !symbol.starts_with("_init") &&
        !symbol.starts_with("_fini") && !symbol.starts_with("_edata") &&
        !symbol.starts_with("_end") && !symbol.starts_with("__bss_start"))
      return "it exports '" + symbol + "'; build it with -fvisibility=hidden";
  return "";
}

std::vector<Job> load_jobs(const std::string& path) {
  std::vector<Job> out;
  const auto add = [&](const char* name, std::string (*check)(const std::string&)) {
    out.push_back({{"load", name}, [check, path] { return check(path); }});
  };
  add("environment", check_environment);
  add("twice", check_twice);
  if (plugin::read_info(path).is_native) add("exports", check_exports);
  return out;
}

/// An operation of the plug-in, or one that it has kernels of. What it states is only known once
/// the plug-in is loaded, which happens in a child: it answers in lines of space-separated fields.
struct Description {
  std::string name;
  bool on_cpu = false;  ///< whether the plug-in has the operation, or a kernel of it for the CPU
  bool has_kernel = false;  ///< for the CPU
  bool sums_by_thread = false;
  std::string no_gradient;  ///< why it is not differentiated; "" if it is
  std::vector<std::string> traits;
  std::vector<std::string> devices;  ///< of the plug-in, that it has kernels for
};

std::vector<std::string> operations_of(const plugin::Plugin& loaded) {
  std::vector<std::string> names = loaded.operations;
  for (const std::string& kernel : loaded.kernels)
    if (std::ranges::find(names, kernel) == names.end()) names.push_back(kernel);
  return names;
}

std::string described(const std::string& path, size_t i) {
  const plugin::Plugin& loaded = plugin::load(path);
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
  return str(kSeparator, op.name(), kSeparator, kernel || has(loaded.operations) ? "1" : "0",
             kSeparator, kernel ? "1" : "0", kSeparator, op.has(kSumsByThread) ? "1" : "0",
             kSeparator, none, kSeparator, join(tested_traits(op), ","), kSeparator,
             join(devices, ","));
}

Description parse_description(const std::string& line) {
  const std::vector<std::string> words = split(line, kSeparator);
  if (words.size() != 8 || !words[0].empty())
    fail(ErrorCode::kInternal, "the operation cannot be described: ", line);
  Description out{words[1], words[2] == "1", words[3] == "1", words[4] == "1", words[5], {}, {}};
  if (!words[6].empty()) out.traits = split(words[6], ',');
  if (!words[7].empty()) out.devices = split(words[7], ',');
  return out;
}

/// The contents of a plug-in, as a child process that loads it tells.
struct Contents {
  std::vector<Description> operations;
  std::vector<std::string> passes, rules;
  Kinds kinds;
};

/// nullopt, with the reason in `why`, if the plug-in cannot be loaded.
std::optional<Contents> describe_plugin(const CheckOptions& o, std::string& why) {
  const inspect::IsolationOptions isolation{1, o.timeout_seconds};
  const CrashLines crashes;
  std::string answer;
  inspect::run_isolated(
      1,
      [&](size_t) {
        crashes.receive();
        const plugin::Plugin& loaded = plugin::load(o.path);
        std::string out = str(kSeparator, operations_of(loaded).size());
        for (const auto* names : {&loaded.passes, &loaded.rules, &loaded.transports, &loaded.tables,
                                  &loaded.readers, &loaded.devices, &loaded.compilers})
          out += str(kSeparator, join(*names, ","));
        return out;
      },
      [&](size_t, const std::string& line) { answer = crashes.with_line(line); }, isolation);
  const std::vector<std::string> fields = split(answer, kSeparator);
  if (fields.size() != 9 || !fields[0].empty()) {
    why = answer;
    return std::nullopt;
  }
  Contents out;
  size_t field = 2;
  for (std::vector<std::string>* names :
       {&out.passes, &out.rules, &out.kinds.transports, &out.kinds.tables, &out.kinds.readers,
        &out.kinds.devices, &out.kinds.compilers})
    if (const std::string& text = fields[field++]; !text.empty()) *names = split(text, ',');
  inspect::run_isolated(
      std::stoul(fields[1]), [&](size_t i) { return described(o.path, i); },
      [&](size_t, const std::string& line) { out.operations.push_back(parse_description(line)); },
      isolation);
  return out;
}

std::vector<Job> pass_jobs(const CheckOptions& o, const Contents& contents) {
  std::vector<Job> out;
  const Extent extent{o.quick, o.seed};
  for (const std::string& pass : contents.passes)
    for (const std::string& check : pass_checks())
      out.push_back({{"passes", str(pass, "/", check)}, [path = o.path, pass, check, extent] {
                       plugin::load(path);
                       return check_pass(pass, check, extent);
                     }});
  for (const std::string& rule : contents.rules)
    out.push_back({{"rules", rule}, [path = o.path, rule] {
                     plugin::load(path);
                     return check_rule(rule);
                   }});
  return out;
}

std::vector<Job> operation_jobs(const CheckOptions& o, const Description& op) {
  std::vector<Job> out;
  const auto add = [&](const char* group, const std::string& name,
                       std::function<std::string(const Op&)> check) {
    out.push_back({{group, name}, [path = o.path, name = op.name, check = std::move(check)] {
                     plugin::load(path);
                     return check(get_op(name));
                   }});
  };
  const Extent extent{o.quick, o.seed};
  for (const std::string& device : op.devices) {
    for (const inspect::Mode mode : {inspect::Mode::kEager, inspect::Mode::kCompiled})
      add("operators", str(op.name, "/", device, "/", inspect::text(mode)),
          [device, mode, extent](const Op& each) {
            return check_on_device(each, device, mode, extent);
          });
    if (op.no_gradient.empty())
      add("gradients", str(op.name, "/", device), [device, extent](const Op& each) {
        return inspect::check_gradient(each, extent.quick ? 1 : 2,
                                       {inspect::Mode::kEager, inspect::Mode::kCompiled},
                                       parse_device(device));
      });
  }
  if (!op.on_cpu) return out;
  add("operators", op.name + "/eager",
      [extent](const Op& each) { return check_results(each, inspect::Mode::kEager, extent); });
  add("operators", op.name + "/compiled",
      [extent](const Op& each) { return check_results(each, inspect::Mode::kCompiled, extent); });
  if (op.has_kernel)
    add("operators", op.name + "/kernel",
        [extent](const Op& each) { return check_kernel(each, extent); });
  if (op.no_gradient.empty())
    add("gradients", op.name, [extent](const Op& each) {
      return inspect::check_gradient(each, extent.quick ? 1 : 2,
                                     {inspect::Mode::kEager, inspect::Mode::kCompiled});
    });
  else
    out.push_back({{"gradients", op.name, Status::kSkipped, op.no_gradient}, nullptr});
  for (const std::string& trait : op.traits)
    add("traits", op.name + "/" + trait,
        [trait, extent](const Op& each) { return check_trait(each, trait, extent); });
  if (op.sums_by_thread)
    out.push_back({{"repeat", op.name, Status::kSkipped,
                    "it states that sums depend on the number of threads"},
                   nullptr});
  else
    add("repeat", op.name, [extent](const Op& each) { return check_repeatable(each, extent); });
  return out;
}

void run_jobs(std::vector<Job>& jobs, const CheckOptions& options) {
  std::vector<Job*> wanted;
  for (Job& job : jobs)
    if (job.run) wanted.push_back(&job);
  const CrashLines crashes;
  // Each job in a process of its own: they load the plug-in.
  for (Job* job : wanted) {
    const auto start = std::chrono::steady_clock::now();
    inspect::run_isolated(
        1,
        [&](size_t) {
          crashes.receive();
          return job->run();
        },
        [&](size_t, const std::string& answer) {
          const std::string line = crashes.with_line(answer);
          const bool skipped = line.starts_with(kSkip), noted = line.starts_with(kNote);
          job->result.status = line.empty() || noted ? Status::kPassed
                               : skipped             ? Status::kSkipped
                                                     : Status::kFailed;
          job->result.message = line.substr(skipped || noted ? 1 : 0);
        },
        {1, options.timeout_seconds});
    job->result.seconds = seconds_since(start);
  }
}

}  // namespace

const char* text(Level level) {
  switch (level) {
    case Level::kNone:
      break;
    case Level::kLoads:
      return "loads";
    case Level::kComputes:
      return "computes";
    case Level::kTrains:
      return "trains";
    case Level::kDistributed:
      return "distributed";
    case Level::kComplete:
      return "complete";
  }
  return "none";
}

Coverage coverage_of(const Report& report, const std::string& group) {
  Coverage out;
  for (const Case& c : report.cases)
    if (const auto part = parse_coverage(c.message);
        part && c.group == group && c.status == Status::kPassed) {
      out.operations += part->operations;
      out.all += part->all;
    }
  return out;
}

Level level_of(const Report& report) {
  const auto fails = [&](const std::vector<std::string>& groups) {
    return std::ranges::any_of(
        groups, [&](const std::string& group) { return report.count(Status::kFailed, group) > 0; });
  };
  const auto passes = [&](const std::vector<std::string>& groups) {
    return std::ranges::any_of(
        groups, [&](const std::string& group) { return report.count(Status::kPassed, group) > 0; });
  };
  const std::vector<std::string> trains = {"gradients"}, between = {"collectives", "transports"};
  std::vector<std::string> computes;
  for (const std::string& group : groups())
    if (group != "load" && std::ranges::find(trains, group) == trains.end() &&
        std::ranges::find(between, group) == between.end())
      computes.push_back(group);
  if (fails({"load"}) || !passes({"load"})) return Level::kNone;
  if (!report.is_whole || fails(computes)) return Level::kLoads;
  if (fails(trains)) return Level::kComputes;
  if (fails(between)) return Level::kTrains;
  if (report.count(Status::kSkipped) == 0) return Level::kComplete;
  return passes(between) ? Level::kDistributed : Level::kTrains;
}

const char* text(Status status) {
  switch (status) {
    case Status::kPassed:
      return "passed";
    case Status::kFailed:
      return "failed";
    case Status::kSkipped:
      break;
  }
  return "skipped";
}

size_t Report::count(Status status, const std::string& group) const {
  return static_cast<size_t>(std::ranges::count_if(cases, [&](const Case& c) {
    return c.status == status && (group.empty() || c.group == group);
  }));
}

const std::vector<std::string>& groups() {
  static const std::vector<std::string> all = {
      "load",         //
      "memory",       //
      "streams",      //
      "schedules",    //
      "operators",    //
      "gradients",    //
      "traits",       //
      "repeat",       //
      "plans",        //
      "errors",       //
      "collectives",  //
      "passes",       //
      "rules",        //
      "compilers",    //
      "transports",   //
      "tables",       //
      "readers",
  };
  return all;
}

Report check_plugin(const CheckOptions& options) {
  if (!options.group.empty() && std::ranges::find(groups(), options.group) == groups().end())
    fail(ErrorCode::kUsage, "--group: expected one of ", join(groups(), ", "), ", found '",
         options.group, "'");
  if (!file_exists(options.path)) fail(ErrorCode::kUsage, options.path, ": no such plug-in file");
  Report report;
  report.sha256 = sha256_of_file(options.path);
  report.seed = options.seed;
  report.quick = options.quick;
  report.is_whole = options.group.empty() && options.only.empty();
  Case first{"load", "load"};
  std::vector<Job> jobs;
  try {
    const plugin::Info info = plugin::read_info(options.path);
    report.plugin = info.name;
    report.version = info.version;
    const auto contents = describe_plugin(options, first.message);
    if (contents) {
      jobs = load_jobs(options.path);
      for (const Description& op : contents->operations)
        for (Job& job : operation_jobs(options, op)) jobs.push_back(std::move(job));
      for (Job& job : pass_jobs(options, *contents)) jobs.push_back(std::move(job));
      for (const KindCheck& each :
           kind_checks(contents->kinds, {options.quick, options.seed}, options.keys))
        if (each.run)
          jobs.push_back({{each.group, each.name}, [path = options.path, run = each.run] {
                            plugin::load(path);
                            return run();
                          }});
        else
          jobs.push_back({{each.group, each.name, Status::kSkipped, each.skipped}, nullptr});
    }
  } catch (const Error& e) {
    first.message = e.what();
  }
  const bool loads = first.message.empty();
  if (!loads) first.status = Status::kFailed;
  jobs.insert(jobs.begin(), Job{std::move(first), nullptr});
  if (loads)
    std::erase_if(jobs, [&](const Job& job) {
      const Case& c = job.result;
      return (!options.group.empty() && c.group != options.group) ||
             (!options.only.empty() && c.name != options.only &&
              !c.name.starts_with(options.only + "/"));
    });
  if (jobs.empty())
    fail(ErrorCode::kUsage, options.path, ": no case",
         options.group.empty() ? "" : " of the group ", options.group,
         options.only.empty() ? "" : " is called '" + options.only + "'");
  std::ranges::stable_sort(jobs, {}, [](const Job& job) {
    return std::ranges::find(groups(), job.result.group) - groups().begin();
  });
  run_jobs(jobs, options);
  for (Job& job : jobs) {
    job.result.reproduce =
        str("paddle plugin check ", quoted_path(options.path), options.quick ? " --quick" : "",
            " --group ", job.result.group, " --only ", job.result.name,
            options.seed == 1 ? "" : str(" --seed ", options.seed));
    if (job.result.group == "readers")
      for (const std::string& key : options.keys)
        job.result.reproduce += " --key " + quoted_path(key);
    report.cases.push_back(std::move(job.result));
  }
  return report;
}

}  // namespace paddle::conformance
