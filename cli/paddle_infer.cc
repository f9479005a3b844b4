// paddle-infer MODEL [INPUT…]: batch prediction and text generation.

#include <sys/resource.h>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/interrupt.h"
#include "base/parallel.h"
#include "base/phase.h"
#include "common.h"
#include "common_device.h"
#include "common_language.h"
#include "common_options.h"
#include "compiler/codegen/compiled_fusion.h"
#include "infer/generate.h"
#include "infer/random_inputs.h"
#include "infer/results.h"
#include "onnx/graph/value_io.h"
#include "profile/report.h"
#include "runtime/dump.h"
#include "runtime/execute.h"
#include "runtime/kernel_table.h"
#include "sections/sections.h"
#include "text/load.h"

namespace {

using namespace paddle;

/// Bytes of a text for --perplexity; its tokens are in memory.
constexpr uint64_t kLargestText = uint64_t{256} << 20;

/// Samples of one run: the first axis of its first input.
double rows_of(const Dims& first) { return first.empty() ? 1.0 : static_cast<double>(first[0]); }

/// Times `once` and prints a line; `flops` of one run.
void run_benchmark(const program::Model& model, Device device, int64_t steps, double rows,
                   const std::function<void()>& once, const std::function<double()>& flops) {
  std::vector<double> times;
  for (int64_t i = 0; i < steps + 3; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    once();
    if (i >= 3)
      times.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
              .count());
  }
  std::sort(times.begin(), times.end());
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  nlohmann::ordered_json o;
  o["median_ms"] = times[times.size() / 2];
  o["min_ms"] = times[0];
  o["peak_mib"] = static_cast<double>(usage.ru_maxrss) / 1024;
  o["samples_per_second"] = 1e3 * rows / times[times.size() / 2];
  o["steps"] = times.size();
  o["threads"] = thread_count();
  o["device"] = device.text();
  o["dtype"] = "float32";
  o["parameters"] = model.parameter_count();
  o["flops"] = flops();
  cli::print(o.dump() + "\n");
}

/// Results that are views are copied out, so that their cost is in the time: a graph that ends in a
/// transpose leaves that work to who reads the result.
void read_result(const Array& result, const std::vector<Array>& inputs) {
  const auto is_input = [&](const Array& a) { return a.storage == result.storage; };
  if (!result.is_contiguous() || std::any_of(inputs.begin(), inputs.end(), is_input))
    runtime::copied(result);
}

void run_benchmark(program::Model& model, Device device, int64_t steps,
                   const std::vector<Array>& inputs) {
  run_benchmark(
      model, device, steps, rows_of(inputs.empty() ? Dims() : inputs[0].shape),
      [&] {
        for (const Array& result : model.run(inputs)) read_result(result, inputs);
      },
      [&] { return model.flops(inputs); });
}

/// The same for a model of ONNX on values of any kind.
void run_benchmark(program::Model& model, Device device, int64_t steps,
                   const onnx::Values& inputs) {
  onnx::Session& session = *model.onnx();
  const bool rows =
      !inputs.empty() && (inputs[0].is_tensor() || inputs[0].kind() == onnx::Value::Kind::kStrings);
  std::vector<Array> arrays;
  for (const onnx::Value& v : inputs)
    if (v.is_tensor()) arrays.push_back(v.tensor().array());
  run_benchmark(
      model, device, steps, rows_of(rows ? concrete(inputs[0].shape()) : Dims()),
      [&] {
        for (const onnx::Value& v : session.run(inputs))
          if (v.is_tensor()) read_result(v.tensor().array(), arrays);
      },
      [&] { return session.flops(inputs); });
}

/// Runs a model of ONNX on values of any kind; outputs go to an NPZ file or are listed.
void run_values(onnx::Session& model, const onnx::Values& inputs, const std::string& output) {
  const auto outputs = onnx::named_outputs(model, model.run(inputs));
  if (output.ends_with(".npz")) return onnx::write_outputs(output, outputs);
  if (!output.empty())
    fail(ErrorCode::kUsage, "--output: the values of this model go to a .npz file, not to '",
         output, "'");
  for (const auto& [name, content] : outputs) {
    const auto* array = std::get_if<Array>(&content);
    cli::print(name + ": " +
               (array ? text(*array) : str(std::get<formats::NpyStrings>(content).items)) + "\n");
  }
}

