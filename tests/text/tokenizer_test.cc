// Tokenizers against the ids of Hugging Face's `tokenizers` and of SentencePiece
// (make_tokenizers.py), their streams, and files that are wrong.
#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/byte_alphabet.h"
#include "text/load.h"

namespace paddle::tokenizers {
namespace {

const std::string kData = "tests/text/data/";

std::vector<nlohmann::json> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<nlohmann::json> out;
  for (std::string line; std::getline(file, line);) out.push_back(nlohmann::json::parse(line));
  return out;
}

std::string json_text(const nlohmann::json& value) { return value.dump(-1, ' ', true); }

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, IdsAndTextsAreThoseOfTheReference) {
  const std::string file = kData + GetParam();
  const Tokenizer tokenizer = load_tokenizer(file);
  std::string lines = file;
  if (lines.ends_with(".json")) lines.resize(lines.size() - 5);
  const auto golden = lines_of(lines + ".golden.jsonl");
  ASSERT_GT(golden.size(), 80U);
  for (const auto& line : golden) {
    const auto text = line["text"].get<std::string>();
    const auto ids = line["ids"].get<std::vector<TokenId>>();
    EXPECT_EQ(tokenizer.encode(text), ids) << json_text(text);
    const auto special = line.value("special", ids);
    if (line.contains("special")) {
      EXPECT_EQ(tokenizer.encode(text, {.special = true}), special) << json_text(text);
    }
    EXPECT_EQ(json_text(tokenizer.decode(special)), json_text(line["decoded"]));
    if (line.contains("decoded_special")) {
      EXPECT_EQ(json_text(tokenizer.decode(special, true)), json_text(line["decoded_special"]));
    }
    StreamDecoder stream(tokenizer);
    std::string streamed;
    for (const TokenId id : special) streamed += stream.add(id);
    streamed += stream.finish();
    EXPECT_EQ(json_text(streamed), json_text(tokenizer.decode(special))) << json_text(text);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Golden,
                         testing::Values("bert.json", "bert_cased.json", "gpt2.json", "gpt4o.json",
                                         "llama2.json", "llama3.json", "openai_gpt.json",
                                         "splits.json", "unigram_json.json", "words.json",
                                         "spm_bpe.model", "unigram.model"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

class Folder : public testing::TestWithParam<std::string> {};

TEST_P(Folder, IdsAndTextsAreThoseOfTransformers) {
  const std::string folder = kData + "folders/" + GetParam();
  const Tokenizer tokenizer = load_tokenizer(folder);
  const auto golden = lines_of(folder + "/golden.jsonl");
  ASSERT_GT(golden.size(), 15U);
  for (const auto& line : golden) {
    const auto text = line["text"].get<std::string>();
    const auto ids = line["special"].get<std::vector<TokenId>>();
    EXPECT_EQ(tokenizer.encode(text, {.special = true}), ids) << json_text(text);
    EXPECT_EQ(json_text(tokenizer.decode(ids)), json_text(line["decoded"]));
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Folder,
                         testing::Values("spm", "spm_once", "gpt2", "roberta", "qwen2", "bert",
                                         "bert_cased"),
                         [](const auto& info) { return info.param; });

Json tree(const nlohmann::json& content) { return parse_json(content.dump(), "a test"); }

nlohmann::json small_bpe() {
  return nlohmann::json::parse(R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2},
                                   "merges": ["a b"]}})");
}

TEST(Tokenizer, MergesBelongToTheLowestRankThenToTheLeft) {
  EXPECT_EQ(read_tokenizer_json(tree(small_bpe()), "t").encode("aabb"),
            (std::vector<TokenId>{0, 2, 1}));
}

TEST(Tokenizer, WrongFilesSayWhereAndWhat) {
  const auto message = [](auto&& change) -> std::string {
    nlohmann::json content = small_bpe();
    change(content);
    try {
      read_tokenizer_json(tree(content), "t.json");
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kModel);
      return e.message();
    }
    return "accepted";
  };
  EXPECT_EQ(message([](auto& j) { j["model"]["merges"] = {"a c"}; }),
            "t.json: model: merge 0 ('a' and 'c'): 'c' is not in the vocabulary");
  EXPECT_EQ(message([](auto& j) { j["model"]["vocab"]["c"] = -1; }),
            "t.json: model.vocab: the id of 'c' is not an integer from 0 to 4194303");
  EXPECT_EQ(message([](auto& j) {
              j["normalizer"] = {{"type", "Magic"}};
            }),
            "t.json: normalizer.type: 'Magic' is not supported");
  EXPECT_EQ(message([](auto& j) { j["model"]["dropout"] = 0.1; }),
            "t.json: model.dropout: random segmentation (dropout) is not supported; remove it");
  EXPECT_EQ(message([](auto& j) { j.erase("model"); }), "t.json: there is no 'model'");
  EXPECT_EQ(message([](auto& j) {
              j["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", "[a&&b]"}}}};
            }),
            "t.json: pre_tokenizer.pattern.Regex: pattern '[a&&b]', byte 3: intersection of "
            "character classes (&&) is not supported");
}

