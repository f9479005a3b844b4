// Samples of different lengths: tokens of texts, padded batches with masks, batches of similar
// lengths.

#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "base/files.h"
#include "data/loader.h"
#include "data/options.h"
#include "data/tokens.h"

namespace paddle::data {
namespace {

std::vector<std::string> words(const std::string& text, int64_t limit = 100) {
  std::vector<std::string> out;
  for (const std::string_view token : split_tokens(text, TokenKind::kWords, limit))
    out.emplace_back(token);
  return out;
}

using Words = std::vector<std::string>;

TEST(Tokens, Words) {
  EXPECT_EQ(words("Don't stop, now!"), (Words{"Don't", "stop", ",", "now", "!"}));
  EXPECT_EQ(words("'tis  'so'"), (Words{"'", "tis", "'", "so", "'"}));
  EXPECT_EQ(words("a_b 3.5\tx"), (Words{"a_b", "3", ".", "5", "x"}));
  EXPECT_EQ(words("größe – Ελλάδα привет"), (Words{"größe", "–", "Ελλάδα", "привет"}));
  EXPECT_EQ(words("東京 ok"), (Words{"東", "京", "ok"}));
  EXPECT_EQ(words("l’été"), (Words{"l’été"}));
  EXPECT_EQ(words(""), (Words{}));
  EXPECT_EQ(words(" \n\u00a0\u3000"), (Words{}));
  EXPECT_EQ(words("a b c d", 2), (Words{"a", "b"}));
  EXPECT_EQ(words("ab, c", 1), (Words{"ab"}));
  EXPECT_EQ(split_tokens("aé東", TokenKind::kCharacters, 9).size(), 3u);
}

TEST(Tokens, Lowercase) {
  // As Python's str.lower() has it.
  EXPECT_EQ(lowercase("ABC xyz 123 ÀÞ×÷ß"), "abc xyz 123 àþ×÷ß");
  EXPECT_EQ(lowercase("ΑΩ АЯ ЀЏ ĀĹŽŸ"), "αω ая ѐџ āĺžÿ");
  EXPECT_EQ(lowercase("東京"), "東京");
}

TEST(Padding, LengthsOfBatches) {
  // Multiples of 8 up to 64, of 16 up to 128, of 32 up to 256; never beyond the longest possible.
  const std::map<int64_t, int64_t> expected = {{0, 8},     {1, 8},     {8, 8},     {9, 16},
                                               {64, 64},   {65, 80},   {128, 128}, {129, 160},
                                               {256, 256}, {257, 320}, {500, 512}, {513, 640}};
  for (const auto& [longest, length] : expected) EXPECT_EQ(padded_length(longest, 9999), length);
  EXPECT_EQ(padded_length(50, 60), 56);
  EXPECT_EQ(padded_length(60, 60), 60);
}

/// A CSV file whose row i has i % 40 words; row 3 is not UTF-8 if `bad`.
class Texts : public testing::Test {
 protected:
  void SetUp() override { write(200, false); }
  void TearDown() override { ::unlink(path_.c_str()); }
  void write(int rows, bool bad) {
    std::string text = "body,label\n";
    for (int i = 0; i < rows; ++i) {
      std::string body;
      for (int w = 0; w < i % 40; ++w) body += str(w ? " " : "", i == 5 ? "rare" : str("W", w % 7));
      if (bad && i == 3) body = "caf\xe9";
      text += str("\"", body, "\",", i % 2 ? "odd" : "even", "\n");
    }
    write_file_atomically(path_, text);
  }
  DatasetPtr open(int64_t max_length = 256, int64_t size = 30000, int64_t least = 1) {
    CsvField body, label;
    body.name = "body";
    body.kind = ColumnKind::kText;
    body.max_length = max_length;
    body.vocabulary_size = size;
    body.min_count = least;
    label.name = "label";
    label.kind = ColumnKind::kCategorical;
    label.scalar = true;
    DatasetOptions options;
    CsvFileOptions csv;
    csv.path = path_;
    csv.fields = {body, label};
    options.source = csv;
    return make_dataset(options);
  }
  const std::string path_ = testing::TempDir() + "/paddle_texts_" + std::to_string(::getpid());
};

TEST_F(Texts, VocabularyByFrequency) {
  const auto dataset = open(256, 4, 2);
  // w0 is the most frequent word; "rare" occurs in one row, five times.
  EXPECT_EQ(dataset->vocabulary(0)->tokens(),
            (std::vector<std::string>{"<unknown>", "w0", "w1", "w2", "w3"}));
  EXPECT_EQ(dataset->fields()[0].class_count, 5);
  Sample sample;
  dataset->read(7, {}, sample);
  ASSERT_EQ(sample[0].shape(), (Dims{7}));
  const std::vector<int64_t> expected = {1, 2, 3, 4, 0, 0, 0};
  for (int i = 0; i < 7; ++i)
    EXPECT_EQ(sample[0].data<int64_t>()[i], expected[static_cast<size_t>(i)]);
  EXPECT_EQ(dataset->length_of(39), 39);
  EXPECT_EQ(open(8)->length_of(39), 8);
}

TEST_F(Texts, BatchesArePaddedAndMasked) {
  Loader loader(open(), {.batch_size = 8});
  ASSERT_EQ(loader.fields().size(), 3u);
  EXPECT_EQ(loader.fields()[2].text(), "body_mask: bool[?]");
  EXPECT_EQ(loader.sample_shapes(), (std::vector<Dims>{{256}, {}, {256}}));
  int64_t row = 0;
  for (int b = 0; b < 25; ++b) {
    const auto batch = loader.next();
    ASSERT_TRUE(batch);
    int64_t longest = 0;
    for (int64_t i = 0; i < batch->samples; ++i) longest = std::max(longest, (row + i) % 40);
    ASSERT_EQ(batch->arrays[0].shape, (Dims{8, padded_length(longest, 256)}));
    ASSERT_EQ(batch->arrays[2].shape, batch->arrays[0].shape);
    const int64_t length = batch->arrays[0].shape[1];
    for (int64_t i = 0; i < batch->samples; ++i, ++row)
      for (int64_t w = 0; w < length; ++w) {
        const bool there = w < row % 40;
        EXPECT_EQ(batch->arrays[2].data<bool>()[i * length + w], there);
        const int64_t id = batch->arrays[0].data<int64_t>()[i * length + w];
        EXPECT_TRUE(there ? id > 0 : id == 0);
      }
  }
}

TEST_F(Texts, BatchesOfSimilarLengths) {
  const auto waste = [&](int64_t window) {
    Loader loader(
        open(),
        {.batch_size = 8, .shuffle = true, .seed = 3, .epochs = 1, .length_window = window});
    std::set<int64_t> seen;
    int64_t padded = 0;
    while (const auto batch = loader.next()) {
      for (const int64_t index : batch->indices) EXPECT_TRUE(seen.insert(index).second);
      padded += batch->arrays[0].size();
    }
    EXPECT_EQ(seen.size(), 200u);
    return padded;
  };
  // 3900 words. In any order, most batches are as long as the longest text, 39 words.
  EXPECT_GT(waste(0), 7000);
  EXPECT_LT(waste(25), 5500);
}

TEST_F(Texts, AnyPositionResumesAndWorkersDoNotMatter) {
  const auto order = [&](int workers, LoaderPosition from) {
    Loader loader(open(), {.batch_size = 12,
                           .shuffle = true,
                           .seed = 3,
                           .workers = workers,
                           .epochs = 2,
                           .length_window = 4});
    loader.seek(from);
    std::vector<int64_t> out;
    while (const auto batch = loader.next())
      out.insert(out.end(), batch->indices.begin(), batch->indices.end());
    return out;
  };
  const auto whole = order(0, {});
  ASSERT_EQ(whole.size(), 400u);
  EXPECT_EQ(order(3, {}), whole);
  EXPECT_EQ(order(2, {0, 96}), std::vector<int64_t>(whole.begin() + 96, whole.end()));
  EXPECT_EQ(order(0, {1, 48}), std::vector<int64_t>(whole.begin() + 248, whole.end()));
  EXPECT_NE(std::vector<int64_t>(whole.begin(), whole.begin() + 200),
            std::vector<int64_t>(whole.begin() + 200, whole.end()));
}

TEST_F(Texts, BadTextIsReportedWithItsLine) {
  write(20, true);
  Loader loader(open(), {.batch_size = 8});
  try {
    loader.next();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kData);
    EXPECT_NE(std::string(error.what()).find(":5: column 'body': 'caf\\xE9' is not UTF-8"),
              std::string::npos)
        << error.what();
  }
  Loader skipping(open(),
                  {.batch_size = 8, .on_bad_sample = BadSamplePolicy::kSkip, .max_bad_rate = 1});
  EXPECT_EQ(skipping.next()->samples, 7);
}

}  // namespace
}  // namespace paddle::data
