// paddle-infer MODEL [INPUT…]: batch prediction and text generation.

#include "base/files.h"
#include "base/interrupt.h"
#include "base/parallel.h"
#include "base/phase.h"
#include "commands.h"
#include "compiler/codegen/compiled_fusion.h"
#include "infer/random_inputs.h"
#include "infer_benchmark.h"
#include "infer_command.h"
#include "infer_dump.h"
#include "infer_language.h"
#include "profile/report.h"
#include "sections/sections.h"
#include "text/load.h"

namespace paddle::cli {
namespace {

/// Bytes of a text for --perplexity; its tokens are in memory.
constexpr uint64_t kMaxTextBytes = uint64_t{256} << 20;

int interrupt_status() { return pending_interrupt() ? 128 + pending_interrupt() : 0; }

}  // namespace

int InferCommand::embed_texts() {
  if (!tuned_.empty()) fail(ErrorCode::kUsage, "--tuned is for texts and logits, not for --embed");
  for (const Option* option : model_settings_)
    if (option->count() > 0)
      fail(ErrorCode::kUsage, option->get_name(), " is for texts and logits, not for --embed");
  watch_for_interrupts();
  embed_lines(path(), {.family = family_, .load = load_}, texts_, predict_.output, json_);
  return interrupt_status();
}

int InferCommand::answer_requests() {
  if (predict_.output.empty())
    fail(ErrorCode::kUsage, "--requests needs --output, the file of responses");
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
  cli::answer_requests(entry, batch_, json_);
  return interrupt_status();
}

int InferCommand::time_text() {
  watch_for_interrupts();
  speed_.repeats = benchmark_;
  speed_.cache = llm::cache_type(kv_);
  speed_.chunk = chunk_;
  speed_.adapter = adapter_;
  speed_.paged = cache_ == "paged";
  print_benchmark(
      path(), {family_, load_, llm::activations(activations_), {}, llm::weight_type(weights_as_)},
      speed_);
  return interrupt_status();
}

std::unique_ptr<program::Model> InferCommand::open_model() {
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
void InferCommand::report_end(const program::Model& model) {
  if (const auto problem = codegen::take_problem(); !problem.empty()) print_warning(problem);
  if (model.onnx() && (profile_ || debug_requested()))
    for (const std::string& line : model.onnx()->fallbacks()) print_note(line);
  report_host_fallbacks();
  if (!profile_) return;
  if (!trace_.empty()) profile::write_trace({profile::timeline_of(*load_.profile, {}, 0)}, trace_);
  print_error(profile::table(*load_.profile, profile::measure_peaks()));
}

/// A model that needs the values of dims loads its weights with the first batch.
void InferCommand::report_weights(const program::Model& model) {
  if (!is_reported_ && model.load_report() != nullptr)
    print_error("weights: " + model.load_report()->text());
  is_reported_ = model.load_report() != nullptr;
}

int InferCommand::time_model(program::Model& model, bool of_values) {
  const infer::InputOptions& input = predict_.input;
  const BenchmarkOptions options{load_.compile.target.device, benchmark_, predict_.streams};
  if (input.paths.empty() && input.data.empty()) {
    run_benchmark(model, options,
                  infer::random_inputs(model, infer::dim_sizes(model, input.batch, dims_)));
  } else if (of_values) {
    run_benchmark(model, options, onnx::read_inputs(*model.onnx(), input.paths[0]));
  } else {
    const auto batch = infer::open_inputs(model, input)->next();
    if (!batch) fail(ErrorCode::kData, "the input has no samples to time");
    run_benchmark(model, options, batch->inputs);
  }
  return 0;
}

int InferCommand::use_language_model(program::Model* model) {
  language_model_.model.reset(model);
  const auto tokenizer = tokenizers::load_tokenizer(path());
  llm::GenerateOptions options = text_options_;
  options.logit_bias =
      read_logit_bias(biases_, language_model_.runner ? language_model_.runner->vocab_size()
                                                      : tokenizer.vocabulary_size());
  options.length = generation_.length;
  options.sampling = generation_.sampling;
  options.seed = generation_.seed;
  options.stops = generation_.stops;
  options.speculate = draft_ == "ngram";
  if (schema_option_->count() > 0) options.constraint = schema_constraint(schema_, tokenizer);
  if (regex_option_->count() > 0) options.constraint = regex_constraint(pattern_, tokenizer);
  if (perplexity_->count() > 0)
    print_perplexity(language_model_, tokenizer, text_, window_, json_);
  else if (chat_->count() > 0)
    run_chat(language_model_, tokenizer, system_, options);
  else
    continue_text(language_model_, tokenizer, generation_.prompt, options, {dry_run_, json_});
  language_model_.model.release();
  return interrupt_status();
}

int InferCommand::continue_prompt(program::Model& model) {
  infer::check_options(model, generation_);  // before anything is printed
  if (dry_run_) {
    print_model(model, json_);
    return 0;
  }
  print_data(generation_.prompt);
  std::string text;
  infer::generate(model, generation_, [&](const std::string& piece) {
    if (json_) text += piece;
    return print_piece(piece);
  });
  print("\n");
  if (json_) print_generated({generation_.prompt, text, std::nullopt});
  return interrupt_status();
}

int InferCommand::use_model() {
  std::optional<Phase> phase(std::in_place, "loading the model");
  static program::Model* const model = open_model().release();
  phase.emplace("predicting");
  report_weights(*model);
  if (!dims_.empty() && benchmark_ == 0)
    fail(ErrorCode::kUsage, "--dim sets sizes for --benchmark, which is missing");
  const infer::InputOptions& input = predict_.input;
  const bool of_values =
      model->onnx() && input.paths.size() == 1 && takes_values(*model->onnx(), input.paths[0]);
  const bool of_nothing =
      model->onnx() && model->inputs().empty() && input.paths.empty() && input.data.empty();
  if ((of_values || of_nothing) && streams_->count() > 0 && predict_.streams > 1)
    fail(ErrorCode::kUsage, "--streams: ", of_nothing ? "a model without inputs" : "such values",
         " take one stream, found ", predict_.streams);
  int status = 0;
  if (checks_numerics_) {
    if (benchmark_ > 0 || has_text() || prompt_->count() > 0 || !dumped_.empty())
      fail(ErrorCode::kUsage, "--check-numerics is for predictions from --input or --data");
    watch_for_interrupts();
    return check_numerics(*model, path(), load_, predict_);
  }
  if (!dumped_.empty()) {
    if (benchmark_ > 0 || has_text() || prompt_->count() > 0)
      fail(ErrorCode::kUsage, "--dump is for predictions from --input or --data");
    watch_for_interrupts();
    return dump_values(*model, path(), load_, dumped_, predict_);
  }
  if (benchmark_ > 0) {
    status = time_model(*model, of_values);
  } else {
    watch_for_interrupts();
    if (has_text() && (prompt_->count() == 0 || language_model_.context > 0))
      status = use_language_model(model);
    else if (prompt_->count() > 0)
      status = continue_prompt(*model);
    else if (dry_run_ && (of_values || of_nothing))
      print_model(*model, json_);
    else if (of_values || of_nothing)
      run_values(*model->onnx(),
                 of_nothing ? onnx::Values{} : onnx::read_inputs(*model->onnx(), input.paths[0]),
                 predict_);
    else if (status = predict_rows(*model, predict_, [&] { report_weights(*model); }); status != 0)
      return status;
  }
  report_end(*model);
  return status;
}

int InferCommand::run(int argc, char** argv) {
  add_model_options();
  add_text_options();
  add_text_limits();
  add_language_options();
  add_language_jobs();
  add_benchmark_options();
  add_run_options();
  if (const auto status = read_command_line(app_, argc, argv)) return *status;
  predict_.quiet = is_quiet();
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
  if (perplexity_->count() > 0) text_ = read_file(measured_, kMaxTextBytes);
  set_load_options();
  if (is_text_benchmark()) return time_text();
  set_streams();
  return use_model();
}

int infer_command(int argc, char** argv) {
  return run_tool([&] {
    register_sections();
    // Not destroyed: the system takes the memory of large models back at once.
    static auto* const command = new InferCommand;
    return command->run(argc, argv);
  });
}

}  // namespace paddle::cli
