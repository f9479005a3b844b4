#include "quant_command.h"

#include <algorithm>
#include <memory>

#include "base/files.h"
#include "common_progress.h"
#include "llm/language_model.h"

namespace paddle::cli {

using quant::fixed;

infer::InputOptions quant_data_options(const std::vector<std::string>& words, int64_t batch) {
  infer::InputOptions out;
  out.batch = batch;
  if (words.size() == 1 && !file_exists(words[0]) && !is_directory(words[0]))
    out.data = words[0];
  else if (words.size() == 1 && (words[0].ends_with(".yaml") || words[0].ends_with(".yml")))
    out.data = words[0] + ":train";
  else
    out.paths = words;
  return out;
}

quant::Progress quant_progress(bool json) {
  if (json) return [](const quant::Step&) {};
  return [shown = std::make_shared<StepProgress>()](const quant::Step& step) {
    shown->show(step.what, step.done, step.total);
  };
}

std::string producer() {
  const std::string version = version_text();
  return "paddle " + version.substr(0, version.find('\n'));
}

void reject_language_model(const std::string& model, const char* command) {
  if (!llm::is_language_model(model)) return;
  fail(ErrorCode::kUsage, model, ": is a ",
       is_directory(model) ? "Hugging Face folder" : "GGUF file", ", which ", command,
       " does not take; expected a run, a model file or an ONNX file ('paddle quant ", model,
       " --scheme TYPE' writes it as a GGUF file: ", join(quant::gguf_scheme_names(), ", "), ")");
}

std::string padded(const std::string& text, size_t width) {
  return text + std::string(text.size() < width ? width - text.size() : 0, ' ');
}

void print_layers(const std::vector<quant::Layer>& layers, bool measured) {
  size_t name = 5, decision = 4;
  for (const auto& each : layers) {
    name = std::max(name, each.name.size());
    decision = std::max(decision, each.decision().size());
  }
  for (const auto& each : layers) {
    std::string line = padded(each.name, name + 2) + padded(each.decision(), decision + 2);
    if (measured) line += padded(each.sqnr_db > 0 ? fixed(each.sqnr_db, 1) + " dB" : "", 10);
    if (each.float_us > 0)
      line += padded(fixed(each.float_us, 1) + " → " + fixed(each.quantized_us, 1) + " us", 22);
    line += each.op;
    if (!each.why.empty()) line += "  (" + each.why + ")";
    print_line(line);
  }
}

void print_metric(const quant::Metric& metric) {
  if (metric.name == "output_sqnr_db")
    print(padded("signal-to-noise", 18) + fixed(metric.quantized, 2) + " dB\n");
  else if (metric.is_share)
    print(padded(metric.name, 18) + fixed(100 * metric.float_value, 2) + "% → " +
          fixed(100 * metric.quantized, 2) + "%\n");
  else
    print(padded(metric.name, 18) + quant::short_number(metric.float_value) + " → " +
          quant::short_number(metric.quantized) + "\n");
}

}  // namespace paddle::cli
