#include "conformance/check.h"

#include <algorithm>
#include <chrono>
#include <functional>

#include "base/elapsed.h"
#include "base/files.h"
#include "base/sha256.h"
#include "conformance/crash_lines.h"
#include "conformance/every_operation.h"
#include "conformance/load_checks.h"
#include "conformance/operators.h"
#include "conformance/passes.h"
#include "conformance/random_calls.h"
#include "conformance/results.h"
#include "conformance/speed.h"
#include "conformance/subject.h"
#include "conformance/training.h"
#include "inspect/isolate.h"
#include "inspect/numeric.h"
#include "plugin/host.h"
#include "runtime/execute.h"
#include "tensor/device.h"

namespace paddle::conformance {
namespace {

/// A case and what it calls in its child process.
struct Job {
  Case result;
  std::function<std::string()> run;
};

constexpr size_t kQuickCalls = 200, kCallsOfJob = 1000, kCallJobs = 20;

/// Their checks depend on the keys that --key gives.
constexpr std::string_view kGroupsWithKeys[] = {"readers",    "transports",  "tables",
                                                "optimizers", "lr_schedule", "transforms"};

/// A word of a command, in quotes where a shell needs them.
std::string shell_word(const std::string& path) {
  const bool plain = std::ranges::all_of(path, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/._-+=:,").find(c) != std::string_view::npos;
  });
  if (plain) return path;
  std::string out = "'";
  for (const char c : path) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

/// Makes the jobs of a subject.
class Jobs {
 public:
  Jobs(const Subject& subject, const CheckOptions& options)
      : subject_(subject), options_(options), extent_{options.quick, options.seed} {}

  std::vector<Job> take() { return std::move(jobs_); }

  void add_loading() {
    for (const std::string& check : load_checks(subject_))
      jobs_.push_back(
          {{"load", check}, [subject = subject_, check] { return check_loading(subject, check); }});
  }
  void add_passes(const Contents& contents) {
    for (const std::string& pass : contents.passes)
      for (const std::string& check : pass_checks())
        add("passes", str(pass, "/", check),
            [pass, check, extent = extent_] { return check_pass(pass, check, extent); });
    for (const std::string& rule : contents.rules)
      add("rules", rule, [rule] { return check_rule(rule); });
  }
  void add_kinds(const Kinds& kinds) {
    for (const KindCheck& each : kind_checks(kinds, extent_, options_.keys))
      if (each.run)
        add(each.group, each.name, each.run);
      else
        skip(each.group, each.name, each.skipped);
    for (const std::string& device : kinds.devices) add_device(device);
  }
  void add_operation(const Description& op) {
    for (const std::string& device : op.devices) add_kernels_of_device(op, device);
    if (!op.on_cpu) return;
    add_for("operators", op, "/eager", [extent = extent_](const Op& each) {
      return check_results(each, inspect::Mode::kEager, extent);
    });
    add_for("operators", op, "/compiled", [extent = extent_](const Op& each) {
      return check_results(each, inspect::Mode::kCompiled, extent);
    });
    if (op.has_kernel) {
      add_for("operators", op, "/kernel",
              [extent = extent_](const Op& each) { return check_kernel(each, extent); });
      add_for("speed", op, "",
              [extent = extent_](const Op& each) { return measure_operation(each, extent); });
    }
    add_random_calls(op.name, "", options_.quick ? 60 : kCallsOfJob, 1);
    if (!op.no_gradient.empty()) {
      skip("gradients", op.name, op.no_gradient);
    } else {
      add_for("gradients", op, "", [extent = extent_](const Op& each) {
        return inspect::check_gradient(each, extent.quick ? 1 : 2, kBothModes);
      });
      for (const inspect::Mode mode : kBothModes)
        add_for("training", op, "/" + inspect::text(mode),
                [mode](const Op& each) { return check_training_of(each, mode); });
    }
    for (const std::string& trait : op.traits)
      add_for("traits", op, "/" + trait, [trait, extent = extent_](const Op& each) {
        return check_trait(each, trait, extent);
      });
    if (op.sums_by_thread)
      skip("repeat", op.name, "it states that sums depend on the number of threads");
    else
      add_for("repeat", op, "",
              [extent = extent_](const Op& each) { return check_repeatable(each, extent); });
  }

 private:
  inline static const std::vector<inspect::Mode> kBothModes = {inspect::Mode::kEager,
                                                               inspect::Mode::kCompiled};

