#include "infer_predict.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files.h"
#include "base/interrupt.h"
#include "base/parallel.h"
#include "common.h"
#include "formats/npz.h"
#include "infer/decoded_results.h"
#include "infer/results.h"
#include "infer/streams.h"
#include "program/model_units.h"
#include "runtime/execute.h"

namespace paddle::cli {
namespace {

/// The share of labels that the decisions meet.
class Accuracy {
 public:
  explicit Accuracy(const program::Model& model) : model_(model) {}
  void add(const infer::InputBatch& batch, const Array& scores) {
    if (batch.labels.empty()) return;
    const auto ignored = model_.metadata().ignore_index;
    const auto decisions = infer::decide(model_, scores);
    for (size_t i = 0; i < decisions.size(); ++i) {
      const auto& label = batch.labels[i];
      if (!label || (ignored && *label == static_cast<double>(*ignored))) continue;
      ++labelled_;
      right_ += static_cast<double>(decisions[i].index) == *label;
    }
  }
  /// The share; none without labels.
  std::optional<double> value() const {
    if (labelled_ == 0) return std::nullopt;
    return static_cast<double>(right_) / static_cast<double>(labelled_);
  }
  void report() const {
    if (labelled_ == 0) return;
    const std::string text = fmt::format("accuracy: {:.4f}\n", *value());
    print(text);
  }

 private:
  const program::Model& model_;
  int64_t labelled_ = 0, right_ = 0;
};

/// Rows by what became of them.
struct Counts {
  int64_t predicted = 0, skipped = 0;
  std::optional<double> accuracy = {};
  void add(const infer::InputBatch& batch) {
    skipped += static_cast<int64_t>(batch.skipped.size());
    predicted += batch.rows;
  }
};

/// Results that the section `predict:` makes of outputs.
int predict_decoded(program::Model& model, infer::Decoder& decoder, infer::Batches& batches,
                    const PredictOptions& options, const std::function<void()>& ran,
                    Counts& counts) {
  const auto results =
      infer::open_decoded(decoder, options.output, {batches.has_labels(), batches.may_skip()},
                          [&](const std::string& line) {
                            if (!options.quiet) print_line(line);
                          });
  std::vector<std::unique_ptr<infer::Decoder>> of_streams;
  for (int64_t i = 0; options.streams > 1 && i < options.streams; ++i)
    of_streams.push_back(infer::make_decoder(model, options.overrides));
  using Results = std::vector<infer::Decoded>;
  infer::Prediction<Results> prediction;
  prediction.run = [&](size_t runner, program::Model& own, const infer::InputBatch& batch) {
    if (batch.rows == 0) return Results();
    Results out = (runner == 0 ? decoder : *of_streams[runner - 1]).decode(own, batch);
    if (runner == 0) ran();
    return out;
  };
  prediction.done = [&](const infer::InputBatch& batch, Results& decoded) {
    counts.add(batch);
    results->add(batch, decoded);
    return pending_interrupt() == 0;
  };
  if (!infer::predict_batches(model, batches, options.streams, thread_count(), prediction))
    return 128 + pending_interrupt();
  results->close();
  return 0;
}

/// The model's outputs, with classes and probabilities where it is a classifier.
int predict_outputs(program::Model& model, infer::Batches& batches, const PredictOptions& options,
                    const std::function<void()>& ran, Counts& counts) {
  const auto results =
      infer::open_results(model, options.output, {batches.has_labels(), batches.may_skip()},
                          [&](const std::string& line) {
                            if (!options.quiet) print_line(line);
                          });
  const program::OutputUnits units(model);
  for (const std::string& line : units.warnings()) print_warning(line);
  Accuracy accuracy(model);
  using Outputs = std::vector<Array>;
  infer::Prediction<Outputs> prediction;
  prediction.run = [&](size_t runner, program::Model& own, const infer::InputBatch& batch) {
    Outputs out = own.run(batch.inputs);
    if (runner == 0)
      ran();
    else
      for (Array& each : out) each = runtime::copied(each);
    return out;
  };
  prediction.done = [&](const infer::InputBatch& batch, const Outputs& outputs) {
    counts.add(batch);
    results->add(batch, units.restored(outputs));
    if (!outputs.empty()) accuracy.add(batch, outputs[0]);
    return pending_interrupt() == 0;
  };
  if (!infer::predict_batches(model, batches, options.streams, thread_count(), prediction))
    return 128 + pending_interrupt();
  results->close();
  accuracy.report();
  counts.accuracy = accuracy.value();
  return 0;
}

/// Whether a file is of an earlier prediction: of that form, which files of other kinds do not
/// have.
bool is_prediction(const program::Model& model, const std::string& path) {
  if (path.ends_with(".npz")) {
    try {
      const formats::NpzReader reader(path);
      const auto names = reader.names();
      return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
        return name == "skipped" || std::find(model.outputs().begin(), model.outputs().end(),
                                              name) != model.outputs().end();
      });
    } catch (const Error&) {
      return false;
    }
  }
  const auto file = MappedFile::open(path, ErrorCode::kUsage);
  const std::string_view begin = file->view().substr(0, 16);
  return begin.empty() || begin.starts_with(path.ends_with(".csv") ? "row,source" : "{\"row\":");
}

