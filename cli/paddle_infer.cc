// paddle-infer MODEL [INPUT…]: batch prediction and text generation.

#include <algorithm>

#include "base/files.h"
#include "base/interrupt.h"
#include "base/parallel.h"
#include "base/phase.h"
#include "common.h"
#include "common_benchmark.h"
#include "common_device.h"
#include "common_language.h"
#include "common_options.h"
#include "common_predict.h"
#include "compiler/codegen/compiled_fusion.h"
#include "infer/generate.h"
#include "infer/random_inputs.h"
#include "infer/streams.h"
#include "profile/report.h"
#include "runtime/dump.h"
#include "runtime/kernel_table.h"
#include "sections/sections.h"
#include "text/load.h"
#include "tune/tuned_settings.h"

namespace {

using namespace paddle;

/// Bytes of a text for --perplexity; its tokens are in memory.
constexpr uint64_t kLargestText = uint64_t{256} << 20;

int interrupt_status() { return pending_interrupt() ? 128 + pending_interrupt() : 0; }

/// The command line, in parts that read one subject each, and the jobs that it asks for.
class Command {
 public:
  int run(int argc, char** argv);

 private:
  using Options = std::vector<const cli::Option*>;

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
  bool is_language_model() const { return llm::is_language_model(path()); }

  cli::App app_{"Predicts with a trained model, a checkpoint, a model file or an ONNX file."};
  std::vector<std::string> arguments_, inputs_, dims_;
  cli::PredictOptions predict_;
  program::LoadOptions load_;
  std::string family_, system_, dump_ir_, kernels_, rules_, trace_, tuned_, precision_ = "float32";
  infer::GenerateOptions generation_;
  llm::GenerateOptions text_options_;
  std::vector<std::string> biases_;
  std::string draft_ = "ngram", schema_, pattern_, cache_, activations_, weights_as_ = "as-is";
  std::string kv_ = "f32", adapter_, measured_, texts_, text_;
  int64_t context_ = 0, chunk_ = 0, window_ = 0, benchmark_ = 0;
  serve::BatchOptions batch_;
  llm::BenchmarkOptions speed_;
  cli::DeviceOptions device_;
  bool talk_ = false, json_ = false, profile_ = false, no_codegen_ = false,
       no_batch_tiling_ = false, no_winograd_ = false, is_reported_ = false;
  cli::Option *prompt_ = nullptr, *chat_ = nullptr, *perplexity_ = nullptr, *embed_ = nullptr,
              *requests_ = nullptr, *schema_option_ = nullptr, *regex_option_ = nullptr,
              *prefill_ = nullptr, *decode_ = nullptr, *streams_ = nullptr;
  Options penalties_;       ///< of a language model's prompt or chat
  Options model_settings_;  ///< of how a language model computes
  const cli::Option* logprobs_option_ = nullptr;
  // Kept to the end of the process, when the system takes all of its memory back at once.
  llm::LanguageModel language_model_;
};

void Command::add_model_options() {
  app_.add_option(
      "MODEL", arguments_,
      "a run's model/, a checkpoint, a model file[:variant] with params.x=value, an ONNX file, "
      "a Hugging Face folder or a GGUF file; then inputs; predict.KEY=value changes the section "
      "`predict:` of the run");
  app_.add_option("--input", inputs_,
                  "NPZ, CSV, images, a folder of images or of ONNX's .pb tensors, or text");
  app_.add_option("--output", predict_.output,
                  "NPZ, CSV or JSONL file, or a folder for predicted pictures (default: a line for "
                  "each sample)");
  app_.add_option("--data", predict_.input.data,
                  "predict a config's data: 'valid', 'train', or CONFIG.yaml[:train|valid]");
  app_.add_option("--batch", predict_.input.batch, "samples at a time");
  app_.add_flag("--raw", predict_.raw,
                "the model's outputs as they are, not what the section `predict:` of the run makes "
                "of them");
  app_.add_option("--weights", load_.weights, "weights of a model file (safetensors)");
  app_.add_option("--function", load_.function, "entry of a model file or a trained model");
  app_.add_option("--family", family_,
                  "the model file of a Hugging Face folder or a GGUF file (default: by its type)");
  app_.add_option("--allow-missing", load_.allow_missing,
                  "parameters that the weights may lack (pattern)");
  app_.add_option("--allow-unused", load_.allow_unused,
                  "weights that the model may not use (pattern)");
}

void Command::add_text_options() {
  prompt_ =
      app_.add_option("--prompt", generation_.prompt, "generate text that continues this one");
  chat_ = app_.add_flag("--chat", talk_,
                        "talk with a language model: each line of standard input is a message");
  app_.add_option("--system", system_, "with --chat: the instructions of the conversation")
      ->needs(chat_);
  app_.add_option("--length", generation_.length, "tokens to generate");
  app_.add_option("--temperature", generation_.sampling.temperature,
                  "0: always the most likely token");
  app_.add_option("--top-k", generation_.sampling.top_k, "draw from the k most likely tokens");
  app_.add_option("--top-p", generation_.sampling.top_p,
                  "draw from the smallest set of this probability");
  app_.add_option("--min-p", generation_.sampling.min_p,
                  "leave out tokens below this share of the most likely one's probability");
  app_.add_option("--repetition-penalty", generation_.sampling.repetition_penalty,
                  "above 1: tokens that are in the text become less likely");
  const auto* presence = app_.add_option("--presence-penalty", text_options_.presence_penalty,
                                         "subtracted from the logits of a language model's tokens "
                                         "that were generated already")
                             ->check(cli::in_range(-2.0, 2.0));
  const auto* frequency =
      app_.add_option("--frequency-penalty", text_options_.frequency_penalty,
                      "the same, once for each time that the token was generated")
          ->check(cli::in_range(-2.0, 2.0));
  const auto* bias =
      app_.add_option("--logit-bias", biases_,
                      "TOKEN=BIAS: added to the logit of a language model's token, by its id "
                      "(repeatable)")
          ->allow_extra_args(false);
  penalties_ = {presence, frequency, bias};
}

void Command::add_text_limits() {
  logprobs_option_ =
      app_.add_option("--logprobs", text_options_.logprobs,
                      "with --prompt: then print a JSON line for each generated token, with its "
                      "log-probability and those of the N most likely tokens")
          ->needs(prompt_)
          ->check(cli::in_range(int64_t{0}, int64_t{20}));
  app_.add_option("--stop", generation_.stops, "end before this text (repeatable)")
      ->allow_extra_args(false);
  app_.add_option("--draft", draft_,
                  "ngram: check several tokens that the text itself suggests in one step, which "
                  "gives the same text sooner (default); none: one token at a time")
      ->check(cli::one_of({"ngram", "none"}));
  schema_option_ =
      app_.add_option("--schema", schema_,
                      "the text is JSON that is valid for this JSON Schema (a file), or any JSON "
                      "object ('object')");
  regex_option_ =
      app_.add_option("--regex", pattern_, "the text matches this regular expression as a whole")
          ->excludes(schema_option_);
}

void Command::add_language_options() {
  const auto* context =
      app_.add_option("--context", context_,
                      "tokens of a text, whose keys and values are cached (default: the model's)")
          ->check(cli::in_range(int64_t{1}, int64_t{1} << 40));
  const auto* kv = app_.add_option("--kv", kv_, "how a language model's keys and values are cached")
                       ->check(cli::one_of({"f32", "bf16", "int8"}));
  const auto* cache =
      app_.add_option(
              "--cache", cache_,
              "plain: a place for each text; paged: blocks of tokens that texts take as they "
              "grow and share (default: paged for --requests, else plain)")
          ->check(cli::one_of({"plain", "paged"}));
  const auto* chunk =
      app_.add_option("--chunk", chunk_,
                      "tokens of prompts that a language model reads in a step (default: 256)")
          ->check(cli::in_range(int64_t{1}, llm::Runner::kMostRows));
  const auto* activations =
      app_.add_option(
              "--activations", activations_,
              "of products with block-quantized weights (default: int16 for text, float32 for "
              "--input)")
          ->check(cli::one_of({"float32", "int16", "int8"}));
  const auto* weights_as =
      app_.add_option("--weights-as", weights_as_,
                      "keep a language model's matrices in 8 or 4 bits, whatever their file has "
                      "(default: as-is)")
          ->check(cli::one_of({"as-is", "int8", "int4"}));
  const auto* adapter =
      app_.add_option("--adapter", adapter_,
                      "[NAME=]DIR: a low-rank adapter in PEFT's files, added to a language model");
  model_settings_ = {context, kv, cache, chunk, activations, weights_as, adapter};
}

void Command::add_language_jobs() {
  perplexity_ = app_.add_option("--perplexity", measured_,
                                "how well a language model predicts the text of this file")
                    ->excludes(prompt_)
                    ->excludes(chat_);
  app_.add_option("--window", window_,
                  "with --perplexity: tokens at a time (default: 512 or the context)")
      ->check(cli::in_range(int64_t{2}, int64_t{1} << 40))
      ->needs(perplexity_);
  app_.add_flag("--json", json_, "with --perplexity: print one JSON line")->needs(perplexity_);
  embed_ =
      app_.add_option("--embed", texts_,
                      "the vectors of an encoder for the lines of this file (-: standard input), "
                      "as JSON lines, or into --output (.jsonl, .csv or .npz)")
          ->excludes(prompt_)
          ->excludes(chat_)
          ->excludes(perplexity_);
  requests_ = app_.add_option("--requests", batch_.requests,
                              "answer a file of requests in OpenAI's batch format (one JSON "
                              "object a line) into the file --output")
                  ->excludes(prompt_)
                  ->excludes(chat_)
                  ->excludes(perplexity_)
                  ->excludes(embed_);
  app_.add_flag("--resume", batch_.resume, "with --requests: keep the answers that --output has")
      ->needs(requests_);
}

void Command::add_benchmark_options() {
  app_.add_option("--seed", generation_.seed, "of what is drawn, and of random weights");
  app_.add_option("--benchmark", benchmark_,
                  "time N runs, on random input if none is given, and print one JSON line")
      ->excludes(perplexity_)
      ->excludes(requests_)
      ->check(cli::in_range(int64_t{1}, int64_t{1} << 40));
  prefill_ =
      app_.add_option("--prefill", speed_.prefill,
                      "with --benchmark: the prompt's tokens of a language model (default: 256)")
          ->check(cli::in_range(int64_t{1}, int64_t{1} << 40));
  decode_ = app_.add_option("--decode", speed_.decode,
                            "with --benchmark: the tokens that are generated (default: 64)")
                ->check(cli::in_range(int64_t{1}, int64_t{1} << 40));
  streams_ = app_.add_option("--streams", speed_.streams,
                             "batches at a time, which share the threads (default: 1); of a "
                             "language model with --benchmark: numbers of texts at a time, such as "
                             "1,8; with --requests: one such number (default: 8)")
                 ->delimiter(',')
                 ->check(cli::in_range(int64_t{1}, int64_t{1} << 20));
  app_.add_option("--dim", dims_, "name=value: a symbolic dim, for --benchmark");
}

void Command::add_run_options() {
  cli::add_device_options(app_, device_);
  app_.add_flag("--profile", profile_, "print where the time goes, per operation");
  app_.add_option("--trace", trace_,
                  "with a file's name: also write a timeline there (JSON), for a trace viewer");
  app_.add_option(
      "--tuned", tuned_,
      "settings that paddle-tune found for the model (tuned.yaml), where options do not "
      "say otherwise");
  app_.add_option("--kernels", kernels_, "a table of kernel choices that paddle-tune made");
  app_.add_option(
          "--precision", precision_,
          "of products, convolutions and attention of a model in float32 (default: float32)")
      ->check(cli::one_of({"float32", "bfloat16", "float16"}));
  app_.add_option("--rules", rules_, "a file of rewrites, tried before the standard ones");
  app_.add_flag("--no-codegen", no_codegen_, "run groups of operations without machine code");
  app_.add_flag("--no-batch-tiling,--no-slices", no_batch_tiling_,
                "run every layer on the whole batch");
  app_.add_flag("--no-winograd", no_winograd_, "sum over the windows of every convolution");
  app_.add_option("--dump-ir", dump_ir_, "write the module after each pass into this folder");
  app_.add_flag("--quiet", predict_.quiet, "no line for each sample");
}

/// Takes `params.…` and `predict.…` out of the arguments.
void Command::take_overrides() {
  for (auto it = arguments_.begin(); it != arguments_.end();) {
    const bool is_param = it->starts_with("params.");
    const bool is_predict = it->starts_with("predict.") && it->find('=') != std::string::npos;
    if (!is_param && !is_predict) {
      ++it;
      continue;
    }
    (is_param ? load_.overrides : predict_.overrides).push_back(*it);
    it = arguments_.erase(it);
  }
  if (arguments_.empty()) fail(ErrorCode::kUsage, "no model is given (see paddle-infer --help)");
}

/// Takes the settings of --tuned that no option states.
void Command::use_tuned() {
  if (tuned_.empty()) return;
  const tune::TunedSettings tuned = tune::read_tuned(
      tuned_, is_language_model() ? tune::TunedSubject::kLanguageModel : tune::TunedSubject::kModel,
      path());
  const auto left_out = [&](const char* option) { return app_.count(option) == 0; };
  cli::use_config_threads(tuned.threads);
  if (tuned.batch && left_out("--batch")) predict_.input.batch = *tuned.batch;
  if (!tuned.precision.empty() && left_out("--precision")) precision_ = tuned.precision;
  if (!tuned.kernels.empty() && left_out("--kernels")) kernels_ = tuned.kernels;
  no_codegen_ = no_codegen_ || !tuned.codegen;
  no_batch_tiling_ = no_batch_tiling_ || !tuned.batch_tiling;
  no_winograd_ = no_winograd_ || !tuned.winograd;
  if (tuned.chunk && left_out("--chunk")) chunk_ = *tuned.chunk;
  if (!tuned.kv.empty() && left_out("--kv")) kv_ = tuned.kv;
  if (!tuned.streams || !left_out("--streams")) return;
  batch_.streams = predict_.streams = *tuned.streams;
  speed_.streams = {*tuned.streams};
}

void Command::check_language_options() {
  const auto require_language_model = [&](const Options& options) {
    for (const cli::Option* option : options)
      if (option->count() > 0 && !is_language_model())
        fail(ErrorCode::kUsage, option->get_name(), " needs a Hugging Face folder or a GGUF file");
  };
  require_language_model({chat_, perplexity_, requests_, embed_});
  if (precision_ != "float32" && is_language_model())
    fail(ErrorCode::kUsage,
         "--precision is for other models; language models have --weights-as, --activations and "
         "--kv");
  Options of_generation = {schema_option_, regex_option_};
  of_generation.insert(of_generation.end(), penalties_.begin(), penalties_.end());
  for (const cli::Option* option : of_generation)
    if (option->count() > 0 && prompt_->count() == 0 && chat_->count() == 0)
      fail(ErrorCode::kUsage, option->get_name(), " needs --prompt or --chat");
  adapter_ = llm::read_adapter_option(adapter_).folder;
  require_language_model(model_settings_);
  require_language_model(of_generation);
  require_language_model({logprobs_option_});
  if (!predict_.overrides.empty() && (benchmark_ > 0 || has_text() || is_language_model()))
    fail(ErrorCode::kUsage, predict_.overrides[0],
         ": has no effect here; it changes what a run's section `predict:` says");
}

int Command::embed_texts() {
  if (!tuned_.empty()) fail(ErrorCode::kUsage, "--tuned is for texts and logits, not for --embed");
  for (const cli::Option* option : model_settings_)
    if (option->count() > 0)
      fail(ErrorCode::kUsage, option->get_name(), " is for texts and logits, not for --embed");
  watch_for_interrupts();
  cli::embed_lines(path(), {.family = family_, .load = load_}, texts_, predict_.output);
  return interrupt_status();
}

int Command::answer_requests() {
  if (predict_.output.empty())
    fail(ErrorCode::kUsage, "--requests needs --output, the file of answers");
  if (arguments_.size() > 1 || !inputs_.empty() || !predict_.input.data.empty())
    fail(ErrorCode::kUsage, "--requests takes no --input and --data");
  if (speed_.streams.size() != 1)
    fail(ErrorCode::kUsage, "--requests takes one number of --streams");
  if (streams_->count() > 0) batch_.streams = speed_.streams[0];
  batch_.output = predict_.output;
  serve::ModelEntry entry{.name = serve::served_name(path()), .path = path()};
  entry.family = family_;
  entry.kv = kv_;
  entry.chunk = chunk_;
  if (!cache_.empty()) entry.cache = cache_;
  entry.context = context_;
  if (!activations_.empty()) entry.activations = activations_;
  entry.weights_as = weights_as_;
  entry.draft = draft_;
  entry.adapter = adapter_;
  cli::answer_requests(entry, batch_);
  return interrupt_status();
}

void Command::set_load_options() {
  load_.seed = generation_.seed;
  profile_ = profile_ || !trace_.empty();
  if (profile_) load_.profile = std::make_shared<runtime::Profile>();
  if (!rules_.empty()) load_.compile.rules = passes::read_rules(rules_);
  if (!kernels_.empty()) {
    std::string problem;
    load_.compile.policy.choices = runtime::open_kernel_table(kernels_, problem);
    if (!problem.empty()) cli::print_error("warning: --kernels: " + problem);
  }
  load_.compile.device = cli::open_device(device_);
  if (!load_.compile.device.is_cpu() && is_language_model())
    fail(ErrorCode::kUsage, "--device: language models run on the cpu");
  load_.precision = *parse_dtype(precision_);
  load_.compile.codegen = !no_codegen_;
  load_.compile.batch_tiling = !no_batch_tiling_;
  load_.compile.policy.allow_winograd = !no_winograd_;
  infer::InputOptions& input = predict_.input;
  input.paths.assign(arguments_.begin() + 1, arguments_.end());
  input.paths.insert(input.paths.end(), inputs_.begin(), inputs_.end());
  if (has_text() && (!input.paths.empty() || !input.data.empty() || !predict_.output.empty()))
    fail(ErrorCode::kUsage,
         "--prompt, --chat and --perplexity take no --input, --data and --output");
  load_.compile.policy.skip_prepack =
      benchmark_ == 0 && !has_text() && input.data.empty() && infer::is_one_batch(path(), input);
  load_.provided = infer::provided_arrays(path(), input);
  // The section `predict:` speaks of the outputs of the model itself.
  predict_.raw = predict_.raw || load_.function != "model";
  if (!dump_ir_.empty()) load_.observe = runtime::dump_stages(dump_ir_, "inference");
}

/// Streams of a model that is not a language model. Those of --tuned are left aside by what runs in
/// one stream.
void Command::set_streams() {
  const char* alone = nullptr;
  if (is_language_model())
    alone = "language models";
  else if (has_text())
    alone = "generated texts";
  else if (profile_ || !dump_ir_.empty())
    alone = "--profile, --trace and --dump-ir";
  else if (!load_.compile.device.is_cpu())
    alone = "other devices than the cpu";
  if (streams_->count() == 0) {
    if (alone) predict_.streams = 1;
    return;
  }
  if (speed_.streams.size() != 1 || speed_.streams[0] > infer::Streams::kMost)
    fail(ErrorCode::kUsage, "--streams: expected one number up to ", infer::Streams::kMost,
         " for this model, found ",
         speed_.streams.size() != 1 ? str(speed_.streams.size(), " numbers")
                                    : std::to_string(speed_.streams[0]));
  predict_.streams = speed_.streams[0];
  if (alone && predict_.streams > 1)
    fail(ErrorCode::kUsage, "--streams: ", alone, " take one stream of batches, found ",
         predict_.streams);
}

int Command::time_text() {
  watch_for_interrupts();
  speed_.repeats = benchmark_;
  speed_.cache = llm::cache_type(kv_);
  speed_.chunk = chunk_;
  speed_.adapter = adapter_;
  speed_.paged = cache_ == "paged";
  cli::print_benchmark(
      path(), {family_, load_, llm::activations(activations_), {}, llm::weight_type(weights_as_)},
      speed_);
  return interrupt_status();
}

std::unique_ptr<program::Model> Command::open_model() {
  if (is_language_model()) {
    language_model_ = llm::open_language_model(path(), {family_,
                                                        load_,
                                                        llm::activations(activations_),
                                                        {.context = context_,
                                                         .cache = llm::cache_type(kv_),
                                                         .adapter = adapter_,
                                                         .chunk = chunk_,
                                                         .paged = cache_ == "paged"},
                                                        llm::weight_type(weights_as_)});
    return std::move(language_model_.model);
  }
  if (!family_.empty())
    fail(ErrorCode::kUsage, "--family is for Hugging Face folders and GGUF files");
  return program::load_model(path(), load_);
}

/// After a run: plans, and with them machine code, are made at the first one.
void Command::report_end(const program::Model& model) {
  if (const auto problem = codegen::take_problem(); !problem.empty())
    cli::print_error("warning: " + problem);
  if (model.onnx() && (profile_ || cli::debug_requested()))
    for (const std::string& line : model.onnx()->fallbacks()) cli::print_error("note: " + line);
  cli::report_host_fallbacks();
  if (!profile_) return;
  if (!trace_.empty()) profile::write_trace({profile::timeline_of(*load_.profile, {}, 0)}, trace_);
  cli::print_error(profile::table(*load_.profile, profile::measure_peaks()));
}

/// A model that needs the values of dims loads its weights with the first batch.
void Command::report_weights(const program::Model& model) {
  if (!is_reported_ && model.load_report() != nullptr)
    cli::print_error("weights: " + model.load_report()->text());
  is_reported_ = model.load_report() != nullptr;
}

int Command::time_model(program::Model& model, bool of_values) {
  const infer::InputOptions& input = predict_.input;
  const cli::BenchmarkOptions options{load_.compile.device, benchmark_, predict_.streams};
  if (input.paths.empty() && input.data.empty()) {
    cli::run_benchmark(model, options,
                       infer::random_inputs(model, infer::dim_sizes(model, input.batch, dims_)));
  } else if (of_values) {
    cli::run_benchmark(model, options, onnx::read_inputs(*model.onnx(), input.paths[0]));
  } else {
    const auto batch = infer::open_inputs(model, input)->next();
    if (!batch) fail(ErrorCode::kData, "the input has no samples to time");
    cli::run_benchmark(model, options, batch->inputs);
  }
  return 0;
}

int Command::use_language_model(program::Model* model) {
  language_model_.model.reset(model);
  const auto tokenizer = tokenizers::load_tokenizer(path());
  llm::GenerateOptions options = text_options_;
  options.logit_bias =
      cli::read_logit_bias(biases_, language_model_.runner ? language_model_.runner->words()
                                                           : tokenizer.vocabulary_size());
  options.length = generation_.length;
  options.sampling = generation_.sampling;
  options.seed = generation_.seed;
  options.stops = generation_.stops;
  options.speculate = draft_ == "ngram";
  if (schema_option_->count() > 0) options.constraint = cli::schema_constraint(schema_, tokenizer);
  if (regex_option_->count() > 0) options.constraint = cli::regex_constraint(pattern_, tokenizer);
  if (perplexity_->count() > 0)
    cli::print_perplexity(language_model_, tokenizer, text_, window_, json_);
  else if (chat_->count() > 0)
    cli::run_chat(language_model_, tokenizer, system_, options);
  else
    cli::continue_text(language_model_, tokenizer, generation_.prompt, options);
  language_model_.model.release();
  return interrupt_status();
}

int Command::continue_prompt(program::Model& model) {
  infer::check_options(model, generation_);  // before anything is printed
  cli::print(generation_.prompt);
  infer::generate(model, generation_, cli::print_piece);
  cli::print("\n");
  return interrupt_status();
}

int Command::use_model() {
  std::optional<Phase> phase(std::in_place, "loading the model");
  static program::Model* const model = open_model().release();
  phase.emplace("predicting");
  report_weights(*model);
  if (!dims_.empty() && benchmark_ == 0)
    fail(ErrorCode::kUsage, "--dim sets sizes for --benchmark, which is missing");
  const infer::InputOptions& input = predict_.input;
  const bool of_values =
      model->onnx() && input.paths.size() == 1 && cli::takes_values(*model->onnx(), input.paths[0]);
  const bool of_nothing =
      model->onnx() && model->inputs().empty() && input.paths.empty() && input.data.empty();
  if ((of_values || of_nothing) && streams_->count() > 0 && predict_.streams > 1)
    fail(ErrorCode::kUsage, "--streams: ", of_nothing ? "a model without inputs" : "such values",
         " take one stream, found ", predict_.streams);
  int status = 0;
  if (benchmark_ > 0) {
    status = time_model(*model, of_values);
  } else {
    watch_for_interrupts();
    if (has_text() && (prompt_->count() == 0 || language_model_.context > 0))
      status = use_language_model(model);
    else if (prompt_->count() > 0)
      status = continue_prompt(*model);
    else if (of_values || of_nothing)
      cli::run_values(
          *model->onnx(),
          of_nothing ? onnx::Values{} : onnx::read_inputs(*model->onnx(), input.paths[0]),
          predict_.output);
    else if (status = cli::predict_rows(*model, predict_, [&] { report_weights(*model); });
             status != 0)
      return status;
  }
  report_end(*model);
  return status;
}

int Command::run(int argc, char** argv) {
  add_model_options();
  add_text_options();
  add_text_limits();
  add_language_options();
  add_language_jobs();
  add_benchmark_options();
  add_run_options();
  if (const auto status = cli::read_command_line(app_, argc, argv)) return *status;
  if (benchmark_ > 0 || has_text() || requests_->count() > 0 || !predict_.input.data.empty())
    restart_with_short_spin_waits(argv);
  take_overrides();
  use_tuned();
  check_language_options();
  if (embed_->count() > 0) return embed_texts();
  if (requests_->count() > 0) return answer_requests();
  if (is_text_benchmark() && (benchmark_ == 0 || !is_language_model()))
    fail(ErrorCode::kUsage, is_language_model()
                                ? "--prefill, --decode and --streams of a language model need "
                                  "--benchmark"
                                : "--prefill and --decode need --benchmark and a language model");
  const bool quantizes = weights_as_ != "as-is";
  if (activations_.empty())
    activations_ = has_text() || is_text_benchmark() || quantizes ? "int16" : "float32";
  if (perplexity_->count() > 0) text_ = read_file(measured_, kLargestText);
  set_load_options();
  if (is_text_benchmark()) return time_text();
  set_streams();
  return use_model();
}

}  // namespace

int main(int argc, char** argv) {
  return paddle::cli::run_tool([&] {
    paddle::register_sections();
    // Not destroyed: the system takes the memory of large models back at once.
    static auto* const command = new Command;
    return command->run(argc, argv);
  });
}
