#include "common_describe.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"

namespace paddle::cli {
namespace {

using nlohmann::json;

/// CLI11 prints the type with its checks: "TEXT:{cpu,onednn}", "INT:INT in [1 - 9]".
void set_value(const CLI::Option& option, OptionDescription& out) {
  if (option.get_items_expected_max() == 0) return;
  const std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.rfind('}');
  if (open != std::string::npos && close != std::string::npos)
    out.choices = split(type.substr(open + 1, close - open - 1), ',');
  out.value = type.substr(0, type.find(':'));
  if (out.value.empty()) out.value = "VALUE";
}

json json_of(const CommandDescription& c) {
  json options = json::array(), arguments = json::array(), commands = json::array();
  for (const OptionDescription& o : c.options)
    options.push_back(
        {{"names", o.names}, {"value", o.value}, {"choices", o.choices}, {"help", o.help}});
  for (const ArgumentDescription& a : c.arguments)
    arguments.push_back(
        {{"name", a.name}, {"help", a.help}, {"required", a.required}, {"repeated", a.repeated}});
  for (const CommandDescription& sub : c.commands) commands.push_back(json_of(sub));
  return {{"name", c.name},         {"summary", c.summary}, {"footer", c.footer},
          {"arguments", arguments}, {"options", options},   {"commands", commands}};
}

CommandDescription command_of(const json& j) {
  CommandDescription out;
  out.name = j.at("name");
  out.summary = j.at("summary");
  out.footer = j.at("footer");
  for (const json& a : j.at("arguments"))
    out.arguments.push_back({a.at("name"), a.at("help"), a.at("required"), a.at("repeated")});
  for (const json& o : j.at("options"))
    out.options.push_back({o.at("names"), o.at("value"), o.at("choices"), o.at("help")});
  for (const json& c : j.at("commands")) out.commands.push_back(command_of(c));
  return out;
}

}  // namespace

CommandDescription describe(const CLI::App& app) {
  CommandDescription out;
  out.name = app.get_name();
  out.summary = app.get_description();
  out.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      out.arguments.push_back({option->get_name(true), option->get_description(),
                               option->get_required(), option->get_expected_max() > 1});
      continue;
    }
    OptionDescription o;
    for (const std::string& name : option->get_snames()) o.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) o.names.push_back("--" + name);
    o.help = option->get_description();
    set_value(*option, o);
    out.options.push_back(std::move(o));
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    out.commands.push_back(describe(*command));
  return out;
}

std::string to_json(const CommandDescription& command) { return json_of(command).dump(); }

CommandDescription from_json(const std::string& text) {
  try {
    return command_of(json::parse(text));
  } catch (const json::exception&) {
    fail(ErrorCode::kInternal, "a program did not describe itself");
  }
}

}  // namespace paddle::cli