TEST(Tokenizer, APatternThatExplodesIsRefused) {
  nlohmann::json content = small_bpe();
  content["pre_tokenizer"] = {
      {"type", "Split"}, {"pattern", {{"Regex", "(a+)+$\\b{0}c"}}}, {"behavior", "Isolated"}};
  try {
    const Tokenizer tokenizer = read_tokenizer_json(tree(content), "t.json");
    tokenizer.encode(std::string(64, 'a') + "b");
  } catch (const Error& e) {
    EXPECT_TRUE(e.code() == ErrorCode::kData || e.code() == ErrorCode::kModel);
  }
}

TEST(Tokenizer, GgufPatternsAreKnownByName) {
  EXPECT_EQ(gguf_patterns("smollm").size(), 2U);
  EXPECT_THROW(gguf_patterns("smolm"), Error);
}

TEST(Tokenizer, TekkenCountsSpecialTokensFirst) {
  nlohmann::json content;
  content["config"] = {
      {"pattern", " ?\\w+|."}, {"default_vocab_size", 261}, {"default_num_special_tokens", 3}};
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto base64 = [&](std::string bytes) {
    std::string out;
    uint32_t bits = 0;
    int count = 0;
    for (const char c : bytes) {
      bits = bits << 8 | static_cast<unsigned char>(c);
      count += 8;
      while (count >= 6) out += kDigits[bits >> (count -= 6) & 63];
    }
    if (count > 0) out += kDigits[bits << (6 - count) & 63];
    return out;
  };
  for (int b = 0; b < 256; ++b)
    content["vocab"].push_back(
        {{"rank", b}, {"token_bytes", base64(std::string(1, static_cast<char>(b)))}});
  content["vocab"].push_back({{"rank", 256}, {"token_bytes", base64("ab")}});
  content["vocab"].push_back({{"rank", 257}, {"token_bytes", base64("cab")}});
  content["vocab"].push_back({{"rank", 258}, {"token_bytes", base64("beyond")}});
  const Tokenizer tokenizer = read_tekken(tree(content), "tekken.json");
  EXPECT_EQ(tokenizer.encode("cab b"), (std::vector<TokenId>{260, ' ' + 3, 'b' + 3}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("é cab")), "é cab");
  EXPECT_EQ(tokenizer.encode("<s>", {.special = true}), (std::vector<TokenId>{1}));
  EXPECT_EQ(tokenizer.encode("<s>").size(), 3U);
}

TEST(Tokenizer, BytesThatAreNoTextBecomeReplacementCharacters) {
  // The ids of the three bytes of one character, the last of which is missing.
  const Tokenizer tokenizer = load_tokenizer(kData + "gpt2.json");
  std::vector<TokenId> ids;
  for (const unsigned char byte : {0xe6, 0x97})
    ids.push_back(*tokenizer.find(byte_character(byte)));
  EXPECT_EQ(tokenizer.decode(ids), "\ufffd");
  StreamDecoder stream(tokenizer);
  EXPECT_EQ(stream.add(ids[0]), "");
  EXPECT_EQ(stream.add(ids[1]), "");
  EXPECT_EQ(stream.add(*tokenizer.find(byte_character(0xa5))), "日");
  EXPECT_EQ(tokenizer.encode("\xff"), tokenizer.encode("\ufffd"));
}

}  // namespace
}  // namespace paddle::tokenizers
