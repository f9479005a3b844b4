#include "train/evaluation/evaluation_details.h"

#include <nlohmann/json.hpp>

#include "train/records/metrics_log.h"
#include "train/records/report_picture.h"

namespace paddle::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kPoints = 100, kWorst = 20;

Json curve_json(const std::string& name, const metrics::RateCurve& curve) {
  return {{"class", name},
          {"roc_auc", number_or_null<Json>(curve.area)},
          {"average_precision", number_or_null<Json>(curve.average_precision)},
          {"thresholds", curve.thresholds},
          {"false_positive_rates", curve.false_positives},
          {"recalls", curve.recalls},
          {"precisions", curve.precisions}};
}

}  // namespace

EvaluationDetails::EvaluationDetails(const std::vector<MetricBinding>& bindings,
                                     const std::vector<data::Field>& fields) {
  for (size_t i = 0; i < bindings.size(); ++i) {
    if (!metrics::ClassReport::is_possible(bindings[i].spec)) continue;
    call_ = i;
    report_.emplace(bindings[i].spec);
    for (const data::Field& field : fields)
      if (field.name == bindings[i].labels) names_ = field.classes;
    return;
  }
}

void EvaluationDetails::update(const EvaluationResult& batch, std::span<const int64_t> indices) {
  if (!report_) return;
  const RowRange rows = batch.metric_rows.at(call_);
  if (rows.count() == 0) return;  // another rank counts them
  report_->update(
      batch.metric_operands.at(call_),
      indices.subspan(static_cast<size_t>(rows.begin), static_cast<size_t>(rows.count())));
}

std::string EvaluationDetails::json(const std::string& data, int64_t step,
                                    const data::Dataset& dataset) const {
  const auto name_of = [&](int64_t c) {
    const auto at = static_cast<size_t>(c);
    return at < names_.size() ? names_[at] : std::to_string(c);
  };
  Json out = {{"data", data}, {"step", step}, {"rows", report_->rows()}};
  if (report_->is_multilabel()) out["multilabel"] = true;
  const auto table = report_->table();
  for (size_t c = 0; c < table.size(); ++c)
    out["classes"].push_back({{"name", name_of(static_cast<int64_t>(c))},
                              {"support", table[c].support},
                              {"predicted", table[c].predicted},
                              {"precision", table[c].precision},
                              {"recall", table[c].recall},
                              {"f1", table[c].f1},
                              {"iou", table[c].iou}});
  const auto classes = static_cast<size_t>(report_->classes());
  const std::vector<int64_t> confusion = report_->confusion();
  for (size_t a = 0; a < classes && !confusion.empty(); ++a) {
    const auto row = confusion.begin() + static_cast<std::ptrdiff_t>(a * classes);
    out["confusion"].push_back(
        std::vector<int64_t>(row, row + static_cast<std::ptrdiff_t>(classes)));
  }
  const auto curves = report_->curves(kPoints);
  for (size_t i = 0; i < curves.size(); ++i) {
    const auto c = static_cast<int64_t>(curves.size() == 1 ? classes - 1 : i);
    out["curves"].push_back(curve_json(name_of(c), curves[i]));
  }
  if (const auto micro = report_->micro_curve(kPoints))
    out["micro_curve"] = curve_json("micro average", *micro);
  for (const metrics::WorstSample& each : report_->worst(kWorst)) {
    const std::string decision = each.predicted ? "yes" : "no";
    Json sample = {{"sample", each.index},
                   {"place", dataset.location(each.index, -1, -1)},
                   {"label", name_of(each.label)},
                   {"predicted", report_->is_multilabel() ? decision : name_of(each.predicted)},
                   {"probability", each.probability}};
    if (std::string picture = picture_of(dataset, each.index); !picture.empty())
      sample["picture"] = std::move(picture);
    out["worst"].push_back(std::move(sample));
  }
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace paddle::train
