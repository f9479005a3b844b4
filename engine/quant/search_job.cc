#include "quant/search_job.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/files.h"
#include "base/hash.h"
#include "config/overrides.h"
#include "quant/calibration.h"
#include "quant/loss_sensitivity.h"
#include "quant/report.h"

namespace paddle::quant {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// Identifies a search: the model and the configuration, without the budget.
std::string search_mark(const QuantJob& job, const Quantizable& model) {
  config::Node document = job.config.document;
  if (config::Node* quant = document.find("quant"))
    if (config::Node* search = quant->find("search")) search->erase("budget");
  return str(fingerprint(model), "-", fnv1a(config::dump_yaml(document)));
}

/// Why the search keeps a layer float.
std::string reason(Sensitivity by, double value) {
  if (by == Sensitivity::kGradient)
    return fmt::format("search: on its own it changes the loss by {:.2g}", value);
  return fmt::format("search: on its own it leaves {:.1f} dB", value);
}

/// Puts the quantized layers into the order of the search.
void order_layers(const QuantJob& job, const SearchOptions& options, Quantizable& model,
                  const std::vector<Array>& inputs, const WeightSource& weight,
                  const Progress& progress, SearchProgress& state) {
  const Sensitivity by = state.sensitivity = options.sensitivity;
  std::optional<double> seconds;
  if (options.deadline)
    seconds =
        std::max(0.0, std::chrono::duration<double>(*options.deadline - Clock::now()).count());
  measure_sensitivity(job, by, model, inputs, weight, progress, seconds);
  std::vector<Layer> order;
  for (const Layer& layer : model.layers())
    if (layer.quantized) order.push_back(layer);
  std::stable_sort(order.begin(), order.end(),
                   [&](const Layer& a, const Layer& b) { return a.is_more_sensitive(b, by); });
  for (Layer& layer : order) {
    state.order.push_back(layer.name);
    state.values.push_back(layer.sensitivity(by).value_or(0));
  }
}

/// Trials from this one on, of which `run` have taken `seconds`, within the budget of time too.
int64_t trials_ahead(const SearchProgress& state, const SearchOptions& options, double seconds,
                     int64_t run) {
  auto ahead = static_cast<double>(most_trials_left(state, options));
  if (options.seconds && run > 0 && seconds > 0)
    ahead = std::min(ahead, 1 + (*options.seconds - seconds) / seconds * static_cast<double>(run));
  return std::max<int64_t>(1, static_cast<int64_t>(ahead));
}

}  // namespace

void measure_sensitivity(const QuantJob& job, Sensitivity by, Quantizable& model,
                         const std::vector<Array>& inputs, const WeightSource& weight,
                         const Progress& progress, std::optional<double> seconds) {
  const auto values = by == Sensitivity::kGradient
                          ? loss_changes(job, model, weight, progress)
                          : output_noise(model, inputs, weight, progress, seconds);
  for (size_t i = 0; i < values.size(); ++i) model.layers()[i].sensitivity(by) = values[i];
}

std::optional<SearchProgress> begun_search(const QuantJob& job, const Paths& paths,
                                           Quantizable& model) {
  auto out = read_progress(paths.report("progress.json"), search_mark(job, model));
  if (!out || out->trials.empty()) return std::nullopt;
  for (Layer& layer : model.layers()) {
    const auto kept = std::find_if(out->kept.begin(), out->kept.end(),
                                   [&](const auto& each) { return each.first == layer.name; });
    layer.quantized = kept == out->kept.end();
    layer.why = layer.quantized ? "" : kept->second;
  }
  return out;
}

void search_layers(const QuantJob& job, const SearchOptions& options, const Paths& paths,
                   Quantizable& model, const std::vector<Array>& inputs, const WeightSource& weight,
                   const std::function<void()>& write, std::optional<SearchProgress> state,
                   QuantReport& report, const Progress& progress) {
  const std::vector<Layer> all = model.layers();
  const fs::path file = paths.report("progress.json");
  // The report of the model in best/, unless another process wrote it.
  std::optional<QuantReport> of_best;
  const auto keep_best = [&] {
    report.layers = model.layers();
    report.trials = static_cast<int64_t>(state->trials.size());
    report.onnx_file = (paths.base / "best" / paths.file).lexically_normal().string();
    write_file_atomically((paths.partial / paths.report("report.json").filename()).string(),
                          report_json(job, report));
    paths.keep_best();
    of_best = report;
  };
  int64_t written = state ? -1 : 0;
  if (!state) {
    state.emplace();
    state->fingerprint = search_mark(job, model);
    keep_best();
    for (const Layer& layer : all)
      if (!layer.quantized) state->kept.emplace_back(layer.name, layer.why);
    order_layers(job, options, model, inputs, weight, progress, *state);
    state->trials.push_back({0, report.accepted, report.accuracy_gap});
    write_progress(file, *state);
  }
  const auto begun = Clock::now();
  const auto earlier = static_cast<int64_t>(state->trials.size());
  const auto run = [&](int64_t kept) {
    const auto done = static_cast<int64_t>(state->trials.size());
    const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    progress({str("search: ", kept, " of ", state->order.size(), " layers in floats"), done,
              done + trials_ahead(*state, options, seconds, done - earlier)});
    model.layers() = all;
    for (Layer& layer : model.layers())
      for (size_t i = 0; i < state->order.size(); ++i) {
        if (layer.name != state->order[i]) continue;
        layer.sensitivity(state->sensitivity) = state->values[i];
        if (i >= static_cast<size_t>(kept)) continue;
        layer.quantized = false;
        layer.why = reason(state->sensitivity, state->values[i]);
      }
    write();
    written = kept;
    return Trial{kept, report.accepted, report.accuracy_gap};
  };
  const Trial best = search(*state, options, run, [&](const Trial&, bool leads) {
    if (leads) keep_best();
    write_progress(file, *state);
  });
  if (written != best.kept_float) {
    if (of_best) {
      report = *of_best;
      model.layers() = report.layers;
      paths.take_best();
    } else {
      run(best.kept_float);
    }
  }
  report.trials = static_cast<int64_t>(state->trials.size());
}

}  // namespace paddle::quant
