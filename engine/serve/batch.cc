#include "serve/batch.h"

#include <algorithm>
#include <fstream>
#include <list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "serve/embeddings.h"
#include "serve/hosted_model.h"

namespace paddle::serve {

namespace {

using Ordered = nlohmann::ordered_json;

enum class Kind : uint8_t { kChat, kText, kEmbeddings };

/// A line of the file of requests.
struct Line {
  std::string id;
  Kind kind = Kind::kText;
  std::string body;
};

/// A request that is being answered.
struct Open {
  std::string id;
  CompletionRequest request;
  std::vector<std::vector<Event>> events;
  std::vector<Job::State> states;
};

/// Calls `each` with the lines of a file and their numbers; empty lines are left out.
template <class Each>
void for_each_line(const std::string& path, Each each) {
  std::ifstream file(path);
  if (!file) fail(ErrorCode::kData, path, ": cannot be read");
  int64_t number = 0;
  for (std::string text; std::getline(file, text);) {
    ++number;
    if (!text.empty()) each(text, number);
  }
}

Line read_line(const std::string& text, const std::string& place) {
  const Ordered value = Ordered::parse(text, nullptr, false);
  const auto expected = [&](const char* what) {
    fail(ErrorCode::kData, place, ": expected ", what);
  };
  if (!value.is_object()) expected("a JSON object");
  Line out;
  if (!value.contains("custom_id") || !value["custom_id"].is_string())
    expected("'custom_id', a string");
  out.id = value["custom_id"];
  if (value.contains("method") && value["method"] != "POST") expected("'method' to be \"POST\"");
  const Ordered url = value.contains("url") ? value["url"] : Ordered();
  if (url == "/v1/chat/completions")
    out.kind = Kind::kChat;
  else if (url == "/v1/embeddings")
    out.kind = Kind::kEmbeddings;
  else if (url != "/v1/completions")
    expected("'url' to be \"/v1/chat/completions\", \"/v1/completions\" or \"/v1/embeddings\"");
  if (!value.contains("body") || !value["body"].is_object()) expected("'body', an object");
  for (const auto& [key, content] : value.items())
    if (key != "custom_id" && key != "method" && key != "url" && key != "body")
      fail(ErrorCode::kData, place, ": unknown key '", key, "'");
  out.body = value["body"].dump();
  return out;
}

/// Checks all requests; returns their ids.
std::set<std::string> check_requests(const std::string& path) {
  std::set<std::string> ids;
  for_each_line(path, [&](const std::string& text, int64_t number) {
    const std::string place = str(path, ":", number);
    const Line line = read_line(text, place);
    if (!ids.insert(line.id).second)
      fail(ErrorCode::kData, place, ": duplicate custom_id '", line.id, "'");
  });
  return ids;
}

/// The ids of whole lines of an earlier output; what follows the last of them is cut off, such as a
/// line that was being written when the program ended.
std::set<std::string> answered_ids(const std::string& path) {
  std::set<std::string> ids;
  if (!file_exists(path)) return ids;
  const std::string text = read_file(path, uint64_t{1} << 40);
  size_t whole = 0;
  while (whole < text.size()) {
    const size_t end = text.find('\n', whole);
    if (end == std::string::npos) break;
    const Ordered line = Ordered::parse(text.substr(whole, end - whole), nullptr, false);
    if (!line.is_object() || !line.contains("custom_id") || !line["custom_id"].is_string())
      fail(ErrorCode::kData, path,
           ": a line is not an answer of a batch; --resume continues a file of ", "answers");
    ids.insert(line["custom_id"]);
    whole = end + 1;
  }
  if (whole < text.size()) write_file_atomically(path, text.substr(0, whole));
  return ids;
}

class Answers {
 public:
  Answers(const std::string& path, bool append) : path_(path) {
    file_.open(path, append ? std::ios::app : std::ios::trunc);
    if (!file_) fail(ErrorCode::kDevice, path, ": cannot be written");
  }
  void add(const std::string& id, int status, const std::string& body) {
    const Ordered line = {{"id", str("batch_req_", ++count_)},
                          {"custom_id", id},
                          {"response", {{"status_code", status}, {"body", Ordered::parse(body)}}},
                          {"error", nullptr}};
    file_ << line.dump() << "\n" << std::flush;
    if (!file_) fail(ErrorCode::kDevice, path_, ": cannot be written");
  }

