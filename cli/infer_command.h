#pragma once
// The command of paddle-infer: its options (infer_options.cc) and the jobs that they ask for
// (paddle_infer.cc).

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common.h"
#include "common_device.h"
#include "common_options.h"
#include "infer/generate.h"
#include "infer_predict.h"
#include "llm/benchmark.h"
#include "llm/generate.h"
#include "llm/language_model.h"
#include "program/model.h"
#include "program/model_form.h"
#include "serve/batch.h"

namespace paddle::cli {

/// The command line, in parts that read one subject each, and the jobs that it asks for.
class InferCommand {
 public:
  int run(int argc, char** argv);

 private:
  using Options = std::vector<const Option*>;

  void add_model_options();
  void add_text_options();
  void add_text_limits();
  void add_language_options();
  void add_language_jobs();
  void add_benchmark_options();
  void add_run_options();
  void take_overrides();
  void use_tuned();
  void check_language_options();
  void set_load_options();
  void set_streams();

  int embed_texts();
  int answer_requests();
  int time_text();
  int use_model();
  std::unique_ptr<program::Model> open_model();
  int time_model(program::Model& model, bool of_values);
  int use_language_model(program::Model* model);
  int continue_prompt(program::Model& model);
  void report_weights(const program::Model& model);
  void report_end(const program::Model& model);

  bool has_text() const {
    return prompt_->count() > 0 || chat_->count() > 0 || perplexity_->count() > 0;
  }
  bool is_text_benchmark() const {
    return prefill_->count() + decode_->count() > 0 ||
           (streams_->count() > 0 && is_language_model());
  }
  const std::string& path() const { return arguments_[0]; }
  bool is_language_model() const {
    if (!form_) form_ = program::form_of_model(path());
    return *form_ == program::ModelForm::kLanguage;
  }

  App app_{"Predicts with a trained model, a checkpoint, a model file or an ONNX file."};
  std::vector<std::string> arguments_, inputs_, dims_;
  mutable std::optional<program::ModelForm> form_;  ///< of the model, once it is asked
  PredictOptions predict_;
  std::vector<std::string> dumped_;  ///< patterns of --dump
  bool checks_numerics_ = false;
  program::LoadOptions load_;
  std::vector<std::string> left_out_;
  std::string family_, system_, dump_ir_, kernels_, rules_, trace_, tuned_, precision_ = "float32";
  infer::GenerateOptions generation_;
  llm::GenerateOptions text_options_;
  std::vector<std::string> biases_;
  std::string draft_ = "ngram", schema_, pattern_, cache_, activations_, weights_as_ = "as-is";
  std::string kv_ = "f32", adapter_, measured_, texts_, text_;
  int64_t context_ = 0, chunk_ = 0, window_ = 0, benchmark_ = 0;
  serve::BatchOptions batch_;
  llm::BenchmarkOptions speed_;
  DeviceOptions device_;
  bool talk_ = false, json_ = false, dry_run_ = false, profile_ = false, no_codegen_ = false,
       no_batch_tiling_ = false, no_graphs_ = false, no_winograd_ = false, is_reported_ = false;
  Option *prompt_ = nullptr, *chat_ = nullptr, *perplexity_ = nullptr, *embed_ = nullptr,
         *requests_ = nullptr, *schema_option_ = nullptr, *regex_option_ = nullptr,
         *prefill_ = nullptr, *decode_ = nullptr, *streams_ = nullptr;
  Options penalties_;       ///< of a language model's prompt or chat
  Options model_settings_;  ///< of how a language model computes
  const Option* logprobs_option_ = nullptr;
  // Kept to the end of the process, when the system takes all of its memory back at once.
  llm::LanguageModel language_model_;
};

}  // namespace paddle::cli
