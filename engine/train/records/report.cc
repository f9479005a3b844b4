#include "train/records/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/markup.h"
#include "train/records/metrics_log.h"
#include "train/records/report_chart.h"
#include "train/records/report_details.h"

namespace paddle::train {
namespace {

using Json = nlohmann::ordered_json;

struct Log {
  std::map<std::string, std::vector<Point>> train, valid;  ///< by name of the value
  Json last_train, last_valid, test;
};

Log read_log(const std::string& path) {
  Log out;
  for (const std::string& text : split(read_file(path), '\n')) {
    const Json line = Json::parse(text, nullptr, false);
    if (!line.is_object()) continue;
    const std::string kind = kind_of(line);
    if (kind == "test") out.test = line;
    if (kind != "train" && kind != "valid") continue;
    auto& curves = kind == "train" ? out.train : out.valid;
    (kind == "train" ? out.last_train : out.last_valid) = line;
    for (const auto& [key, value] : line.items())
      if (value.is_number() && key != "step" && key != "epoch")
        curves[key].push_back({static_cast<double>(step_of(line)), value.get<double>()});
  }
  return out;
}

/// The confidence interval of a metric of a log line, in parentheses; "" if it has none.
std::string interval_of(const Json& line, const std::string& metric) {
  const auto intervals = line.find("intervals");
  if (intervals == line.end() || !intervals->is_object()) return "";
  const auto found = intervals->find(metric);
  if (found == intervals->end() || found->size() != 2 || !(*found)[0].is_number() ||
      !(*found)[1].is_number())
    return "";
  return str(" <span class=\"interval\">(", short_number((*found)[0].get<double>()), " – ",
             short_number((*found)[1].get<double>()), ")</span>");
}

std::string numbers_table(const Log& log) {
  if (log.train.empty() && log.valid.empty() && !log.test.is_object())
    return "<p>The run ended before its first log line.</p>\n";
  std::string out = "<table><tr><th></th>";
  const std::vector<std::pair<const char*, const Json*>> columns = {
      {"training", &log.last_train}, {"validation", &log.last_valid}, {"test", &log.test}};
  std::vector<std::string> rows = {"loss"};
  for (const auto& [name, line] : columns) {
    if (!line->is_object()) continue;
    out += str("<th>", name, "</th>");
    for (const auto& [key, value] : line->items())
      if (value.is_number() && !is_log_key(key) &&
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
                 interval_of(*line, row), "</td>");
    }
    out += "</tr>\n";
  }
  out += "</table>\n";
  if (out.find("class=\"interval\"") != std::string::npos)
    out +=
        "<p>In parentheses: 95% confidence intervals, by the delete-a-group jackknife over 20 "
        "random groups of samples.</p>\n";
  return out;
}

/// Throughput and data wait of the training lines, over the time that they are about; NaN without
/// any.
struct TrainingTimes {
  double samples_per_second = std::nan(""), data_wait = std::nan("");
};
TrainingTimes training_times(const Log& log) {
  const auto rates = log.train.find("samples_per_second"), waits = log.train.find("data_wait");
  TrainingTimes out;
  if (rates == log.train.end() || waits == log.train.end()) return out;
  double time = 0, waited = 0, last = 0;  // in units of the time of a step with one sample a second
  for (size_t i = 0; i < std::min(rates->second.size(), waits->second.size()); ++i) {
    const auto [step, rate] = rates->second[i];
    const double spent = rate > 0 ? (step - last) / rate : 0;
    time += spent;
    waited += spent * waits->second[i].value;
    last = step;
  }
  if (!(time > 0)) return out;
  out.samples_per_second = last / time;
  out.data_wait = waited / time;
  return out;
}

std::string timing_section(const Log& log) {
  std::string out = "<h2>Timing</h2>\n<table>\n";
  const auto row = [&](const char* name, double value, const char* unit) {
    if (std::isfinite(value))
      out += str("<tr><th>", name, "</th><td>", short_number(value), unit, "</td></tr>\n");
  };
  double seconds = 0;
  for (const Json* line : {&log.last_train, &log.last_valid, &log.test})
    if (line->is_object()) seconds = std::fmax(seconds, number_at(*line, "seconds"));
  if (seconds > 0) row("time", seconds, " s");
  const TrainingTimes times = training_times(log);
  row("training", times.samples_per_second, " samples/s");
  row("waiting for data", 100 * times.data_wait, " % of the training time");
  if (log.last_valid.is_object())
    row("validation", number_at(log.last_valid, "samples_per_second"), " samples/s");
  return out + "</table>\n";
}

/// The files of the data with their digests, from run.json.
std::string data_section(const Json& run) {
  std::string out =
      "<h2>Data</h2>\n<table><tr><th>part</th><th>samples</th><th>file</th><th>bytes</th>"
      "<th>digest</th></tr>\n";
  const auto text = [](const Json& object, const char* key) {
    const auto value = object.find(key);
    if (value == object.end()) return std::string();
    return escape_markup(value->is_string() ? value->get<std::string>() : value->dump());
  };
  for (const char* part : {"train", "valid"}) {
    const auto found = run.find(part);
    if (found == run.end() || !found->is_object()) continue;
    const auto row = [&](const Json& file) {
      out += str("<tr><th>", part, "</th><td>", text(*found, "samples"), "</td><td>",
                 text(file, "path"), "</td><td>", text(file, "bytes"), "</td><td>",
                 text(file, "digest"), "</td></tr>\n");
    };
    const auto files = found->find("files");
    if (files == found->end() || !files->is_array() || files->empty()) {
      row(Json::object());
      continue;
    }
    for (const Json& file : *files) row(file);
  }
  return out + "</table>\n";
}

}  // namespace

