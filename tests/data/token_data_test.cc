// Text in subwords, files of tokens, documents that stay apart, and the tokenizer that a run keeps.

#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "base/files.h"
#include "data/options.h"
#include "formats/gguf/writer.h"
#include "text/bpe_trainer.h"
#include "text/byte_alphabet.h"
#include "text/load.h"

namespace paddle::data {
namespace {

namespace fs = std::filesystem;

class TokenData : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir() + "/paddle_tokens_" + std::to_string(::getpid()))
                  .lexically_normal()
                  .string();
    fs::create_directories(folder_);
    tokenizers::BpeTrainer trainer({.vocabulary_size = 270});
    trainer.add("the cat and the hat, the cat and the hat");
    tokenizer_ = file("tokenizer.json", tokenizers::tokenizer_json(trainer.train()));
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& content) const {
    const std::string path = folder_ + "/" + name;
    ensure_directory(fs::path(path).parent_path().string());
    write_file_atomically(path, content);
    return path;
  }
  std::string ids_file(const std::string& name, const std::vector<uint16_t>& ids) const {
    return file(name, {reinterpret_cast<const char*>(ids.data()), 2 * ids.size()});
  }
  std::vector<int64_t> ids_of(const std::string& text) const {
    std::vector<int64_t> out;
    for (const auto id : tokenizers::load_tokenizer(tokenizer_).encode(text)) out.push_back(id);
    return out;
  }
  template <class Source>
  static DatasetPtr make(Source source) {
    DatasetOptions options;
    options.source = std::move(source);
    return make_dataset(options);
  }
  static std::vector<int64_t> values(const Dataset& dataset, int64_t index, size_t field) {
    Sample sample;
    dataset.read(index, {}, sample);
    const Value& value = sample[field];
    std::vector<int64_t> out;
    for (int64_t i = 0; i < value.size(); ++i) out.push_back(static_cast<int64_t>(value.number(i)));
    return out;
  }
  template <class Call>
  static std::string error_of(Call&& call, ErrorCode code) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    return "no error";
  }

  using Ids = std::vector<int64_t>;
  std::string folder_, tokenizer_;
};

TEST_F(TokenData, TextInSubwordsOfSeveralFiles) {
  const std::string first = file("a1/part.txt", "the cat");
  file("a2/part.txt", " and the hat");
  TextOptions text{.path = folder_ + "/a*/p?rt.txt",
                   .context = 3,
                   .windows = TextWindows::kConsecutive,
                   .tokenizer = {tokenizer_}};
  const auto data = make(text);
  Ids all = ids_of("the cat");
  for (const int64_t id : ids_of(" and the hat")) all.push_back(id);
  EXPECT_EQ(data->fields()[0].class_count, 268);
  EXPECT_EQ(data->paths().size(), 2U);
  EXPECT_EQ(values(*data, 0, 0), Ids(all.begin(), all.begin() + 3));
  EXPECT_EQ(values(*data, 0, 1), Ids(all.begin() + 1, all.begin() + 4));
  // Characters and bytes of several files, too; the vocabulary is that of all.
  text.tokenizer = {};
  EXPECT_EQ(make(text)->vocabulary(0)->size(), 8);
  text.level = TextLevel::kBytes;
  EXPECT_EQ(values(*make(text), 2, 0), (Ids{'t', ' ', 'a'}));
  text.path = folder_ + "/b*/part.txt";
  EXPECT_NE(error_of([&] { make(text); }, ErrorCode::kData).find("no file matches"),
            std::string::npos);
}

TEST_F(TokenData, DocumentsStayApart) {
  const std::string path = file("d.jsonl", "{\"text\": \"the\"}\n\n{\"text\": \" cat and\"}\n");
  TextOptions text{.path = path,
                   .context = 4,
                   .windows = TextWindows::kConsecutive,
                   .tokenizer = {tokenizer_},
                   .documents = TextDocuments::kRecords,
                   .key = "text"};
  Ids row;
  for (const char* each : {"the", " cat and"}) {
    for (const int64_t id : ids_of(each)) row.push_back(id);
    row.push_back(0);  // <|endoftext|>
  }
  ASSERT_GE(row.size(), 5U);
  const auto data = make(text);
  EXPECT_EQ(data->fields().size(), 4U);
  const auto first = static_cast<size_t>(ids_of("the").size());
  EXPECT_EQ(values(*data, 0, 0), Ids(row.begin(), row.begin() + 4));
  const Ids targets = values(*data, 0, 1), segments = values(*data, 0, 2),
            positions = values(*data, 0, 3);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(targets[i], i == first ? -100 : row[i + 1]);
    EXPECT_EQ(segments[i], i <= first ? 1 : 2);
    EXPECT_EQ(positions[i], static_cast<int64_t>(i <= first ? i : i - first - 1));
  }
  text.key = "body";
  EXPECT_NE(error_of([&] { make(text); }, ErrorCode::kData).find("d.jsonl:1: expected a text at"),
            std::string::npos);
  text.end_token = "<none>";
  EXPECT_NE(error_of([&] { make(text); }, ErrorCode::kConfig).find("'<none>' is not in the"),
            std::string::npos);
  text.tokenizer = {};
  EXPECT_NE(error_of([&] { make(text); }, ErrorCode::kConfig).find("needs a `tokenizer`"),
            std::string::npos);
}

