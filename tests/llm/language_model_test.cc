// Hugging Face folders and GGUF files against transformers' logits (make_llama.py), and files that
// the family does not know.
#include "llm/language_model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "base/error.h"
#include "formats/npz.h"
#include "llm/family.h"
#include "llm/generate.h"
#include "llm/perplexity.h"
#include "runtime/execute.h"
#include "text/load.h"

namespace paddle::llm {
namespace {

const std::string kData = "tests/llm/data/";
const std::string kFamily = "models/llm/llama.yaml";

struct Case {
  std::string model, golden, family = "llama";
};
class Logits : public testing::TestWithParam<Case> {};

void expect_golden(program::Model& model, const std::string& golden_path, float tolerance = 2e-5F) {
  const formats::NpzReader golden(golden_path);
  const Array logits = model.run({golden.read("tokens")})[0].contiguous();
  const Array wanted = golden.read("logits");
  ASSERT_EQ(logits.shape, wanted.shape);
  float largest = 0, difference = 0;
  for (int64_t i = 0; i < wanted.size(); ++i) {
    const float value = wanted.data<float>()[i];
    largest = std::max(largest, std::abs(value));
    difference = std::max(difference, std::abs(value - logits.data<float>()[i]));
  }
  EXPECT_LE(difference, tolerance * largest);
}

TEST_P(Logits, AreThoseOfTransformers) {
  runtime::register_backends();
  const std::string path = kData + GetParam().model;
  ASSERT_TRUE(is_language_model(path));
  const LanguageModel model =
      open_language_model(path, {"models/llm/" + GetParam().family + ".yaml", {}});
  ASSERT_TRUE(model.runner);
  expect_golden(*model.model, kData + GetParam().golden + "/golden.npz");
}

/// A copy of the families with changed lines; without their functions `step` if texts are to be
/// computed as a whole, as in training.
std::string copied_families(bool whole, const std::function<void(std::string&)>& change = {}) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / str("paddle_families_", whole, getpid());
  std::filesystem::create_directories(folder);
  for (const auto& file : std::filesystem::directory_iterator("models/llm")) {
    std::ifstream in(file.path());
    std::ofstream out(folder / file.path().filename());
    bool step = false;
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("functions:")) step = true;
      if (line.starts_with("sources:")) step = false;
      if (change) change(line);
      if (!whole || !step) out << line << "\n";
    }
  }
  return folder.string();
}

TEST_P(Logits, OfWholeTextsAreTheSame) {
  runtime::register_backends();
  const std::string families = copied_families(true);
  const LanguageModel model = open_language_model(
      kData + GetParam().model, {families + "/" + GetParam().family + ".yaml", {}});
  ASSERT_FALSE(model.runner);
  expect_golden(*model.model, kData + GetParam().golden + "/golden.npz");
  std::filesystem::remove_all(families);
}

