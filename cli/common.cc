#include "common.h"

#include <sys/ioctl.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <sstream>

#include "base/crash_report.h"
#include "base/duration.h"
#include "base/encryption.h"
#include "base/error.h"
#include "base/files.h"
#include "base/instruction_set.h"
#include "base/log.h"
#include "base/parallel.h"
#include "base/phase.h"
#include "base/resident_memory.h"
#include "common_describe.h"
#include "common_options.h"
#include "common_plugins.h"
#include "config/overrides.h"
#include "plugin/plugin.h"

namespace paddle::cli {
namespace {

bool debug = false, threads_given = false;
const bool* plugins_closed = nullptr;
std::vector<std::string> plugin_files;

void set_threads(int threads) {
  if (threads < 0 || threads > 1024)
    fail(ErrorCode::kUsage, "--threads: expected 1 to 1024, found ", threads);
  // Ranks of a run that share this machine share its cores.
  const char* const ranks = std::getenv("PADDLE_LOCAL_WORLD_SIZE");
  const int sharing = std::max(1, ranks ? std::atoi(ranks) : 1);
  set_thread_count(threads > 0 ? threads : std::max(1, available_cores() / sharing));
}

/// That of `-v` and `-q`, else that of PADDLE_LOG.
void choose_log_level(int verbose, bool quiet) {
  if (verbose > 0 && quiet) fail(ErrorCode::kUsage, "--verbose and --quiet are mutually exclusive");
  if (verbose > 0) {
    set_log_level(verbose == 1 ? LogLevel::kDebug : LogLevel::kTrace);
  } else if (quiet) {
    set_log_level(LogLevel::kWarning);
  } else if (const char* const word = std::getenv("PADDLE_LOG"); word && !parse_log_level(word)) {
    fail(ErrorCode::kUsage, "PADDLE_LOG: '", word, "' is unknown, expected ", log_level_names());
  }
}

/// "error: …" with the further errors of the same file, and the places in a model from which the
/// first one was reached, on lines of their own.
void print_failure(const std::string& head, const std::string& what) { print_error(head + what); }

/// The phases before the error with their times, the innermost unfinished one last.
void print_history() {
  if (!debug) return;
  for (const PhaseRecord& p : phase_records())
    print_error(std::string(p.failed ? "  failed in: " : "  done: ") +
                std::string(static_cast<size_t>(2 * p.depth), ' ') + p.name + "  " +
                seconds_text(p.seconds));
  print_error(str("  ", thread_count(), " threads, at most ", human_bytes(peak_resident_bytes()),
                  " of memory"));
}

int report(const std::string& head, const std::string& what, ErrorCode code) {
  std::fflush(stdout);
  print_failure(head, what);
  print_history();
  return static_cast<int>(code);
}

/// "did you mean" for the first option that the parser and its given subcommands do not have.
std::string unknown_option_hint(const CLI::App& parser, int argc, char** argv) {
  std::vector<std::string> known = {"--help", "--version"};
  const auto add = [&](const CLI::App& app) {
    for (const CLI::Option* option : app.get_options())
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  };
  add(parser);
  for (const CLI::App* command : parser.get_subcommands()) add(*command);
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const std::string name(argument.substr(0, argument.find('=')));
    if (name == "--") break;
    if (name.starts_with("--") && std::ranges::find(known, name) == known.end())
      return did_you_mean(name, known);
  }
  return "";
}

/// "unknown command ..." if the arguments name none of the commands of the parser, else "".
std::string unknown_command(const CLI::App& parser) {
  std::vector<std::string> known;
  for (const CLI::App* command : parser.get_subcommands([](const CLI::App*) { return true; }))
    known.push_back(command->get_name());
  if (known.empty() || !parser.get_subcommands().empty()) return "";
  for (const std::string& word : parser.remaining())
    if (!word.starts_with('-'))
      return str("unknown command '", word, "'", did_you_mean(word, known));
  return "";
}

void write_output(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    if (errno == EPIPE) std::_Exit(141);
    fail(ErrorCode::kDevice, "standard output: ", std::strerror(errno));
  }
}

}  // namespace

void leave_plugins_closed(const bool& closed) { plugins_closed = &closed; }

const std::vector<std::string>& named_plugins() { return plugin_files; }

bool debug_requested() { return debug; }

bool is_quiet() { return !is_logged(LogLevel::kInfo); }

void use_config_threads(int threads) {
  if (threads > 0 && !threads_given) set_threads(threads);
}

void print(const std::string& text) { write_output(printable(text, "\n\t")); }

void print_line(const std::string& line) { write_output(printable(line, "\t") + "\n"); }

void print_data(const std::string& data) {
  write_output(stdout_is_terminal() ? printable(data, "\n\t\r") : data);
}

void print_warning(const std::string& line) {
  if (is_logged(LogLevel::kWarning)) print_error("warning: " + line);
}

void print_note(const std::string& line) {
  if (!is_quiet()) print_error("note: " + line);
}

void print_error(const std::string& line) {
  std::fprintf(stderr, "%s\n", printable(line, "\n\t").c_str());
}

