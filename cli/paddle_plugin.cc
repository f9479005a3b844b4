// paddle-plugin new|build|check|list|info|add|remove: plug-ins, files that add operations, kernels
// passes and other parts of the programs.

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files.h"
#include "commands.h"
#include "common.h"
#include "common_options.h"
#include "common_plugins.h"
#include "conformance/check.h"
#include "plugin/plugin.h"
#include "plugin/user_list.h"
#include "plugin_build.h"
#include "plugin_list.h"
#include "plugin_new.h"
#include "plugin_report.h"

namespace {

using namespace paddle;
using nlohmann::ordered_json;

int check(const conformance::CheckOptions& options, const std::string& folder,
          const std::string& earlier, bool json) {
  std::optional<cli::EarlierReport> before;
  if (!earlier.empty()) before = cli::read_report(earlier);
  const conformance::Report report = conformance::check_plugin(options);
  cli::print(cli::report_table(report));
  if (before) cli::print(cli::report_changes(report, *before));
  if (!folder.empty()) {
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    if (failed) fail(ErrorCode::kDevice, folder, ": ", failed.message());
    write_file_atomically(join_path(folder, "report.json"), cli::report_json(report, 2));
    write_file_atomically(join_path(folder, "report.html"), cli::report_html(report));
  }
  if (json) cli::print(cli::report_json(report, -1));
  return report.count(conformance::Status::kFailed) > 0 ? static_cast<int>(ErrorCode::kDifference)
                                                        : 0;
}

ordered_json json_of(const plugin::Info& info) {
  ordered_json out = {{"name", info.name},
                      {"version", info.version},
                      {"kind", info.is_native ? "shared object" : "yaml"},
                      {"interface", str(info.abi_major, ".", info.abi_minor)},
                      {"path", info.path}};
  if (info.is_native) {
    out["libraries"] = info.needed;
    out["exports"] = info.exported;
  } else {
    out["operations"] = ordered_json::array();
    for (const auto& [section, names] : info.sections) out[section] = names;
    out["rules"] = info.has_rules;
    out["summary"] = info.summary;
  }
  return out;
}

int show_info(const std::string& file, bool json) {
  const plugin::Info info = plugin::read_info(file);
  if (json) {
    cli::print(json_of(info).dump() + "\n");
    return 0;
  }
  std::string out =
      str(info.name, " ", info.version, ", ", info.is_native ? "a shared object" : "a YAML file",
          " for version ", info.abi_major, ".", info.abi_minor, " of the plug-in interface\n");
  if (!info.summary.empty()) out += info.summary + "\n";
  for (const auto& [section, names] : info.sections)
    out += section + ": " + join(names, ", ") + "\n";
  if (info.has_rules) out += "rewrite rules\n";
  if (info.is_native) out += "libraries: " + join(info.needed, ", ") + "\n";
  if (info.is_native) out += "exports: " + join(info.exported, ", ") + "\n";
  cli::print(out);
  return 0;
}

int run_plugin(int argc, char** argv) {
  cli::App app{
      "Builds, checks and describes plug-ins: files that add operations, kernels and more."};
  app.require_subcommand(1);
  cli::PluginTemplate start;
  auto* new_command = app.add_subcommand("new", "write a file to start a plug-in from");
  new_command
      ->add_option("KIND", start.kind,
                   "operator: an operation in a YAML file; kernel: one with a kernel in C++; "
                   "pass: a transformation of compiled functions in C++; rules: rewrite rules in a "
                   "YAML file; transport, table, reader, compiler: in C++; device: in C")
      ->required()
      ->check({.kind = cli::Check::Kind::kOneOf, .values = cli::plugin_kinds()});
  new_command->add_option("NAME", start.name, "of the plug-in: a word in lower case")->required();
  new_command->add_option("-o,--output", start.output,
                          "the file (default: NAME.plugin.yaml, NAME.cc or NAME.c)");
  new_command->add_flag("--cmake", start.cmake,
                        "a project of CMake in the folder NAME, for sources in C and C++");
  cli::PluginBuild building;
  auto* build_command =
      app.add_subcommand("build",
                         "compile a plug-in: a source file, or a folder of them (--debug: without "
                         "optimization, with symbols)");
  build_command->add_option("SOURCE", building.source, "a .cc, .cpp or .c file, or a folder")
      ->required();
  build_command->add_option("-o,--output", building.output,
                            "the shared object (default: NAME.so next to the source)");
  build_command->add_option("--sanitize", building.sanitize, "with this sanitizer: address")
      ->check(cli::one_of({"address", "undefined"}));

  conformance::CheckOptions checks;
  std::string folder, earlier;
  bool json = false;
  auto* check_command = app.add_subcommand(
      "check",
      "whether a plug-in loads, its operations compute what their bodies say, and its other "
      "parts do what those of the engine do");
  check_command->add_option("FILE", checks.path, "a .so or .plugin.yaml file");
  check_command->add_option("--device", checks.device,
                            "only this device of the plug-in; without FILE one of the engine, such "
                            "as cpu, or of a plug-in that --plugin names");
  check_command->add_option("--option", checks.options,
                            "KEY=VALUE of the options of the plug-in (repeatable)");
  check_command->add_flag("--quick", checks.quick,
                          "fewer shapes, and gradients of first order only");
  check_command->add_option("--group", checks.group,
                            "only this group: " + join(conformance::groups(), ", "));
  check_command->add_option("--only", checks.only, "only this case, or those of this operation");
  check_command->add_option("--key", checks.keys,
                            "KEY=VALUE of the dataset that readers are checked with (repeatable)");
  check_command->add_option("--seed", checks.seed, "seed of the sizes that are drawn (default: 1)");
  check_command->add_option("--report", folder, "folder for report.json and report.html");
  check_command->add_option("--compare", earlier,
                            "the report.json of an earlier check: says what has changed");
  check_command
      ->add_option("--timeout", checks.timeout_seconds,
                   "processor time that one case may take: 60, 500ms, 1m (default: 60)")
      ->check(cli::duration(0.001, 1e6));

  auto* list_command =
      app.add_subcommand("list", "the plug-ins that are loaded, and those in your list");
  cli::PluginListing listing;
  list_command->add_flag("--probe", listing.probe,
                         "load each in a process of its own and say what it offers, or why it "
                         "cannot be loaded");
  list_command->add_option("--config", listing.config,
                           "with --probe: a config whose plug-ins are listed, too");
  list_command
      ->add_option("--timeout", listing.timeout_seconds,
                   "with --probe: processor time that one plug-in may take (default: 10)")
      ->check(cli::duration(0.001, 1e6));
  cli::leave_plugins_closed(listing.probe);
  std::string file, name;
  auto* info_command =
      app.add_subcommand("info", "what a file says about itself; nothing of it is run");
  info_command->add_option("FILE", file, "a .so or .plugin.yaml file")->required();
  auto* add_command = app.add_subcommand(
      "add", "give a file a short name, which configs and --plugin may use in its place");
  add_command->add_option("NAME", name, "the name that the plug-in states")->required();
  add_command->add_option("FILE", file, "a .so or .plugin.yaml file")->required();
  auto* remove_command = app.add_subcommand("remove", "take a name from the list; the file stays");
  remove_command->add_option("NAME", name, "of the plug-in")->required();
  for (auto* command : {check_command, list_command, info_command})
    command->add_flag("--json", json, "print a JSON object on the last line");

  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  if (build_command->parsed()) {
    building.debug = cli::debug_requested();
    cli::print_line(cli::build_plugin(building));
    return 0;
  }
  if (new_command->parsed()) {
    cli::print(cli::write_plugin_template(start));
    return 0;
  }
  if (add_command->parsed()) {
    const plugin::ListedPlugin added = plugin::add_to_user_list(name, file);
    cli::print_line(
        str(added.name, " ", added.version, ": ", added.path, " in ", plugin::user_list_path()));
    return 0;
  }
  if (remove_command->parsed()) {
    plugin::remove_from_user_list(name);
    return 0;
  }
  if (check_command->parsed()) return check(checks, folder, earlier, json);
  if (!list_command->parsed()) return show_info(file, json);
  if (!listing.config.empty() && !listing.probe)
    fail(ErrorCode::kUsage, "--config has no effect without --probe");
  listing.json = json;
  cli::print(cli::list_plugins(listing));
  return 0;
}

}  // namespace

namespace paddle::cli {

int plugin_command(int argc, char** argv) {
  return run_tool([&] { return run_plugin(argc, argv); });
}

}  // namespace paddle::cli