INSTANTIATE_TEST_SUITE_P(
    Models, Logits,
    testing::Values(
        Case{"llama", "llama"}, Case{"llama3", "llama3"}, Case{"mistral", "mistral"},
        Case{"qwen2", "qwen2"}, Case{"qwen3", "qwen3"}, Case{"smollm3", "smollm3"},
        Case{"llama.gguf", "llama"}, Case{"gemma2", "gemma2", "gemma"},
        Case{"gemma3", "gemma3", "gemma"}, Case{"phi3", "phi3", "phi3"},
        Case{"gpt2", "gpt2", "gpt2"}, Case{"gpt_neox", "gpt_neox", "gpt_neox"},
        Case{"yarn", "yarn"}, Case{"dynamic", "dynamic"}, Case{"mixtral.gguf", "mixtral"},
        Case{"ernie4_5", "ernie4_5"}, Case{"mixtral", "mixtral"}, Case{"qwen2_moe", "qwen2_moe"},
        Case{"qwen2_moe.gguf", "qwen2_moe"}, Case{"qwen3_moe", "qwen3_moe"},
        Case{"opt", "opt", "opt"}, Case{"bloom", "bloom", "bloom"},
        Case{"falcon", "falcon", "falcon"}, Case{"falcon_new", "falcon_new", "falcon"},
        Case{"falcon_rw", "falcon_rw", "falcon"}, Case{"glm4", "glm4", "glm4"},
        Case{"starcoder2", "starcoder2", "starcoder2"},
        Case{"opt_projected", "opt_projected", "opt"}, Case{"glm4_yarn", "glm4_yarn", "glm4"},
        Case{"falcon_linear", "falcon_linear", "falcon"},
        Case{"gpt_neox_llama3", "gpt_neox_llama3", "gpt_neox"},
        Case{"starcoder2_yarn", "starcoder2_yarn", "starcoder2"},
        Case{"phi3_longrope", "phi3_longrope", "phi3"},
        Case{"gemma3_text_part", "gemma3", "gemma"},  // make_text_part.py
        // make_gguf.py
        Case{"yarn.gguf", "yarn"}, Case{"llama3.gguf", "llama3"}, Case{"phi3.gguf", "phi3", "phi3"},
        Case{"phi3_longrope.gguf", "phi3_longrope", "phi3"}, Case{"gpt2.gguf", "gpt2", "gpt2"},
        Case{"gpt_neox.gguf", "gpt_neox", "gpt_neox"}, Case{"bloom.gguf", "bloom", "bloom"},
        Case{"falcon.gguf", "falcon", "falcon"}, Case{"falcon_new.gguf", "falcon_new", "falcon"},
        Case{"starcoder2.gguf", "starcoder2", "starcoder2"},
        Case{"split-00001-of-00003.gguf", "starcoder2", "starcoder2"},
        Case{"glm4.gguf", "glm4", "glm4"}, Case{"smollm3.gguf", "smollm3"},
        Case{"ernie4_5.gguf", "ernie4_5"}),
    [](const auto& info) {
      std::string name = info.param.model;
      for (const char other : {'.', '-'}) std::replace(name.begin(), name.end(), other, '_');
      return name;
    });

// No family that is shipped has sinks; with some in Llama, steps compute what whole texts are.
TEST(Logits, WithAttentionSinksAreThoseOfWholeTexts) {
  runtime::register_backends();
  const auto add_sinks = [](std::string& line) {
    const std::string call = "head_dim ** -0.5, window=window)";
    if (const size_t at = line.find(call); at != std::string::npos)
      line.replace(
          at, call.size(),
          "head_dim ** -0.5, window=window, sinks=arange(0, heads, 1, dtype=\"float32\") * 0.5)");
  };
  const Array tokens = formats::NpzReader(kData + "llama/golden.npz").read("tokens");
  std::vector<Array> logits;
  for (const bool whole : {false, true}) {
    const std::string families = copied_families(whole, add_sinks);
    const LanguageModel model =
        open_language_model(kData + "llama", {families + "/llama.yaml", {}});
    ASSERT_EQ(model.runner == nullptr, whole);
    logits.push_back(runtime::copied(model.model->run({tokens})[0]));
    std::filesystem::remove_all(families);
  }
  const Array without = formats::NpzReader(kData + "llama/golden.npz").read("logits");
  float changed = 0;
  for (int64_t i = 0; i < without.size(); ++i) {
    ASSERT_NEAR(logits[0].data<float>()[i], logits[1].data<float>()[i], 2e-5);
    changed = std::max(changed, std::abs(logits[0].data<float>()[i] - without.data<float>()[i]));
  }
  EXPECT_GT(changed, 1e-2);
}

// LongRoPE has other frequencies where texts cannot become longer than those of the training.
TEST(Logits, OfLongRopeFollowFromTheContext) {
  runtime::register_backends();
  for (const char* name : {"phi3_longrope", "phi3_longrope.gguf"}) {
    const LanguageModel model = open_language_model(
        kData + name, {"models/llm/phi3.yaml", {}, Activations::kInt16, {.context = 8}});
    expect_golden(*model.model, kData + "phi3_longrope/golden_short.npz");
  }
}

// The family is found by the file's own architecture.
TEST(Logits, OfGgufFilesFindTheirFamily) {
  for (const char* name :
       {"phi3", "gpt2", "gpt_neox", "bloom", "falcon", "starcoder2", "glm4", "bert"}) {
    const Family family = find_family(open_model_files(kData + name + ".gguf"), "");
    EXPECT_TRUE(family.file.ends_with(str("/", name, ".yaml"))) << family.file;
  }
}

