// Tokenizers against the ids of Hugging Face's `tokenizers` and of SentencePiece
// (make_tokenizers.py), their streams, and files that are wrong.
#include "text/tokenizer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "formats/gguf/metadata.h"
#include "formats/gguf/writer.h"
#include "text/byte_alphabet.h"
#include "text/load.h"
#include "text/token_bytes.h"

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

TEST(Tokenizer, APatternThatExplodesIsRejected) {
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

/// A tokenizer of the letter a with a normalizer, a pre-tokenizer and a decoder.
Tokenizer letter_tokenizer(const std::string& normalizer, const std::string& pre_tokenizer,
                           const std::string& decoder) {
  const std::string text =
      R"({"normalizer": )" + normalizer + R"(, "pre_tokenizer": )" + pre_tokenizer +
      R"(, "decoder": )" + decoder +
      R"(, "model": {"type": "BPE", "vocab": {"a": 0, "<unk>": 1}, "merges": [], "unk_token": "<unk>"}})";
  return read_tokenizer_json(parse_json(text, "t.json"), "t.json");
}

// Sizes are checked before memory is taken.
TEST(Tokenizer, FilesThatMakeFarMoreOfATextAreStopped) {
  const auto peak_mib = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss >> 10;
  };
  const auto error_of = [](const std::function<void()>& work) -> std::string {
    try {
      work();
    } catch (const Error& e) {
      return e.what();
    }
    return "done";
  };
  const std::string grow =
      R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaaaa"})";
  const auto twelve = [&](const char* list) {
    std::string steps = grow;
    for (int i = 1; i < 12; ++i) steps += ", " + grow;
    return R"({"type": "Sequence", ")" + std::string(list) + "\": [" + steps + "]}";
  };
  const std::string spaces = R"({"type": "Metaspace", "replacement": ")" +
                             std::string(30'000, 'a') + R"(", "split": false})";
  const int64_t before = peak_mib();
  const Tokenizer normalizes = letter_tokenizer(twelve("normalizers"), "null", "null");
  EXPECT_EQ(error_of([&] { normalizes.encode("a"); }),
            "encoding this text makes more than 64 MiB of values");
  const Tokenizer replaces = letter_tokenizer("null", spaces, "null");
  EXPECT_EQ(error_of([&] { replaces.encode(std::string(4000, ' ')); }),
            "encoding this text makes more than 66 MiB of values");
  const Tokenizer decodes = letter_tokenizer("null", "null", twelve("decoders"));
  const TokenId ids[] = {0};
  EXPECT_EQ(error_of([&] { decodes.decode(ids); }),
            "decoding these tokens makes more than 64 MiB of values");
  const Tokenizer usual =
      letter_tokenizer(R"({"type": "NFKC"})", R"({"type": "ByteLevel"})", "null");
  EXPECT_EQ(error_of([&] { usual.encode(std::string(3'000'000, '!')); }), "done");
  EXPECT_LT(peak_mib() - before, 1000);
}

// `control` of BERT is Cc, Cf, Co and Cs, without unassigned code points and non-characters.
TEST(Tokenizer, BertKeepsUnassignedCharacters) {
  const Tokenizer bert =
      read_tokenizer_json(parse_json(R"({"normalizer": {"type": "BertNormalizer"},
                     "pre_tokenizer": {"type": "BertPreTokenizer"},
                     "model": {"type": "WordPiece", "unk_token": "[UNK]",
                               "vocab": {"[UNK]": 0, "a": 1, "##b": 2}}})",
                                     "t.json"),
                          "t.json");
  const std::vector<TokenId> unknown = {0}, both = {1, 2};
  for (const char* text : {"a\uffffb", "a\u0378b", "a\ufdd0b", "a\U0010ffffb"})
    EXPECT_EQ(bert.encode(text), unknown) << text;
  for (const char* text : {"ab", "a\u200bb", "a\ue000b", "a\u0001b"})
    EXPECT_EQ(bert.encode(text), both) << text;
}

// A text that continues another one: what is streamed after any beginning is the rest of the
// whole, and the bytes of single tokens are those of the text.
TEST(Tokenizer, ContinuationsAndTokensAreThoseOfTheWhole) {
  for (const char* file : {"llama2.json", "gpt2.json", "llama3.json", "spm_bpe.model",
                           "unigram.model", "unigram_json.json", "bert.json"}) {
    const Tokenizer tokenizer = load_tokenizer(kData + file);
    const TokenBytes bytes(tokenizer);
    for (const char* text :
         {"Hello world, how are you?", "a b  c", "  two in front", "naïve 日本 🦙🦙!"}) {
      const std::vector<TokenId> ids = tokenizer.encode(text);
      const std::string whole = tokenizer.decode(ids);
      for (size_t k = 0; k <= ids.size(); ++k) {
        StreamDecoder stream(tokenizer);
        stream.begin_after(std::span(ids).first(k));
        std::string rest;
        for (size_t i = k; i < ids.size(); ++i) rest += stream.add(ids[i]);
        rest += stream.finish();
        // A character that the beginning cut comes whole.
        const std::string before = tokenizer.decode(std::span(ids).first(k));
        const size_t cut = before.find("\ufffd");
        EXPECT_EQ(json_text(before.substr(0, cut) + rest), json_text(whole)) << file << " " << k;
      }
      std::string joined;
      bool first = true;
      for (const TokenId id : ids) {
        if (tokenizer.is_special(id)) continue;
        joined += bytes.of(id, first);
        first = false;
      }
      EXPECT_EQ(json_text(joined), json_text(whole)) << file;
    }
  }
}

