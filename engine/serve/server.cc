#include "serve/server.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "serve/generated/chat_page.h"

namespace paddle::serve {

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kJson = "application/json";
/// How long a request waits for news before it looks for its client again.
constexpr int kPollMilliseconds = 50;
/// A comment in streams that have nothing to say, so that proxies keep them.
constexpr auto kKeepAlive = std::chrono::seconds(15);

/// Compares in a time that does not depend on where the texts differ.
bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

ApiError api_error_of(const Error& error) {
  return {error.code() == ErrorCode::kUsage ? 400 : 500, error.what()};
}

Clock::time_point deadline_of(const ServeConfig& config) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(config.request_s));
}

ApiError too_late(const ServeConfig& config) {
  return {503, str("the request took over ", config.request_s, " seconds, or the server stopped")};
}

/// Counts a running request.
class Running {
 public:
  explicit Running(std::atomic<int64_t>& count) : count_(count) { ++count_; }
  ~Running() { --count_; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  std::atomic<int64_t>& count_;
};

}  // namespace

Server::Server(ServeConfig config) : config_(std::move(config)) {
  check_serve_config(config_);
  if (!config_.keys.empty()) keys_ = read_keys(config_.keys);
  const EngineLimits limits{config_.streams, config_.queue, config_.step_ms / 1000};
  for (const ModelEntry& entry : config_.models) {
    if (!llm::is_language_model(entry.path)) {
      check_no_language_settings(entry, "is not a language model");
      predictors_.push_back(std::make_unique<FollowedModel>(
          entry,
          PredictLimits{.queue = config_.queue,
                        .max_batch = entry.max_batch > 0 ? entry.max_batch : config_.max_batch,
                        .batch_wait = entry.batch_wait.value_or(config_.batch_wait)},
          config_.device, metrics_));
      continue;
    }
    if (!config_.device.is_cpu())
      fail(ErrorCode::kUsage, "'", entry.name, "' is a language model, which is served by the cpu");
    if (auto model = host_model(entry, limits, metrics_, models_))
      models_.push_back(std::move(*model));
    else
      encoders_.push_back(host_encoder(entry));
  }
  std::vector<Engine*> engines;
  for (const HostedModel& model : models_) {
    engines.push_back(model.engine.get());
    served_.push_back(model.served());
  }
  for (const char* name : {"prompt_tokens_total", "cached_tokens_total", "generated_tokens_total",
                           "requests_cancelled_total", "requests_rejected_total", "steps_total",
                           "draft_tokens_total", "draft_accepted_tokens_total"})
    metrics_.add(name, 0);
  thread_ = std::make_unique<EngineThread>(std::move(engines));
}

Server::~Server() {
  aborting_ = true;
  http_.reset();
  thread_.reset();
}

std::vector<Server::ModelInfo> Server::models() const {
  std::vector<ModelInfo> out;
  for (const HostedModel& model : models_) {
    const llm::Runner& runner = model.engine->runner();
    out.push_back({.name = model.engine->name(),
                   .context = runner.context(),
                   .streams = config_.streams,
                   .cache_bytes =
                       static_cast<uint64_t>(runner.cache_tokens()) * runner.cache_bytes_of_token(),
                   .is_paged = runner.blocks() != nullptr,
                   .has_chat_template = model.chat_template != nullptr});
  }
  for (const HostedEncoder& encoder : encoders_)
    out.push_back(
        {.name = encoder.name, .is_encoder = true, .context = encoder.embedder->context()});
  for (const auto& followed : predictors_) {
    const auto predictor = followed->current();
    out.push_back({.name = predictor->name(),
                   .predicts = true,
                   .inputs = std::ssize(predictor->model().inputs()),
                   .outputs = std::ssize(predictor->model().outputs()),
                   .max_batch = predictor->joins() ? predictor->limits().max_batch : 1});
  }
  return out;
}

std::vector<std::string> Server::warnings() const {
  std::vector<std::string> out;
  for (const auto& predictor : predictors_)
    for (const std::string& line : predictor->current()->warnings())
      out.push_back(predictor->name() + ": " + line);
  return out;
}

std::vector<std::string> Server::description() const {
  std::vector<std::string> out;
  const auto counted = [](int64_t count, const char* what) {
    return str(count, " ", what, count == 1 ? "" : "s");
  };
  for (const ModelInfo& model : models())
    out.push_back(
        model.predicts ? str(model.name, ": predictions, ", counted(model.inputs, "input"), ", ",
                             counted(model.outputs, "output"), ", batches of ",
                             model.max_batch > 1 ? "up to " : "", counted(model.max_batch, "row"))
        : model.is_encoder
            ? str(model.name, ": embeddings, context ", model.context)
            : str(model.name, ": ", model.streams, " slots, context ", model.context, ", KV cache ",
                  human_bytes(model.cache_bytes), model.is_paged ? " (paged)" : "",
                  ", chat template: ", model.has_chat_template ? "yes" : "no"));
  return out;
}

