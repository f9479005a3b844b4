#include "plugin_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/html_page.h"
#include "base/markup.h"
#include "base/text.h"
#include "base/timing_conditions.h"
#include "config/document.h"

namespace paddle::cli {
namespace {

using conformance::Case;
using conformance::Level;
using conformance::Report;
using conformance::Status;
using nlohmann::ordered_json;

/// The levels above kNone, the lowest first.
constexpr Level kLevels[] = {Level::kLoads, Level::kComputes, Level::kTrains, Level::kDistributed,
                             Level::kComplete};

std::vector<std::string> level_names() {
  std::vector<std::string> out = {text(Level::kNone)};
  for (const Level level : kLevels) out.emplace_back(text(level));
  return out;
}

std::string fixed_seconds(double seconds) { return fmt::format("{:.3f}", seconds); }

double seconds_of(const Report& report, const std::string& group) {
  double out = 0;
  for (const Case& c : report.cases)
    if (group.empty() || c.group == group) out += c.seconds;
  return out;
}

}  // namespace

std::string report_table(const Report& report) {
  std::string out = str(report.plugin, report.plugin.empty() ? "" : " ", report.version,
                        report.plugin.empty() ? "" : "\n", "group       passed  failed  skipped\n");
  for (const std::string& group : conformance::groups()) {
    const size_t passed = report.count(Status::kPassed, group),
                 failed = report.count(Status::kFailed, group),
                 skipped = report.count(Status::kSkipped, group);
    if (passed + failed + skipped == 0) continue;
    out += fmt::format("{:<12}{:<8}{:<8}{}\n", group, passed, failed, skipped);
  }
  const conformance::Coverage results = coverage_of(report, "operators"),
                              gradients = coverage_of(report, "gradients");
  if (results.all > 0)
    out += str("operations of the engine: ", text(results),
               gradients.all > 0 ? ", gradients: " + text(gradients) : "", "\n");
  if (report.is_whole) out += str("level: ", text(level_of(report)), "\n");
  for (const Case& c : report.cases) {
    if (c.group == "speed" && c.status == Status::kPassed)
      out += str("\nspeed ", c.name, ": ", c.message, "\n");
    if (c.status == Status::kFailed)
      out += str("\nfailed: ", c.group, " ", c.name, ": ", c.message, "\n  ", c.reproduce, "\n");
    if (c.status == Status::kSkipped)
      out += str("\nskipped: ", c.group, " ", c.name, ": ", c.message, "\n");
  }
  return out;
}

std::string report_json(const Report& report, int indent) {
  ordered_json cases = ordered_json::array();
  for (const Case& c : report.cases) {
    ordered_json each = {{"group", c.group},
                         {"name", c.name},
                         {"status", text(c.status)},
                         {"seconds", c.seconds},
                         {"reproduce", c.reproduce}};
    if (!c.message.empty()) each["message"] = c.message;
    if (!c.found.empty()) {
      each["actual"] = c.found;
      each["expected"] = c.expected;
      each["tolerance"] = c.tolerance;
    }
    cases.push_back(std::move(each));
  }
  const ordered_json out = {{"plugin", report.plugin},
                            {"version", report.version},
                            {"sha256", report.sha256},
                            {"host", PADDLE_VERSION},
                            {"machine", timing_conditions()},
                            {"seed", report.seed},
                            {"quick", report.quick},
                            {"level", text(level_of(report))},
                            {"passed", report.count(Status::kPassed)},
                            {"failed", report.count(Status::kFailed)},
                            {"skipped", report.count(Status::kSkipped)},
                            {"cases", std::move(cases)}};
  return out.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

EarlierReport read_report(const std::string& path) {
  if (!file_exists(path)) fail(ErrorCode::kUsage, "--compare: ", path, ": no such file");
  config::Diagnostics diagnostics;
  const config::Node report = config::read_document(path, diagnostics);
  diagnostics.raise();
  config::Node checked = report;
  report_schema().resolve(checked, path, diagnostics);
  if (!diagnostics.empty())
    fail(ErrorCode::kConfig, path, ": is not a report of paddle plugin check");
  const auto text = [](const config::Node& map, const char* key) {
    const config::Node* const found = map.find(key);
    return found ? found->as_string() : std::string();
  };
  EarlierReport out;
  out.plugin = text(report, "plugin");
  out.version = text(report, "version");
  out.level = text(report, "level");
  out.quick = report.find("quick")->as_bool();
  for (const config::Node& each : report.find("cases")->items)
    out.cases[{text(each, "group"), text(each, "name")}] = {text(each, "status"),
                                                            text(each, "message")};
  return out;
}

std::string report_changes(const Report& report, const EarlierReport& before) {
  std::string out = str("\ncompared with ", before.plugin, before.plugin.empty() ? "" : " ",
                        before.version, before.quick ? ", --quick" : "", "\n");
  const std::string nothing = out;
  if (report.is_whole && before.level != text(level_of(report)))
    out += str("level: ", text(level_of(report)), ", was ", before.level, "\n");
  auto gone = before.cases;
  size_t added = 0;
  for (const Case& c : report.cases) {
    const auto old = before.cases.find({c.group, c.name});
    gone.erase({c.group, c.name});
    if (old == before.cases.end())
      ++added;
    else if (old->second.status != text(c.status))
      out += str(c.group, " ", c.name, ": ", text(c.status), ", was ", old->second.status, "\n");
    else if (c.status == Status::kFailed && old->second.message != c.message)
      out += str(c.group, " ", c.name, ": fails in another way, was: ", old->second.message, "\n");
  }
  if (added > 0) out += str(added, " cases are new\n");
  if (report.is_whole && !gone.empty()) {
    out += str(gone.size(), " cases are gone:");
    constexpr size_t kMaxNamed = 20;
    size_t named = 0;
    for (const auto& [name, outcome] : gone)
      if (named++ < kMaxNamed) out += str(named == 1 ? " " : ", ", name.first, " ", name.second);
    out += named > kMaxNamed ? ", …\n" : "\n";
  }
  return out == nothing ? out + "nothing has changed\n" : out;
}

config::Schema report_schema() {
  using config::Schema;
  using config::Spec;
  const auto required = [](Spec spec, const char* doc) { return spec.required().doc(doc); };
  const auto count = [&](const char* doc) { return required(Spec::integer().at_least(0), doc); };
  Schema one;
  one.add("group", required(Spec::text(), "the group of the case"))
      .add("name", required(Spec::text(), "the case, beginning with what is checked"))
      .add("status", required(Spec::word({"passed", "failed", "skipped"}), "what it gave"))
      .add("seconds", required(Spec::real().at_least(0), "that it took"))
      .add("reproduce", required(Spec::text(), "the command that runs it again"))
      .add("message", Spec::text().doc("where it differs, why it was skipped, or what it covered"))
      .add("actual", Spec::text().doc("of numbers that differ: the one that was found"))
      .add("expected", Spec::text().doc("and the one that it should be"))
      .add("tolerance", Spec::real().at_least(0).doc("and how far they might be apart"));
  Schema out;
  out.add("plugin", required(Spec::text(), "its name; empty if the file does not tell it"))
      .add("version", required(Spec::text(), "of the plug-in"))
      .add("sha256", required(Spec::text(), "of the file"))
      .add("host", required(Spec::text(), "the version of this program"))
      .add("machine", required(Spec::text(), "processor, instruction sets and threads"))
      .add("seed", count("of the values that are drawn"))
      .add("quick", required(Spec::boolean(), "whether fewer shapes were checked"))
      .add("level", required(Spec::word(level_names()), "the highest level that is proven"))
      .add("passed", count("cases"))
      .add("failed", count("cases"))
      .add("skipped", count("cases"))
      .add("cases", required(Spec::list(Spec::map(one)), "in the order of the groups"));
  return out;
}

std::string report_html(const Report& report) {
  constexpr std::string_view kStyle = R"(
:root { --good: #a3c9a8; --bad: #d98880; --open: #e2d3a2; }
@media (prefers-color-scheme: dark) { :root { --good: #4f7a55; --bad: #97473f; --open: #7d6f3c; } }
tr.passed td:first-child { border-left: .5em solid var(--good); padding-left: .5em; }
tr.failed td:first-child { border-left: .5em solid var(--bad); padding-left: .5em; }
tr.skipped td:first-child { border-left: .5em solid var(--open); padding-left: .5em; }
.level { display: inline-block; padding: .1em .6em; margin-right: .3em; border-radius: .3em;
  background: var(--line); color: var(--soft); }
.level.reached { background: var(--good); color: var(--text); }
pre { font-size: 12px; white-space: pre-wrap; margin: .2em 0 1em; }
)";
  const std::string title =
      report.plugin.empty() ? "plug-in" : report.plugin + " " + report.version;
  const size_t failed = report.count(Status::kFailed), skipped = report.count(Status::kSkipped);
  std::string body =
      str("<h1>", escape_markup(title), "</h1>\n<p class=\"soft\">", report.cases.size(),
          " cases: ", report.count(Status::kPassed), " passed, ", failed, " failed, ", skipped,
          " skipped, in ", fixed_seconds(seconds_of(report, "")), " s</p>\n");
  if (report.is_whole) {
    body += "<p>";
    const Level reached = level_of(report);
    for (const Level level : kLevels)
      body += str("<span class=\"level", level <= reached ? " reached" : "", "\">", text(level),
                  "</span>");
    body += "</p>\n";
  }
  HtmlTable facts({"", ""});
  facts.row({"sha256", report.sha256});
  facts.row({"host", PADDLE_VERSION});
  facts.row({"machine", timing_conditions()});
  facts.row({"seed", str(report.seed, report.quick ? ", --quick" : "")});
  body += facts.html() + "<h2>Groups</h2>\n";
  HtmlTable groups({"group", "#passed", "#failed", "#skipped", "#seconds"});
  for (const std::string& group : conformance::groups()) {
    const size_t of_group[] = {report.count(Status::kPassed, group),
                               report.count(Status::kFailed, group),
                               report.count(Status::kSkipped, group)};
    if (of_group[0] + of_group[1] + of_group[2] == 0) continue;
    groups.row({group, str(of_group[0]), str(of_group[1]), str(of_group[2]),
                fixed_seconds(seconds_of(report, group))},
               of_group[1] > 0   ? "failed"
               : of_group[0] > 0 ? "passed"
                                 : "skipped");
  }
  body += groups.html();
  if (failed > 0) {
    body += "<h2>Failures</h2>\n";
    for (const Case& c : report.cases)
      if (c.status == Status::kFailed)
        body += str("<p>", escape_markup(c.group + " " + c.name + ": " + c.message), "</p>\n<pre>",
                    escape_markup(c.reproduce), "</pre>\n");
  }
  body += "<h2>Cases</h2>\n";
  HtmlTable cases({"case", "group", "status", "#seconds", "reason"});
  for (const Case& c : report.cases)
    cases.row({c.name, c.group, text(c.status), fixed_seconds(c.seconds), c.message},
              text(c.status));
  return html_page(title + ": conformance", body + cases.html(), kStyle);
}

}  // namespace paddle::cli
