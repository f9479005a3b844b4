// Language models by the public C++ and C interfaces. The first tokens are those that transformers
// computes (the largest of the last logits in tests/llm/data/llama/golden.npz).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "paddle/paddle.h"
#include "paddle/paddle_c.h"

namespace {

using paddle::GeneratedText;
using paddle::GenerateOptions;
using paddle::LanguageModel;

namespace fs = std::filesystem;

/// Words "w0" to "w49", the ids of the models in tests/llm/data, separated by spaces.
std::string word_tokenizer() {
  std::string words;
  for (int i = 0; i < 50; ++i)
    words += (i ? ", \"w" : "\"w") + std::to_string(i) + "\": " + std::to_string(i);
  return R"({"model": {"type": "WordLevel", "vocab": {)" + words + R"(}, "unk_token": "w0"},
    "pre_tokenizer": {"type": "WhitespaceSplit"}})";
}

/// A folder with the small models, which is removed at the end.
class ApiLanguageModel : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::temp_directory_path() / ("paddle_api_llm_" + std::to_string(::getpid()) + "_" +
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
    for (const char* name : {"llama", "bert"}) {
      fs::create_directories(folder_ / name);
      for (const char* file : {"config.json", "model.safetensors"})
        fs::copy(fs::path("tests/llm/data") / name / file, folder_ / name / file);
      std::ofstream(folder_ / name / "tokenizer.json") << word_tokenizer();
    }
    std::ofstream(folder_ / "llama/tokenizer_config.json")
        << R"({"chat_template": "{% for m in messages %}{{ m.content }} {% endfor %}"})";
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string llama() const { return (folder_ / "llama").string(); }
  std::string bert() const { return (folder_ / "bert").string(); }

  fs::path folder_;
};

constexpr const char* kPrompt = "w38 w16 w18 w38 w38 w37 w24 w10 w42";

GenerateOptions greedy(int64_t length) {
  GenerateOptions out;
  out.temperature = 0;
  out.length = length;
  return out;
}

TEST_F(ApiLanguageModel, GeneratesWhatTransformersFindsMostLikely) {
  LanguageModel model(llama());
  const GeneratedText first = model.generate(std::string(kPrompt), greedy(1));
  EXPECT_EQ(first.text, " w16");
  EXPECT_EQ(first.prompt_tokens, 9);
  EXPECT_EQ(first.generated_tokens, 1);
  const std::vector<int64_t> second = {13, 18, 32, 32, 3, 14, 38, 35, 21};
  EXPECT_EQ(model.generate(second, greedy(1)).text, " w42");
  EXPECT_EQ(model.vocabulary_size(), 50);
  EXPECT_GT(model.parameter_count(), 0);
}

TEST_F(ApiLanguageModel, TokensAndTextAreTheSame) {
  const LanguageModel model(llama());
  const std::vector<int64_t> tokens = {38, 16, 18};
  EXPECT_EQ(model.encode("w38 w16 w18"), tokens);
  EXPECT_EQ(model.decode(tokens), "w38 w16 w18");
  EXPECT_THROW(model.decode({50}), paddle::DataError);
  EXPECT_THROW(model.decode({-1}), paddle::DataError);
}

TEST_F(ApiLanguageModel, PiecesAreTheTextAndEndItEarly) {
  LanguageModel model(llama());
  GenerateOptions options = greedy(12);
  std::string pieces;
  options.on_text = [&](const std::string& piece) {
    pieces += piece;
    return true;
  };
  const std::string whole = model.generate(std::string(kPrompt), options).text;
  EXPECT_EQ(pieces, whole);
  int calls = 0;
  options.on_text = [&](const std::string&) { return ++calls < 3; };
  const GeneratedText part = model.generate(std::string(kPrompt), options);
  EXPECT_EQ(calls, 3);
  EXPECT_LT(part.text.size(), whole.size());
  EXPECT_EQ(whole.compare(0, part.text.size(), part.text), 0);
  options.on_text = [](const std::string&) -> bool { throw std::runtime_error("mine"); };
  EXPECT_THROW(model.generate(std::string(kPrompt), options), std::runtime_error);
  // The model stays usable.
  EXPECT_EQ(model.generate(std::string(kPrompt), greedy(12)).text, whole);
}

