// Steps over cached sequences: logits do not depend on chunks, the batch or what was cached before.

#include "llm/runner.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "llm/language_model.h"
#include "runtime/execute.h"
#include "tensor/device_functions.h"

namespace paddle::llm {
namespace {

using Tokens = std::vector<tokenizers::TokenId>;

struct Case {
  const char* name;
  const char* model;
  CacheType cache;
  const char* family = "llama";
  bool paged = false;
};

class Steps : public testing::TestWithParam<Case> {
 protected:
  Steps() {
    runtime::register_backends();
    model_ = load_shared(str("tests/llm/data/", GetParam().model),
                         {.family = str("models/llm/", GetParam().family, ".yaml")});
  }
  Runner runner(int64_t sequences, int64_t context = 0) {
    return Runner(model_, {.sequences = sequences,
                           .context = context,
                           .cache = GetParam().cache,
                           .paged = GetParam().paged});
  }
  static Tokens text(int64_t seed, size_t length) {
    Tokens out;
    for (size_t i = 0; i < length; ++i)
      out.push_back(
          static_cast<tokenizers::TokenId>((seed + 7 * static_cast<int64_t>(i * i)) % 50));
    return out;
  }
  /// The logits of each token, computed one by one.
  std::vector<float> one_by_one(const Tokens& tokens) {
    Runner alone = runner(1);
    std::vector<float> out;
    for (const tokenizers::TokenId token : tokens) {
      const float* const logits = alone.append(0, {&token, 1});
      out.insert(out.end(), logits, logits + alone.vocab_size());
    }
    return out;
  }
  std::shared_ptr<LoadedModel> model_;
};

void expect_same(const float* found, const std::vector<float>& wanted, size_t first, size_t count,
                 const std::string& what) {
  EXPECT_EQ(std::memcmp(found, wanted.data() + first, count * sizeof(float)), 0) << what;
}

TEST_P(Steps, LogitsDoNotDependOnChunks) {
  const Tokens tokens = text(3, 61);
  const auto wanted = one_by_one(tokens);
  for (const size_t chunk : {size_t{2}, size_t{5}, size_t{16}, size_t{61}}) {
    Runner runner = this->runner(1);
    std::vector<float> found(wanted.size());
    for (size_t begin = 0; begin < tokens.size(); begin += chunk)
      runner.append_all(0, std::span(tokens).subspan(begin, std::min(chunk, 61 - begin)),
                        found.data() + begin * static_cast<size_t>(runner.vocab_size()));
    expect_same(found.data(), wanted, 0, wanted.size(), str("chunks of ", chunk));
  }
}

TEST_P(Steps, LogitsDoNotDependOnCompany) {
  const Tokens a = text(1, 40), b = text(2, 33), c = text(5, 50);
  const auto of_a = one_by_one(a), of_b = one_by_one(b), of_c = one_by_one(c);
  Runner runner = this->runner(3);
  const auto vocab_size = static_cast<size_t>(runner.vocab_size());
  runner.append(2, std::span(c).first(20));
  const StepPart mixed[] = {{0, std::span(a).first(3), 2},
                            {1, std::span(b).first(30), 1},
                            {2, std::span(c).subspan(20, 1), 1}};
  const float* logits = runner.step(mixed);
  expect_same(logits, of_a, vocab_size, 2 * vocab_size, "the first");
  expect_same(logits + 2 * vocab_size, of_b, 29 * vocab_size, vocab_size, "the second");
  expect_same(logits + 3 * vocab_size, of_c, 20 * vocab_size, vocab_size, "the third");
  EXPECT_EQ(runner.length(0), 3);
  EXPECT_EQ(runner.length(2), 21);
  // A sequence goes back and continues otherwise.
  EXPECT_EQ(runner.reachable(1, 4), 4);
  EXPECT_EQ(runner.truncate(1, 4), 4);
  EXPECT_EQ(runner.truncate(1, 9), 4) << "a sequence does not grow";
  logits = runner.append(1, std::span(b).subspan(4, 10));
  expect_same(logits, of_b, 13 * vocab_size, vocab_size, "after going back");
  runner.truncate(0, 0);
  logits = runner.append(0, c);
  expect_same(logits, of_c, 49 * vocab_size, vocab_size, "another text in the same place");
}

TEST_P(Steps, SequencesShareABeginning) {
  const Tokens a = text(1, 60);
  Tokens b = a, c = a;
  for (size_t i = 37; i < 60; ++i) b[i] = static_cast<tokenizers::TokenId>((b[i] + 1) % 50);
  for (size_t i = 32; i < 60; ++i) c[i] = static_cast<tokenizers::TokenId>((c[i] + 2) % 50);
  const auto of_a = one_by_one(a), of_b = one_by_one(b), of_c = one_by_one(c);
  Runner runner = this->runner(3);
  const auto vocab_size = static_cast<size_t>(runner.vocab_size());
  for (int round = 0; round < 2; ++round) {
    runner.append(0, std::span(a).first(40));
    runner.copy(0, 1, 37);
    runner.copy(0, 2, 32);
    const CacheBlocks* const blocks = runner.blocks();
    EXPECT_EQ(blocks ? blocks->total() - blocks->free() : 3, 3);
    for (size_t i = 40; i < 60; ++i) {
      expect_same(runner.append(1, std::span(b).subspan(i - 3, 1)), of_b, (i - 3) * vocab_size,
                  vocab_size, "the second");
      expect_same(runner.append(0, std::span(a).subspan(i, 1)), of_a, i * vocab_size, vocab_size,
                  "the first");
      expect_same(runner.append(2, std::span(c).subspan(i - 8, 1)), of_c, (i - 8) * vocab_size,
                  vocab_size, "the third");
    }
    // The last token is taken back and computed again.
    runner.truncate(1, 56);
    expect_same(runner.append(1, std::span(b).subspan(56, 1)), of_b, 56 * vocab_size, vocab_size,
                "again");
    for (int64_t s = 0; s < 3; ++s) runner.truncate(s, 0);
    EXPECT_TRUE(!blocks || blocks->free() == blocks->total());
    runner.trim();
  }
}

TEST_P(Steps, RunnersShareAModelAndHaveTheirOwnSequences) {
  const Tokens a = text(1, 20), b = text(2, 20);
  const auto of_a = one_by_one(a), of_b = one_by_one(b);
  Runner first = runner(1), second = runner(2, 32);
  const auto vocab_size = static_cast<size_t>(first.vocab_size());
  for (size_t i = 0; i < 20; ++i) {
    expect_same(first.append(0, std::span(a).subspan(i, 1)), of_a, i * vocab_size, vocab_size,
                "the first");
    expect_same(second.append(1, std::span(b).subspan(i, 1)), of_b, i * vocab_size, vocab_size,
                "the second");
  }
  EXPECT_THROW(second.append(1, text(1, 13)), Error);
  EXPECT_THROW(runner(1, 65), Error);
}

TEST_P(Steps, FewPlansAreMade) {
  Runner runner = this->runner(1);
  const Tokens tokens = text(1, 60);
  runner.append(0, std::span(tokens).first(20));
  for (size_t i = 20; i < 60; ++i) runner.append(0, std::span(tokens).subspan(i, 1));
  EXPECT_EQ(runner.plans_made(), 2);
}

TEST(Runner, APagedCacheHoldsSoManyTokens) {
  runtime::register_backends();
  const auto model = load_shared("tests/llm/data/llama", {.family = "models/llm/llama.yaml"});
  Runner runner(model, {.sequences = 4, .paged = true, .tokens = 70});
  EXPECT_EQ(runner.cache_tokens(), 80);
  EXPECT_EQ(runner.context(), 64);
  const Tokens tokens(50, 7);
  runner.append(0, tokens);
  EXPECT_THROW(runner.append(1, tokens), Error);
  runner.truncate(0, 30);
  runner.append(1, std::span(tokens).first(48));
  EXPECT_EQ(runner.blocks()->free(), 0);
  EXPECT_EQ(Runner(model, {.sequences = 4, .paged = true, .tokens = 33}).context(), 33);
  EXPECT_THROW(Runner(model, {.sequences = 4, .context = 40, .paged = true, .tokens = 33}), Error);
}

// Caches and steps are on the device. A step makes one copy in and one out.
TEST(Runner, OnADeviceHasTheBitsOfTheCpu) {
  runtime::register_backends();
  const Device mirror = parse_device("mirror");
  Tokens tokens;
  for (int64_t i = 0; i < 40; ++i) tokens.push_back(static_cast<tokenizers::TokenId>(i * i % 50));
  for (const bool paged : {false, true}) {
    std::vector<std::vector<float>> found[2];
    for (const Device device : {Device::cpu(), mirror}) {
      ModelOptions options{.family = "models/llm/llama.yaml"};
      options.load.compile.target.device = device;
      Runner runner(load_shared("tests/llm/data/llama", options), {.sequences = 2, .paged = paged});
      const auto keep = [&](const float* logits) {
        found[device.is_cpu() ? 0 : 1].emplace_back(logits, logits + runner.vocab_size());
      };
      keep(runner.append(0, std::span(tokens).first(20)));
      runner.copy(0, 1, 18);
      for (size_t i = 20; i < tokens.size(); ++i) {
        keep(runner.append(1, std::span(tokens).subspan(i, 1)));
        const paddle_device_statistics before = device_statistics(device);
        keep(runner.append(0, std::span(tokens).subspan(i, 1)));
        const paddle_device_statistics after = device_statistics(device);
        if (device.is_cpu()) continue;
        EXPECT_EQ(after.copies_to_device - before.copies_to_device, 1u);
        EXPECT_EQ(after.copies_to_host - before.copies_to_host, 1u);
      }
      runner.truncate(0, 0);
      runner.trim();
    }
    EXPECT_EQ(found[0], found[1]) << (paged ? "paged" : "plain");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, Steps,
    testing::Values(Case{"llama", "llama", CacheType::kF32},
                    Case{"llama_bf16_cache", "llama", CacheType::kBF16},
                    Case{"llama_int8_cache", "llama", CacheType::kI8},
                    Case{"llama_paged", "llama", CacheType::kF32, "llama", true},
                    Case{"llama_bf16_paged", "llama", CacheType::kBF16, "llama", true},
                    Case{"llama_int8_paged", "llama", CacheType::kI8, "llama", true},
                    Case{"gemma3_paged", "gemma3", CacheType::kF32, "gemma", true},
                    Case{"qwen3", "qwen3", CacheType::kF32},
                    Case{"gemma3", "gemma3", CacheType::kF32, "gemma"},
                    Case{"gpt2", "gpt2", CacheType::kF32, "gpt2"},
                    Case{"gpt_neox", "gpt_neox", CacheType::kBF16, "gpt_neox"},
                    Case{"q8_0", "llama_q8_0.gguf", CacheType::kF32}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace paddle::llm
