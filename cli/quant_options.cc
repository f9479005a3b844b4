#include "quant_options.h"

#include <algorithm>

#include "base/files.h"
#include "common_dims.h"
#include "common_options.h"
#include "formats/gguf/quantize.h"

namespace paddle::cli {
namespace {

/// `--accept KEY=VALUE` as a setting: a key of `accept`, else a metric of the model's config.
std::string acceptance_setting(const std::string& text) {
  const size_t end = text.find('=');
  if (end == std::string::npos || end == 0 || end + 1 == text.size())
    fail(ErrorCode::kUsage, "--accept: expected NAME=LIMIT such as accuracy=0.5%, found '", text,
         "'");
  const std::vector<std::string> keys = quant::accept_keys();
  const std::string key = text.substr(0, text.find_first_of(".="));
  const bool is_key = std::find(keys.begin(), keys.end(), key) != keys.end();
  return (is_key ? "quant.accept." : "quant.accept.metrics.") + text;
}

}  // namespace

void QuantOptions::add_to(App& app) {
  app.add_option("MODEL", arguments, "the model, then key=value of the configuration");
  app.add_option("-c,--config", file, "configuration with a section 'quant'");
  app.add_option(
         "--scheme", scheme,
         "number format: " + join(quant::scheme_names(), ", ") +
             "; of a Hugging Face folder or a GGUF file: " + join(quant::gguf_scheme_names(), ", "))
      ->dtype_names(quant::gguf_scheme_names());
  app.add_option("--data", data,
                 "calibration data: train, valid, CONFIG.yaml[:part], a folder or files "
                 "(default: the run's training data)");
  app.add_option("--samples", samples, "samples for calibration (default: 256)")
      ->check(in_range(int64_t{1}, int64_t{1} << 32));
  app.add_option("--batch", batch, "samples at a time (default: 8)")
      ->check(in_range(int64_t{1}, int64_t{1} << 20));
  app.add_option("--observer", observer,
                 "how ranges are chosen: " + join(quant::range_method_names(), ", "));
  app.add_option("--percentile", percentile,
                 "share of the values in the range, in percent, for --observer percentile")
      ->check(in_range(50.0, 100.0));
  app.add_option("--keep-float", keep_float, "layers that stay float (pattern)")
      ->allow_extra_args(false);
  app.add_option("--weights", job.load.weights, "weights of a model file (safetensors)");
  app.add_option("--function", job.load.function, "an entry of a model file (default: model)");
  app.add_option("--seed", job.load.seed, "seed of random weights (default: 0)");
  app.add_option("--dim", dims,
                 "NAME=SIZE…: fix symbolic dims of the inputs; others stay symbolic in the file");
  app.add_flag("--json", json, "one line of JSON at the end");
}

quant::QuantJob& QuantOptions::read(const char* command) {
  std::vector<std::string> overrides;
  for (std::string& each : take_arguments(dims)) arguments.push_back(std::move(each));
  job.dims = parse_dims(dims);
  // A list of files ends where settings begin.
  for (std::vector<std::string>* words : {&data, &evaluation})
    for (std::string& each : take_overrides(*words))
      (file_exists(each) ? *words : arguments).push_back(std::move(each));
  for (const std::string& each : take_overrides(arguments))
    (each.starts_with("params.") ? job.load.overrides : overrides).push_back(each);
  if (arguments.empty()) fail(ErrorCode::kUsage, "no model is given (see ", command, " --help)");
  if (arguments.size() > 1)
    fail(ErrorCode::kUsage, "one model is expected, found '", arguments[0], "' and '", arguments[1],
         "'");
  job.model = arguments[0];
  reject_language_model(job.model, command);
  if (!scheme.empty()) {
    auto names = quant::scheme_names();
    for (const std::string& each : formats::gguf::block_type_names()) names.push_back(each);
    if (std::find(names.begin(), names.end(), scheme) == names.end())
      fail(ErrorCode::kUsage, "'", scheme, "' is not a scheme", did_you_mean(scheme, names),
           "; schemes are ", join(names, ", "));
    overrides.push_back("quant.scheme=" + scheme);
  }
  if (!observer.empty()) {
    quant::parse_range_method(observer);
    overrides.push_back("quant.calibrate.observer=" + observer);
  }
  if (samples > 0) overrides.push_back(str("quant.calibrate.samples=", samples));
  if (batch > 0) overrides.push_back(str("quant.calibrate.batch_size=", batch));
  if (percentile > 0)
    overrides.push_back("quant.calibrate.percentile=" + format_double(percentile));
  if (!target.empty()) overrides.push_back("quant.target=" + target);
  if (!statistics.empty()) overrides.push_back("quant.calibrate.statistics=" + statistics);
  if (!drop.empty()) overrides.push_back("quant.accept.accuracy=" + drop);
  for (const std::string& each : accept) overrides.push_back(acceptance_setting(each));
  job.config = quant::read_quant_config(file, overrides);
  for (const std::string& pattern : keep_float) {
    quant::LayerRule rule;
    rule.match = {pattern};
    rule.keep_float = true;
    rule.option = "--keep-float " + pattern;
    job.config.layers.push_back(rule);
  }
  if (data.empty() && !job.config.data.empty()) data = {job.config.data};
  if (evaluation.empty() && !job.config.eval_data.empty()) evaluation = {job.config.eval_data};
  if (!data.empty()) job.calibration = quant_data_options(data, job.config.batch);
  if (!evaluation.empty()) job.evaluation = quant_data_options(evaluation, job.config.batch);
  job.calibration.batch = job.evaluation.batch = job.config.batch;
  job.producer = producer();
  return job;
}

}  // namespace paddle::cli