TEST_F(ApiLanguageModel, StopsAndConstraintsEndTexts) {
  LanguageModel model(llama());
  const std::string whole = model.generate(std::string(kPrompt), greedy(8)).text;
  GenerateOptions options = greedy(8);
  options.stops = {whole.substr(5, 3)};
  EXPECT_EQ(model.generate(std::string(kPrompt), options).text,
            whole.substr(0, whole.find(options.stops[0])));
  options = greedy(8);
  options.regex = "w7(w[56])*";  // of the words without what stands between them
  const std::string matched = model.generate(std::string(kPrompt), options).text;
  EXPECT_EQ(matched.compare(0, 3, " w7"), 0) << matched;
  options.json_schema = "{}";
  EXPECT_THROW(model.generate(std::string(kPrompt), options), paddle::UsageError);
}

TEST_F(ApiLanguageModel, AConversationIsThePromptOfItsTemplate) {
  LanguageModel model(llama());
  ASSERT_TRUE(model.has_chat_template());
  EXPECT_EQ(model.chat_prompt({{"user", "w38 w16"}, {"assistant", "w18"}}), "w38 w16 w18 ");
  EXPECT_EQ(model.chat_prompt(R"({"messages": [{"role": "user", "content": "w5"}]})"), "w5 ");
  EXPECT_EQ(model.chat({{"user", kPrompt}}, greedy(1)).text, " w16");
  EXPECT_THROW(model.chat_prompt(std::string("[]")), paddle::DataError);
  EXPECT_THROW(model.chat_prompt(std::string("{")), paddle::Error);
}

TEST_F(ApiLanguageModel, ThreadsTakeTurns) {
  LanguageModel model(llama());
  const std::string alone = model.generate(std::string(kPrompt), greedy(6)).text;
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::string& text : texts)
    threads.emplace_back([&] { text = model.generate(std::string(kPrompt), greedy(6)).text; });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts) EXPECT_EQ(text, alone);
}

TEST_F(ApiLanguageModel, WrongOptionsAndFilesAreErrors) {
  EXPECT_THROW(LanguageModel("nowhere"), paddle::UsageError);
  EXPECT_THROW(LanguageModel(folder_.string()), paddle::UsageError);
  paddle::LanguageModelOptions options;
  options.kv_cache = "f8";
  EXPECT_THROW(LanguageModel(llama(), options), paddle::UsageError);
  options = {};
  options.context = -1;
  EXPECT_THROW(LanguageModel(llama(), options), paddle::UsageError);
  LanguageModel model(llama());
  GenerateOptions bad = greedy(1);
  bad.top_p = 2;
  EXPECT_THROW(model.generate(std::string(kPrompt), bad), paddle::UsageError);
  std::string longer;
  for (int64_t i = 0; i <= model.context(); ++i) longer += "w1 ";
  EXPECT_THROW(model.generate(longer, greedy(1)), paddle::UsageError);
  std::ofstream(folder_ / "llama/config.json") << "{\"model_type\": \"llama\"";
  EXPECT_THROW(LanguageModel{llama()}, paddle::ModelError);
}

TEST_F(ApiLanguageModel, VectorsOfTextsHaveLengthOne) {
  paddle::TextEncoder encoder(bert());
  const std::vector<float> a = encoder.embed("w5 w7 w9"), b = encoder.embed("w9 w7");
  ASSERT_EQ(static_cast<int64_t>(a.size()), encoder.width());
  double squares = 0;
  for (const float x : a) squares += double{x} * x;
  EXPECT_NEAR(squares, 1, 1e-5);
  EXPECT_NE(a, b);
  EXPECT_EQ(encoder.embed("w5 w7 w9"), a);
  EXPECT_THROW(paddle::TextEncoder{llama()}, paddle::Error);

  paddle_encoder* c = nullptr;
  ASSERT_EQ(paddle_encoder_open(bert().c_str(), &c), PADDLE_OK) << paddle_last_error();
  size_t width = 0;
  ASSERT_EQ(paddle_encoder_width(c, &width), PADDLE_OK);
  std::vector<float> same(width);
  ASSERT_EQ(paddle_encoder_embed(c, "w5 w7 w9", same.data(), width), PADDLE_OK);
  EXPECT_EQ(same, a);
  EXPECT_EQ(paddle_encoder_embed(c, "w5", same.data(), width - 1), PADDLE_USAGE);
  EXPECT_EQ(paddle_encoder_close(c), PADDLE_OK);
  EXPECT_EQ(paddle_encoder_close(c), PADDLE_USAGE);
}