TEST(Logits, OfAnEncoderInGgufAreTheHiddenValuesOfTheFolder) {
  runtime::register_backends();
  const auto hidden = [](const std::string& model) {
    program::LoadOptions load;
    load.function = "embed";
    const LanguageModel opened =
        open_language_model(kData + model, {.family = "models/llm/bert.yaml", .load = load});
    const formats::NpzReader golden(kData + "bert/golden.npz");
    const Array tokens = golden.read("tokens");
    const Array values =
        opened.model->run({tokens, Array::from<int64_t>({7, tokens.shape[1]}, {2})})[0]
            .contiguous();
    return std::vector<float>(values.data<float>(), values.data<float>() + values.size());
  };
  const std::vector<float> folder = hidden("bert");
  ASSERT_EQ(folder.size(), 2U * 12 * 32);
  EXPECT_EQ(folder, hidden("bert.gguf"));
}

TEST(Experts, OfGgufAreBlocksOfOneTensor) {
  runtime::register_backends();
  const auto open = [](Activations activations) {
    return open_language_model(kData + "qwen3_moe.gguf",
                               {.family = kFamily, .activations = activations});
  };
  const std::string golden = kData + "qwen3_moe_gguf/golden.npz";
  expect_golden(*open(Activations::kFloat32).model, golden);
  expect_golden(*open(Activations::kInt16).model, golden, 2e-3F);
}

// make_adapter.py
TEST(Adapters, LogitsAreThoseOfPeft) {
  runtime::register_backends();
  const std::string adapter = kData + "llama_adapter";
  const auto open = [&](const std::string& model, Activations activations) {
    return open_language_model(
        kData + model,
        {.family = kFamily, .activations = activations, .runner = {.adapter = adapter}});
  };
  const std::string golden = adapter + "/golden.npz";
  for (const char* model : {"llama", "llama.gguf"}) {
    SCOPED_TRACE(model);
    expect_golden(*open(model, Activations::kInt16).model, golden);
  }
  // With blocks of integers: as with the values that they stand for.
  const Array tokens = formats::NpzReader(golden).read("tokens");
  const LanguageModel floats = open("llama_q8_0.gguf", Activations::kFloat32),
                      blocks = open("llama_q8_0.gguf", Activations::kInt16);
  const Array wanted = floats.model->run({tokens})[0], found = blocks.model->run({tokens})[0];
  float largest = 0, difference = 0;
  for (int64_t i = 0; i < wanted.size(); ++i) {
    largest = std::max(largest, std::abs(wanted.data<float>()[i]));
    difference = std::max(difference, std::abs(wanted.data<float>()[i] - found.data<float>()[i]));
  }
  EXPECT_LE(difference, 4e-3F * largest);
  expect_golden(*blocks.model, golden, 0.15F);
}

TEST(Adapters, ShareTheModelWithItselfAlone) {
  runtime::register_backends();
  const auto loaded = load_shared(kData + "llama", {.family = kFamily});
  const tokenizers::TokenId token = 7;
  Runner plain(loaded, {});
  const auto vocab_size = static_cast<size_t>(plain.vocab_size());
  const float* logits = plain.append(0, {&token, 1});
  const std::vector<float> before(logits, logits + vocab_size);
  Runner adapted(loaded, {.adapter = kData + "llama_adapter"});
  logits = adapted.append(0, {&token, 1});
  EXPECT_NE(std::vector<float>(logits, logits + vocab_size), before);
  Runner again(loaded, {});
  logits = again.append(0, {&token, 1});
  EXPECT_EQ(std::vector<float>(logits, logits + vocab_size), before);
}