int Server::listen() {
  http_ = std::make_unique<HttpServer>(
      config_.host, static_cast<int>(config_.port),
      [this](const HttpRequest& request, HttpResponse& response) { handle(request, response); });
  return http_->port();
}

void Server::drain() {
  draining_ = true;
  if (http_) http_->stop_accepting();
}

void Server::send(HttpResponse& response, int status, std::string_view type, std::string_view body,
                  const HttpHeaders& headers) {
  metrics_.add(str("requests_total{status=\"", status, "\"}"));
  response.send(status, type, body, headers);
}

void Server::reject(HttpResponse& response, const ApiError& error) {
  HttpHeaders headers;
  if (error.status == 429) headers.emplace_back("Retry-After", "1");
  if (error.status == 401) headers.emplace_back("WWW-Authenticate", "Bearer");
  send(response, error.status, kJson, error_body(error), headers);
}

void Server::handle(const HttpRequest& request, HttpResponse& response) {
  const Running running(running_);
  try {
    route(request, response);
  } catch (const ApiError& error) {
    if (!response.is_begun()) reject(response, error);
  } catch (const std::exception& e) {
    if (!response.is_begun()) reject(response, {500, e.what()});
  }
}

bool Server::is_authorized(const HttpRequest& request) const {
  if (keys_.empty()) return true;
  constexpr std::string_view kScheme = "bearer ";
  const std::string header = request.header("authorization");
  std::string_view given = header;
  if (lower_ascii(given.substr(0, kScheme.size())) != kScheme) return false;
  given.remove_prefix(std::min(given.find_first_not_of(' ', kScheme.size()), given.size()));
  return std::any_of(keys_.begin(), keys_.end(),
                     [&](const std::string& key) { return same_secret(key, given); });
}

/// Without keys, what listens to this machine only answers neither to a name that a page of
/// another site was given for it (DNS rebinding), nor to requests that such a page sends.
void Server::check_origin(const HttpRequest& request) const {
  if (!keys_.empty() || !request.on_loopback) return;
  const auto is_own = [&](std::string name) {
    if (name.ends_with('.')) name.pop_back();
    return name == "localhost" || name == "127.0.0.1" || name == "::1" ||
           name == lower_ascii(config_.host);
  };
  constexpr const char* kAdvice =
      "; a server without --keys answers to localhost, 127.0.0.1, [::1] and the name of --host";
  if (const auto host = request.headers.find("host");
      host != request.headers.end() && !is_own(host_name(host->second)))
    throw ApiError{403, str("the Host is '", host->second, "'", kAdvice)};
  const auto origin = request.headers.find("origin");
  if (origin == request.headers.end()) return;
  const std::string_view from = origin->second;
  const size_t scheme = from.find("://");
  if (scheme == from.npos || !is_own(host_name(from.substr(scheme + 3))))
    throw ApiError{403, str("the request comes from a page of '", from, "'", kAdvice)};
}

void Server::route(const HttpRequest& request, HttpResponse& response) {
  struct Route {
    const char *path, *method;
  };
  constexpr Route kRoutes[] = {{"/", "GET"},
                               {"/health", "GET"},
                               {"/metrics", "GET"},
                               {"/v1/models", "GET"},
                               {"/v1/completions", "POST"},
                               {"/v1/chat/completions", "POST"},
                               {"/v1/embeddings", "POST"},
                               {"/v1/predict", "POST"}};
  const auto* const found = std::find_if(std::begin(kRoutes), std::end(kRoutes),
                                         [&](const Route& r) { return r.path == request.path; });
  check_origin(request);
  if (found == std::end(kRoutes)) throw ApiError{404, str("there is no ", request.path)};
  const std::string method = request.method == "HEAD" ? "GET" : request.method;
  if (method != found->method) {
    const ApiError error{405,
                         str(request.path, " takes ", found->method, ", not ", request.method)};
    const char* const allowed = std::string_view(found->method) == "GET" ? "GET, HEAD" : "POST";
    return send(response, error.status, kJson, error_body(error), {{"Allow", allowed}});
  }
  if (request.path == "/health") {
    if (draining_) throw ApiError{503, "the server is shutting down"};
    return send(response, 200, kJson, "{\"status\":\"ok\"}");
  }
  if (request.path == "/") return send(response, 200, "text/html; charset=utf-8", kChatPage);
  if (!is_authorized(request))
    throw ApiError{401, "an API key is needed: Authorization: Bearer KEY"};
  if (request.path == "/metrics") {
    for (const HostedModel& model : models_) model.engine->report();
    for (const auto& predictor : predictors_) predictor->current()->report();
    return send(response, 200, "text/plain; version=0.0.4", metrics_.text());
  }
  if (request.path == "/v1/models") return send(response, 200, kJson, model_list());
  if (request.path == "/v1/embeddings") {
    if (draining_) throw ApiError{503, "the server is shutting down"};
    return send(response, 200, kJson, answer_embeddings(request.body, encoders_));
  }
  if (request.path == "/v1/predict") return predict(request, response);
  complete(request.path == "/v1/chat/completions", request, response);
}