  void skip(const std::string& group, const std::string& name, const std::string& why) {
    jobs_.push_back({{group, name, Status::kSkipped, why}, nullptr});
  }
  void add(const std::string& group, const std::string& name, std::function<std::string()> run) {
    jobs_.push_back({{group, name}, [subject = subject_, run = std::move(run)] {
                       subject.load();
                       return run();
                     }});
  }
  void add_for(const std::string& group, const Description& op, const std::string& suffix,
               std::function<std::string(const Op&)> check) {
    add(group, op.name + suffix,
        [name = op.name, check = std::move(check)] { return check(get_op(name)); });
  }
  void add_kernels_of_device(const Description& op, const std::string& device) {
    for (const inspect::Mode mode : kBothModes)
      add_for("operators", op, str("/", device, "/", inspect::text(mode)),
              [device, mode, extent = extent_](const Op& each) {
                return check_on_device(each, device, mode, extent);
              });
    if (op.no_gradient.empty())
      add_for("gradients", op, "/" + device, [device, extent = extent_](const Op& each) {
        return inspect::check_gradient(each, extent.quick ? 1 : 2, kBothModes,
                                       parse_device(device));
      });
  }
  void add_device(const std::string& device) {
    add_random_calls("", device, options_.quick ? kQuickCalls : kCallsOfJob,
                     options_.quick ? 1 : kCallJobs);
    for (const std::string& net : training_nets())
      for (const inspect::Mode mode : kBothModes)
        add("training", str(device, "/", net, "/", inspect::text(mode)),
            [=, extent = extent_] { return check_training(device, net, mode, extent); });
    for (const std::string& check : speed_checks())
      add("speed", str(device, "/", check),
          [=, extent = extent_] { return measure_device(device, check, extent); });
  }
  void add_random_calls(const std::string& operation, const std::string& device, size_t count,
                        size_t jobs) {
    for (size_t i = 0; i < jobs; ++i) {
      RandomCalls calls;
      calls.load = [subject = subject_] { subject.load(); };
      calls.operation = operation;
      calls.device = device;
      calls.arguments =
          str(device.empty() ? "" : "--device " + device,
              device.empty() || subject_.path().empty() ? "" : " ",
              subject_.path().empty() ? "" : "--plugin " + shell_word(subject_.path()));
      calls.seed = extent_.seed;
      calls.first = i * count;
      calls.count = count;
      // The plug-in is loaded in the processes of the calls.
      jobs_.push_back({{"fuzz", str(operation.empty() ? device : operation, "/", i)},
                       [calls] { return check_random_calls(calls); }});
    }
  }

  const Subject& subject_;
  const CheckOptions& options_;
  Extent extent_;
  std::vector<Job> jobs_;
};

std::string answer_of(const Job& job) {
  try {
    return with_values(job.run());
  } catch (const std::exception& e) {
    return with_values(e.what());
  }
}

/// Puts the answer of a child into its case.
void put_answer(Case& out, std::string line) {
  if (const auto values = take_values(line)) {
    out.found = values->found;
    out.expected = values->expected;
    out.tolerance = values->tolerance;
  }
  const bool skipped = line.starts_with(kSkip), noted = line.starts_with(kNote);
  out.status = line.empty() || noted ? Status::kPassed
               : skipped             ? Status::kSkipped
                                     : Status::kFailed;
  out.message = line.substr(skipped || noted ? 1 : 0);
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
          return answer_of(*job);
        },
        [&](size_t, const std::string& answer) {
          put_answer(job->result, crashes.with_line(answer));
        },
        {1, options.timeout_seconds * (options.quick ? 1 : 4)});
    job->result.seconds = seconds_since(start);
  }
}

/// The jobs of a plug-in, or of one device of it. None, with the reason in `why`, if it cannot be
/// loaded.
std::vector<Job> jobs_of_plugin(const Subject& subject, const CheckOptions& options,
                                std::string& why) {
  const auto contents = describe(subject, options.timeout_seconds, why);
  if (!contents) return {};
  if (const std::string& device = options.device; !device.empty()) {
    const std::vector<std::string>& own = contents->kinds.devices;
    if (std::ranges::find(own, device) == own.end())
      fail(ErrorCode::kUsage, "--device: ", subject.path(), " has no device '", device, "'",
           own.empty() ? "" : ", only ", join(own, ", "));
    contents->kinds = {};
    contents->kinds.devices = {device};
    contents->passes.clear();
    contents->rules.clear();
    for (Description& op : contents->operations) {
      op.on_cpu = false;
      std::erase_if(op.devices, [&](const std::string& each) { return each != device; });
    }
  }
  Jobs jobs(subject, options);
  jobs.add_loading();
  for (const Description& op : contents->operations) jobs.add_operation(op);
  jobs.add_passes(*contents);
  jobs.add_kinds(contents->kinds);
  return jobs.take();
}