 private:
  std::string path_;
  std::ofstream file_;
  int64_t count_ = 0;
};

/// Takes what is new; true if all texts have ended.
bool has_ended(Open& open) {
  bool all = true;
  for (size_t i = 0; i < open.states.size(); ++i) {
    if (open.states[i].done) continue;
    open.states[i] = open.request.jobs[i]->take(0);
    auto& events = open.states[i].events;
    std::move(events.begin(), events.end(), std::back_inserter(open.events[i]));
    all = all && open.states[i].done;
  }
  return all;
}

/// Answers the requests of one file.
class Batch {
 public:
  Batch(const ModelEntry& model, const BatchOptions& options,
        const std::function<bool(const BatchResult&)>& proceed)
      : options_(options), proceed_(proceed) {
    const auto ids = check_requests(options.requests);
    result_.total = static_cast<int64_t>(ids.size());
    if (options.resume) kept_ = answered_ids(options.output);
    for (const std::string& id : kept_)
      if (!ids.contains(id))
        fail(ErrorCode::kData, options.output, ": has an answer to '", id, "', which ",
             options.requests, " does not ask");
    result_.kept = static_cast<int64_t>(kept_.size());
    // Requests wait in the file and not in the queue, which holds the texts of a few.
    constexpr int64_t kQueue = 1 << 20;
    hosted_ = host_model(model, {.streams = options.streams, .queue = kQueue}, metrics_);
    if (hosted_) {
      served_ = {hosted_->served()};
      thread_.emplace(std::vector<Engine*>{hosted_->engine.get()});
    } else {
      encoders_.push_back(host_encoder(model));
    }
    answers_.emplace(options.output, options.resume);
  }

  BatchResult run() {
    for_each_line(options_.requests, [&](const std::string& text, int64_t number) {
      if (!going_) return;
      const Line line = read_line(text, str(options_.requests, ":", number));
      if (!kept_.contains(line.id)) ask(line);
      wait(static_cast<size_t>(2 * options_.streams));
    });
    wait(0);
    for (const Open& each : open_)
      for (const auto& job : each.request.jobs) job->cancel();
    return result_;
  }

 private:
  void ask(const Line& line) {
    try {
      if (line.kind == Kind::kEmbeddings) {
        answers_->add(line.id, 200, answer_embeddings(line.body, encoders_));
        ++result_.answered;
        going_ = proceed_(result_);
        return;
      }
      if (!hosted_)
        throw ApiError{404, "the model is an encoder, for /v1/embeddings; it cannot generate text",
                       "model"};
      begin(line);
    } catch (const ApiError& error) {
      answers_->add(line.id, error.status, error_body(error));
      ++result_.rejected;
    }
  }

  void begin(const Line& line) {
    Open next;
    next.id = line.id;
    next.request = read_request(line.kind == Kind::kChat, line.body, served_);
    if (next.request.stream) throw ApiError{400, "'stream' is not for files", "stream"};
    next.events.resize(next.request.jobs.size());
    next.states.resize(next.request.jobs.size());
    hosted_->engine->submit(next.request.jobs);
    open_.push_back(std::move(next));
    thread_->wake();
  }

  void wait(size_t most) {
    while (going_ && open_.size() > most) {
      going_ = proceed_(result_);
      if (!open_.empty()) open_.front().request.jobs[0]->wait_for_tokens(20);
      collect();
    }
  }

  void collect() {
    open_.remove_if([&](Open& each) {
      if (!has_ended(each)) return false;
      const auto failed =
          std::find_if(each.states.begin(), each.states.end(),
                       [](const Job::State& state) { return state.error.has_value(); });
      if (failed != each.states.end()) {
        answers_->add(each.id, 500, error_body({500, failed->error->what()}));
        ++result_.rejected;
      } else {
        answers_->add(each.id, 200, ResponseWriter(each.request).whole(each.events, each.states));
        ++result_.answered;
      }
      return true;
    });
  }

  const BatchOptions& options_;
  const std::function<bool(const BatchResult&)>& proceed_;
  BatchResult result_;
  std::set<std::string> kept_;
  Metrics metrics_;
  std::optional<HostedModel> hosted_;
  std::vector<HostedEncoder> encoders_;
  std::vector<ServedModel> served_;
  std::optional<EngineThread> thread_;
  std::optional<Answers> answers_;
  std::list<Open> open_;
  bool going_ = true;
};

}  // namespace

BatchResult run_batch(const ModelEntry& model, const BatchOptions& options,
                      const std::function<bool(const BatchResult&)>& proceed) {
  return Batch(model, options, proceed).run();
}

}  // namespace paddle::serve
