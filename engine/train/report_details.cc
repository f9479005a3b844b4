#include "train/report_details.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/markup.h"
#include "train/report_chart.h"

namespace paddle::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostInMatrix = 40, kMostInTable = 200, kMostCurves = 6;

std::string text_of(const Json& value, const char* key) {
  const auto found = value.find(key);
  return found != value.end() && found->is_string() ? escape_markup(found->get<std::string>()) : "";
}

double number_of(const Json& value, const char* key) {
  const auto found = value.find(key);
  return found != value.end() && found->is_number() ? found->get<double>() : 0;
}

/// Rows are labels, columns predictions; a cell is as dark as its share of the row.
std::string matrix(const Json& details) {
  const Json &classes = details["classes"], &counts = details["confusion"];
  if (classes.size() > kMostInMatrix) return "";
  std::string out =
      "<h3>Confusion matrix</h3>\n<table class=\"heat\"><tr><th>label \\ predicted</th>";
  for (const Json& each : classes) out += str("<th>", text_of(each, "name"), "</th>");
  out += "</tr>\n";
  for (size_t a = 0; a < classes.size(); ++a) {
    out += str("<tr><th>", text_of(classes[a], "name"), "</th>");
    const double support = std::max(1.0, number_of(classes[a], "support"));
    for (size_t p = 0; p < classes.size(); ++p) {
      const auto count = counts[a][p].get<int64_t>();
      const double share = static_cast<double>(count) / support;
      out += str("<td style=\"background:rgba(", a == p ? "5,150,105" : "220,38,38", ",",
                 short_number(share), ")\">", count ? str(count) : "", "</td>");
    }
    out += "</tr>\n";
  }
  return out + "</table>\n";
}

std::string class_table(const Json& details) {
  std::string out =
      "<h3>Classes</h3>\n<table><tr><th>class</th><th>samples</th><th>predicted</th>"
      "<th>precision</th><th>recall</th><th>F1</th></tr>\n";
  size_t shown = 0;
  for (const Json& each : details["classes"]) {
    if (shown++ == kMostInTable) break;
    out += str("<tr><th>", text_of(each, "name"), "</th>");
    for (const char* key : {"support", "predicted", "precision", "recall", "f1"})
      out += str("<td>", short_number(number_of(each, key)), "</td>");
    out += "</tr>\n";
  }
  return out + "</table>\n";
}

std::string curves(const Json& details) {
  const auto found = details.find("curves");
  if (found == details.end() || found->size() > kMostCurves) return "";
  std::vector<Curve> roc, precision;
  for (size_t i = 0; i < found->size(); ++i) {
    const Json& each = (*found)[i];
    const std::string name = each.value("class", "");
    Curve a{
        str(name, ", area ", short_number(number_of(each, "roc_auc"))), curve_color(i), {{0, 0}}};
    Curve b{str(name, ", average ", short_number(number_of(each, "average_precision"))),
            curve_color(i),
            {}};
    for (size_t k = 0; k < each["recalls"].size(); ++k) {
      const double recall = each["recalls"][k];
      a.points.push_back({each["false_positive_rates"][k], recall});
      b.points.push_back({recall, each["precisions"][k]});
    }
    roc.push_back(std::move(a));
    precision.push_back(std::move(b));
  }
  return str("<div class=\"charts\">\n", chart("ROC: recall", roc, "false positive rate"),
             chart("precision", precision, "recall"), "</div>\n");
}

std::string worst(const Json& details) {
  const auto found = details.find("worst");
  if (found == details.end() || found->empty()) return "";
  std::string out =
      "<h3>Samples with the least probable labels</h3>\n<table><tr><th>sample</th><th>label</th>"
      "<th>predicted</th><th>probability of the label</th></tr>\n";
  for (const Json& each : *found)
    out += str("<tr><th>", text_of(each, "place"), "</th><td>", text_of(each, "label"), "</td><td>",
               text_of(each, "predicted"), "</td><td>",
               short_number(number_of(each, "probability")), "</td></tr>\n");
  return out + "</table>\n";
}

}  // namespace

std::string evaluation_section(const std::string& evaluation_json) {
  const Json details = Json::parse(evaluation_json, nullptr, false);
  if (!details.is_object() || !details.contains("classes") || !details.contains("confusion"))
    return "";
  return str("<h2>Evaluation of ", text_of(details, "data"), " data at step ",
             short_number(number_of(details, "step")), "</h2>\n", matrix(details),
             class_table(details), curves(details), worst(details));
}

}  // namespace paddle::train
