#pragma once
// For the commands of paddle-quant: their data, progress and tables.

#include <string>
#include <vector>

#include "common.h"
#include "quant/gguf_job.h"
#include "quant/report.h"

namespace paddle::cli {

/// The data that the words of --data name.
infer::InputOptions quant_data_options(const std::vector<std::string>& words, int64_t batch);
/// Shows the stages of a job and the time left on standard error, unless it ends with JSON.
quant::Progress quant_progress(bool json);
/// The program as files that it writes name it.
std::string producer();
/// kUsage for a language model in other tools' files, which `command` does not take: only whole
/// files of other number formats are made of them.
void reject_language_model(const std::string& model, const char* command);

/// The text with spaces after it.
std::string padded(const std::string& text, size_t width);
/// A line for each layer; `measured`: with its noise.
void print_layers(const std::vector<quant::Layer>& layers, bool measured);
void print_metric(const quant::Metric& metric);

}  // namespace paddle::cli