/// Those of a device of the engine, or of a plug-in that the program has loaded.
std::vector<Job> jobs_of_device(const Subject& subject, const CheckOptions& options) {
  runtime::register_backends();
  const std::string kind = options.device.substr(0, options.device.find(':'));
  if (const std::vector<std::string> all = device_kinds();
      std::ranges::find(all, kind) == all.end())
    fail(ErrorCode::kUsage, "--device: unknown device '", options.device, "', expected one of ",
         join(all, ", "));
  Jobs jobs(subject, options);
  Kinds kinds;
  kinds.devices = {options.device};
  jobs.add_kinds(kinds);
  std::vector<Job> out = jobs.take();
  out.push_back({{"load", options.device}, [device = options.device] {
                   return kNote + describe_device(parse_device(device));
                 }});
  return out;
}

/// The command that repeats a case.
std::string command_of(const Case& c, const CheckOptions& options) {
  std::string out = "paddle plugin check";
  if (!options.path.empty()) out += " " + shell_word(options.path);
  for (const plugin::Plugin* loaded : plugin::loaded())
    if (options.path.empty()) out += " --plugin " + shell_word(loaded->path);
  if (!options.device.empty()) out += " --device " + options.device;
  for (const std::string& option : options.options) out += " --option " + shell_word(option);
  out += str(options.quick ? " --quick" : "", " --group ", c.group, " --only ", c.name,
             options.seed == 1 ? "" : str(" --seed ", options.seed));
  if (std::ranges::find(kGroupsWithKeys, c.group) != std::end(kGroupsWithKeys))
    for (const std::string& key : options.keys) out += " --key " + shell_word(key);
  return out;
}

}  // namespace

Report check_plugin(const CheckOptions& options) {
  if (!options.group.empty() && std::ranges::find(groups(), options.group) == groups().end())
    fail(ErrorCode::kUsage, "--group: expected one of ", join(groups(), ", "), ", found '",
         options.group, "'");
  if (options.path.empty() && options.device.empty())
    fail(ErrorCode::kUsage, "name the file of a plug-in, or a device with --device");
  if (options.path.empty() && !options.options.empty())
    fail(ErrorCode::kUsage, "--option has no effect without the file of a plug-in");
  if (!options.path.empty() && !file_exists(options.path))
    fail(ErrorCode::kUsage, options.path, ": no such plug-in file");
  const Subject subject(options.path, options.options);
  Report report;
  report.seed = options.seed;
  report.quick = options.quick;
  report.is_whole = options.group.empty() && options.only.empty();
  std::vector<Job> jobs;
  bool loads = true;
  if (options.path.empty()) {
    report.plugin = options.device;
    report.version = plugin::host().version;
    jobs = jobs_of_device(subject, options);
  } else {
    report.sha256 = sha256_of_file(options.path);
    Case first{"load", "load"};
    try {
      const plugin::Info info = plugin::read_info(options.path);
      report.plugin = info.name;
      report.version = info.version;
      jobs = jobs_of_plugin(subject, options, first.message);
    } catch (const Error& e) {
      if (e.code() == ErrorCode::kUsage && !options.device.empty()) throw;
      first.message = e.what();
    }
    loads = first.message.empty();
    if (!loads) first.status = Status::kFailed;
    jobs.insert(jobs.begin(), Job{std::move(first), nullptr});
  }
  if (loads)
    std::erase_if(jobs, [&](const Job& job) {
      const Case& c = job.result;
      return (!options.group.empty() && c.group != options.group) ||
             (!options.only.empty() && c.name != options.only &&
              !c.name.starts_with(options.only + "/"));
    });
  if (jobs.empty())
    fail(ErrorCode::kUsage, options.path.empty() ? options.device : options.path, ": no case",
         options.group.empty() ? "" : " of the group ", options.group,
         options.only.empty() ? "" : " is called '" + options.only + "'");
  std::ranges::stable_sort(jobs, {}, [](const Job& job) {
    return std::ranges::find(groups(), job.result.group) - groups().begin();
  });
  run_jobs(jobs, options);
  for (Job& job : jobs) {
    job.result.reproduce = command_of(job.result, options);
    report.cases.push_back(std::move(job.result));
  }
  return report;
}

}  // namespace paddle::conformance
