// Texts that are generated side by side: prompts that begin alike are read once, and drafts of
// tokens change no text.

#include "serve/engine.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "llm/language_model.h"
#include "runtime/execute.h"
#include "serve/api.h"
#include "text/load.h"

namespace paddle::serve {
namespace {

using Tokens = std::vector<tokenizers::TokenId>;

/// A vocabulary of 50 characters.
tokenizers::Tokenizer characters() {
  std::string words;
  for (int i = 0; i < 50; ++i)
    words += str(i > 0 ? ", " : "", "\"\\u00", "0123456789abcdef"[(48 + i) / 16],
                 "0123456789abcdef"[(48 + i) % 16], "\": ", i);
  return tokenizers::read_tokenizer_json(
      parse_json(str(R"({"model": {"type": "BPE", "merges": [], "vocab": {)", words,
                     R"(}}, "decoder": {"type": "Fuse"}})"),
                 "characters"),
      "characters");
}

struct Case {
  const char* model;
  bool paged;
};

class Texts : public testing::TestWithParam<Case> {
 protected:
  Texts() {
    runtime::register_backends();
    const std::string name = GetParam().model;
    model_ = llm::load_shared(
        "tests/llm/data/" + name,
        {.family = name == "gemma3" ? "models/llm/gemma.yaml" : "models/llm/llama.yaml"});
  }
  std::unique_ptr<Engine> engine(int64_t streams, int64_t tokens = 0, double step_seconds = 0.06) {
    return std::make_unique<Engine>(
        "test", model_, characters(),
        llm::RunnerOptions{.context = 64, .paged = GetParam().paged, .tokens = tokens},
        EngineLimits{.streams = streams, .step_seconds = step_seconds}, metrics_);
  }
  static std::shared_ptr<Job> job(Tokens prompt, int64_t length, bool speculate = true) {
    llm::GenerateOptions options;
    options.length = length;
    options.sampling.temperature = 0;
    options.speculate = speculate;
    return std::make_shared<Job>(std::move(prompt), options);
  }
  static void run(Engine& engine) {
    while (engine.step()) continue;
  }
  static Tokens tokens_of(Job::State state) {
    Tokens out;
    for (const Event& event : state.events)
      if (event.token) out.push_back(event.token->score.token);
    return out;
  }
  /// The text of a prompt when nothing else is computed.
  Tokens alone(const Tokens& prompt, int64_t length) {
    const auto single = engine(1);
    const auto one = job(prompt, length, false);
    EXPECT_TRUE(single->submit({one}));
    run(*single);
    return tokens_of(one->take(0));
  }
  static Tokens prompt(int64_t shared, int64_t own, int64_t seed) {
    Tokens out;
    for (int64_t i = 0; i < shared; ++i)
      out.push_back(static_cast<tokenizers::TokenId>(i * i % 47));
    for (int64_t i = 0; i < own; ++i)
      out.push_back(static_cast<tokenizers::TokenId>((seed + 3 * i) % 47));
    return out;
  }