/// Files of the user stay: inputs in any case, others unless --overwrite is given.
void check_output(const program::Model& model, const PredictOptions& options) {
  const std::string& output = options.output;
  if (output.empty() || !file_exists(output) || is_directory(output)) return;
  for (const std::string& input : options.input.paths) {
    std::error_code ignored;
    if (std::filesystem::equivalent(output, input, ignored))
      fail(ErrorCode::kUsage, "--output: ", output, " is an input; give another name");
  }
  if (!options.overwrite && !is_prediction(model, output))
    fail(ErrorCode::kUsage, output,
         ": already exists and was not written by a prediction (--overwrite replaces it)");
}

/// None where the outputs are wanted as they are.
std::unique_ptr<infer::Decoder> decoder_of(const program::Model& model,
                                           const PredictOptions& options) {
  const bool raw = options.raw || options.output.ends_with(".npz");
  if (raw && !options.overrides.empty())
    fail(ErrorCode::kUsage, options.overrides[0], ": has no effect on ",
         options.raw ? "--raw" : "an NPZ file", ", which has the model's outputs as they are");
  return raw ? nullptr : infer::make_decoder(model, options.overrides);
}

}  // namespace

int predict_rows(program::Model& model, const PredictOptions& options,
                 const std::function<void()>& ran) {
  const auto decoder = decoder_of(model, options);
  check_output(model, options);
  infer::InputOptions input = options.input;
  if (decoder) {
    input.generated = infer::generated_inputs(model);
    input.text_field = decoder->text_field();
    input.label_field = decoder->label_field();
    input.label_is_list = decoder->label_is_list();
  }
  const auto batches = infer::open_inputs(model, input);
  if (options.dry_run) {
    const auto batch = batches->next();
    print(str(batch ? batch->rows : 0, " samples in the first batch\n"));
    print_model(model, options.json);
    return 0;
  }
  Counts counts;
  const int status = decoder ? predict_decoded(model, *decoder, *batches, options, ran, counts)
                             : predict_outputs(model, *batches, options, ran, counts);
  if (status != 0) return status;
  if (!options.output.empty() && !model.onnx())
    print(str("predicted ", counts.predicted, " samples; written to ", options.output, "\n"));
  if (counts.skipped > 0)
    print_warning(
        str(counts.skipped, " of ", counts.predicted + counts.skipped, " samples were skipped"));
  for (const std::string& line : batches->warnings()) print_warning(line);
  if (options.json) {
    nlohmann::ordered_json out = {{"samples", counts.predicted}, {"skipped", counts.skipped}};
    if (!options.output.empty()) out["output"] = options.output;
    if (counts.accuracy) out["accuracy"] = *counts.accuracy;
    print(out.dump() + "\n");
  }
  return 0;
}

void print_model(const program::Model& model, bool json) {
  const auto types = [](const std::vector<std::pair<std::string, TensorType>>& values) {
    nlohmann::ordered_json out = nlohmann::ordered_json::object();
    for (const auto& [name, type] : values) out[name] = str(type);
    return out;
  };
  if (json) {
    print(nlohmann::ordered_json({{"inputs", types(model.inputs())},
                                  {"outputs", types(model.declared_outputs())},
                                  {"parameters", model.parameter_count()}})
              .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
          "\n");
    return;
  }
  for (const auto& [name, type] : model.inputs()) print_line(str("input ", name, ": ", type));
  for (const auto& [name, type] : model.declared_outputs())
    print_line(str("output ", name, ": ", type));
  print(str("parameters: ", model.parameter_count(), "\n"));
}

void run_values(onnx::Session& model, const onnx::Values& inputs, const PredictOptions& options) {
  const std::string& output = options.output;
  const auto outputs = onnx::named_outputs(model, model.run(inputs));
  if (output.ends_with(".npz")) {
    onnx::write_outputs(output, outputs);
    if (options.json) print(nlohmann::ordered_json({{"output", output}}).dump() + "\n");
    return;
  }
  if (options.json)
    fail(ErrorCode::kUsage, "--json: the values of this model go to a .npz file (--output)");
  if (!output.empty())
    fail(ErrorCode::kUsage, "--output: the values of this model go to a .npz file, not to '",
         output, "'");
  for (const auto& [name, content] : outputs) {
    const auto* array = std::get_if<Array>(&content);
    print(name + ": " +
          (array ? paddle::text(*array) : str(std::get<formats::NpyStrings>(content).items)) +
          "\n");
  }
}

bool takes_values(const onnx::Session& model, const std::string& input) {
  return onnx::has_input_files(input) ||
         (input.ends_with(".npz") && file_exists(input) && onnx::needs_values(model));
}

}  // namespace paddle::cli