TEST_F(TokenData, FilesOfTokensAreOneRow) {
  ids_file("t1.bin", {1, 2, 3});
  ids_file("t2.bin", {4, 5, 6, 7});
  TokensOptions tokens{.path = folder_ + "/t?.bin", .vocabulary_size = 8};
  tokens.windows = {.context = 3, .windows = TextWindows::kConsecutive};
  const auto data = make(tokens);
  EXPECT_EQ(data->size(), 2);
  EXPECT_EQ(values(*data, 1, 0), (Ids{4, 5, 6}));
  EXPECT_EQ(values(*data, 0, 1), (Ids{2, 3, 4}));
  EXPECT_EQ(data->location(1), folder_ + "/t2.bin, token 0");
  tokens.end_token = "4";
  EXPECT_EQ(values(*make(tokens), 1, 2), (Ids{1, 2, 2}));
  EXPECT_EQ(values(*make(tokens), 1, 1), (Ids{-100, 6, 7}));
  tokens.end_token = "8";
  EXPECT_NE(error_of([&] { make(tokens); }, ErrorCode::kConfig).find("end_token is 8"),
            std::string::npos);
  tokens = {.path = folder_ + "/t2.bin", .vocabulary_size = 6};
  tokens.windows = {.context = 3, .windows = TextWindows::kConsecutive};
  EXPECT_EQ(error_of([&] { values(*make(tokens), 0, 0); }, ErrorCode::kData),
            folder_ + "/t2.bin: token 2 is 6, expected ids below 6 (`vocabulary_size`)");
  tokens.vocabulary_size = 0;
  EXPECT_NE(error_of([&] { make(tokens); }, ErrorCode::kConfig).find("give `vocabulary_size`"),
            std::string::npos);
  tokens = {.path = file("odd.bin", "abc"), .vocabulary_size = 8};
  EXPECT_NE(error_of([&] { make(tokens); }, ErrorCode::kData).find("has 3 bytes"),
            std::string::npos);
  tokens = {.path = file("wide.bin", std::string("\1\0\1\0\2\0\0\0", 8)),
            .width = 4,
            .vocabulary_size = 1 << 20};
  tokens.windows = {.context = 1};
  EXPECT_EQ(values(*make(tokens), 0, 0), (Ids{65537}));
}

TEST_F(TokenData, PartsOfARowDoNotOverlap) {
  DatasetOptions options;
  TokensOptions tokens{.path = ids_file("p.bin", std::vector<uint16_t>(100, 1)),
                       .vocabulary_size = 2};
  tokens.windows.context = 4;
  options.source = tokens;
  options.split = {{"train", 0.9}, {"valid", 0.1}};
  std::vector<std::vector<bool>> used;
  for (const char* part : {"train", "valid"}) {
    options.part = part;
    used.push_back(make_dataset(options)->used_sources());
  }
  EXPECT_EQ(std::count(used[0].begin(), used[0].end(), true), 90);
  for (size_t i = 0; i < 100; ++i) EXPECT_NE(used[0][i], used[1][i]);
}

TEST_F(TokenData, TextColumnsInSubwords) {
  CsvField field{.name = "x", .kind = ColumnKind::kText, .max_length = 3};
  field.tokenizer.path = tokenizer_;
  CsvFileOptions csv{.path = file("c.csv", "x\nthe cat\n\"the hat, the cat\"\n\"\"\n")};
  csv.fields = {field};
  const auto data = make(csv);
  EXPECT_EQ(data->fields()[0].class_count, 268);
  EXPECT_EQ(data->vocabulary(0), nullptr);
  EXPECT_EQ(values(*data, 0, 0), ids_of("the cat"));
  Ids cut = ids_of("the hat, the cat");
  cut.resize(3);
  EXPECT_EQ(values(*data, 1, 0), cut);
  EXPECT_EQ(values(*data, 2, 0), Ids());
  // [CLS] … [SEP] of BERT stay around a text that is cut.
  csv.fields[0].tokenizer.path = "tests/text/data/bert.json";
  EXPECT_EQ(values(*make(csv), 1, 0).front(), 2);
  EXPECT_EQ(values(*make(csv), 1, 0).back(), 3);
  EXPECT_EQ(values(*make(csv), 1, 0).size(), 3U);
  csv.fields[0].special_tokens = false;
  EXPECT_NE(values(*make(csv), 1, 0).front(), 2);
}