// A vocabulary without letters: words that begin with a space, and bytes.
TEST(Tokenizer, BytesOfTokensWithoutLetters) {
  const Tokenizer tokenizer =
      read_tokenizer_json(parse_json(R"({"model": {"type": "BPE", "merges": [],
                               "vocab": {"▁one": 0, "▁two": 1, "<0x62>": 2, "<0xE6>": 3}},
                     "decoder": {"type": "Sequence", "decoders": [
                       {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                       {"type": "ByteFallback"}, {"type": "Fuse"},
                       {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}})",
                                     "t.json"),
                          "t.json");
  const TokenBytes bytes(tokenizer);
  EXPECT_EQ(bytes.of(1), " two");
  EXPECT_EQ(bytes.of(1, true), "two");
  EXPECT_EQ(bytes.of(2), "b");
  EXPECT_EQ(bytes.of(3), "\xe6");
  EXPECT_EQ(bytes.of(9), "");
}

TEST(Tokenizer, ATextBehindSpecialTokensBegins) {
  const Tokenizer tokenizer = load_tokenizer(kData + "llama2.json");
  std::vector<TokenId> word;
  for (TokenId id = 3; word.empty(); ++id)
    if (const std::string* text = tokenizer.token(id); text->starts_with("▁") && text->size() > 3)
      word.push_back(id);
  const std::string letters = tokenizer.token(word[0])->substr(3);
  StreamDecoder first(tokenizer), later(tokenizer);
  const std::vector<TokenId> beginning(20, *tokenizer.find("<s>"));
  first.begin_after(beginning);
  EXPECT_TRUE(first.at_beginning());
  EXPECT_EQ(first.add(word[0]), letters);
  std::vector<TokenId> prompt = word;
  prompt.insert(prompt.end(), beginning.begin(), beginning.end());
  later.begin_after(prompt);
  EXPECT_FALSE(later.at_beginning());
  EXPECT_EQ(later.add(word[0]), " " + letters);
}

// As llama.cpp and `tokenizers`: a byte that no token of a byte-level vocabulary writes is left
// out, and lists that are shorter than the tokens are errors.
TEST(Tokenizer, GgufBytesWithoutATokenAndShortLists) {
  const auto write = [](const char* name, int64_t scores, int64_t types) {
    formats::gguf::Metadata metadata;
    metadata.add_text("tokenizer.ggml.model", "gpt2");
    metadata.add_text("tokenizer.ggml.pre", "gpt-2");
    const std::string tokens[] = {"<|endoftext|>", "a", "b", "ab"}, merges[] = {"a b"};
    metadata.add_texts("tokenizer.ggml.tokens", tokens);
    metadata.add_texts("tokenizer.ggml.merges", merges);
    metadata.add_numbers("tokenizer.ggml.scores", std::vector<float>(static_cast<size_t>(scores)));
    std::vector<int32_t> kinds(static_cast<size_t>(types), 1);
    if (!kinds.empty()) kinds[0] = 3;
    metadata.add_integers("tokenizer.ggml.token_type", kinds);
    metadata.add_integer("tokenizer.ggml.unknown_token_id", 0);
    const std::string path = testing::TempDir() + name;
    constexpr uint64_t kAlignment = 32;
    formats::gguf::Writer writer(path, {{"x", 0, {1}}}, metadata.values(), kAlignment);
    writer.add(Array::zeros(DType::kF32, {1}));
    writer.close();
    return path;
  };
  const Tokenizer tokenizer = load_tokenizer(write("bytes.gguf", 4, 4));
  EXPECT_EQ(tokenizer.encode("\x04"), std::vector<TokenId>());
  EXPECT_EQ(tokenizer.encode("a\x04"
                             "ab"),
            (std::vector<TokenId>{1, 3}));
  for (const auto& [path, key] : {std::pair{write("scores.gguf", 3, 4), "scores has 3 entries"},
                                  {write("types.gguf", 4, 2), "token_type has 2 entries"}}) {
    try {
      load_tokenizer(path);
      ADD_FAILURE() << path;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kModel);
      EXPECT_NE(std::string(e.what()).find(key), std::string::npos) << e.what();
    }
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
