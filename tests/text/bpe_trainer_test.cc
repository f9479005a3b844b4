// Training of byte-level BPE against Hugging Face's trainer (make_trained.py), and texts in
// sections.
#include "text/bpe_trainer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "text/load.h"
#include "text/sections.h"

namespace paddle::tokenizers {
namespace {

const std::string kData = "tests/text/data/trained_bpe";

Tokenizer tokenizer_of(const TrainedBpe& trained) {
  return read_tokenizer_json(parse_json(tokenizer_json(trained), "trained"), "trained");
}

TrainedBpe train_on(std::string_view text, BpeTrainingOptions options) {
  BpeTrainer trainer(std::move(options));
  trainer.add(text);
  return trainer.train();
}

TEST(BpeTrainer, MergesAndIdsAreThoseOfTheReference) {
  const auto golden = nlohmann::json::parse(read_file(kData + ".json"));
  const TrainedBpe trained =
      train_on(read_file(kData + ".txt"),
               {.vocabulary_size = 700, .special_tokens = {"<|endoftext|>", "<pad>"}});
  ASSERT_EQ(trained.tokens.size(), golden["vocab"].size());
  for (size_t i = 0; i < trained.tokens.size(); ++i)
    EXPECT_EQ(golden["vocab"].value(trained.tokens[i], -1), static_cast<int>(i));
  std::vector<std::string> merges;
  for (const auto& [left, right] : trained.merges)
    merges.push_back(trained.tokens[static_cast<size_t>(left)] + " " +
                     trained.tokens[static_cast<size_t>(right)]);
  EXPECT_EQ(merges, golden["merges"].get<std::vector<std::string>>());
  const Tokenizer tokenizer = tokenizer_of(trained);
  for (const auto& each : golden["texts"]) {
    const auto text = each["text"].get<std::string>();
    const auto ids = tokenizer.encode(text);
    EXPECT_EQ(ids, each["ids"].get<std::vector<TokenId>>());
    EXPECT_EQ(tokenizer.decode(ids), text);
  }
  EXPECT_TRUE(tokenizer.is_special(0) && tokenizer.is_special(1) && !tokenizer.is_special(2));
}

TEST(BpeTrainer, SpecialTokensSeparateTexts) {
  std::string with, without;
  for (int i = 0; i < 50; ++i) with += "ab<|endoftext|>ab", without += "ab\n";
  const TrainedBpe trained = train_on(with, {.vocabulary_size = 400});
  ASSERT_EQ(trained.merges.size(), 2U);  // ab, abab; nothing of the token's own letters
  EXPECT_EQ(trained.tokens.back(), "abab");
}

TEST(BpeTrainer, RareWordsMakeRoomForFrequentOnes) {
  std::string text;
  for (int i = 0; i < 4000; ++i) text += str(" the", i % 4 == 0 ? str(" w", i, "x") : "");
  const TrainedBpe trained =
      train_on(text, {.vocabulary_size = 300, .max_word_bytes = size_t{20} << 10});
  EXPECT_GT(trained.dropped_words, 0);
  EXPECT_LT(trained.distinct_words, 400);
  const auto ids = tokenizer_of(trained).encode(" the");
  EXPECT_EQ(ids.size(), 1U);
}

TEST(BpeTrainer, BytesThatAreNoTextAndLongRunsAreCounted) {
  std::string text(200000, 'a');
  text += "\xff\xfe\xc3";
  const TrainedBpe trained = train_on(text, {.vocabulary_size = 280});
  // aa, aaaa, … up to the longest word of 1024 bytes, and three of U+FFFD, which is three bytes.
  EXPECT_EQ(trained.tokens.size(), 257U + 10U + 3U);
  EXPECT_EQ(tokenizer_of(trained).encode("aaaaaaaa").size(), 1U);
}

TEST(BpeTrainer, WrongSizesAndSpecialTokensAreRejected) {
  const auto message = [](BpeTrainingOptions options) -> std::string {
    try {
      BpeTrainer trainer(std::move(options));
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kUsage);
      return e.message();
    }
    return "accepted";
  };
  EXPECT_EQ(message({.vocabulary_size = 256}),
            "the vocabulary size is 256, expected 257 (256 bytes and 1 special tokens) to 4194304");
  EXPECT_EQ(message({.special_tokens = {"<a>", "<a>"}}), "the special token '<a>' is given twice");
  EXPECT_EQ(message({.special_tokens = {""}}), "a special token is empty or not UTF-8");
}

TEST(Sections, IdsAreThoseOfTheWholeText) {
  const std::string part = read_file(kData + ".txt");
  std::string text;
  while (text.size() < 3 * kSectionBytes) text += part;
  const Tokenizer tokenizer = load_tokenizer("tests/text/data/llama3.json");
  std::vector<TokenId> ids;
  int sections = 0;
  encode_sections(tokenizer, text, {}, [&](std::span<const TokenId> more) {
    ids.insert(ids.end(), more.begin(), more.end());
    ++sections;
  });
  EXPECT_GE(sections, 3);
  EXPECT_EQ(ids, tokenizer.encode(text));
}

TEST(Sections, CharactersStayWhole) {
  const std::string text = "äöü";  // two bytes each, no white space
  EXPECT_EQ(section_length(text, 3), 2U);
  EXPECT_EQ(section_length("abc def gh, ij", 12), 7U);  // not after the comma
  EXPECT_EQ(section_length("abc", 3), 3U);
  EXPECT_EQ(section_length(std::string(9, '\x80'), 4), 1U);
}

}  // namespace
}  // namespace paddle::tokenizers
