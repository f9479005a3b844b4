#include "train/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/markup.h"
#include "train/report_chart.h"
#include "train/report_details.h"

namespace paddle::train {
namespace {

using Json = nlohmann::ordered_json;

/// Keys of a log line that are not metrics.
bool is_record(const std::string& key) {
  for (const char* each :
       {"kind", "step", "epoch", "loss", "learning_rate", "loss_scale", "gradient_norm",
        "skipped_updates", "samples_per_second", "seconds", "samples"})
    if (key == each) return true;
  return false;
}

struct Log {
  std::map<std::string, std::vector<Point>> train, valid;  ///< by name of the value
  Json last_train, last_valid, test, end;
};

Log read_log(const std::string& path) {
  Log out;
  for (const std::string& text : split(read_file(path), '\n')) {
    const Json line = Json::parse(text, nullptr, false);
    if (!line.is_object()) continue;
    const std::string kind = line.value("kind", "");
    if (kind == "end") out.end = line;
    if (kind == "test") out.test = line;
    if (kind != "train" && kind != "valid") continue;
    auto& curves = kind == "train" ? out.train : out.valid;
    (kind == "train" ? out.last_train : out.last_valid) = line;
    for (const auto& [key, value] : line.items())
      if (value.is_number() && key != "step" && key != "epoch")
        curves[key].push_back({line.value("step", 0.0), value.get<double>()});
  }
  return out;
}

std::string numbers_table(const Log& log) {
  std::string out = "<table><tr><th></th>";
  const std::vector<std::pair<const char*, const Json*>> columns = {
      {"training", &log.last_train}, {"validation", &log.last_valid}, {"test", &log.test}};
  std::vector<std::string> rows = {"loss"};
  for (const auto& [name, line] : columns) {
    if (!line->is_object()) continue;
    out += str("<th>", name, "</th>");
    for (const auto& [key, value] : line->items())
      if (value.is_number() && !is_record(key) &&
          std::find(rows.begin(), rows.end(), key) == rows.end())
        rows.push_back(key);
  }
  rows.insert(rows.end(), {"step", "epoch", "learning_rate", "samples_per_second", "seconds"});
  out += "</tr>\n";
  for (const std::string& row : rows) {
    out += "<tr><th>" + escape_markup(row) + "</th>";
    for (const auto& [name, line] : columns) {
      if (!line->is_object()) continue;
      const auto value = line->find(row);
      const bool has = value != line->end() && value->is_number();
      out += str("<td>",
                 !has                         ? ""
                 : value->is_number_integer() ? std::to_string(value->get<int64_t>())
                                              : short_number(value->get<double>()),
                 "</td>");
    }
    out += "</tr>\n";
  }
  return out + "</table>\n";
}

}  // namespace

void write_run_report(const std::string& folder) {
  const Log log = read_log(folder + "/metrics.jsonl");
  const auto text = [&](const char* name) {
    const std::string path = folder + "/" + name;
    return file_exists(path) ? read_file(path) : std::string();
  };
  const Json run = Json::parse(text("run.json"), nullptr, false);
  const std::string name = run.is_object() ? run.value("name", "") : "";
  const std::string title = name.empty() ? folder : name;
  std::string page = str("<h2>Last values</h2>\n", numbers_table(log),
                         "<h2>Curves</h2>\n<div class=\"charts\">\n");
  const auto curve = [](const std::map<std::string, std::vector<Point>>& curves,
                        const std::string& key, const std::string& label, size_t color) {
    const auto found = curves.find(key);
    return Curve{label, curve_color(color),
                 found == curves.end() ? std::vector<Point>() : found->second};
  };
  page += chart(
      "loss", {curve(log.train, "loss", "training", 0), curve(log.valid, "loss", "validation", 1)});
  for (const auto& [key, points] : log.valid)
    if (!is_record(key)) page += chart(key, {curve(log.valid, key, "validation", 1)});
  for (const char* key : {"learning_rate", "gradient_norm", "loss_scale", "samples_per_second"})
    page += chart(key, {curve(log.train, key, key, 2)});
  page += "</div>\n";
  page += evaluation_section(text("evaluation.json"));
  if (run.is_object()) page += "<h2>Run</h2>\n<pre>" + escape_markup(run.dump(2)) + "</pre>\n";
  if (const std::string config = text("config.yaml"); !config.empty())
    page += "<h2>Config</h2>\n<pre>" + escape_markup(config) + "</pre>\n";
  write_file_atomically(folder + "/report.html", report_page(title, page));
}

}  // namespace paddle::train