TEST(Adapters, RejectWhatDoesNotFit) {
  runtime::register_backends();
  const auto message = [](const std::string& model, const std::string& adapter) -> std::string {
    try {
      open_language_model(kData + model, {.family = kFamily, .runner = {.adapter = adapter}});
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_NE(message("qwen3", kData + "llama_adapter").find("do not fit the model's matrix"),
            std::string::npos);
  EXPECT_NE(message("qwen2", kData + "llama_adapter").find("'lm_head.weight' is not a matrix"),
            std::string::npos);
  EXPECT_NE(message("llama", kData + "none").find("is not a folder with adapter_config.json"),
            std::string::npos);
}

TEST(Encoders, LogitsAreThoseOfTransformers) {
  runtime::register_backends();
  for (const std::string name : {"bert", "roberta"}) {
    const LanguageModel model = open_language_model(kData + name, {"models/llm/bert.yaml", {}});
    EXPECT_FALSE(model.runner);
    expect_golden(*model.model, kData + name + "/golden.npz");
  }
}

/// One character a token: '0' is 0.
tokenizers::Tokenizer character_tokenizer() {
  std::string vocabulary;
  for (int i = 0; i < 50; ++i)
    vocabulary += str(i ? "," : "", "\"", std::string(1, static_cast<char>('0' + i)), "\":", i);
  // '\\' would need an escape.
  vocabulary.replace(vocabulary.find("\"\\\""), 3, "\"\\\\\"");
  return tokenizers::read_tokenizer_json(
      parse_json(R"({"model": {"type": "BPE", "merges": [], "vocab": {)" + vocabulary +
                     "}},"
                     R"("decoder": {"type": "Fuse"}})",
                 "t"),
      "t");
}

TEST(LanguageModel, GreedyTextIsTheMostLikelyTokenOfEachStep) {
  runtime::register_backends();
  const auto tokenizer = character_tokenizer();
  LanguageModel model = open_language_model(kData + "llama", {kFamily, {}});
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

TEST(LanguageModel, DraftsDoNotChangeTheText) {
  runtime::register_backends();
  const auto tokenizer = character_tokenizer();
  LanguageModel model = open_language_model(kData + "llama", {kFamily, {}});
  // A prompt that repeats itself leads to draft tokens.
  std::vector<tokenizers::TokenId> prompt;
  for (int i = 0; i < 24; ++i) prompt.push_back(static_cast<tokenizers::TokenId>(5 + i % 4));
  const auto all = [](const std::string&) { return true; };
  for (const double temperature : {0.0, 1.0}) {
    GenerateOptions options;
    options.length = 40;
    options.sampling.temperature = temperature;
    options.speculate = false;
    const std::string plain = generate(model, tokenizer, prompt, options, all);
    options.speculate = true;
    for (int i = 0; i < 4; ++i)  // sizes of steps are measured, then chosen
      EXPECT_EQ(generate(model, tokenizer, prompt, options, all), plain) << temperature;
  }
}

TEST(LanguageModel, TextEndsBeforeAStopText) {
  runtime::register_backends();
  const auto tokenizer = character_tokenizer();
  LanguageModel model = open_language_model(kData + "llama", {kFamily, {}});
  GenerateOptions options;
  options.length = 20;
  options.sampling.temperature = 0;
  std::string streamed;
  const auto run = [&] {
    streamed.clear();
    return generate(model, tokenizer, {1, 2, 3}, options, [&](const std::string& piece) {
      streamed += piece;
      return true;
    });
  };
  const std::string whole = run();
  ASSERT_GE(whole.size(), 6u);
  // Each token is one character: this stop text is of three tokens.
  options.stops = {"never", whole.substr(2, 3)};
  EXPECT_EQ(run(), whole.substr(0, whole.find(options.stops[1])));
  EXPECT_EQ(streamed, whole.substr(0, whole.find(options.stops[1])));
  // Held back to the end.
  options.stops = {whole.substr(whole.size() - 2) + "?"};
  EXPECT_EQ(run(), whole);
  EXPECT_EQ(streamed, whole);
}

TEST(LanguageModel, AStrongRepetitionPenaltyRepeatsNothing) {
  runtime::register_backends();
  const auto tokenizer = character_tokenizer();
  LanguageModel model = open_language_model(kData + "llama", {kFamily, {}});
  model.end_tokens.clear();
  GenerateOptions options;
  options.length = 20;
  options.sampling.temperature = 0;
  options.sampling.repetition_penalty = 1e6;
  std::string text = "123";
  text += generate(model, tokenizer, {1, 2, 3}, options, [](const std::string&) { return true; });
  EXPECT_EQ(text.size(), 23u);
  std::sort(text.begin(), text.end());
  EXPECT_EQ(std::adjacent_find(text.begin(), text.end()), text.end()) << text;
}

// Values of make_perplexity.py.
TEST(LanguageModel, PerplexityIsThatOfNumPy) {
  runtime::register_backends();
  const formats::NpzReader golden(kData + "llama/golden.npz");
  const Array rows = golden.read("tokens");
  const std::vector<tokenizers::TokenId> text(rows.data<int64_t>(), rows.data<int64_t>() + 18);
  const std::span all(text);
  const auto proceed = [] { return true; };
  for (const std::string name : {"llama", "llama.gguf"}) {
    LanguageModel model = open_language_model(kData + name, {kFamily, {}});
    const auto check = [&](std::span<const tokenizers::TokenId> tokens, int64_t window,
                           double wanted) {
      const Perplexity got = perplexity(model, tokens, window, proceed);
      EXPECT_NEAR(got.value, wanted, 1e-5 * wanted) << name << ", window " << window;
      EXPECT_EQ(got.tokens, static_cast<int64_t>(tokens.size()) - 1);
    };
    check(all.first(9), 9, 70.5845075);  // of transformers' logits
    check(all, 2, 97.0152981);
    check(all, 5, 112.570926);
    check(all, 7, 105.402);
    check(all, 18, 68.5914978);
    check(all, 0, 68.5914978);  // the context: 64
    EXPECT_THROW(perplexity(model, all, 1, proceed), Error);
    EXPECT_THROW(perplexity(model, all, 65, proceed), Error);
    EXPECT_THROW(perplexity(model, all.first(1), 9, proceed), Error);
  }
}

/// The message for the llama folder with one change of its config.json.
std::string rejection(const std::string& what, const std::string& with) {
  runtime::register_backends();
  const auto folder = std::filesystem::temp_directory_path() / str("paddle_llm_test.", getpid());
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
    open_language_model(folder.string(), {kFamily, {}});
  } catch (const Error& e) {
    message = e.message();
    const size_t place = message.find(folder.string());
    if (place != message.npos) message.erase(place, folder.string().size() + 1);
  }
  std::filesystem::remove_all(folder);
  return message;
}

TEST(LanguageModel, KeysOfPublishedConfigsAreKnown) {
  // As in the folder of SmolLM2-135M-Instruct.
  EXPECT_EQ(rejection("\"vocab_size\"",
                      "\"is_llama_config\": true, \"rope_interleaved\": false, "
                      "\"transformers.js_config\": {\"kv_cache_dtype\": {\"q4f16\": \"float16\"}}, "
                      "\"vocab_size\""),
            "accepted");
  // As older versions of transformers wrote every option of generation.
  EXPECT_EQ(rejection("\"vocab_size\"",
                      "\"do_sample\": false, \"top_p\": 1.0, \"return_dict\": true, "
                      "\"id2label\": {\"0\": \"LABEL_0\"}, \"vocab_size\""),
            "accepted");
  EXPECT_EQ(rejection("\"vocab_size\"", "\"rope_interleaved\": true, \"vocab_size\""),
            "config.json: models of type 'llama' are supported only where not "
            "rope_interleaved; rope_interleaved is True");
}

TEST(LanguageModel, WhatTheFamilyDoesNotKnowIsRejected) {
  EXPECT_NE(rejection("\"rope_type\"", "\"truncate\": false, \"rope_type\"")
                .find("does not know the key 'rope_parameters.truncate', which may change"),
            std::string::npos);
  EXPECT_EQ(rejection("\"vocab_size\"", "\"new_trick\": 3, \"vocab_size\""),
            "config.json: the family does not know the key 'new_trick', which may change the "
            "model; list it in `ignored_keys` of its `sources` if it does not");
  EXPECT_EQ(rejection("\"silu\"", "\"gelu\""),
            "config.json: models of type 'llama' are supported only where (hidden_act or \"silu\") "
            "== \"silu\"; hidden_act is 'gelu'");
  EXPECT_EQ(rejection("\"model_type\": \"llama\"", "\"model_type\": \"mamba\""),
            kFamily + ": has no `sources` for huggingface models of type 'mamba'");
  EXPECT_EQ(rejection("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1").substr(0, 50),
            " the model does not use the weight 'model.layers.1");
}

}  // namespace
}  // namespace paddle::llm