TEST_F(TokenData, TheTokenizerIsKeptWithWhatWasFitted) {
  const std::string text = file("t.txt", "the cat and the hat");
  const auto trained = make(TextOptions{.path = text, .context = 2, .tokenizer = {tokenizer_}});
  const std::string kept = folder_ + "/model";
  ensure_directory(kept);
  write_fitted(kept, trained->fitted());
  fs::remove(tokenizer_);
  const std::vector<Fitted> fitted = read_fitted(kept + "/fitted.json");
  ASSERT_TRUE(fitted.at(0).tokenizer);
  DatasetOptions options;
  options.source = TextOptions{.path = text, .context = 2, .tokenizer = {tokenizer_}};
  apply_fitted(options, fitted);
  EXPECT_EQ(values(*make_dataset(options), 0, 0), values(*trained, 0, 0));
  fs::remove_all(kept + "/tokenizer");
  EXPECT_NE(error_of([&] { read_fitted(kept + "/fitted.json"); }, ErrorCode::kModel)
                .find("the folder of the tokenizer is missing"),
            std::string::npos);
  file("model/fitted.json", R"({"version": 1, "fields": [{"name": "x", "tokenizer": "../t"}]})");
  EXPECT_NE(error_of([&] { read_fitted(kept + "/fitted.json"); }, ErrorCode::kModel)
                .find("'../t' is not a folder next to it"),
            std::string::npos);
}

/// A list of strings as GGUF files hold it.
std::string raw_strings(const std::vector<std::string>& items) {
  const auto number = [](auto value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
  };
  std::string out = number(uint32_t{9}) + number(uint32_t{8}) + number(uint64_t{items.size()});
  for (const std::string& item : items) out += number(uint64_t{item.size()}) + item;
  return out;
}
std::string raw_string(const std::string& text) {
  return std::string("\10\0\0\0", 4) + raw_strings({text}).substr(16);
}

TEST_F(TokenData, EveryKindOfTokenizerIsKept) {
  std::vector<std::string> tokens;
  for (int b = 0; b < 256; ++b)
    tokens.push_back(tokenizers::byte_character(static_cast<unsigned char>(b)));
  tokens.insert(tokens.end(), {"th", "the"});
  const std::string gguf = folder_ + "/model.gguf";
  const std::string list = raw_strings(tokens), merges = raw_strings({"t h", "th e"}),
                    model = raw_string("gpt2"), pre = raw_string("gpt-2");
  formats::gguf::Writer(gguf, {},
                        {{"tokenizer.ggml.model", model},
                         {"tokenizer.ggml.pre", pre},
                         {"tokenizer.ggml.tokens", list},
                         {"tokenizer.ggml.merges", merges}},
                        32)
      .close();
  ASSERT_EQ(TextTokenizer::load(gguf)->encode("the", 9, true), (std::vector<int32_t>{257}));
  const std::string data = "tests/text/data/";
  for (const std::string& path :
       {data + "llama3.json", data + "unigram.model", data + "bert.json", gguf,
        data + "folders/spm_once", data + "folders/roberta", data + "folders/bert_cased"}) {
    const auto tokenizer = TextTokenizer::load(path);
    const std::string copy = folder_ + "/copy";
    tokenizer->save(copy);
    for (const char* text : {"the Straße 123", " <|end|> x"})
      EXPECT_EQ(TextTokenizer::load(copy)->encode(text, 100, true),
                tokenizer->encode(text, 100, true));
    fs::remove_all(copy);
  }
}

TEST_F(TokenData, SharedSamplesNeedAModelThatKeepsDocumentsApart) {
  const std::string path = file("c.jsonl",
                                "{\"q\": \"the\", \"a\": \" cat\"}\n"
                                "{\"q\": \"the\", \"a\": \" hat\"}\n");
  DatasetOptions options;
  ChatOptions chat{.path = path, .tokenizer = {tokenizer_}, .prompt = "q", .completion = "a"};
  options.source = chat;
  choose_packing(options, true);
  EXPECT_EQ(make_dataset(options)->size(), 1);
  options.source = chat;
  choose_packing(options, false);
  EXPECT_EQ(make_dataset(options)->size(), 2);
  chat.pack = true;
  options.source = chat;
  EXPECT_EQ(error_of([&] { choose_packing(options, false); }, ErrorCode::kConfig),
            "chat: records share samples, and the model has no input `segments` to keep them "
            "apart; remove `pack: true` or give the model one");
  TokensOptions tokens{.path = path, .vocabulary_size = 9, .end_token = "0"};
  options.source = tokens;
  EXPECT_NE(error_of([&] { choose_packing(options, false); }, ErrorCode::kConfig)
                .find("tokens: documents share samples"),
            std::string::npos);
}

}  // namespace
}  // namespace paddle::data
