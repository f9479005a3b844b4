#include "quant/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/markup.h"
#include "base/text.h"
#include "formats/csv.h"

namespace paddle::quant {
namespace {

using Json = nlohmann::ordered_json;

std::string time_text(double microseconds) {
  return microseconds > 0 ? fixed(microseconds, 1) : "";
}

/// The root-mean-square noise at this signal-to-noise ratio, in percent of the signal.
double noise_percent(double decibels) { return 100 * std::pow(10, -decibels / 20); }

/// A bar of a layer's sensitivity.
struct Bar {
  const Layer* layer = nullptr;
  double length = 0;
  std::string number;
};

/// The most sensitive layer first: by the change of the loss where that was computed.
std::vector<Bar> sensitivity_bars(const std::vector<Layer>& layers) {
  const bool by_loss = std::any_of(layers.begin(), layers.end(),
                                   [](const Layer& each) { return each.loss_change.has_value(); });
  std::vector<Bar> out;
  for (const Layer& layer : layers) {
    if (by_loss && layer.loss_change) {
      out.push_back({&layer, *layer.loss_change, fmt::format("{:.3g}", *layer.loss_change)});
    } else if (!by_loss && layer.output_sqnr_db) {
      const double noise = noise_percent(*layer.output_sqnr_db);
      out.push_back(
          {&layer, noise, fmt::format("{:.3g}% ({:.1f} dB)", noise, *layer.output_sqnr_db)});
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Bar& a, const Bar& b) { return a.length > b.length; });
  return out;
}

/// Horizontal bars with what they show, as SVG. Layers that stay float are lighter.
std::string sensitivity_chart(const std::vector<Layer>& layers) {
  constexpr double kRow = 20, kLabel = 260, kBars = 420, kNumber = 130;
  constexpr size_t kMax = 60;
  const std::vector<Bar> bars = sensitivity_bars(layers);
  if (bars.empty()) return "<p>Not measured.</p>\n";
  const size_t rows = std::min(kMax, bars.size());
  const double largest = std::max(1e-30, bars[0].length);
  std::string out =
      str("<p>",
          bars[0].layer->loss_change ? "Change of the loss, to first order,"
                                     : "Noise in the output of the model, in percent of "
                                       "the signal,",
          " when only one layer takes integers. Light bars: layers that stay float.</p>\n",
          "<svg role=\"img\" aria-label=\"sensitivity of layers\" viewBox=\"0 0 ",
          kLabel + kBars + kNumber, " ", static_cast<double>(rows) * kRow + 4,
          "\" style=\"max-width:", kLabel + kBars + kNumber, "px\">\n");
  double y = 2;
  for (size_t i = 0; i < rows; ++i) {
    const Layer& layer = *bars[i].layer;
    std::string name = layer.name;
    if (name.size() > 36) name = name.substr(0, 34) + "…";
    const double width = std::max(1.0, bars[i].length / largest * kBars);
    out += str("<text x=\"", kLabel - 8, "\" y=\"", y + 14, "\" text-anchor=\"end\">",
               escape_markup(name), "</text><rect x=\"", kLabel, "\" y=\"", y + 3,
               "\" height=\"14\" width=\"", fixed(width, 1), "\"",
               layer.quantized ? "" : " class=\"float\"", "/><text x=\"",
               fixed(kLabel + width + 6, 1), "\" y=\"", y + 14, "\">", bars[i].number, "</text>\n");
    y += kRow;
  }
  out += "</svg>\n";
  if (rows < bars.size()) out += str("<p>The first ", rows, " of ", bars.size(), ".</p>\n");
  return out;
}

std::string row(const std::vector<std::string>& cells, const char* tag = "td") {
  std::string out = "<tr>";
  for (const std::string& cell : cells)
    out += str("<", tag, ">", escape_markup(cell), "</", tag, ">");
  return out + "</tr>\n";
}

/// A row of the comparison: shares in percent, other metrics as numbers.
std::string metric_row(const Metric& metric) {
  const auto text = [&](double value) {
    return metric.is_share ? fixed(100 * value, 2) + "%" : short_number(value);
  };
  const auto change = [&](double value) {
    return metric.is_share ? fixed(100 * value, 2) : short_number(value);
  };
  const bool is_agreement = metric.name == "agreement";
  std::string last;
  if (!is_agreement) {
    const double difference = metric.quantized - metric.float_value;
    last = (difference > 0 ? "+" : "") + change(difference) + (metric.is_share ? " points" : "");
  }
  if (metric.confidence95)
    last += " (±" + change(*metric.confidence95) + " with 95% certainty, paired)";
  return row({is_agreement ? "samples with the same class" : metric.name,
              is_agreement ? "" : text(metric.float_value), text(metric.quantized), last});
}

constexpr const char* kStyle = R"(<style>
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 860px; padding: 0 1em;
       color: #1c2430; background: #fff; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 3px 10px 3px 0; border-bottom: 1px solid #d8dee6; }
svg text { font: 12px system-ui, sans-serif; fill: #1c2430; } svg rect { fill: #2f6fb2; }
svg rect.float { fill: #b4c0cd; }
.no { color: #a32020; } .wide { overflow-x: auto; }
@media (prefers-color-scheme: dark) {
  body { color: #dfe5ec; background: #14181d; } th, td { border-color: #333c47; }
  svg text { fill: #dfe5ec; } svg rect { fill: #6aa5e0; } svg rect.float { fill: #4c5866; } .no { color: #ff9a8f; }
}
</style>
)";

}  // namespace

std::string short_number(double value) { return fmt::format("{:.5g}", value); }

std::string fixed(double value, int digits) { return fmt::format("{:.{}f}", value, digits); }

std::string summary(const QuantJob& job, const QuantReport& report) {
  std::string out = job.config.scheme + ": ";
  const Comparison& c = report.comparison;
  if (const Metric* accuracy = c.find("accuracy"); accuracy && accuracy->is_share)
    out += str("accuracy ", fixed(100 * accuracy->float_value, 2), " → ",
               fixed(100 * accuracy->quantized, 2),
               accuracy->confidence95 ? " (±" + fixed(100 * *accuracy->confidence95, 2) + ")" : "",
               " · ");
  else if (const Metric* noise = c.find("output_sqnr_db"))
    out += fixed(noise->quantized, 1) + " dB · ";
  for (const Metric& each : c.metrics)
    if (each.is_of_config && each.name != "loss" && !(each.name == "accuracy" && each.is_share))
      out +=
          str(each.name, " ", short_number(each.float_value), " → ", short_number(each.quantized),
              each.confidence95 ? " (±" + short_number(*each.confidence95) + ")" : "", " · ");
  if (c.second_ms > 0)
    out += fixed(c.first_ms / c.second_ms, 2) + str("× as fast (batch ", c.latency_batch, ") · ");
  const auto count = static_cast<int64_t>(report.layers.size());
  return out + str(fixed(static_cast<double>(report.float_bytes) /
                             static_cast<double>(std::max<int64_t>(1, report.quantized_bytes)),
                         2),
                   "× smaller · ", count - report.quantized_layers(), " of ", count,
                   " layers kept float");
}

std::string report_json(const QuantJob& job, const QuantReport& report) {
  Json metrics = Json::object();
  for (const Metric& each : report.comparison.metrics) {
    Json value = {{"float", each.float_value}, {"quantized", each.quantized}};
    if (each.name == "output_sqnr_db") value.erase("float");
    for (auto& number : value)
      if (!std::isfinite(number.get<double>())) number = nullptr;
    if (each.confidence95) value["confidence95"] = *each.confidence95;
    metrics[each.name] = value;
  }
  Json methods = Json::array();
  for (const MethodStep& step : job.config.methods) methods.push_back(step.name);
  Json layers = Json::array();
  for (const Layer& each : report.layers) {
    Json layer = {{"name", each.name},           {"op", each.op},   {"place", each.location},
                  {"decision", each.decision()}, {"why", each.why}, {"sqnr_db", each.sqnr_db}};
    if (each.output_sqnr_db) layer["output_sqnr_db"] = *each.output_sqnr_db;
    if (each.loss_change) layer["loss_change"] = *each.loss_change;
    if (each.quantized && each.has_weight) layer["weights"] = each.format.weights.text();
    if (each.format.activations == ActivationMode::kStatic && !each.ranges.empty()) {
      layer["input_range"] = {each.ranges[0].low, each.ranges[0].high};
      for (size_t i = 1; i < each.ranges.size(); ++i)
        layer[str("input_range_", i + 1)] = {each.ranges[i].low, each.ranges[i].high};
    }
    if (each.float_us > 0) {
      layer["float_us"] = each.float_us;
      layer["quantized_us"] = each.quantized_us;
    }
    layers.push_back(layer);
  }
  const Json out = {
      {"version", 1},
      {"scheme", job.config.scheme},
      {"model", job.model},
      {"output", report.onnx_file},
      {"observer", job.config.observer},
      {"methods", methods},
      {"calibration_samples", report.calibration_samples},
      {"evaluation_samples", report.comparison.samples},
      {"checked", report.checked},
      {"metrics", metrics},
      {"latency_ms",
       {{"float", report.comparison.first_ms},
        {"quantized", report.comparison.second_ms},
        {"batch", report.comparison.latency_batch}}},
      {"bytes", {{"float", report.float_bytes}, {"quantized", report.quantized_bytes}}},
      {"accepted", report.accepted},
      {"reason", report.reason},
      {"trials", report.trials},
      {"warnings", report.warnings},
      {"layers", layers}};
  return out.dump(2) + "\n";
}

std::string layers_csv(const QuantReport& report) {
  std::string out = "name,place,op,decision,weights,sqnr_db,float_us,quantized_us,why\n";
  for (const Layer& each : report.layers)
    out +=
        str(formats::csv_quote(each.name), ",", formats::csv_quote(each.location), ",", each.op,
            ",", each.decision(), ",",
            each.quantized && each.has_weight ? formats::csv_quote(each.format.weights.text()) : "",
            ",", fixed(each.sqnr_db, 2), ",", time_text(each.float_us), ",",
            time_text(each.quantized_us), ",", formats::csv_quote(each.why), "\n");
  return out;
}

std::string report_html(const QuantJob& job, const QuantReport& report) {
  const Comparison& c = report.comparison;
  std::string out = str("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n",
                        "<meta name=\"viewport\" content=\"width=device-width\">\n<title>",
                        escape_markup(job.model), ": ", job.config.scheme, "</title>\n", kStyle);
  out += str("<h1>", escape_markup(job.model), " as ", job.config.scheme, "</h1>\n<p>",
             escape_markup(summary(job, report)), "</p>\n");
  if (!report.accepted)
    out += str("<p class=\"no\">Not accepted: ", escape_markup(report.reason), "</p>\n");
  for (const std::string& warning : report.warnings)
    out += str("<p>Warning: ", escape_markup(warning), "</p>\n");
  out += "<h2>Compared with the float model</h2>\n<table>\n";
  out += row({"", "float", "quantized", "change"}, "th");
  for (const Metric& each : c.metrics) {
    if (each.name == "output_sqnr_db") {
      out += row({"signal-to-noise ratio of the output", "", fixed(each.quantized, 1) + " dB", ""});
    } else {
      out += metric_row(each);
    }
  }
  if (c.second_ms > 0)
    out += row({c.latency_batch == 1 ? "latency of one sample"
                                     : str("latency of ", c.latency_batch, " samples"),
                fixed(c.first_ms, 3) + " ms", fixed(c.second_ms, 3) + " ms",
                fixed(c.first_ms / c.second_ms, 2) + "× as fast"});
  out += row({"size of the ONNX file", human_bytes(static_cast<uint64_t>(report.float_bytes)),
              human_bytes(static_cast<uint64_t>(report.quantized_bytes)),
              fixed(static_cast<double>(report.float_bytes) /
                        static_cast<double>(std::max<int64_t>(1, report.quantized_bytes)),
                    2) +
                  "× smaller"});
  out += str("</table>\n<p>", c.samples, " samples were compared");
  if (report.calibration_samples > 0)
    out += str("; ", report.calibration_samples, " samples calibrated the ranges (",
               escape_markup(job.config.observer), ")");
  out += ".</p>\n<h2>Sensitivity of layers</h2>\n" + sensitivity_chart(report.layers);
  out += "<h2>What stays float</h2>\n";
  if (report.quantized_layers() == static_cast<int64_t>(report.layers.size())) {
    out += "<p>No layer.</p>\n";
  } else {
    out += "<table>\n" + row({"layer", "operation", "why"}, "th");
    for (const Layer& each : report.layers)
      if (!each.quantized) out += row({each.name, each.op, each.why});
    out += "</table>\n";
  }
  out +=
      "<h2>Layers</h2>\n<p>dB: signal-to-noise ratio of the result in the quantized model.</p>\n"
      "<div class=\"wide\"><table>\n";
  out += row({"layer", "operation", "decision", "dB", "float µs", "integer µs"}, "th");
  for (const Layer& each : report.layers)
    out += row({each.name, each.op, each.decision(), each.sqnr_db > 0 ? fixed(each.sqnr_db, 1) : "",
                time_text(each.float_us), time_text(each.quantized_us)});
  return out + "</table></div>\n</html>\n";
}

}  // namespace paddle::quant
