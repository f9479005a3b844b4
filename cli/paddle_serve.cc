// paddle-serve MODEL…: language models and predictions of all others over HTTP.

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "commands.h"
#include "common.h"
#include "common_device.h"
#include "common_options.h"
#include "sections/sections.h"
#include "serve/server.h"
#include "tune/tuned_settings.h"

namespace {

using namespace paddle;

/// How long requests may take to end after a signal; a second signal ends the program at once.
constexpr auto kDrainTime = std::chrono::seconds(30);

/// The models that are served, and the address unless it is "".
void print_json(const serve::Server& server, const std::string& url) {
  nlohmann::ordered_json models = nlohmann::ordered_json::array();
  for (const serve::Server::ModelInfo& model : server.models()) {
    nlohmann::ordered_json one = {{"name", model.name}};
    if (model.predicts) {
      one["inputs"] = model.inputs;
      one["outputs"] = model.outputs;
      one["max_batch"] = model.max_batch;
      models.push_back(one);
      continue;
    }
    one["context"] = model.context;
    if (model.is_encoder) {
      one["embeddings"] = true;
    } else {
      one["streams"] = model.streams;
      one["cache"] = model.is_paged ? "paged" : "plain";
      one["cache_bytes"] = model.cache_bytes;
      one["chat_template"] = model.has_chat_template;
    }
    models.push_back(one);
  }
  nlohmann::ordered_json out = {{"models", models}};
  if (!url.empty()) out["url"] = url;
  cli::print(out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

int run_serve(int argc, char** argv) {
  cli::App app{
      "Serves models over HTTP: language models with the interface of OpenAI, all others with "
      "predictions (POST /v1/predict)."};
  std::vector<std::string> models, params, adapters;
  std::string weights, function, precision;
  cli::DeviceOptions device;
  std::string file, tuned_file, family, kv, cache, activations, weights_as, draft;
  serve::ServeConfig given;
  int64_t context = 0, cache_tokens = 0, chunk = 0;
  bool dry_run = false, follow = false, json = false;
  app.add_option("MODEL", models,
                 "what paddle-infer takes: runs, checkpoints, model files, ONNX files, programs of "
                 "PaddlePaddle, Hugging Face folders and GGUF files, served under the names of "
                 "their files; params.x=value changes a parameter of a model file");
  app.add_option("--config", file, "serve.yaml: models, listen and limits; options override it");
  app.add_option("--tuned", tuned_file,
                 "settings that paddle-tune found for a language model (tuned.yaml); they override "
                 "the config, and options override them");
  auto* host = app.add_option("--host", given.host, "address to listen on (default: 127.0.0.1)");
  auto* port =
      app.add_option("--port", given.port, "port to listen on; 0: a free one (default: 8080)");
  auto* keys = app.add_option("--keys", given.keys,
                              "a file with one API key a line; requests must have one of them");
  auto* streams = app.add_option("--streams", given.streams,
                                 "slots: sequences that are generated at a time (default: 8)");
  auto* queue = app.add_option("--queue", given.queue,
                               "requests that may wait; further ones get status 429 (default: 64)");
  auto* step =
      app.add_option("--step-ms", given.step_ms,
                     "how long a prefill step may delay running sequences, in milliseconds");
  double step_time = 0;
  auto* step_duration =
      app.add_option("--step-time", step_time, "the same as a duration: 60ms (default), 0.1s")
          ->check(cli::duration(0.001, 60))
          ->excludes(step);
  auto* request = app.add_option("--request-time,--request-s", given.request_s,
                                 "how long a request may take: 90, 10m (default)")
                      ->check(cli::duration(0.001, 1e6));
  auto* max_batch =
      app.add_option("--max-batch", given.max_batch,
                     "largest batch of dynamic batching, which joins requests that wait at "
                     "the same time (default: 64); 1: no batching")
          ->check(cli::in_range(int64_t{1}, int64_t{1} << 16));
  auto* batch_wait =
      app.add_option("--batch-wait", given.batch_wait,
                     "how long a request waits for others to form a batch: 2ms, 0.01 "
                     "(default: 0, only while the model is busy)")
          ->check(cli::duration(0, 10));
  app.add_option("--weights", weights, "weights of a model file, safetensors (default: random)");
  app.add_option("--function", function, "function of a model file or a run (default: model)");
  app.add_option("--precision", precision,
                 "precision of products of a model that is not a language model (default: float32)")
      ->check(cli::one_dtype_of({"float32", "bfloat16", "float16"}));
  cli::add_device_options(app, device);
  app.add_option("--family", family, "the models' family, a model file (default: by their type)");
  app.add_option("--context", context, "context length in tokens (default: the model's)")
      ->check(cli::in_range(int64_t{1}, int64_t{1} << 40));
  app.add_option("--kv", kv, "how keys and values are cached")
      ->check(cli::one_dtype_of({"f32", "bf16", "int8"}));
  app.add_option("--chunk", chunk,
                 "tokens of prompts that a step reads at most (default: 256); --step-ms may allow "
                 "fewer")
      ->check(cli::in_range(int64_t{1}, llm::Runner::kMaxRows));
  app.add_option(
         "--cache", cache,
         "paged: blocks of tokens that sequences allocate as they grow and share (default); "
         "plain: a fixed area for each sequence")
      ->check(cli::one_of({"plain", "paged"}));
  app.add_option("--cache-tokens", cache_tokens,
                 "that a paged cache holds (default: the context of all slots, as far as half of "
                 "the memory holds it)")
      ->check(cli::in_range(int64_t{1}, int64_t{1} << 40));
  app.add_option("--activations", activations,
                 "precision of products with block-quantized weights (default: int16)")
      ->check(cli::one_dtype_of({"float32", "int16", "int8"}));
  app.add_option("--weights-as", weights_as,
                 "keep matrices in 8 or 4 bits, whatever their file has (default: as-is)")
      ->check(cli::one_of({"as-is", "int8", "int4"}));
  app.add_option("--draft", draft,
                 "ngram: verify several tokens that n-grams of the sequence suggest in one step "
                 "(default); none: one token of each sequence at a time")
      ->check(cli::one_of({"ngram", "none"}));
  app.add_option("--adapter", adapters,
                 "NAME=DIR: the model with the low-rank adapter in this folder of PEFT, under this "
                 "name; weights are shared (repeatable)")
      ->allow_extra_args(false);
  app.add_flag("--follow", follow,
               "the models are stores (parameter_server.publish): serve their current versions, "
               "also when they change");
  app.add_flag("--dry-run", dry_run, "load the models, print their inputs and settings, and end");
  app.add_flag("--json", json,
               "print a JSON object with the models and the address when requests are accepted");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  restart_with_short_spin_waits(argv);
  serve::ServeConfig config = file.empty() ? serve::ServeConfig() : serve::read_serve_config(file);
  tune::TunedSettings tuned;
  if (!tuned_file.empty())
    tuned = tune::read_tuned(tuned_file, tune::TunedSubject::kLanguageModel, "what is served");
  cli::use_config_threads(tuned.threads);
  if (tuned.streams) config.streams = *tuned.streams;
  if (kv.empty()) kv = tuned.kv;
  if (chunk == 0) chunk = tuned.chunk.value_or(0);
  if (host->count() > 0) config.host = given.host;
  if (port->count() > 0) config.port = given.port;
  if (keys->count() > 0) config.keys = given.keys;
  if (streams->count() > 0) config.streams = given.streams;
  if (queue->count() > 0) config.queue = given.queue;
  if (step->count() > 0) config.step_ms = given.step_ms;
  if (step_duration->count() > 0) config.step_ms = 1000 * step_time;
  if (request->count() > 0) config.request_s = given.request_s;
  if (max_batch->count() > 0) config.max_batch = given.max_batch;
  if (batch_wait->count() > 0) config.batch_wait = given.batch_wait;
  for (const std::string& path : models)
    if (path.starts_with("params.") && path.find('=') != path.npos) params.push_back(path);
  std::erase_if(models, [&](const std::string& path) {
    return std::find(params.begin(), params.end(), path) != params.end();
  });
  for (const std::string& path : models)
    config.models.push_back({.name = serve::served_name(path), .path = path});
  if (!adapters.empty() && config.models.size() != 1)
    fail(ErrorCode::kUsage, "--adapter needs one model, found ", config.models.size(),
         "; a config (--config) can name several");
  for (const std::string& text : adapters) {
    const auto [name, folder] = llm::read_adapter_option(text);
    if (name.empty()) fail(ErrorCode::kUsage, "--adapter is '", text, "', expected NAME=DIR");
    config.models.push_back(config.models[0]);
    config.models.back().name = name;
    config.models.back().adapter = folder;
  }
  const bool is_of_one = !params.empty() || !weights.empty() || !function.empty();
  if (is_of_one && config.models.size() != 1)
    fail(ErrorCode::kUsage, "params, --weights and --function need one model, found ",
         config.models.size(), "; a config (--config) can name several");
  for (serve::ModelEntry& model : config.models) {
    model.params.insert(model.params.end(), params.begin(), params.end());
    if (!weights.empty()) model.weights = weights;
    if (!function.empty()) model.function = function;
    if (!precision.empty()) model.precision = precision;
    if (!family.empty()) model.family = family;
    if (!kv.empty()) model.kv = kv;
    if (chunk > 0) model.chunk = chunk;
    if (!cache.empty()) model.cache = cache;
    if (cache_tokens > 0) model.cache_tokens = cache_tokens;
    if (!activations.empty()) model.activations = activations;
    if (!weights_as.empty()) model.weights_as = weights_as;
    if (!draft.empty()) model.draft = draft;
    if (context > 0) model.context = context;
    if (follow) model.follow = true;
  }
  config.device = cli::open_device(device);
  serve::Server server(config);
  for (const std::string& line : server.warnings()) cli::print_warning(line);
  for (const std::string& line : server.description()) cli::print_line(line);
  if (dry_run) {
    if (json) print_json(server, "");
    return 0;
  }
  watch_for_interrupts();
  const int bound = server.listen();
  const bool v6 = config.host.find(':') != std::string::npos;
  const std::string url = str("http://", v6 ? "[" : "", config.host, v6 ? "]" : "", ":", bound);
  cli::print("listening on " + url + "\n");
  if (json) print_json(server, url);
  while (pending_interrupt() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  server.drain();
  const auto end = std::chrono::steady_clock::now() + kDrainTime;
  while (server.running() > 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  if (!json) cli::print("stopped\n");
  return 0;
}

}  // namespace

namespace paddle::cli {

int serve_command(int argc, char** argv) {
  return run_tool([&] {
    register_sections();
    return run_serve(argc, argv);
  });
}

}  // namespace paddle::cli
