#include "quant/acceptance.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "config/schema.h"
#include "quant/interruption.h"
#include "quant/report.h"

namespace paddle::quant {
namespace {

std::string percent(double share) { return fmt::format("{:.3g}%", 100 * share); }

/// The half-width of the interval around a change, in standard errors, for this certainty in
/// percent.
double half_width(double percent_certain) {
  double low = 0, high = 40;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (std::erf(middle / std::sqrt(2.0)) * 100 < percent_certain ? low : high) = middle;
  }
  return high;
}

/// The reasons against a model.
class Reasons {
 public:
  void add(double accuracy_gap, const std::string& reason) {
    reasons_.push_back(reason);
    accuracy_gap_ += std::isfinite(accuracy_gap) ? accuracy_gap : 1e9;
  }
  void settle(QuantReport& report) const {
    report.accepted = reasons_.empty();
    report.reason = join(reasons_, "; ");
    report.accuracy_gap = accuracy_gap_;
  }

 private:
  std::vector<std::string> reasons_;
  double accuracy_gap_ = 0;
};

/// How far the true change may be from the measured one, at the wanted certainty. nullopt if that
/// is not known.
std::optional<double> margin_of(const Metric& metric, const Acceptance& accept) {
  constexpr double kErrorsOf95 = 1.96;
  if (!accept.confidence) return 0;
  if (!metric.confidence95) return std::nullopt;
  return *metric.confidence95 / kErrorsOf95 * half_width(*accept.confidence);
}

void check_accuracy(const Comparison& c, const Acceptance& accept, Reasons& reasons) {
  if (!accept.drop) return;
  const Metric* accuracy = c.find("accuracy");
  if (!accuracy) return reasons.add(0, "the data has no labels to compute the accuracy from");
  const double fall = accuracy->float_value - accuracy->quantized;
  const auto margin = margin_of(*accuracy, accept);
  if (!margin)
    return reasons.add(0,
                       "too few samples for an interval of the accuracy (quant.accept.confidence)");
  if (!(fall + *margin <= *accept.drop))
    reasons.add(
        fall + *margin - *accept.drop,
        str("accuracy falls by ", percent(fall), *margin > 0 ? " (±" + percent(*margin) + ")" : "",
            ", more than ", percent(*accept.drop)));
}

void check_metric(const Comparison& c, const MetricLimit& limit, const Acceptance& accept,
                  Reasons& reasons) {
  const Metric* metric = c.find(limit.metric);
  if (!metric) return reasons.add(0, limit.metric + " was not computed");
  const bool falls = limit.worse == MetricLimit::Worse::kAsMetric
                         ? metric->higher_is_better.value_or(true)
                         : limit.worse == MetricLimit::Worse::kFall;
  const double change = metric->quantized - metric->float_value;
  const double worse = falls ? -change : change;
  // Half a percent of an accuracy is half a point; two percent of a perplexity are relative to it.
  const double most = limit.amount * (limit.percent && !falls ? std::abs(metric->float_value) : 1);
  const auto margin = margin_of(*metric, accept);
  if (!margin)
    return reasons.add(0, str("too few samples, or values of whole batches, for an interval of ",
                              limit.metric, " (quant.accept.confidence)"));
  if (worse + *margin <= most) return;
  // In shares of the value, so that gaps of several metrics can be added.
  const double scale = std::max({most, std::abs(metric->float_value), 1e-12});
  reasons.add((worse + *margin - most) / scale,
              str(limit.metric, falls ? " falls" : " rises", " from ",
                  short_number(metric->float_value), " to ", short_number(metric->quantized),
                  *margin > 0 ? " (change ±" + short_number(*margin) + ")" : "", ", by more than ",
                  short_number(most)));
}

void check_output(const Comparison& c, const Acceptance& accept, Reasons& reasons) {
  const Metric* noise = c.find("output_sqnr_db");
  if (!noise) return;
  if (std::isnan(noise->quantized)) reasons.add(1e9, "its outputs are not finite");
  if (accept.sqnr_db && noise->quantized < *accept.sqnr_db)
    reasons.add((*accept.sqnr_db - noise->quantized) / 100,
                str("the output has ", format_double(std::round(noise->quantized * 10) / 10),
                    " dB, less than ", format_double(*accept.sqnr_db)));
}

void check_latency(const Comparison& c, const Acceptance& accept, const LatencyTerms& terms,
                   Reasons& reasons) {
  // Times of the same program differ by this share from one measurement to the next.
  constexpr double kNoise = 0.03;
  if (terms.milliseconds && c.second_ms > *terms.milliseconds)
    reasons.add(c.second_ms / *terms.milliseconds - 1,
                str("it takes ", short_number(c.second_ms), " ms for a batch of ", c.latency_batch,
                    ", more than ", format_double(*terms.milliseconds)));
  if (!accept.speedup || !(c.second_ms > 0)) return;
  const double speedup = c.first_ms / c.second_ms;
  if (speedup >= *accept.speedup * (1 - kNoise)) return;
  const std::string text = fmt::format("it takes {:.3g} ms against {:.3g} in floats: {:.2f}x",
                                       c.second_ms, c.first_ms, speedup);
  reasons.add(*accept.speedup - speedup,
              str(text, ", expected at least ", format_double(*accept.speedup), "x"));
}

void check_size(const QuantReport& report, const Acceptance& accept, Reasons& reasons) {
  const double size = static_cast<double>(report.quantized_bytes) /
                      static_cast<double>(std::max<int64_t>(1, report.float_bytes));
  if (accept.size_ratio && size > *accept.size_ratio)
    reasons.add(size - *accept.size_ratio, str("it has ", percent(size), " of the size, more than ",
                                               percent(*accept.size_ratio)));
}

}  // namespace