  std::shared_ptr<llm::LoadedModel> model_;
  Metrics metrics_;
};

TEST_P(Texts, ACommonBeginningIsReadOnce) {
  const auto shared = engine(4);
  std::vector<std::shared_ptr<Job>> jobs;
  for (int64_t i = 0; i < 4; ++i) jobs.push_back(job(prompt(40, 5, 11 * i + 1), 8));
  ASSERT_TRUE(shared->submit(jobs));
  run(*shared);
  for (int64_t i = 0; i < 4; ++i) {
    const auto state = jobs[static_cast<size_t>(i)]->take(0);
    EXPECT_EQ(state.cached, i == 0 ? 0 : 40) << i;
    EXPECT_EQ(tokens_of(state), alone(prompt(40, 5, 11 * i + 1), 8)) << i;
  }
}

TEST_P(Texts, ABeginningIsTakenFromARunningText) {
  const auto shared = engine(2);
  const auto first = job(prompt(40, 2, 5), 20), second = job(prompt(40, 3, 7), 8);
  ASSERT_TRUE(shared->submit({first}));
  for (int i = 0; i < 4; ++i) shared->step();
  ASSERT_TRUE(shared->submit({second}));
  run(*shared);
  const auto state = second->take(0);
  EXPECT_EQ(state.cached, 40);
  EXPECT_EQ(tokens_of(state), alone(prompt(40, 3, 7), 8));
  EXPECT_EQ(tokens_of(first->take(0)), alone(prompt(40, 2, 5), 20));
}

TEST_P(Texts, StepsThatReadPromptsFillTheirPlan) {
  const auto shared = engine(3, 0, 1e-9);  // less time than any step takes
  // A step of 80 rows tells the engine how long rows take.
  ASSERT_TRUE(shared->submit({job(prompt(0, 40, 5), 1), job(prompt(0, 40, 6), 1)}));
  run(*shared);
  const auto running = job(prompt(0, 4, 9), 30, false);
  ASSERT_TRUE(shared->submit({running}));
  ASSERT_TRUE(shared->step());
  for (const int64_t length : {31, 32}) {  // with the running sequence, in plans of 32 rows
    const auto second = job(prompt(0, length, 11 + length), 1);
    ASSERT_TRUE(shared->submit({second}));
    int64_t steps = 0;
    while (!second->is_done()) {
      ASSERT_TRUE(shared->step());
      ++steps;
    }
    EXPECT_EQ(steps, length == 31 ? 1 : 2);
    EXPECT_EQ(tokens_of(second->take(0)), alone(prompt(0, length, 11 + length), 1));
  }
  run(*shared);
  EXPECT_EQ(tokens_of(running->take(0)), alone(prompt(0, 4, 9), 30));
}

TEST_P(Texts, ChunksBoundTheStepsOfAPrompt) {
  const Tokens text = prompt(0, 40, 5);
  for (const auto& [chunk, expected] : {std::pair<int64_t, int64_t>{8, 5}, {7, 6}, {256, 1}}) {
    Engine small("test", model_, characters(),
                 llm::RunnerOptions{.context = 64, .paged = GetParam().paged},
                 EngineLimits{.chunk = chunk}, metrics_);
    const auto first = job(text, 1);
    ASSERT_TRUE(small.submit({first}));
    int64_t steps = 0;
    for (; !first->is_done(); ++steps) ASSERT_TRUE(small.step());
    EXPECT_EQ(steps, expected) << chunk;
    EXPECT_EQ(tokens_of(first->take(0)), alone(text, 1)) << chunk;
  }
  // Texts that are being generated do not keep a prompt from being read.
  Engine busy("test", model_, characters(),
              llm::RunnerOptions{.context = 64, .paged = GetParam().paged},
              EngineLimits{.streams = 4, .chunk = 1}, metrics_);
  std::vector<std::shared_ptr<Job>> jobs;
  for (int64_t i = 0; i < 4; ++i) jobs.push_back(job(prompt(0, 20, 11 * i), 8));
  ASSERT_TRUE(busy.submit(jobs));
  run(busy);
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_EQ(tokens_of(jobs[static_cast<size_t>(i)]->take(0)), alone(prompt(0, 20, 11 * i), 8));
}

TEST_P(Texts, ACancelledLeaderIsReplaced) {
  const auto shared = engine(3);
  std::vector<std::shared_ptr<Job>> jobs;
  for (int64_t i = 0; i < 3; ++i) jobs.push_back(job(prompt(45, 3, 11 * i + 1), 6));
  ASSERT_TRUE(shared->submit(jobs));
  jobs[0]->cancel();
  run(*shared);
  EXPECT_EQ(tokens_of(jobs[1]->take(0)), alone(prompt(45, 3, 12), 6));
  const auto last = jobs[2]->take(0);
  EXPECT_EQ(last.cached, 45);
  EXPECT_EQ(tokens_of(last), alone(prompt(45, 3, 23), 6));
}

TEST_P(Texts, OfACancelledTextThePromptStays) {
  const auto shared = engine(2);
  const auto first = job(prompt(30, 5, 1), 20, false);
  ASSERT_TRUE(shared->submit({first}));
  for (int i = 0; i < 8; ++i) shared->step();
  Tokens longer = prompt(30, 5, 1);
  const Tokens generated = tokens_of(first->take(0));
  ASSERT_GE(generated.size(), 5U);
  longer.insert(longer.end(), generated.begin(), generated.end());
  first->cancel();
  run(*shared);
  const auto second = job(longer, 4);
  ASSERT_TRUE(shared->submit({second}));
  run(*shared);
  const auto state = second->take(0);
  EXPECT_EQ(state.cached, 35);
  EXPECT_EQ(tokens_of(state), alone(longer, 4));
}

TEST_P(Texts, AConversationContinuesInItsPlace) {
  const auto shared = engine(2);
  const auto ask = [&](const Tokens& text) {
    const auto one = job(text, 1);
    EXPECT_TRUE(shared->submit({one}));
    run(*shared);
    return one->take(0).cached;
  };
  EXPECT_EQ(ask(prompt(40, 9, 1)), 0);
  EXPECT_EQ(ask(prompt(0, 9, 2)), 0);
  EXPECT_EQ(ask(prompt(40, 12, 1)), 49);
  EXPECT_EQ(ask(prompt(0, 12, 2)), 9);
}

TEST_P(Texts, DraftsChangeNoText) {
  const auto drafting = engine(3);
  Tokens repeated;
  for (int i = 0; i < 24; ++i) repeated.push_back(static_cast<tokenizers::TokenId>(i % 4 + 1));
  const std::vector<Tokens> prompts = {repeated, prompt(12, 4, 1),
                                       Tokens(20, tokenizers::TokenId{7})};
  int64_t drafts = 0, accepted = 0;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::shared_ptr<Job>> jobs;
    for (const Tokens& text : prompts) jobs.push_back(job(text, 38));
    ASSERT_TRUE(drafting->submit(jobs));
    run(*drafting);
    for (size_t i = 0; i < jobs.size(); ++i) {
      const auto state = jobs[i]->take(0);
      EXPECT_EQ(tokens_of(state), alone(prompts[i], 38)) << i;
      EXPECT_EQ(state.generated, 38);
      drafts += state.drafts;
      accepted += state.accepted;
    }
  }
  EXPECT_GT(drafts, 0);
  EXPECT_GT(accepted, 0);
  EXPECT_LE(accepted, drafts);
  EXPECT_NE(metrics_.text().find(str("paddle_draft_tokens_total ", drafts)), std::string::npos);
}

TEST_P(Texts, EndedTextsStayInAPagedCache) {
  const auto single = engine(1, GetParam().paged ? 256 : 0);
  const auto ask = [&](const Tokens& text) {
    const auto one = job(text, 1);
    EXPECT_TRUE(single->submit({one}));
    run(*single);
    return one->take(0).cached;
  };
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(ask(prompt(0, 40, 3 * i + 1)), 0) << i;
  EXPECT_EQ(ask(prompt(0, 40, 1)), GetParam().paged ? 39 : 0);
}

/// In a cache with fewer places than texts; a plain one has a place for each.
class PagedTexts : public Texts {};

/// Texts that need more tokens than the cache has wait, or are computed again.
TEST_P(PagedTexts, ASmallCacheChangesNoText) {
  for (const int64_t tokens : {64, 80, 128}) {
    const auto small = engine(4, tokens);
    std::vector<std::shared_ptr<Job>> jobs;
    for (int64_t i = 0; i < 6; ++i)
      jobs.push_back(job(prompt(i < 3 ? 10 : 0, 7 + i, 11 * i + 1), 30 - i));
    llm::GenerateOptions scored;
    scored.length = 12;
    scored.sampling.temperature = 0;
    scored.logprobs = 0;
    jobs.push_back(std::make_shared<Job>(prompt(0, 50, 5), scored, true));
    ASSERT_TRUE(small->submit(jobs));
    run(*small);
    for (int64_t i = 0; i < 6; ++i) {
      const auto state = jobs[static_cast<size_t>(i)]->take(0);
      ASSERT_TRUE(state.done) << i;
      EXPECT_EQ(tokens_of(state), alone(prompt(i < 3 ? 10 : 0, 7 + i, 11 * i + 1), 30 - i))
          << i << " with " << tokens;
    }
    // 49 tokens of the prompt and 12 others, each once.
    const auto state = jobs.back()->take(0);
    ASSERT_TRUE(state.done);
    ASSERT_EQ(state.events.size(), 62U);
    EXPECT_EQ(state.events.front().kind, Event::Kind::kPrompt);
    EXPECT_EQ(state.events[60].kind, Event::Kind::kText);
    EXPECT_EQ(state.events.back().kind, Event::Kind::kEnd);
    EXPECT_EQ(state.events.back().end, llm::Generation::End::kLength);
  }
  EXPECT_NE(metrics_.text().find("paddle_preemptions_total"), std::string::npos);
}

TEST_P(Texts, EventsOfAChatAreDeltasAndAMessage) {
  const auto single = engine(1);
  const ServedModel served{.engine = single.get()};
  CompletionRequest request;
  request.chat = true;
  request.model = &served;
  request.jobs = {job(prompt(0, 5, 1), 3)};
  using Kind = Event::Kind;
  const std::vector<Event> events = {{.kind = Kind::kThought, .text = "let me "},
                                     {.kind = Kind::kThought, .text = "see"},
                                     {.text = "It is"},
                                     {.kind = Kind::kCallName, .text = "weather"},
                                     {.kind = Kind::kCallArguments, .text = "{\"city\": "},
                                     {.kind = Kind::kCallArguments, .text = "\"Rome\"}"},
                                     {.kind = Kind::kCallName, .text = "time"},
                                     {.kind = Kind::kCallArguments, .text = "{}"},
                                     {.text = " mild."},
                                     {.kind = Kind::kEnd, .end = llm::Generation::End::kStop}};
  Job::State state;
  state.done = true;
  state.end = llm::Generation::End::kStop;
  const auto whole =
      nlohmann::json::parse(ResponseWriter(request).whole({events}, {state}))["choices"][0];
  EXPECT_EQ(whole["message"]["content"], "It is mild.");
  EXPECT_EQ(whole["message"]["reasoning_content"], "let me see");
  const auto& calls = whole["message"]["tool_calls"];
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0]["function"]["name"], "weather");
  EXPECT_EQ(calls[0]["function"]["arguments"], "{\"city\": \"Rome\"}");
  EXPECT_EQ(calls[1]["function"]["arguments"], "{}");
  EXPECT_EQ(whole["finish_reason"], "stop");
  // The deltas of a stream, joined, are the message.
  ResponseWriter writer(request);
  std::string content, thoughts;
  std::vector<std::string> names, arguments;
  for (const Event& event : events) {
    const auto choice = nlohmann::json::parse(writer.chunk(0, event))["choices"][0];
    const auto& delta = choice["delta"];
    content += delta.value("content", "");
    thoughts += delta.value("reasoning_content", "");
    if (delta.contains("tool_calls")) {
      const auto& call = delta["tool_calls"][0];
      const auto index = call["index"].get<size_t>();
      names.resize(std::max(names.size(), index + 1));
      arguments.resize(names.size());
      names[index] += call["function"].value("name", "");
      arguments[index] += call["function"].value("arguments", "");
    }
    EXPECT_EQ(choice["finish_reason"].is_null(), event.kind != Kind::kEnd);
  }
  EXPECT_EQ(content, "It is mild.");
  EXPECT_EQ(thoughts, "let me see");
  EXPECT_EQ(names, (std::vector<std::string>{"weather", "time"}));
  EXPECT_EQ(arguments, (std::vector<std::string>{"{\"city\": \"Rome\"}", "{}"}));
}

