#include "quant_weights.h"

#include <algorithm>

namespace paddle::cli {

using quant::fixed;

void PruneOptions::add_to(App& app) {
  app.add_option("MODEL", job.model, "a run, a model file or an ONNX file")->required();
  app.add_option("-o,--output", job.output,
                 "folder with the pruned model, or a file that ends in .onnx")
      ->required();
  app.add_option("--kind", kind, "pattern of zeros (default: 2:4)")->check(one_of({"2:4"}));
  app.add_option("--by", by,
                 "weights to remove: magnitude, the smallest ones (default); wanda, those "
                 "that contribute least")
      ->check(one_of({"magnitude", "wanda"}));
  app.add_option("--match", job.match, "only these layers (pattern)")->allow_extra_args(false);
  app.add_option("--data", data, "data for wanda (default: the run's training data)");
  app.add_option("--eval-data", evaluation,
                 "data to compare on (default: the run's validation data, else --data)");
  app.add_option("--samples", job.samples, "samples for wanda (default: 256)")
      ->check(in_range(int64_t{1}, int64_t{1} << 32));
  app.add_option("--weights", job.load.weights, "weights of a model file (safetensors)");
  app.add_flag("--no-check", no_check, "do not compare the result");
  app.add_flag("--overwrite", job.overwrite, "replace an existing output");
  app.add_flag("--json", json, "one line of JSON at the end");
}

int run_prune(PruneOptions& options) {
  quant::PruneJob& job = options.job;
  reject_language_model(job.model, "prune");
  constexpr int64_t kBatch = 8;
  if (options.by == "wanda") job.rule = quant::PruneRule::kWanda;
  if (!options.data.empty()) job.calibration = quant_data_options(options.data, kBatch);
  if (!options.evaluation.empty()) job.evaluation = quant_data_options(options.evaluation, kBatch);
  job.calibration.batch = job.evaluation.batch = kBatch;
  job.check = !options.no_check;
  job.producer = producer();
  const quant::PruneReport report = quant::prune(job, quant_progress(options.json));
  if (options.json) {
    print(quant::prune_json(job, report) + "\n");
    return 0;
  }
  size_t width = 5;
  for (const auto& each : report.layers) width = std::max(width, each.name.size());
  for (const auto& each : report.layers)
    print(padded(printable(each.name), width + 2) +
          padded(each.pruned ? fixed(100 * each.zeros, 1) + "% zero" : "whole", 13) +
          (each.pruned ? "relative error " + fixed(each.error, 3) + "  " : "") + each.op +
          (each.why.empty() ? "" : "  (" + each.why + ")") + "\n");
  for (const quant::Metric& each : report.comparison.metrics) print_metric(each);
  print(report.file + "\n");
  return 0;
}

void MergeOptions::add_to(App& app) {
  app.add_option("MODEL", job.model, "a folder with safetensors files, or one such file")
      ->required();
  app.add_option("--lora", job.adapter,
                 "folder with adapter_config.json and adapter_model.safetensors")
      ->required();
  app.add_option("-o,--output", job.output, "a folder, or a file if MODEL is one")->required();
  scale_option =
      app.add_option("--scale", scale, "factor on the adapter, in place of its alpha / rank");
  app.add_flag("--overwrite", job.overwrite, "replace an existing output");
  app.add_flag("--json", json, "one line of JSON at the end");
}

int run_merge(MergeOptions& options) {
  quant::MergeJob& job = options.job;
  if (options.scale_option->count() > 0) job.scale = options.scale;
  const quant::MergeReport report = quant::merge_lora(job, quant_progress(options.json));
  // A small change can vanish in 16 bits.
  constexpr double kMaxRounding = 0.1;
  for (const auto& each : report.weights)
    if (each.rounding > kMaxRounding)
      print_warning(each.name + ": storing it loses " + fixed(100 * each.rounding, 1) +
                    "% of what the adapter adds");
  if (options.json) {
    print(quant::merge_json(job, report) + "\n");
    return 0;
  }
  size_t width = 6;
  for (const auto& each : report.weights) width = std::max(width, each.name.size());
  for (const auto& each : report.weights)
    print(padded(printable(each.name), width + 2) +
          (each.replaced
               ? "replaced"
               : str("rank ", each.rank, "  changes by ", fixed(100 * each.change, 2), "%")) +
          "\n");
  print(job.output + "\n");
  return 0;
}

}  // namespace paddle::cli