LatencyTerms read_latency(const config::Node& document) {
  const config::Section terms =
      config::Section(document).section("quant").section("accept").section("latency");
  LatencyTerms out;
  out.batch = terms.integer("batch");
  if (terms.has("milliseconds")) out.milliseconds = terms.real("milliseconds");
  return out;
}

AcceptanceCheck::AcceptanceCheck(const QuantJob& job) : job_(job) {
  std::string reason;
  if (job.load.function != "model")
    reason = "metrics of a config are those of the function 'model'";
  else
    metrics_ = RunMetrics::open(job.model, job.config, job.evaluation, reason);
  const auto& limits = job.config.accept.metrics;
  if (!metrics_ && !limits.empty())
    throw Error(ErrorCode::kConfig, "quant.accept.metrics." + limits[0].metric + ": " + reason,
                limits[0].where);
}

void AcceptanceCheck::add_run_metrics(const std::string& onnx_file, QuantReport& report) {
  if (!metrics_) return;
  std::vector<Metric> found;
  try {
    found = metrics_->compare(onnx_file);
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& e) {
    if (!job_.config.accept.metrics.empty()) throw;
    report.warnings.push_back(str("the metrics of the config were not computed: ", e.message()));
    metrics_.reset();
    return;
  }
  auto& all = report.comparison.metrics;
  for (Metric& metric : found) {
    std::erase_if(all, [&](const Metric& each) { return each.name == metric.name; });
    all.push_back(std::move(metric));
  }
}

void AcceptanceCheck::compare(program::Model& floats, program::Model& quantized,
                              const std::string& onnx_file, QuantReport& report) {
  const LatencyTerms terms = read_latency(job_.config.document);
  report.comparison = compare_models(floats, quantized, job_.evaluation, terms.batch);
  add_run_metrics(onnx_file, report);
  const Acceptance& accept = job_.config.accept;
  const Comparison& c = report.comparison;
  Reasons reasons;
  check_accuracy(c, accept, reasons);
  for (const MetricLimit& limit : accept.metrics) check_metric(c, limit, accept, reasons);
  check_output(c, accept, reasons);
  check_latency(c, accept, terms, reasons);
  check_size(report, accept, reasons);
  reasons.settle(report);
}

void warn_of_few(const QuantJob& job, QuantReport& report) {
  const Comparison& c = report.comparison;
  const Metric* metric = c.find("accuracy");
  if (!metric) metric = c.find("agreement");
  if (!metric || c.samples == 0) return;
  // Where n samples show no change, it is below 3/n with 95% certainty.
  const double known = std::max(metric->confidence95.value_or(0),
                                std::min(1.0, 3.0 / static_cast<double>(c.samples)));
  constexpr double kMax = 0.01;
  if (known <= std::min(kMax, job.config.accept.drop.value_or(kMax))) return;
  report.warnings.push_back(str("the models were compared on ", c.samples,
                                " samples only: the 95% interval of the change of the ",
                                metric->name, " is ±", percent(known),
                                "; --eval-data with more samples narrows it"));
}

}  // namespace paddle::quant
