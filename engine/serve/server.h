#pragma once
// Models over HTTP: OpenAI's interface for texts, conversations and embeddings of language models,
// predictions of all others, models, health, metrics, and a page to chat.

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "serve/api.h"
#include "serve/embeddings.h"
#include "serve/engine.h"
#include "serve/hosted_model.h"
#include "serve/http.h"
#include "serve/metrics.h"
#include "serve/predict_api.h"
#include "serve/serve_config.h"

namespace paddle::serve {

class Server {
 public:
  /// Loads the models. Nothing is served before `listen`.
  explicit Server(ServeConfig config);
  /// Cancels what is still running.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  struct ModelInfo {
    std::string name;
    bool is_encoder = false;  ///< serves embeddings; the members below are of other models
    /// Serves predictions: how many inputs and outputs it has, and the rows of a batch.
    bool predicts = false;
    int64_t inputs = 0, outputs = 0, max_batch = 0;
    int64_t context = 0;       ///< tokens of a sequence
    int64_t streams = 0;       ///< sequences at a time
    uint64_t cache_bytes = 0;  ///< of keys and values, when the cache is full
    bool is_paged = false, has_chat_template = false;
  };
  std::vector<ModelInfo> models() const;
  /// The same, a line for each model.
  std::vector<std::string> description() const;
  /// Lines that its user should see.
  std::vector<std::string> warnings() const;
  /// kUsage if the address is not there or in use. Returns the port.
  int listen();
  /// Accepts no more requests; those that are running end as usual.
  void drain();
  /// Requests that are running.
  int64_t running() const { return running_.load(); }

 private:
  void handle(const HttpRequest& request, HttpResponse& response);
  void route(const HttpRequest& request, HttpResponse& response);
  void complete(bool chat, const HttpRequest& request, HttpResponse& response);
  void stream(const CompletionRequest& request, HttpResponse& response);
  void answer(const CompletionRequest& request, HttpResponse& response);
  std::string model_list() const;
  bool is_authorized(const HttpRequest& request) const;
  void check_origin(const HttpRequest& request) const;
  void reject(HttpResponse& response, const ApiError& error);
  void send(HttpResponse& response, int status, std::string_view type, std::string_view body,
            const HttpHeaders& headers = {});
  void predict(const HttpRequest& request, HttpResponse& response);
  bool gives_up(HttpResponse& response, std::chrono::steady_clock::time_point deadline) const;
  bool is_over(const CompletionRequest& request, HttpResponse& response,
               std::chrono::steady_clock::time_point deadline) const;

  ServeConfig config_;
  std::vector<std::string> keys_;
  Metrics metrics_;
  std::vector<HostedModel> models_;
  std::vector<ServedModel> served_;
  std::vector<HostedEncoder> encoders_;
  Predictors predictors_;
  std::unique_ptr<EngineThread> thread_;
  std::atomic<bool> draining_{false}, aborting_{false};
  std::atomic<int64_t> running_{0};
  std::unique_ptr<HttpServer> http_;  ///< the last member: its threads use the others
};

}  // namespace paddle::serve