class CLanguageModel : public ApiLanguageModel {
 protected:
  void SetUp() override {
    ApiLanguageModel::SetUp();
    ASSERT_EQ(paddle_language_model_open(llama().c_str(), nullptr, &model_), PADDLE_OK)
        << paddle_last_error();
  }
  void TearDown() override {
    EXPECT_EQ(paddle_language_model_close(model_), PADDLE_OK);
    ApiLanguageModel::TearDown();
  }
  /// The text of the prompt's continuation, "error" where the call fails.
  std::string text(const paddle_generate_options* options) {
    paddle_text out{};
    if (paddle_language_model_generate(model_, kPrompt, options, &out) != PADDLE_OK) return "error";
    std::string text(out.data, out.bytes);
    EXPECT_EQ(paddle_text_free(&out), PADDLE_OK);
    EXPECT_EQ(out.data, nullptr);
    return text;
  }

  paddle_language_model* model_ = nullptr;
};

TEST_F(CLanguageModel, GivesTheTextsOfTheCppInterface) {
  paddle_generate_options options{};
  options.struct_size = sizeof options;
  options.length = 6;
  const std::string expected =
      LanguageModel(llama()).generate(std::string(kPrompt), greedy(6)).text;
  EXPECT_EQ(text(&options), expected);
  std::string pieces;
  options.user = &pieces;
  options.on_text = [](const char* data, size_t bytes, void* user) -> int32_t {
    static_cast<std::string*>(user)->append(data, bytes);
    return 1;
  };
  EXPECT_EQ(text(&options), expected);
  EXPECT_EQ(pieces, expected);
  const std::string stop = expected.substr(5, 3);
  const char* const stops[] = {stop.c_str()};
  options.stops = stops;
  options.stop_count = 1;
  EXPECT_EQ(text(&options), expected.substr(0, expected.find(stop)));

  paddle_text answer{};
  options.stop_count = 0;
  ASSERT_EQ(
      paddle_language_model_chat(
          model_, R"({"messages": [{"role": "user", "content": "w38 w16"}]})", &options, &answer),
      PADDLE_OK)
      << paddle_last_error();
  EXPECT_EQ(answer.prompt_tokens, 2);
  paddle_text_free(&answer);
}

// A program that was compiled with an older header passes a shorter structure, one that was
// compiled with a newer header a longer one.
TEST_F(CLanguageModel, StructuresOfOtherVersionsAreRead) {
  struct Newer {
    paddle_generate_options known;
    int64_t unknown;
  } newer{};
  newer.known.struct_size = sizeof newer;
  newer.known.length = 4;
  const std::string expected = text(&newer.known);
  EXPECT_NE(expected, "error") << paddle_last_error();
  newer.unknown = 1;
  EXPECT_EQ(text(&newer.known), "error");
  EXPECT_NE(std::string(paddle_last_error()).find("lacks"), std::string::npos);

  struct Older {
    size_t struct_size;
    int64_t length;
    double temperature;
  } older{sizeof(Older), 4, 0};
  EXPECT_EQ(text(reinterpret_cast<const paddle_generate_options*>(&older)), expected);
  older.struct_size = 3;
  EXPECT_EQ(text(reinterpret_cast<const paddle_generate_options*>(&older)), "error");
}

TEST_F(CLanguageModel, WrongCallsAreErrors) {
  paddle_text out{};
  EXPECT_EQ(paddle_language_model_generate(nullptr, kPrompt, nullptr, &out), PADDLE_USAGE);
  EXPECT_EQ(paddle_language_model_generate(model_, nullptr, nullptr, &out), PADDLE_USAGE);
  EXPECT_EQ(paddle_language_model_generate(model_, kPrompt, nullptr, nullptr), PADDLE_USAGE);
  EXPECT_EQ(paddle_text_free(nullptr), PADDLE_OK);
  paddle_language_model* none = nullptr;
  EXPECT_EQ(paddle_language_model_open("nowhere", nullptr, &none), PADDLE_USAGE);
  EXPECT_EQ(none, nullptr);
  int64_t ids[2] = {};
  size_t count = 0;
  ASSERT_EQ(paddle_language_model_encode(model_, "w3 w4 w5", 0, ids, 2, &count), PADDLE_OK);
  EXPECT_EQ(count, 3U);
  EXPECT_EQ(ids[1], 4);
  ASSERT_EQ(paddle_language_model_decode(model_, ids, 2, &out), PADDLE_OK);
  EXPECT_STREQ(out.data, "w3 w4");
  paddle_text_free(&out);
}

}  // namespace
