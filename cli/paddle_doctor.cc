// paddle-doctor: what an installation has, and what to fix first.

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "base/crash_report.h"
#include "base/file_cache.h"
#include "base/files.h"
#include "base/limits.h"
#include "base/module.h"
#include "base/parallel.h"
#include "commands.h"
#include "common.h"
#include "common_options.h"
#include "kernels/cuda/diagnosis.h"

namespace {

using namespace paddle;
using nlohmann::ordered_json;

/// Runs `body` in a child process and returns its JSON; null if the child ended before it had one,
/// with `problem` set.
ordered_json in_child(const std::function<ordered_json()>& body, std::string& problem) {
  int ends[2];
  if (pipe(ends) != 0) fail(ErrorCode::kDevice, "cannot make a pipe");
  const pid_t child = fork();
  if (child < 0) fail(ErrorCode::kDevice, "cannot start a process");
  if (child == 0) {
    leave_crashes_to_parent();
    close(ends[0]);
    std::string text;
    try {
      text = body().dump(-1, ' ', false, ordered_json::error_handler_t::replace);
    } catch (const std::exception& error) {
      text = ordered_json(error.what()).dump();
    }
    for (size_t at = 0; at < text.size();) {
      const ssize_t n = write(ends[1], text.data() + at, text.size() - at);
      if (n <= 0) break;
      at += static_cast<size_t>(n);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    problem = str("loading it ends a process by signal ", WTERMSIG(status));
    return nullptr;
  }
  ordered_json out = ordered_json::parse(text, nullptr, false);
  if (out.is_discarded()) {
    problem = "loading it ends a process";
    return nullptr;
  }
  return out;
}

/// The things to fix, of which the first is shown.
using Problems = std::vector<std::string>;

ordered_json check_module(const std::string& name, Problems& problems) {
  const std::string path = Module::default_path(name);
  if (!file_exists(path)) return {{"name", name}, {"path", nullptr}};
  std::string problem;
  const ordered_json said = in_child(
      [&]() -> ordered_json {
        if (dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return "";
        const char* const reason = dlerror();
        return reason ? reason : "it cannot be loaded";
      },
      problem);
  if (said.is_string() && !said.get<std::string>().empty()) problem = said.get<std::string>();
  if (!problem.empty()) problems.push_back(str("module ", name, ": ", problem));
  ordered_json out = {{"name", name}, {"path", path}};
  if (!problem.empty()) out["problem"] = problem;
  return out;
}

ordered_json check_cuda(Problems& problems) {
  std::string problem;
  ordered_json out = in_child(
      []() -> ordered_json {
        const cuda::Diagnosis found = cuda::diagnose();
        ordered_json each = {{"name", "cuda"},           {"driver", found.driver},
                             {"nvrtc", found.nvrtc},     {"cublaslt", found.cublaslt},
                             {"cudnn", found.cudnn},     {"gpus", found.gpus},
                             {"problem", found.problem}, {"fix", found.has_driver}};
        return each;
      },
      problem);
  if (!out.is_object()) out = {{"name", "cuda"}, {"problem", problem}, {"fix", true}};
  const std::string text = out["problem"].get<std::string>();
  if (!text.empty() && out["fix"].get<bool>()) problems.push_back("cuda: " + text);
  out.erase("fix");
  return out;
}

ordered_json check_cache(Problems& problems) {
  const std::string folder = cache_folder("doctor");
  if (folder.empty()) return {{"path", nullptr}};
  const std::string parent = folder.substr(0, folder.rfind('/'));
  ordered_json out = {{"path", parent}};
  const bool writable = write_own_file(folder, folder + "/check", "x");
  out["writable"] = writable;
  if (writable) {
    unlink((folder + "/check").c_str());
    rmdir(folder.c_str());
  } else {
    problems.push_back(str("the cache folder ", parent,
                           " cannot be written: compiled code is not kept; make it writable or "
                           "name another in PADDLE_CACHE_DIR"));
  }
  return out;
}

std::string line(const std::string& label, const std::string& text) {
  return label + std::string(label.size() < 14 ? 14 - label.size() : 1, ' ') + text + "\n";
}

std::string text_of(const ordered_json& report) {
  std::string out = cli::version_text() + "\n";
  out += line("threads", std::to_string(report["threads"].get<int>()));
  out += line("memory", human_bytes(report["memory"].get<uint64_t>()));
  const ordered_json& cache = report["cache"];
  out += line("cache", cache["path"].is_null()
                           ? "none"
                           : cache["path"].get<std::string>() +
                                 (cache["writable"].get<bool>() ? "" : " (cannot be written)"));
  for (const ordered_json& module : report["modules"])
    out += line("module", module["name"].get<std::string>() + ": " +
                              (module["path"].is_null()     ? "not installed"
                               : module.contains("problem") ? module["problem"].get<std::string>()
                                                            : module["path"].get<std::string>()));
  const ordered_json& gpu = report["cuda"];
  for (const char* library : {"driver", "nvrtc", "cublaslt", "cudnn"})
    if (gpu.contains(library) && !gpu[library].get<std::string>().empty())
      out += line("cuda", str(library, ": ", gpu[library].get<std::string>()));
  if (gpu.contains("gpus"))
    for (size_t i = 0; i < gpu["gpus"].size(); ++i)
      out += line("cuda", str("cuda:", i, ": ", gpu["gpus"][i].get<std::string>()));
  if (const std::string problem = gpu["problem"].get<std::string>(); !problem.empty())
    out += line("cuda", "not usable: " + problem);
  out += report["fix"].is_null() ? "nothing to fix\n"
                                 : line("to fix", report["fix"].get<std::string>());
  return out;
}

int run_doctor(int argc, char** argv) {
  cli::App app{"Checks an installation: processor, optional modules, devices, cache."};
  app.footer("Ends with 1 if there is something to fix, of which it names the first.");
  bool json = false;
  app.add_flag("--json", json, "print JSON");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  Problems problems;
  ordered_json report;
  report["threads"] = thread_count();
  report["memory"] = static_cast<uint64_t>(limits().memory);
  report["cache"] = check_cache(problems);
  report["modules"] = ordered_json::array();
  for (const char* name : {"codegen", "lapack", "archive", "hdf5", "sound", "http", "gloo", "mpi"})
    report["modules"].push_back(check_module(name, problems));
  report["cuda"] = check_cuda(problems);
  report["fix"] = problems.empty() ? ordered_json() : ordered_json(problems.front());
  cli::print(json ? report.dump() + "\n" : text_of(report));
  return problems.empty() ? 0 : static_cast<int>(ErrorCode::kDifference);
}

}  // namespace

namespace paddle::cli {

int doctor_command(int argc, char** argv) {
  return run_tool([&] { return run_doctor(argc, argv); });
}

}  // namespace paddle::cli
