#include "serve/batch.h"

#include <algorithm>
#include <fstream>
#include <list>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "serve/hosted_model.h"

namespace paddle::serve {

namespace {

using Ordered = nlohmann::ordered_json;

/// A line of the file of requests.
struct Line {
  std::string id;
  bool chat = false;
  std::string body;
};

/// A request that is being answered.
struct Open {
  std::string id;
  CompletionRequest request;
  std::vector<std::vector<Piece>> pieces;
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
    expected("'custom_id', a text");
  out.id = value["custom_id"];
  if (value.contains("method") && value["method"] != "POST") expected("'method' to be \"POST\"");
  const Ordered url = value.contains("url") ? value["url"] : Ordered();
  if (url != "/v1/chat/completions" && url != "/v1/completions")
    expected("'url' to be \"/v1/chat/completions\" or \"/v1/completions\"");
  out.chat = url == "/v1/chat/completions";
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
      fail(ErrorCode::kData, place, ": the custom_id '", line.id, "' is there twice");
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
    auto& pieces = open.states[i].pieces;
    std::move(pieces.begin(), pieces.end(), std::back_inserter(open.pieces[i]));
    all = all && open.states[i].done;
  }
  return all;
}

}  // namespace

BatchResult run_batch(const ModelEntry& model, const BatchOptions& options,
                      const std::function<bool(const BatchResult&)>& proceed) {
  BatchResult result;
  const auto ids = check_requests(options.requests);
  result.total = static_cast<int64_t>(ids.size());
  const auto kept = options.resume ? answered_ids(options.output) : std::set<std::string>();
  for (const std::string& id : kept)
    if (!ids.contains(id))
      fail(ErrorCode::kData, options.output, ": has an answer to '", id, "', which ",
           options.requests, " does not ask");
  result.kept = static_cast<int64_t>(kept.size());
  Metrics metrics;
  // Requests wait in the file and not in the queue, which holds the texts of a few.
  constexpr int64_t kQueue = 1 << 20;
  const auto loaded = host_model(model, {.streams = options.streams, .queue = kQueue}, metrics);
  if (!loaded) fail(ErrorCode::kModel, model.path, ": the model's family has no function 'step'");
  const HostedModel& hosted = *loaded;
  const std::vector<ServedModel> served = {hosted.served()};
  EngineThread thread({hosted.engine.get()});
  Answers answers(options.output, options.resume);
  std::list<Open> open;
  const auto collect = [&] {
    open.remove_if([&](Open& each) {
      if (!has_ended(each)) return false;
      const auto failed =
          std::find_if(each.states.begin(), each.states.end(),
                       [](const Job::State& state) { return state.error.has_value(); });
      if (failed != each.states.end()) {
        answers.add(each.id, 500, error_body({500, failed->error->what()}));
        ++result.refused;
      } else {
        answers.add(each.id, 200, ResponseWriter(each.request).whole(each.pieces, each.states));
        ++result.answered;
      }
      return true;
    });
  };
  bool going = true;
  const auto wait = [&](size_t most) {
    while (going && open.size() > most) {
      going = proceed(result);
      if (!open.empty()) open.front().request.jobs[0]->wait_for_news(20);
      collect();
    }
  };
  const auto ask = [&](const Line& line) {
    Open next;
    next.id = line.id;
    try {
      next.request = read_request(line.chat, line.body, served);
      if (next.request.stream) throw Refusal{400, "'stream' is not for files", "stream"};
    } catch (const Refusal& refusal) {
      answers.add(line.id, refusal.status, error_body(refusal));
      ++result.refused;
      return;
    }
    next.pieces.resize(next.request.jobs.size());
    next.states.resize(next.request.jobs.size());
    hosted.engine->submit(next.request.jobs);
    open.push_back(std::move(next));
    thread.wake();
  };
  for_each_line(options.requests, [&](const std::string& text, int64_t number) {
    if (!going) return;
    const Line line = read_line(text, str(options.requests, ":", number));
    if (!kept.contains(line.id)) ask(line);
    wait(static_cast<size_t>(2 * options.streams));
  });
  wait(0);
  for (const Open& each : open)
    for (const auto& job : each.request.jobs) job->cancel();
  return result;
}

}  // namespace paddle::serve