void write_run_report(const std::string& folder, const std::string& ending) {
  const Log log = read_log(folder + "/metrics.jsonl");
  const auto text = [&](const char* name) {
    const std::string path = folder + "/" + name;
    return file_exists(path) ? read_file(path) : std::string();
  };
  const Json run = Json::parse(text("run.json"), nullptr, false);
  const auto name = run.find("name");
  const std::string title =
      name != run.end() && name->is_string() && *name != "" ? name->get<std::string>() : folder;
  std::string page = str("<p>", escape_markup(ending), "</p>\n<h2>Last values</h2>\n",
                         numbers_table(log), "<h2>Curves</h2>\n<div class=\"charts\">\n");
  const auto curve = [](const std::map<std::string, std::vector<Point>>& curves,
                        const std::string& key, const std::string& label, size_t color) {
    const auto found = curves.find(key);
    return Curve{label, curve_color(color),
                 found == curves.end() ? std::vector<Point>() : found->second};
  };
  page += chart(
      "loss", {curve(log.train, "loss", "training", 0), curve(log.valid, "loss", "validation", 1)});
  for (const auto& [key, points] : log.valid)
    if (!is_log_key(key)) page += chart(key, {curve(log.valid, key, "validation", 1)});
  for (const char* key :
       {"learning_rate", "gradient_norm", "loss_scale", "samples_per_second", "data_wait"})
    page += chart(key, {curve(log.train, key, key, 2)});
  page += "</div>\n";
  if (!log.train.contains("gradient_norm"))
    page += "<p>train.log_gradient_norm: true adds the norm of the gradients.</p>\n";
  page += evaluation_section(text("evaluation.json"));
  page += timing_section(log);
  if (run.is_object()) page += data_section(run);
  if (run.is_object()) page += "<h2>Run</h2>\n<pre>" + escape_markup(run.dump(2)) + "</pre>\n";
  if (const std::string config = text("config.yaml"); !config.empty())
    page += "<h2>Config</h2>\n<pre>" + escape_markup(config) + "</pre>\n";
  write_file_atomically(folder + "/report.html", report_page(title, page));
}

}  // namespace paddle::train
