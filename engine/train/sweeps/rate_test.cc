#include "train/sweeps/rate_test.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "train/records/report_chart.h"

namespace paddle::train {
namespace {

constexpr size_t kMin = 10;
constexpr double kMemory = 0.9;  ///< of the running mean

/// Running means, corrected for their beginning.
std::vector<double> smooth(const std::vector<RateAt>& steps) {
  std::vector<double> out;
  double mean = 0, weight = 0;
  for (const RateAt& at : steps) {
    mean = kMemory * mean + (1 - kMemory) * at.loss;
    weight = kMemory * weight + (1 - kMemory);
    out.push_back(mean / weight);
  }
  return out;
}

}  // namespace

double rate_factor(double low, double high, int64_t steps) {
  return std::pow(high / low, 1.0 / static_cast<double>(std::max<int64_t>(1, steps - 1)));
}

RateTest analyze_rates(std::vector<RateAt> steps) {
  RateTest out;
  const auto bad = std::find_if(steps.begin(), steps.end(), [](const RateAt& at) {
    return !std::isfinite(at.loss) || !(at.rate > 0);
  });
  if (bad != steps.end() && bad->rate > 0) out.diverges = bad->rate;
  steps.erase(bad, steps.end());
  if (steps.size() < kMin)
    fail(ErrorCode::kData, "the losses of only ", steps.size(),
         " steps are finite; start at a lower rate, or take more steps");
  out.smoothed = smooth(steps);
  const auto least = std::min_element(out.smoothed.begin(), out.smoothed.end());
  const auto at_least = static_cast<size_t>(least - out.smoothed.begin());
  if (at_least == 0)
    fail(ErrorCode::kData, "the loss never falls, from the rate ", steps[0].rate, " to ",
         steps.back().rate, "; start at a lower rate");
  out.lowest = steps[at_least].rate;
  // Rates grow by a constant factor, so differences over a window are slopes over the logarithm.
  const size_t window = std::max<size_t>(1, steps.size() / 20);
  double fastest = 0;
  for (size_t i = window; i <= at_least; ++i)
    if (const double fall = out.smoothed[i - window] - out.smoothed[i]; fall > fastest) {
      fastest = fall;
      out.steepest = steps[i - window / 2].rate;
    }
  const double fallen = out.smoothed[0] - *least;
  for (size_t i = at_least; i < steps.size(); ++i)
    if (out.smoothed[i] > out.smoothed[0] + fallen) {
      out.diverges = steps[i].rate;
      break;
    }
  out.suggested = std::min(out.steepest, out.lowest / 10);
  out.steps = std::move(steps);
  return out;
}

std::string rates_csv(const RateTest& test) {
  std::string out = "step,learning_rate,loss,smoothed\n";
  for (size_t i = 0; i < test.steps.size(); ++i)
    out += str(test.steps[i].step, ",", test.steps[i].rate, ",", test.steps[i].loss, ",",
               test.smoothed[i], "\n");
  return out;
}

std::string rates_page(const std::string& title, const RateTest& test) {
  Curve loss{"loss", curve_color(5), {}}, smoothed{"running mean", curve_color(0), {}};
  // Losses of a diverging run would flatten the part that matters.
  const double top = test.smoothed[0] + 0.5 * std::abs(test.smoothed[0]);
  for (size_t i = 0; i < test.steps.size(); ++i) {
    const double x = std::log10(test.steps[i].rate);
    if (test.steps[i].loss <= top) loss.points.push_back({x, test.steps[i].loss});
    if (test.smoothed[i] <= top) smoothed.points.push_back({x, test.smoothed[i]});
  }
  const auto row = [](const char* name, double rate) {
    return str("<tr><th>", name, "</th><td>", rate > 0 ? short_number(rate) : "-", "</td></tr>\n");
  };
  return report_page(
      title,
      str("<table>", row("the loss falls fastest at", test.steepest),
          row("the loss is lowest at", test.lowest), row("training diverges from", test.diverges),
          row("suggested rate", test.suggested), "</table>\n",
          chart("loss by learning rate", {loss, smoothed}, "log10(learning rate)")));
}

}  // namespace paddle::train
