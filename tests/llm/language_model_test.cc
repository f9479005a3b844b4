// Hugging Face folders and GGUF files against transformers' logits (make_llama.py), and files that
// the family does not know.
#include "llm/language_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "formats/npz.h"
#include "llm/generate.h"
#include "runtime/execute.h"
#include "text/load.h"

namespace paddle::llm {
namespace {

const std::string kData = "tests/llm/data/";
const std::string kFamily = "models/llm/llama.yaml";

struct Case {
  std::string model, golden;
};
class Logits : public testing::TestWithParam<Case> {};

TEST_P(Logits, AreThoseOfTransformers) {
  runtime::register_backends();
  const std::string path = kData + GetParam().model;
  ASSERT_TRUE(is_language_model(path));
  const auto model = open_language_model(path, kFamily, {}).model;
  const formats::NpzReader golden(kData + GetParam().golden + "/golden.npz");
  const Array logits = model->run({golden.read("tokens")})[0].contiguous();
  const Array wanted = golden.read("logits");
  ASSERT_EQ(logits.shape, wanted.shape);
  float largest = 0, difference = 0;
  for (int64_t i = 0; i < wanted.size(); ++i) {
    const float value = wanted.data<float>()[i];
    largest = std::max(largest, std::abs(value));
    difference = std::max(difference, std::abs(value - logits.data<float>()[i]));
  }
  EXPECT_LE(difference, 2e-5F * largest);
}

INSTANTIATE_TEST_SUITE_P(Models, Logits,
                         testing::Values(Case{"llama", "llama"}, Case{"qwen2", "qwen2"},
                                         Case{"qwen3", "qwen3"}, Case{"llama.gguf", "llama"}),
                         [](const auto& info) {
                           std::string name = info.param.model;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

TEST(LanguageModel, GreedyTextIsTheMostLikelyTokenOfEachStep) {
  runtime::register_backends();
  std::string vocabulary;
  for (int i = 0; i < 50; ++i)
    vocabulary += str(i ? "," : "", "\"", std::string(1, static_cast<char>('0' + i)), "\":", i);
  // One character a token; '\\' would need an escape.
  vocabulary.replace(vocabulary.find("\"\\\""), 3, "\"\\\\\"");
  const auto tokenizer = tokenizers::read_tokenizer_json(
      parse_json(R"({"model": {"type": "BPE", "merges": [], "vocab": {)" + vocabulary +
                     "}},"
                     R"("decoder": {"type": "Fuse"}})",
                 "t"),
      "t");
  LanguageModel model = open_language_model(kData + "llama", kFamily, {});
  EXPECT_EQ(model.context, 64);
  GenerateOptions options;
  options.length = 20;
  options.sampling.temperature = 0;
  std::string streamed;
  const std::string text =
      generate(model, tokenizer, {1, 2, 3}, options, [&](const std::string& piece) {
        streamed += piece;
        return true;
      });
  EXPECT_EQ(text, streamed);
  // Without padding.
  std::vector<int64_t> tokens = {1, 2, 3};
  std::string wanted;
  for (int i = 0; i < 20; ++i) {
    const auto length = static_cast<int64_t>(tokens.size());
    const Array logits = model.model->run({Array::from(tokens, {1, length})})[0].contiguous();
    const float* last = logits.data<float>() + (length - 1) * 50;
    const auto best = std::max_element(last, last + 50) - last;
    if (std::find(model.end_tokens.begin(), model.end_tokens.end(), best) != model.end_tokens.end())
      break;
    tokens.push_back(best);
    wanted += static_cast<char>('0' + best);
  }
  EXPECT_EQ(text, wanted);
  EXPECT_FALSE(text.empty());
  EXPECT_THROW(generate(model, tokenizer, std::vector<tokenizers::TokenId>(65), options, {}),
               Error);
}

/// The message for the llama folder with one change of its config.json.
std::string refusal(const std::string& what, const std::string& with) {
  runtime::register_backends();
  const auto folder = std::filesystem::temp_directory_path() / "paddle_llm_test";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(kData + "llama/model.safetensors", folder / "model.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  std::stringstream text;
  text << std::ifstream(kData + "llama/config.json").rdbuf();
  std::string config = text.str();
  const size_t at = config.find(what);
  if (at == config.npos) return "config.json has no " + what;
  std::ofstream(folder / "config.json") << config.replace(at, what.size(), with);
  std::string message = "accepted";
  try {
    open_language_model(folder.string(), kFamily, {});
  } catch (const Error& e) {
    message = e.message();
    const size_t place = message.find(folder.string());
    if (place != message.npos) message.erase(place, folder.string().size() + 1);
  }
  std::filesystem::remove_all(folder);
  return message;
}

TEST(LanguageModel, WhatTheFamilyDoesNotKnowIsRefused) {
  EXPECT_EQ(refusal("\"vocab_size\"", "\"new_trick\": 3, \"vocab_size\""),
            "config.json: the family does not know the key 'new_trick', which may change the "
            "model; list it in `unread` of its `sources` if it does not");
  EXPECT_EQ(refusal("\"silu\"", "\"gelu\""),
            "config.json: models of type 'llama' are supported only where (hidden_act or \"silu\") "
            "== \"silu\"");
  EXPECT_EQ(refusal("\"model_type\": \"llama\"", "\"model_type\": \"mamba\""),
            kFamily + ": has no `sources` for huggingface models of type 'mamba'");
  EXPECT_EQ(refusal("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1").substr(0, 50),
            " the model does not use the weight 'model.layers.1");
}

}  // namespace
}  // namespace paddle::llm
