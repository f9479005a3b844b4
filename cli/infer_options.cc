// The options of paddle-infer, one subject after the other, and what they have to agree on.

#include <algorithm>

#include "infer/streams.h"
#include "infer_command.h"
#include "runtime/dump.h"
#include "runtime/kernel_table.h"
#include "tune/tuned_settings.h"

namespace paddle::cli {

void InferCommand::add_model_options() {
  app_.group("Model, inputs and outputs");
  app_.add_option(
      "MODEL", arguments_,
      "a run's model/, a checkpoint, a model file[:variant] with params.x=value, an ONNX file, "
      "a Hugging Face folder or a GGUF file; then inputs; predict.KEY=value changes the section "
      "`predict:` of the run");
  app_.add_option("--input", inputs_,
                  "NPZ, CSV, images, audio, a folder of them or of ONNX's .pb tensors, or text");
  app_.add_option("-o,--output", predict_.output,
                  "NPZ, CSV or JSONL file, or a folder for predicted pictures (default: a line for "
                  "each sample)");
  app_.add_option("--data", predict_.input.data,
                  "predict a config's data: valid, train, test, or CONFIG.yaml[:train|valid|test]");
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

void InferCommand::add_text_options() {
  app_.group("Text generation");
  prompt_ =
      app_.add_option("--prompt", generation_.prompt, "generate a continuation of this prompt");
  chat_ = app_.add_flag("--chat", talk_,
                        "chat with a language model: each line of standard input is a message");
  app_.add_option("--system", system_, "with --chat: the system prompt")->needs(chat_);
  app_.add_option("--length", generation_.length, "tokens to generate (default: 200)");
  app_.add_option("--temperature", generation_.sampling.temperature,
                  "sampling temperature; 0: greedy decoding (default: 1)");
  app_.add_option("--top-k", generation_.sampling.top_k,
                  "sample from the k most likely tokens (default: all)");
  app_.add_option(
      "--top-p", generation_.sampling.top_p,
      "sample from the smallest set of tokens with this total probability (default: 1)");
  app_.add_option(
      "--min-p", generation_.sampling.min_p,
      "exclude tokens below this fraction of the most likely one's probability (default: 0)");
  app_.add_option("--repetition-penalty", generation_.sampling.repetition_penalty,
                  "above 1: tokens that already occur become less likely (default: 1)");
  const auto* presence = app_.add_option("--presence-penalty", text_options_.presence_penalty,
                                         "subtracted from the logits of tokens of a language model "
                                         "that were already generated")
                             ->check(in_range(-2.0, 2.0));
  const auto* frequency =
      app_.add_option("--frequency-penalty", text_options_.frequency_penalty,
                      "the same, once for each time that the token was generated")
          ->check(in_range(-2.0, 2.0));
  const auto* bias =
      app_.add_option("--logit-bias", biases_,
                      "TOKEN=BIAS: added to the logit of a language model's token, by its id "
                      "(repeatable)")
          ->allow_extra_args(false);
  penalties_ = {presence, frequency, bias};
}

void InferCommand::add_text_limits() {
  app_.group("Text generation");
  logprobs_option_ =
      app_.add_option("--logprobs", text_options_.logprobs,
                      "with --prompt: then print a JSON line for each generated token, with its "
                      "log-probability and those of the N most likely tokens")
          ->needs(prompt_)
          ->check(in_range(int64_t{0}, int64_t{20}));
  app_.add_option("--stop", generation_.stops,
                  "stop string: generation ends before it (repeatable)")
      ->allow_extra_args(false);
  app_.add_option("--draft", draft_,
                  "ngram: verify several tokens drafted from n-grams of the sequence in one step, "
                  "with the same output (default); none: one token at a time")
      ->check(one_of({"ngram", "none"}));
  schema_option_ = app_.add_option(
      "--schema", schema_,
      "constrain the output to JSON that is valid for this JSON Schema (a file), or to any JSON "
      "object ('object')");
  regex_option_ =
      app_.add_option("--regex", pattern_,
                      "constrain the output to strings that match this regular expression")
          ->excludes(schema_option_);
}

void InferCommand::add_language_options() {
  app_.group("Language models");
  const auto* context =
      app_.add_option(
              "--context", context_,
              "context length: tokens whose keys and values are cached (default: the model's)")
          ->check(in_range(int64_t{1}, int64_t{1} << 40));
  const auto* kv = app_.add_option("--kv", kv_, "how a language model's keys and values are cached")
                       ->check(one_dtype_of({"f32", "bf16", "int8"}));
  const auto* cache = app_.add_option("--cache", cache_,
                                      "plain: a fixed area for each sequence; paged: blocks of "
                                      "tokens that sequences allocate as they "
                                      "grow and share (default: paged for --requests, else plain)")
                          ->check(one_of({"plain", "paged"}));
  const auto* chunk =
      app_.add_option("--chunk", chunk_,
                      "tokens of prompts that a language model reads in a step (default: 256)")
          ->check(in_range(int64_t{1}, llm::Runner::kMaxRows));
  const auto* activations = app_.add_option("--activations", activations_,
                                            "precision of products with block-quantized weights "
                                            "(default: int16 for generation, float32 for "
                                            "--input)")
                                ->check(one_dtype_of({"float32", "int16", "int8"}));
  const auto* weights_as =
      app_.add_option("--weights-as", weights_as_,
                      "keep a language model's matrices in 8 or 4 bits, whatever their file has "
                      "(default: as-is)")
          ->check(one_of({"as-is", "int8", "int4"}));
  const auto* adapter =
      app_.add_option("--adapter", adapter_,
                      "[NAME=]DIR: a low-rank adapter in PEFT's files, added to a language model");
  model_settings_ = {context, kv, cache, chunk, activations, weights_as, adapter};
}

void InferCommand::add_language_jobs() {
  app_.group("Jobs of language models");
  perplexity_ = app_.add_option("--perplexity", measured_,
                                "perplexity of a language model on the text of this file")
                    ->excludes(prompt_)
                    ->excludes(chat_);
  app_.add_option("--window", window_,
                  "with --perplexity: tokens of a window (default: 512 or the context)")
      ->check(in_range(int64_t{2}, int64_t{1} << 40))
      ->needs(perplexity_);
  embed_ =
      app_.add_option(
              "--embed", texts_,
              "embeddings that an encoder computes for the lines of this file (-: standard input), "
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
  app_.add_flag("--resume", batch_.resume,
                "with --requests: continue, keeping the responses in --output")
      ->needs(requests_);
}

void InferCommand::add_benchmark_options() {
  app_.group("Benchmark");
  app_.add_option("--seed", generation_.seed,
                  "seed of sampling and of random weights (default: 0)");
  app_.add_option("--benchmark", benchmark_,
                  "time N runs, on random input if none is given, and print one JSON line")
      ->excludes(perplexity_)
      ->excludes(requests_)
      ->check(in_range(int64_t{1}, int64_t{1} << 40));
  prefill_ =
      app_.add_option("--prefill", speed_.prefill,
                      "with --benchmark: the prompt's tokens of a language model (default: 256)")
          ->check(in_range(int64_t{1}, int64_t{1} << 40));
  decode_ = app_.add_option("--decode", speed_.decode,
                            "with --benchmark: the tokens that are generated (default: 64)")
                ->check(in_range(int64_t{1}, int64_t{1} << 40));
  streams_ =
      app_.add_option("--streams", speed_.streams,
                      "batches at a time, which share the threads (default: 1); of a "
                      "language model with --benchmark: numbers of concurrent sequences, such as "
                      "1,8; with --requests: one such number (default: 8)")
          ->delimiter(',')
          ->check(in_range(int64_t{1}, int64_t{1} << 20));
  app_.add_option("--dim", dims_, "name=value: a symbolic dim, for --benchmark");
}

void InferCommand::add_run_options() {
  app_.group("Execution");
  add_device_options(app_, device_);
  app_.add_flag("--profile", profile_, "print where the time goes, per operation");
  app_.add_option("--trace", trace_,
                  "with a file's name: also write a timeline there (JSON), for a trace viewer");
  app_.add_option(
      "--tuned", tuned_,
      "settings that paddle-tune found for the model (tuned.yaml), where options do not "
      "say otherwise");
  app_.add_option("--kernels", kernels_, "a table of kernel choices that paddle-tune made");
  app_.add_option("--precision", precision_,
                  "precision of products, convolutions and attention of a model in float32 "
                  "(default: float32)")
      ->check(one_dtype_of({"float32", "bfloat16", "float16"}));
  app_.add_option("--rules", rules_, "a file of rewrites, tried before the standard ones");
  app_.add_option("--leave-out", left_out_,
                  "optimizations to disable, such as fold_batch_norm,cse: passes of `paddle ir "
                  "opt --help`, layout, fusion or rewrites")
      ->delimiter(',');
  app_.add_flag("--no-codegen", no_codegen_,
                "interpret fusion groups instead of compiling them to machine code");
  app_.add_flag("--no-batch-tiling,--no-slices", no_batch_tiling_,
                "disable batch tiling: run every layer on the whole batch");
  app_.add_flag("--no-graphs", no_graphs_, "disable device graphs: launch every kernel separately");
  app_.add_flag("--no-winograd", no_winograd_, "disable Winograd convolutions");
  app_.add_option("--dump", dumped_,
                  "write the values inside of the model whose names match this pattern, such as "
                  "'blocks.0.*', to the file --output (.npz); --dry-run lists all names");
  app_.add_flag("--check-numerics", checks_numerics_,
                "predict one batch and print counts of NaN, infinities and zeros and the largest "
                "magnitude of each value inside of the model");
  app_.add_option("--dump-ir", dump_ir_, "write the module after each pass into this folder");
  app_.add_flag(
      "--dry-run", dry_run_,
      "load the model, check the options and the first batch of the input, or the prompt; "
      "predict nothing");
  app_.add_flag("--json", json_,
                "print a JSON object on the last line: what was predicted, generated or measured");
  app_.add_flag("--overwrite", predict_.overwrite,
                "let --output replace a file that was not written by a prediction");
}

/// Takes `params.…` and `predict.…` out of the arguments.
void InferCommand::take_overrides() {
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
void InferCommand::use_tuned() {
  if (tuned_.empty()) return;
  const tune::TunedSettings tuned = tune::read_tuned(
      tuned_, is_language_model() ? tune::TunedSubject::kLanguageModel : tune::TunedSubject::kModel,
      path());
  const auto left_out = [&](const char* option) { return app_.count(option) == 0; };
  use_config_threads(tuned.threads);
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

void InferCommand::check_language_options() {
  const auto require_language_model = [&](const Options& options) {
    for (const Option* option : options)
      if (option->count() > 0 && !is_language_model())
        fail(ErrorCode::kUsage, option->get_name(), " needs a Hugging Face folder or a GGUF file");
  };
  require_language_model({chat_, perplexity_, requests_, embed_});
  const bool embeds_to_stdout = embed_->count() > 0 && predict_.output.empty();
  if (json_ && (chat_->count() > 0 || embeds_to_stdout))
    fail(ErrorCode::kUsage, "--json: ",
         embeds_to_stdout ? "--embed without --output prints JSON lines in any case"
                          : "a conversation has no result");
  if (dry_run_ && (benchmark_ > 0 || is_text_benchmark()))
    fail(ErrorCode::kUsage, "--dry-run computes nothing that --benchmark could time");
  for (const Option* option : {chat_, perplexity_, requests_, embed_})
    if (dry_run_ && option->count() > 0)
      fail(ErrorCode::kUsage, "--dry-run is for --input, --data and --prompt, not for ",
           option->get_name());
  predict_.json = json_;
  predict_.dry_run = dry_run_;
  if (precision_ != "float32" && is_language_model())
    fail(ErrorCode::kUsage,
         "--precision is for other models; language models have --weights-as, --activations and "
         "--kv");
  Options of_generation = {schema_option_, regex_option_};
  of_generation.insert(of_generation.end(), penalties_.begin(), penalties_.end());
  for (const Option* option : of_generation)
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

void InferCommand::set_load_options() {
  load_.seed = generation_.seed;
  profile_ = profile_ || !trace_.empty();
  if (profile_) load_.profile = std::make_shared<runtime::Profile>();
  if (!rules_.empty()) load_.compile.rules = passes::read_rules(rules_);
  if (!kernels_.empty()) {
    std::string problem;
    load_.compile.prepare.choices = runtime::open_kernel_table(kernels_, problem);
    if (!problem.empty()) print_warning("--kernels: " + problem);
  }
  load_.compile.target.device = open_device(device_);
  if (is_language_model()) check_runs_language_models(load_.compile.target.device);
  load_.precision = *parse_dtype(precision_);
  load_.compile.prepare.codegen = !no_codegen_;
  load_.compile.batch_tiling = !no_batch_tiling_;
  if (no_graphs_) load_.compile.graphs = compiler::GraphMode::kOff;
  load_.compile.prepare.allow_winograd = !no_winograd_;
  for (const std::string& name : left_out_) compiler::leave_out(load_.compile, name);
  infer::InputOptions& input = predict_.input;
  input.paths.assign(arguments_.begin() + 1, arguments_.end());
  input.paths.insert(input.paths.end(), inputs_.begin(), inputs_.end());
  if (has_text() && (!input.paths.empty() || !input.data.empty() || !predict_.output.empty()))
    fail(ErrorCode::kUsage,
         "--prompt, --chat and --perplexity take no --input, --data and --output");
  load_.compile.prepare.skip_prepack =
      benchmark_ == 0 && !has_text() && input.data.empty() && infer::is_one_batch(path(), input);
  load_.provided = infer::provided_arrays(path(), input);
  // The section `predict:` speaks of the outputs of the model itself.
  predict_.raw = predict_.raw || load_.function != "model";
  if (!dump_ir_.empty()) load_.observe = runtime::dump_stages(dump_ir_, "inference");
}

/// Streams of a model that is not a language model. Those of --tuned are ignored by what runs in
/// one stream.
void InferCommand::set_streams() {
  const char* alone = nullptr;
  if (is_language_model())
    alone = "language models";
  else if (has_text())
    alone = "generated texts";
  else if (profile_ || !dump_ir_.empty())
    alone = "--profile, --trace and --dump-ir";
  else if (!load_.compile.target.device.is_cpu())
    alone = "other devices than the cpu";
  if (streams_->count() == 0) {
    if (alone) predict_.streams = 1;
    return;
  }
  if (speed_.streams.size() != 1 || speed_.streams[0] > infer::Streams::kMax)
    fail(ErrorCode::kUsage, "--streams: expected one number up to ", infer::Streams::kMax,
         " for this model, found ",
         speed_.streams.size() != 1 ? str(speed_.streams.size(), " numbers")
                                    : std::to_string(speed_.streams[0]));
  predict_.streams = speed_.streams[0];
  if (alone && predict_.streams > 1)
    fail(ErrorCode::kUsage, "--streams: ", alone, " take one stream of batches, found ",
         predict_.streams);
}

}  // namespace paddle::cli
