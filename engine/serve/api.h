#pragma once
// Requests and responses of OpenAI's HTTP interface: /v1/completions and /v1/chat/completions.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/api_error.h"
#include "serve/engine.h"
#include "text/jinja/template.h"
#include "text/json_value.h"

namespace paddle::serve {

/// A model as requests see it.
struct ServedModel {
  Engine* engine = nullptr;
  const jinja::Template* chat_template = nullptr;  ///< null if it has none
  int64_t created = 0;
};

/// One request: one or several completions.
struct CompletionRequest {
  bool chat = false, stream = false, include_usage = false;
  bool wants_logprobs = false;
  const ServedModel* model = nullptr;
  std::vector<std::shared_ptr<Job>> jobs;  ///< of the choices, in order
  bool echo = false;  ///< answers begin with the prompt, and with its log-probabilities
  std::vector<std::string> prompts;  ///< texts of the choices' prompts, with `echo`
  int64_t prompt_tokens = 0;
};

/// Reads the body of a request. Throws ApiError for keys that are not known, values out of their
/// range, prompts that do not fit into the context, and whatever would not be done as asked.
CompletionRequest read_request(bool chat, std::string_view body,
                               const std::vector<ServedModel>& models);

/// Writes the response's JSON.
class ResponseWriter {
 public:
  explicit ResponseWriter(const CompletionRequest& request);

  /// A chunk of a streamed response for one choice.
  std::string chunk(size_t choice, const Event& event);
  /// The first chunk of a choice in a chat: the role.
  std::string opening(size_t choice) const;
  /// The last chunk, with `include_usage`.
  std::string usage_chunk(const std::vector<Job::State>& states) const;
  /// A whole response. `events` and `states` are by choice.
  std::string whole(const std::vector<std::vector<Event>>& events,
                    const std::vector<Job::State>& states);

 private:
  const CompletionRequest& request_;
  std::string id_;
  int64_t created_;
  std::vector<int64_t> calls_;  ///< by choice: calls of tools that have begun
  std::vector<bool> begins_;    ///< by choice: the next token is the first one of the text
};

}  // namespace paddle::serve