/// Whether the inputs are read as values of any kind: from a folder of them, or from an NPZ file
/// for a model that has strings, sequences or maps.
bool takes_values(const onnx::Session& model, const std::string& input) {
  return onnx::has_input_files(input) ||
         (input.ends_with(".npz") && file_exists(input) && onnx::needs_values(model));
}

int run(int argc, char** argv) {
  cli::App app{"Predicts with a trained model, a checkpoint, a model file or an ONNX file."};
  std::vector<std::string> arguments, inputs, dims;
  std::string output, data, dump_ir, kernels, rules, trace, family, system;
  program::LoadOptions load;
  infer::InputOptions input;
  infer::GenerateOptions generation;
  int64_t benchmark = 0;
  bool quiet = false, profile = false, no_codegen = false, no_batch_tiling = false,
       no_winograd = false;
  app.add_option(
      "MODEL", arguments,
      "a run's model/, a checkpoint, a model file[:variant] with params.x=value, an ONNX file, "
      "a Hugging Face folder or a GGUF file; "
      "then inputs");
  app.add_option("--input", inputs,
                 "NPZ, CSV, images, a folder of images or of ONNX's .pb tensors, or text");
  app.add_option("--output", output, "NPZ, CSV or JSONL file (default: a line for each sample)");
  app.add_option("--data", input.data,
                 "predict a config's data: 'valid', 'train', or CONFIG.yaml[:train|valid]");
  app.add_option("--batch", input.batch, "samples at a time");
  app.add_option("--weights", load.weights, "weights of a model file (safetensors)");
  app.add_option("--function", load.function, "entry of a model file or a trained model");
  app.add_option("--family", family,
                 "the model file of a Hugging Face folder or a GGUF file (default: by its type)");
  app.add_option("--allow-missing", load.allow_missing,
                 "parameters that the weights may lack (pattern)");
  app.add_option("--allow-unused", load.allow_unused,
                 "weights that the model may not use (pattern)");
  auto* prompt =
      app.add_option("--prompt", generation.prompt, "generate text that continues this one");
  bool talk = false;
  auto* chat = app.add_flag("--chat", talk,
                            "talk with a language model: each line of standard input is a message");
  app.add_option("--system", system, "with --chat: the instructions of the conversation")
      ->needs(chat);
  app.add_option("--length", generation.length, "tokens to generate");
  app.add_option("--temperature", generation.sampling.temperature,
                 "0: always the most likely token");
  app.add_option("--top-k", generation.sampling.top_k, "draw from the k most likely tokens");
  app.add_option("--top-p", generation.sampling.top_p,
                 "draw from the smallest set of this probability");
  app.add_option("--min-p", generation.sampling.min_p,
                 "leave out tokens below this share of the most likely one's probability");
  app.add_option("--repetition-penalty", generation.sampling.repetition_penalty,
                 "above 1: tokens that are in the text become less likely");
  llm::GenerateOptions text_options;
  std::vector<std::string> biases;
  auto* presence_option = app.add_option("--presence-penalty", text_options.presence_penalty,
                                         "subtracted from the logits of a language model's tokens "
                                         "that were generated already")
                              ->check(cli::Range(-2.0, 2.0));
  auto* frequency_option =
      app.add_option("--frequency-penalty", text_options.frequency_penalty,
                     "the same, once for each time that the token was generated")
          ->check(cli::Range(-2.0, 2.0));
  auto* bias_option =
      app.add_option("--logit-bias", biases,
                     "TOKEN=BIAS: added to the logit of a language model's token, by its id "
                     "(repeatable)")
          ->allow_extra_args(false);
  auto* logprobs_option =
      app.add_option("--logprobs", text_options.logprobs,
                     "with --prompt: then print a JSON line for each generated token, with its "
                     "log-probability and those of the N most likely tokens")
          ->needs(prompt)
          ->check(cli::Range(int64_t{0}, int64_t{20}));
  app.add_option("--stop", generation.stops, "end before this text (repeatable)")
      ->allow_extra_args(false);
  std::string draft = "ngram";
  app.add_option("--draft", draft,
                 "ngram: check several tokens that the text itself suggests in one step, which "
                 "gives the same text sooner (default); none: one token at a time")
      ->check(cli::IsMember({"ngram", "none"}));
  std::string schema, pattern;
  auto* schema_option =
      app.add_option("--schema", schema,
                     "the text is JSON that is valid for this JSON Schema (a file), or any JSON "
                     "object ('object')");
  auto* regex_option =
      app.add_option("--regex", pattern, "the text matches this regular expression as a whole")
          ->excludes(schema_option);
  int64_t context = 0;
  int64_t chunk = 0;
  std::string kv = "f32", activations, weights_as = "as-is";
  auto* context_option =
      app.add_option("--context", context,
                     "tokens of a text, whose keys and values are cached (default: the model's)")
          ->check(cli::Range(int64_t{1}, int64_t{1} << 40));
  auto* kv_option = app.add_option("--kv", kv, "how a language model's keys and values are cached")
                        ->check(cli::IsMember({"f32", "bf16", "int8"}));
  std::string cache;
  auto* cache_option =
      app.add_option(
             "--cache", cache,
             "plain: a place for each text; paged: blocks of tokens that texts take as they "
             "grow and share (default: paged for --requests, else plain)")
          ->check(cli::IsMember({"plain", "paged"}));
  auto* chunk_option =
      app.add_option("--chunk", chunk,
                     "tokens of a prompt that a language model reads in a step (default: 256)")
          ->check(cli::Range(int64_t{1}, llm::Runner::kMostRows));
  auto* activations_option =
      app.add_option(
             "--activations", activations,
             "of products with block-quantized weights (default: int16 for text, float32 for "
             "--input)")
          ->check(cli::IsMember({"float32", "int16", "int8"}));
  auto* weights_as_option =
      app.add_option("--weights-as", weights_as,
                     "keep a language model's matrices in 8 or 4 bits, whatever their file has "
                     "(default: as-is)")
          ->check(cli::IsMember({"as-is", "int8", "int4"}));
  std::string adapter;
  auto* adapter_option =
      app.add_option("--adapter", adapter,
                     "[NAME=]DIR: a low-rank adapter in PEFT's files, added to a language model");
  std::string measured;
  int64_t window = 0;
  bool json = false;
  auto* perplexity = app.add_option("--perplexity", measured,
                                    "how well a language model predicts the text of this file")
                         ->excludes(prompt)
                         ->excludes(chat);
  app.add_option("--window", window,
                 "with --perplexity: tokens at a time (default: 512 or the context)")
      ->check(cli::Range(int64_t{2}, int64_t{1} << 40))
      ->needs(perplexity);
  app.add_flag("--json", json, "with --perplexity: print one JSON line")->needs(perplexity);
  std::string texts;
  auto* embed =
      app.add_option("--embed", texts,
                     "the vectors of an encoder for the lines of this file (-: standard input), as "
                     "JSON lines, or into --output (.jsonl, .csv or .npz)")
          ->excludes(prompt)
          ->excludes(chat)
          ->excludes(perplexity);
  serve::BatchOptions batch;
  auto* requests = app.add_option("--requests", batch.requests,
                                  "answer a file of requests in OpenAI's batch format (one JSON "
                                  "object a line) into the file --output")
                       ->excludes(prompt)
                       ->excludes(chat)
                       ->excludes(perplexity)
                       ->excludes(embed);
  app.add_flag("--resume", batch.resume, "with --requests: keep the answers that --output has")
      ->needs(requests);
  app.add_option("--seed", generation.seed, "of what is drawn, and of random weights");
  app.add_option("--benchmark", benchmark,
                 "time N runs, on random input if none is given, and print one JSON line")
      ->excludes(perplexity)
      ->excludes(requests)
      ->check(cli::Range(int64_t{1}, int64_t{1} << 40));
  llm::BenchmarkOptions speed;
  auto* prefill =
      app.add_option("--prefill", speed.prefill,
                     "with --benchmark: the prompt's tokens of a language model (default: 256)")
          ->check(cli::Range(int64_t{1}, int64_t{1} << 40));
  auto* decode = app.add_option("--decode", speed.decode,
                                "with --benchmark: the tokens that are generated (default: 64)")
                     ->check(cli::Range(int64_t{1}, int64_t{1} << 40));
  auto* streams = app.add_option("--streams", speed.streams,
                                 "with --benchmark: numbers of texts at a time, such as 1,8; with "
                                 "--requests: one such number (default: 8)")
                      ->delimiter(',')
                      ->check(cli::Range(int64_t{1}, int64_t{1} << 20));
  app.add_option("--dim", dims, "name=value: a symbolic dim, for --benchmark");
  cli::DeviceOptions device;
  cli::add_device_options(app, device);
  app.add_flag("--profile", profile, "print where the time goes, per operation");
  app.add_option("--trace", trace,
                 "with a file's name: also write a timeline there (JSON), for a trace viewer");
  app.add_option("--kernels", kernels, "a table of kernel choices that paddle-tune made");
  app.add_option("--rules", rules, "a file of rewrites, tried before the standard ones");
  app.add_flag("--no-codegen", no_codegen, "run groups of operations without machine code");
  app.add_flag("--no-batch-tiling,--no-slices", no_batch_tiling,
               "run every layer on the whole batch");
  app.add_flag("--no-winograd", no_winograd, "sum over the windows of every convolution");
  app.add_option("--dump-ir", dump_ir, "write the module after each pass into this folder");
  app.add_flag("--quiet", quiet, "no line for each sample");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  const bool has_text = prompt->count() > 0 || chat->count() > 0 || perplexity->count() > 0;
  if (benchmark > 0 || has_text || requests->count() > 0 || !input.data.empty())
    restart_with_short_spin_waits(argv);
  for (auto it = arguments.begin(); it != arguments.end();) {
    if (it->starts_with("params.")) {
      load.overrides.push_back(*it);
      it = arguments.erase(it);
    } else {
      ++it;
    }
  }
  if (arguments.empty()) fail(ErrorCode::kUsage, "no model is given (see paddle-infer --help)");
  for (const auto* option : {chat, perplexity, requests, embed})
    if (option->count() > 0 && !llm::is_language_model(arguments[0]))
      fail(ErrorCode::kUsage, option->get_name(), " needs a Hugging Face folder or a GGUF file");
  for (const auto* option :
       {schema_option, regex_option, presence_option, frequency_option, bias_option})
    if (option->count() > 0 && prompt->count() == 0 && chat->count() == 0)
      fail(ErrorCode::kUsage, option->get_name(), " needs --prompt or --chat");
  adapter = llm::read_adapter_option(adapter).folder;
  for (const auto* option :
       {context_option, kv_option, cache_option, chunk_option, activations_option,
        weights_as_option, adapter_option, schema_option, regex_option, presence_option,
        frequency_option, bias_option, logprobs_option})
    if (option->count() > 0 && !llm::is_language_model(arguments[0]))
      fail(ErrorCode::kUsage, option->get_name(), " needs a Hugging Face folder or a GGUF file");
  if (embed->count() > 0) {
    for (const auto* option : {adapter_option, context_option, kv_option, cache_option,
                               chunk_option, activations_option, weights_as_option})
      if (option->count() > 0)
        fail(ErrorCode::kUsage, option->get_name(), " is for texts and logits, not for --embed");
    watch_for_interrupts();
    cli::embed_lines(arguments[0], {.family = family, .load = load}, texts, output);
    return pending_interrupt() ? 128 + pending_interrupt() : 0;
  }
  if (requests->count() > 0) {
    if (output.empty()) fail(ErrorCode::kUsage, "--requests needs --output, the file of answers");
    if (chunk > 0)
      fail(ErrorCode::kUsage,
           "--requests reads prompts of several texts in a step and takes no --chunk");
    if (arguments.size() > 1 || !inputs.empty() || !input.data.empty())
      fail(ErrorCode::kUsage, "--requests takes no --input and --data");
    if (speed.streams.size() != 1)
      fail(ErrorCode::kUsage, "--requests takes one number of --streams");
    if (streams->count() > 0) batch.streams = speed.streams[0];
    batch.output = output;
    serve::ModelEntry entry{.name = serve::served_name(arguments[0]), .path = arguments[0]};
    entry.family = family;
    entry.kv = kv;
    if (!cache.empty()) entry.cache = cache;
    entry.context = context;
    if (!activations.empty()) entry.activations = activations;
    entry.weights_as = weights_as;
    entry.draft = draft;
    entry.adapter = adapter;
    cli::answer_requests(entry, batch);
    return pending_interrupt() ? 128 + pending_interrupt() : 0;
  }
  const bool of_text = prefill->count() + decode->count() + streams->count() > 0;
  if (of_text && (benchmark == 0 || !llm::is_language_model(arguments[0])))
    fail(ErrorCode::kUsage,
         "--prefill, --decode and --streams need --benchmark and a language model");
  const bool quantizes = weights_as != "as-is";
  if (activations.empty()) activations = has_text || of_text || quantizes ? "int16" : "float32";
  const std::string text = perplexity->count() > 0 ? read_file(measured, kLargestText) : "";
  load.seed = generation.seed;
  profile = profile || !trace.empty();
  if (profile) load.profile = std::make_shared<runtime::Profile>();
  if (!rules.empty()) load.compile.rules = passes::read_rules(rules);
  if (!kernels.empty()) {
    std::string problem;
    load.compile.policy.choices = runtime::open_kernel_table(kernels, problem);
    if (!problem.empty()) cli::print_error("warning: --kernels: " + problem);
  }
  load.compile.device = cli::open_device(device);
  if (!load.compile.device.is_cpu() && llm::is_language_model(arguments[0]))
    fail(ErrorCode::kUsage, "--device: language models run on the cpu");
  load.compile.codegen = !no_codegen;
  load.compile.batch_tiling = !no_batch_tiling;
  load.compile.policy.allow_winograd = !no_winograd;
  input.paths.assign(arguments.begin() + 1, arguments.end());
  input.paths.insert(input.paths.end(), inputs.begin(), inputs.end());
  if (has_text && (!input.paths.empty() || !input.data.empty() || !output.empty()))
    fail(ErrorCode::kUsage,
         "--prompt, --chat and --perplexity take no --input, --data and --output");
  load.compile.policy.skip_prepack =
      benchmark == 0 && !has_text && input.data.empty() && infer::is_one_batch(arguments[0], input);
  load.provided = infer::provided_arrays(arguments[0], input);
  if (!dump_ir.empty()) load.observe = runtime::dump_stages(dump_ir, "inference");
  if (of_text) {
    watch_for_interrupts();
    speed.repeats = benchmark;
    speed.cache = llm::cache_type(kv);
    speed.chunk = chunk;
    speed.adapter = adapter;
    speed.paged = cache == "paged";
    cli::print_benchmark(
        arguments[0],
        {family, load, llm::activations(activations), {}, llm::weight_type(weights_as)}, speed);
    return pending_interrupt() ? 128 + pending_interrupt() : 0;
  }
  std::optional<Phase> phase(std::in_place, "loading the model");
  // Kept to the end of the process, when the system takes all of its memory back at once.
  llm::LanguageModel language_model;
  const auto open = [&] {
    if (llm::is_language_model(arguments[0])) {
      language_model = llm::open_language_model(arguments[0], {family,
                                                               load,
                                                               llm::activations(activations),
                                                               {.context = context,
                                                                .cache = llm::cache_type(kv),
                                                                .adapter = adapter,
                                                                .chunk = chunk,
                                                                .paged = cache == "paged"},
                                                               llm::weight_type(weights_as)});
      return std::move(language_model.model);
    }
    if (!family.empty())
      fail(ErrorCode::kUsage, "--family is for Hugging Face folders and GGUF files");
    return program::load_model(arguments[0], load);
  };
  static program::Model* const model = open().release();
  phase.emplace("predicting");
  // After a run: plans, and with them machine code, are made at the first one.
  const auto report_end = [&] {
    if (const auto problem = codegen::take_problem(); !problem.empty())
      cli::print_error("warning: " + problem);
    if (model->onnx() && (profile || cli::debug_requested()))
      for (const std::string& line : model->onnx()->fallbacks()) cli::print_error("note: " + line);
    cli::report_host_fallbacks();
    if (!profile) return;
    if (!trace.empty()) profile::write_trace({profile::timeline_of(*load.profile, {}, 0)}, trace);
    cli::print_error(profile::table(*load.profile, profile::measure_peaks()));
  };
  // A model that needs the values of dims loads its weights with the first batch.
  bool reported = false;
  const auto report_weights = [&] {
    if (!reported && model->load_report() != nullptr)
      cli::print_error("weights: " + model->load_report()->text());
    reported = model->load_report() != nullptr;
  };
  report_weights();
  if (!dims.empty() && benchmark == 0)
    fail(ErrorCode::kUsage, "--dim sets sizes for --benchmark, which is missing");
  const bool of_values =
      model->onnx() && input.paths.size() == 1 && takes_values(*model->onnx(), input.paths[0]);
  const bool of_nothing =
      model->onnx() && model->inputs().empty() && input.paths.empty() && input.data.empty();
  if (benchmark > 0) {
    if (input.paths.empty() && input.data.empty()) {
      run_benchmark(*model, load.compile.device, benchmark,
                    infer::random_inputs(*model, infer::dim_sizes(*model, input.batch, dims)));
    } else if (of_values) {
      run_benchmark(*model, load.compile.device, benchmark,
                    onnx::read_inputs(*model->onnx(), input.paths[0]));
    } else {
      const auto batch = infer::open_inputs(*model, input)->next();
      if (!batch) fail(ErrorCode::kData, "the input has no samples to time");
      run_benchmark(*model, load.compile.device, benchmark, batch->inputs);
    }
    report_end();
    return 0;
  }
  watch_for_interrupts();
  if (has_text && (prompt->count() == 0 || language_model.context > 0)) {
    language_model.model.reset(model);
    const auto tokenizer = tokenizers::load_tokenizer(arguments[0]);
    llm::GenerateOptions options = text_options;
    options.logit_bias =
        cli::read_logit_bias(biases, language_model.runner ? language_model.runner->words()
                                                           : tokenizer.vocabulary_size());
    options.length = generation.length;
    options.sampling = generation.sampling;
    options.seed = generation.seed;
    options.stops = generation.stops;
    options.speculate = draft == "ngram";
    if (schema_option->count() > 0) options.constraint = cli::schema_constraint(schema, tokenizer);
    if (regex_option->count() > 0) options.constraint = cli::regex_constraint(pattern, tokenizer);
    if (perplexity->count() > 0)
      cli::print_perplexity(language_model, tokenizer, text, window, json);
    else if (chat->count() > 0)
      cli::run_chat(language_model, tokenizer, system, options);
    else
      cli::continue_text(language_model, tokenizer, generation.prompt, options);
    language_model.model.release();
    report_end();
    return pending_interrupt() ? 128 + pending_interrupt() : 0;
  }
  if (prompt->count() > 0) {
    infer::check_options(*model, generation);  // before anything is printed
    cli::print(generation.prompt);
    infer::generate(*model, generation, cli::print_piece);
    cli::print("\n");
    report_end();
    return pending_interrupt() ? 128 + pending_interrupt() : 0;
  }
  if (of_values || of_nothing) {
    run_values(*model->onnx(),
               of_nothing ? onnx::Values{} : onnx::read_inputs(*model->onnx(), input.paths[0]),
               output);
    report_end();
    return 0;
  }
  const auto batches = infer::open_inputs(*model, input);
  const auto results = infer::open_results(
      *model, output, {batches->has_labels(), batches->may_skip()}, [&](const std::string& line) {
        if (!quiet) cli::print(line + "\n");
      });
  const infer::OutputUnits units(*model);
  int64_t rows = 0, skipped = 0, labelled = 0, right = 0;
  while (auto batch = batches->next()) {
    skipped += static_cast<int64_t>(batch->skipped.size());
    if (batch->rows == 0 && !batch->skipped.empty()) {
      results->add(*batch, {});
      continue;
    }
    const auto outputs = model->run(batch->inputs);
    report_weights();
    results->add(*batch, units.restored(outputs));
    rows += batch->rows;
    if (!batch->labels.empty()) {
      const auto ignored = model->metadata().ignore_index;
      const auto decisions = infer::decide(*model, outputs[0]);
      for (size_t i = 0; i < decisions.size(); ++i) {
        const auto& label = batch->labels[i];
        if (!label || (ignored && *label == static_cast<double>(*ignored))) continue;
        ++labelled;
        right += static_cast<double>(decisions[i].index) == *label;
      }
    }
    if (pending_interrupt()) return 128 + pending_interrupt();
  }
  results->close();
  if (labelled > 0) {
    char text[64];
    std::snprintf(text, sizeof text, "accuracy: %.4f",
                  static_cast<double>(right) / static_cast<double>(labelled));
    cli::print(std::string(text) + "\n");
  }
  if (!output.empty() && !model->onnx())
    cli::print(str("predicted ", rows, " samples; written to ", output, "\n"));
  if (skipped > 0)
    cli::print_error(str("warning: ", skipped, " of ", rows + skipped, " samples were skipped"));
  for (const std::string& line : batches->warnings()) cli::print_error("warning: " + line);
  report_end();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return paddle::cli::run_tool([&] {
    paddle::register_sections();
    return run(argc, argv);
  });
}
