#include "train/records/report_details.h"

#include <algorithm>
#include <numeric>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/markup.h"
#include "train/records/report_chart.h"

namespace paddle::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxInMatrix = 40, kMaxInTable = 200, kMaxCurves = 6;

std::string text_of(const Json& value, const char* key) {
  const auto found = value.find(key);
  return found != value.end() && found->is_string() ? escape_markup(found->get<std::string>()) : "";
}

double number_of(const Json& value, const char* key) {
  const auto found = value.find(key);
  return found != value.end() && found->is_number() ? found->get<double>() : 0;
}

/// The places of the `count` values with the least keys, in their order.
template <class Key>
std::vector<size_t> least(size_t size, size_t count, const Key& key) {
  std::vector<size_t> out(size);
  std::iota(out.begin(), out.end(), size_t{0});
  if (size <= count) return out;
  std::stable_sort(out.begin(), out.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  out.resize(count);
  std::sort(out.begin(), out.end());
  return out;
}

/// Predictions of other classes, and of this one for others.
double errors_of(const Json& row) {
  return number_of(row, "support") + number_of(row, "predicted") -
         2 * number_of(row, "support") * number_of(row, "recall");
}

/// Rows are labels, columns predictions; a cell is as dark as its share of the row.
std::string matrix(const Json& details) {
  if (!details.contains("confusion")) return "";
  const Json &classes = details.at("classes"), &counts = details.at("confusion");
  const std::vector<size_t> shown =
      least(classes.size(), kMaxInMatrix, [&](size_t c) { return -errors_of(classes.at(c)); });
  std::string out = "<h3>Confusion matrix</h3>\n";
  if (shown.size() < classes.size())
    out += str("<p>The ", shown.size(), " of ", classes.size(),
               " classes with the most errors; evaluation.json has all.</p>\n");
  out += "<div class=\"wide\"><table class=\"heat\"><tr><th>label \\ predicted</th>";
  for (const size_t c : shown) out += str("<th>", text_of(classes.at(c), "name"), "</th>");
  out += "</tr>\n";
  for (const size_t a : shown) {
    out += str("<tr><th>", text_of(classes.at(a), "name"), "</th>");
    const double support = std::max(1.0, number_of(classes.at(a), "support"));
    for (const size_t p : shown) {
      const auto count = counts.at(a).at(p).get<int64_t>();
      const double share = static_cast<double>(count) / support;
      out += str("<td style=\"background:rgba(", a == p ? "5,150,105" : "220,38,38", ",",
                 short_number(share), ")\">", count ? str(count) : "", "</td>");
    }
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

std::string class_table(const Json& details) {
  const Json& classes = details.at("classes");
  const std::vector<size_t> shown =
      least(classes.size(), kMaxInTable, [&](size_t c) { return number_of(classes.at(c), "f1"); });
  std::string out = "<h3>Classes</h3>\n";
  if (shown.size() < classes.size())
    out += str("<p>The ", shown.size(), " of ", classes.size(),
               " classes with the least F1; evaluation.json has all.</p>\n");
  out +=
      "<table><tr><th>class</th><th>labels</th><th>predicted</th><th>precision</th>"
      "<th>recall</th><th>F1</th><th>IoU</th></tr>\n";
  for (const size_t c : shown) {
    out += str("<tr><th>", text_of(classes.at(c), "name"), "</th>");
    for (const char* key : {"support", "predicted", "precision", "recall", "f1", "iou"})
      out += str("<td>", short_number(number_of(classes.at(c), key)), "</td>");
    out += "</tr>\n";
  }
  return out + "</table>\n";
}

/// The curves that are shown: all of a few classes, else the micro average and the worst classes.
std::vector<const Json*> shown_curves(const Json& details, std::string& note) {
  std::vector<const Json*> out;
  const auto found = details.find("curves");
  if (found == details.end() || found->empty()) return out;
  const auto micro = details.find("micro_curve");
  if (micro != details.end()) out.push_back(&*micro);
  const size_t room = kMaxCurves - out.size();
  for (const size_t i :
       least(found->size(), room, [&](size_t c) { return number_of(found->at(c), "roc_auc"); }))
    out.push_back(&found->at(i));
  double area = 0, precision = 0;
  for (const Json& each : *found) {
    area += number_of(each, "roc_auc") / static_cast<double>(found->size());
    precision += number_of(each, "average_precision") / static_cast<double>(found->size());
  }
  if (found->size() > 1)
    note = str("<p>Macro averages: area under the ROC curve ", short_number(area),
               ", average precision ", short_number(precision), ".",
               found->size() > room
                   ? str(" Shown are the micro average and the ", room, " of ", found->size(),
                         " classes with the least areas; evaluation.json has all.")
                   : "",
               "</p>\n");
  return out;
}

std::string curves(const Json& details) {
  std::string note;
  const std::vector<const Json*> shown = shown_curves(details, note);
  if (shown.empty()) return "";
  std::vector<Curve> roc, precision;
  for (size_t i = 0; i < shown.size(); ++i) {
    const Json& each = *shown[i];
    const std::string name = text_of(each, "class");
    Curve a{
        str(name, ", area ", short_number(number_of(each, "roc_auc"))), curve_color(i), {{0, 0}}};
    Curve b{str(name, ", average ", short_number(number_of(each, "average_precision"))),
            curve_color(i),
            {}};
    for (size_t k = 0; k < each.at("recalls").size(); ++k) {
      const double recall = each.at("recalls").at(k);
      a.points.push_back({each.at("false_positive_rates").at(k), recall});
      b.points.push_back({recall, each.at("precisions").at(k)});
    }
    roc.push_back(std::move(a));
    precision.push_back(std::move(b));
  }
  return str("<h3>ROC and precision-recall curves</h3>\n", note, "<div class=\"charts\">\n",
             chart("ROC: recall", roc, "false positive rate"),
             chart("precision", precision, "recall"), "</div>\n");
}

std::string worst(const Json& details) {
  const auto found = details.find("worst");
  if (found == details.end() || found->empty()) return "";
  const bool has_pictures = std::any_of(found->begin(), found->end(),
                                        [](const Json& each) { return each.contains("picture"); });
  std::string out = str("<h3>Samples with the least probable labels</h3>\n<table><tr>",
                        has_pictures ? "<th>image</th>" : "",
                        "<th>sample</th><th>label</th><th>predicted</th><th>probability of the ",
                        details.contains("multilabel") ? "truth" : "label", "</th></tr>\n");
  for (const Json& each : *found) {
    out += "<tr>";
    if (has_pictures)
      out += str("<td><img class=\"sample\" alt=\"\" src=\"", text_of(each, "picture"), "\"></td>");
    out += str("<th>", text_of(each, "place"), "</th><td>", text_of(each, "label"), "</td><td>",
               text_of(each, "predicted"), "</td><td>",
               short_number(number_of(each, "probability")), "</td></tr>\n");
  }
  return out + "</table>\n";
}

}  // namespace

std::string evaluation_section(const std::string& evaluation_json) {
  const Json details = Json::parse(evaluation_json, nullptr, false);
  if (!details.is_object() || !details.contains("classes")) return "";
  const std::string part = text_of(details, "data");
  try {
    return str("<h2>Evaluation of ", part == "valid" ? "validation" : part, " data at step ",
               short_number(number_of(details, "step")), "</h2>\n", matrix(details),
               class_table(details), curves(details), worst(details));
  } catch (const Json::exception&) {
    return "<p>evaluation.json is damaged.</p>\n";
  }
}

}  // namespace paddle::train