bool stdout_is_terminal() { return isatty(STDOUT_FILENO) == 1; }
bool stderr_is_terminal() { return isatty(STDERR_FILENO) == 1; }

std::string version_text() {
  std::string used = "sse4";
  const InstructionSet allowed = allowed_instructions();
  if (allowed >= InstructionSet::kAvx2 && __builtin_cpu_supports("avx2")) used = "avx2";
  if (allowed >= InstructionSet::kAvx512 && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    used = "avx512";
#ifdef PADDLE_WITH_LLVM
  const char* generator = "llvm";
#else
  const char* generator = "none";
#endif
  return str("paddle ", PADDLE_VERSION,
             "\ndevices: cpu, cuda\ninstruction sets: sse4, avx2, avx512 (this machine: ", used,
             ")\ncode generator: ", generator);
}

int terminal_columns() {
  struct winsize size {};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

std::optional<int> read_command_line(App& app, int argc, char** argv) {
  int threads = 0;
  app.group("Options");
  app.add_option("--threads", threads, "threads (default: the cores this process may use)");
  int verbose = 0;
  bool quiet = false;
  app.parser().add_flag(
      "-v,--verbose", verbose,
      "print what the tool does: phases, files, passes and plans; -vv: each operation, "
      "too");
  app.add_flag("-q,--quiet", quiet, "no notes, no progress: only results, warnings and errors");
  app.add_flag("--debug", debug, "after an error, print the preceding log, timings and memory");
  std::string model_key;
  app.add_option("--model-key", model_key,
                 "key of encrypted models: file:PATH, env:NAME or command:COMMAND (default: what "
                 "PADDLE_MODEL_KEY states)");
  std::vector<std::string> plugins;
  app.add_option("--plugin", plugins, "a plug-in to load: a .so or .plugin.yaml file (repeatable)")
      ->allow_extra_args(false);
  CLI::App& parser = app.parser();
  for (CLI::App* command : parser.get_subcommands([](CLI::App*) { return true; }))
    command->fallthrough();
  parser.set_version_flag("--version", version_text, "print the version and what it supports");
  parser.name(std::filesystem::path(argv[0]).filename().string());
  if (argc == 2 && std::string_view(argv[1]) == "--describe") {
    print(to_json(describe(parser)) + "\n");
    return 0;
  }
  try {
    parser.parse(argc, argv);
  } catch (const CLI::Success& e) {
    std::ostringstream text;
    const int status = parser.exit(e, text, text);
    print(text.str());
    return status;
  } catch (const CLI::ParseError& e) {
    std::string why = unknown_command(parser);
    if (why.empty()) why = e.what() + unknown_option_hint(parser, argc, argv);
    for (char& c : why)
      if (c == '\n') c = ' ';
    fail(ErrorCode::kUsage, trim(why), " (see ", std::filesystem::path(argv[0]).filename().string(),
         " --help)");
  }
  choose_log_level(verbose, quiet);
  if (!model_key.empty()) set_model_key(model_key);
  set_threads(threads);
  threads_given = threads > 0;
  plugin::set_log([](int level, const std::string& text) {
    level > 0 ? print_warning(text) : print_note(text);
  });
  plugin_files = plugins;
  if (const char* const more = std::getenv("PADDLE_PLUGINS"))
    for (const std::string& file : split(more, ':'))
      if (!file.empty()) plugin_files.push_back(file);
  if (!plugins_closed || !*plugins_closed) plugin::load_all(plugins);
  return std::nullopt;
}

void add_overwrite(App& app, bool& overwrite) {
  app.add_flag("--overwrite", overwrite, "overwrite an existing output");
}

void check_output(const std::string& output, bool overwrite, const std::string& own) {
  if (overwrite || output.empty()) return;
  std::error_code ignored;
  const bool is_file = std::filesystem::is_regular_file(output, ignored);
  const bool is_folder =
      std::filesystem::is_directory(output, ignored) && !list_directory(output).empty();
  if (!is_file && !is_folder) return;
  if (is_folder && !own.empty() && file_exists(join_path(output, own))) return;
  fail(ErrorCode::kUsage, output, ": already exists (--overwrite replaces it)");
}

std::vector<std::string> take_overrides(std::vector<std::string>& arguments) {
  std::vector<std::string> overrides, rest;
  for (std::string& a : arguments)
    (config::is_override(a) ? overrides : rest).push_back(std::move(a));
  arguments = std::move(rest);
  return overrides;
}

int run_tool(const std::function<int()>& body) {
  report_crashes();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is an error of the write, as a full disk is
  try {
    const int status = body();
    if (std::fflush(stdout) != 0 && errno == EPIPE) return 141;
    return status;
  } catch (const Error& e) {
    return report(e.code() == ErrorCode::kInternal ? "internal error: " : "error: ", e.what(),
                  e.code());
  } catch (const std::bad_alloc&) {
    return report("error: ", "out of memory", ErrorCode::kDevice);
  } catch (const std::exception& e) {
    return report("internal error: ", e.what(), ErrorCode::kInternal);
  }
}

}  // namespace paddle::cli