std::string Server::model_list() const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ServedModel& model : served_)
    list.push_back({{"id", model.engine->name()},
                    {"object", "model"},
                    {"created", model.created},
                    {"owned_by", "paddle"},
                    {"max_model_len", model.engine->runner().context()}});
  for (const HostedEncoder& encoder : encoders_)
    list.push_back({{"id", encoder.name},
                    {"object", "model"},
                    {"created", encoder.created},
                    {"owned_by", "paddle"},
                    {"max_model_len", encoder.embedder->context()}});
  for (const auto& predictor : predictors_)
    list.push_back(nlohmann::ordered_json::parse(predictor_info(*predictor->current())));
  return nlohmann::ordered_json{{"object", "list"}, {"data", list}}.dump(
      -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void Server::complete(bool chat, const HttpRequest& request, HttpResponse& response) {
  const CompletionRequest asked = read_request(chat, request.body, served_);
  if (draining_) throw ApiError{503, "the server is shutting down"};
  if (!asked.model->engine->submit(asked.jobs)) {
    metrics_.add("requests_rejected_total");
    throw ApiError{429, str("the queue is full (", config_.queue, " texts); try again later")};
  }
  thread_->wake();
  try {
    asked.stream ? stream(asked, response) : answer(asked, response);
  } catch (...) {
    for (const auto& job : asked.jobs) job->cancel();
    thread_->wake();
    throw;
  }
}

void Server::predict(const HttpRequest& request, HttpResponse& response) {
  if (draining_) throw ApiError{503, "the server is shutting down"};
  const auto deadline = deadline_of(config_);
  try {
    const PredictAnswer answer = answer_prediction(request, predictors_, metrics_, [&] {
      if (gives_up(response, deadline)) throw too_late(config_);
    });
    send(response, 200, answer.type, answer.body);
  } catch (const ApiError& error) {
    if (error.status == 429) metrics_.add("requests_rejected_total");
    if (error.status == 503) metrics_.add("requests_cancelled_total");
    throw;
  }
}

/// Whether to give up: the client is gone, the server stops at once, or it took too long.
bool Server::gives_up(HttpResponse& response, Clock::time_point deadline) const {
  return aborting_ || !response.is_connected() || Clock::now() >= deadline;
}

bool Server::is_over(const CompletionRequest& request, HttpResponse& response,
                     Clock::time_point deadline) const {
  if (!gives_up(response, deadline)) return false;
  for (const auto& job : request.jobs) job->cancel();
  thread_->wake();
  return true;
}

void Server::answer(const CompletionRequest& request, HttpResponse& response) {
  const auto deadline = deadline_of(config_);
  std::vector<std::vector<Event>> events(request.jobs.size());
  std::vector<Job::State> states(request.jobs.size());
  for (size_t i = 0; i < request.jobs.size(); ++i)
    while (!states[i].done) {
      states[i] = request.jobs[i]->take(kPollMilliseconds);
      std::move(states[i].events.begin(), states[i].events.end(), std::back_inserter(events[i]));
      if (states[i].error) throw api_error_of(*states[i].error);
      if (!states[i].done && is_over(request, response, deadline)) throw too_late(config_);
    }
  send(response, 200, kJson, ResponseWriter(request).whole(events, states));
}

void Server::stream(const CompletionRequest& request, HttpResponse& response) {
  const auto deadline = deadline_of(config_);
  metrics_.add("requests_total{status=\"200\"}");
  response.begin(200, "text/event-stream; charset=utf-8");
  ResponseWriter writer(request);
  const auto event = [&](const std::string& data) { response.write(str("data: ", data, "\n\n")); };
  std::vector<Job::State> states(request.jobs.size());
  if (request.chat)
    for (size_t i = 0; i < states.size(); ++i) event(writer.opening(i));
  auto last_write = Clock::now();
  const auto waits = [](const Job::State& state) { return !state.done; };
  while (std::any_of(states.begin(), states.end(), waits)) {
    for (size_t i = 0; i < states.size(); ++i) {
      if (states[i].done) continue;
      states[i] = request.jobs[i]->take(states.size() == 1 ? kPollMilliseconds : 5);
      const Job::State& state = states[i];
      if (state.error) {
        event(error_body(api_error_of(*state.error)));
        for (const auto& job : request.jobs) job->cancel();
        thread_->wake();
        return response.end();
      }
      for (const Event& each : state.events)
        if (!each.text.empty() || each.kind == Event::Kind::kEnd ||
            (request.wants_logprobs && each.token))
          event(writer.chunk(i, each));
      if (!state.events.empty()) last_write = Clock::now();
    }
    if (Clock::now() - last_write > kKeepAlive) {
      response.write(": waiting\n\n");
      last_write = Clock::now();
    }
    if (is_over(request, response, deadline)) {
      if (!response.is_connected()) return;
      event(error_body(too_late(config_)));
      return response.end();
    }
  }
  if (request.include_usage) event(writer.usage_chunk(states));
  response.write("data: [DONE]\n\n");
  response.end();
}

}  // namespace paddle::serve