TEST_P(PagedTexts, ATextOfTheWholeCacheIsAnswered) {
  const auto small = engine(3, 64);
  const std::vector<Tokens> prompts = {prompt(0, 40, 1), prompt(0, 63, 2), prompt(20, 43, 3)};
  std::vector<std::shared_ptr<Job>> jobs;
  for (const Tokens& text : prompts) jobs.push_back(job(text, 100));
  ASSERT_TRUE(small->submit(jobs));
  run(*small);
  for (size_t i = 0; i < jobs.size(); ++i) {
    const auto state = jobs[i]->take(0);
    EXPECT_EQ(state.end, llm::Generation::End::kLength);
    EXPECT_EQ(tokens_of(state), alone(prompts[i], 100)) << i;
  }
}

const auto kPaged =
    testing::Values(Case{"llama", true}, Case{"gemma3", true}, Case{"mistral", true});
std::string name_of(const testing::TestParamInfo<Case>& info) {
  return std::string(info.param.model) + (info.param.paged ? "_paged" : "");
}
INSTANTIATE_TEST_SUITE_P(Plain, Texts,
                         testing::Values(Case{"llama", false}, Case{"gemma3", false},
                                         Case{"mistral", false}),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Paged, Texts, kPaged, name_of);
INSTANTIATE_TEST_SUITE_P(Paged, PagedTexts, kPaged, name_of);

}  // namespace
}  // namespace paddle::serve
