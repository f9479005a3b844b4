#include "plugin_build.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "plugin/plugin.h"

namespace paddle::cli {
namespace {

namespace fs = std::filesystem;

bool is_source(const fs::path& path) {
  return path.extension() == ".cc" || path.extension() == ".cpp" || path.extension() == ".c";
}

std::vector<std::string> sources_of(const std::string& source) {
  std::error_code ignored;
  if (!fs::is_directory(source, ignored)) {
    if (!file_exists(source)) fail(ErrorCode::kUsage, source, ": no such file or folder");
    if (!is_source(source))
      fail(ErrorCode::kUsage, source, ": expected a source (.cc, .cpp, .c) or a folder of them");
    return {source};
  }
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(source))
    if (is_source(entry.path())) out.push_back(entry.path().string());
  if (out.empty()) fail(ErrorCode::kUsage, source, ": has no source (.cc, .cpp, .c)");
  std::ranges::sort(out);
  return out;
}

/// The folder of the headers: $PADDLE_INCLUDE, that of the installed tree, or that of the sources
/// next to a build folder.
std::string include_folder() {
  const char* const set = std::getenv("PADDLE_INCLUDE");
  std::vector<fs::path> places;
  if (set && *set) places.emplace_back(set);
  const fs::path program = fs::path(program_path()).parent_path();
  places.push_back(program.parent_path() / "include");
  places.push_back(program.parent_path().parent_path() / "include");
  for (const fs::path& place : places)
    if (file_exists((place / "paddle/plugin/plugin.h").string()))
      return place.lexically_normal().string();
  fail(ErrorCode::kDevice,
       "the headers of plug-ins (paddle/plugin/plugin.h) are not installed; set PADDLE_INCLUDE to "
       "their folder");
}

/// Runs a program; its output goes to standard error.
int run(const std::vector<std::string>& command) {
  const pid_t child = fork();
  if (child < 0) fail(ErrorCode::kDevice, "fork: ", std::strerror(errno));
  if (child == 0) {
    dup2(STDERR_FILENO, STDOUT_FILENO);
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

}  // namespace

std::string build_plugin(const PluginBuild& build) {
  const std::vector<std::string> sources = sources_of(build.source);
  std::string output = build.output;
  if (output.empty()) {
    const fs::path source = fs::path(build.source).lexically_normal();
    std::error_code ignored;
    const bool folder = fs::is_directory(source, ignored);
    const fs::path named = folder && source.filename().empty() ? source.parent_path() : source;
    const std::string name = folder && named.filename() == "."
                                 ? fs::absolute(named).parent_path().filename().string()
                                 : named.stem().string();
    output = ((folder ? source : source.parent_path()) / (name + ".so")).string();
  }
  const bool c_only =
      std::ranges::all_of(sources, [](const std::string& s) { return s.ends_with(".c"); });
  const char* const compiler = std::getenv(c_only ? "CC" : "CXX");
  std::vector<std::string> command = {compiler && *compiler ? compiler : c_only ? "gcc" : "g++"};
  const auto add = [&](std::initializer_list<const char*> words) {
    command.insert(command.end(), words.begin(), words.end());
  };
  // Structs of later headers have more fields than a source names.
  add({"-shared", "-fPIC", "-Wall", "-Wextra", "-Wno-missing-field-initializers",
       "-fvisibility=hidden", "-Wl,-z,defs"});
  add({c_only ? "-std=c11" : "-std=c++20"});
  if (build.debug)
    add({"-O0", "-g"});
  else
    add({"-O3"});
  if (!build.sanitize.empty()) command.push_back("-fsanitize=" + build.sanitize);
  command.insert(command.end(), {"-I", include_folder()});
  // The result takes its name once it is whole.
  const std::string part = output + ".part", symbols = output + ".symbols";
  // Templates of the standard library are visible in spite of -fvisibility=hidden.
  write_file_atomically(symbols, "{ global: paddle_plugin_main; local: *; };\n");
  command.insert(command.end(), {"-Wl,--version-script=" + symbols, "-o", part});
  command.insert(command.end(), sources.begin(), sources.end());
  const int status = run(command);
  std::error_code ignored;
  fs::remove(symbols, ignored);
  if (status == 127)
    fail(ErrorCode::kDevice, command[0], ": cannot be started; set CXX to a compiler");
  if (status != 0) {
    fs::remove(part, ignored);
    fail(ErrorCode::kDifference, build.source, ": the compiler failed with status ", status);
  }
  try {
    plugin::read_info(part);
  } catch (const Error& e) {
    fs::remove(part, ignored);
    const std::string own = part + ": ";
    const std::string what = e.message();
    fail(ErrorCode::kDifference, output, ": ",
         what.starts_with(own) ? what.substr(own.size()) : what);
  }
  std::error_code failed;
  fs::rename(part, output, failed);
  if (failed) fail(ErrorCode::kDevice, output, ": ", failed.message());
  return output;
}

}  // namespace paddle::cli
