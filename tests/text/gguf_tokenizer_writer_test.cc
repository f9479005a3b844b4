// Tokenizers of folders in the metadata of GGUF files: the same ids as from the folder.
#include "text/gguf_tokenizer_writer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "formats/gguf/writer.h"
#include "text/load.h"
#include "text/unicode.h"

namespace paddle::tokenizers {
namespace {

namespace fs = std::filesystem;
const std::string kData = "tests/text/data/";

class GgufTokenizers : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / str("paddle_gguf_tokenizer_", getpid());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// A folder with this tokenizer.json.
  std::string folder_with(const nlohmann::json& content) {
    std::ofstream(folder_ / "tokenizer.json") << content.dump();
    return folder_.string();
  }
  std::string folder_of(const std::string& file) {
    return folder_with(nlohmann::json::parse(std::ifstream(kData + file)));
  }
  /// The file without tokens that depend on the text next to them.
  static nlohmann::json plain(const std::string& file) {
    auto tree = nlohmann::json::parse(std::ifstream(kData + file));
    auto& added = tree["added_tokens"];
    added.erase(std::remove_if(added.begin(), added.end(),
                               [](const auto& token) {
                                 return token["single_word"] == true || token["lstrip"] == true;
                               }),
                added.end());
    return tree;
  }
  Tokenizer written(const std::string& folder, int64_t words,
                    const std::vector<int64_t>& ends = {}) {
    formats::gguf::Metadata metadata;
    EXPECT_TRUE(add_gguf_tokenizer(folder, words, ends, metadata, notes_));
    file_ = (folder_ / "t.gguf").string();
    formats::gguf::Writer writer(file_, {}, metadata.values(), 32);
    writer.close();
    return read_gguf_tokenizer(formats::gguf::Reader::open(file_));
  }
  void expect_same(const std::string& folder, const std::string& texts) {
    const Tokenizer ours = load_tokenizer(folder);
    const Tokenizer theirs = written(folder, ours.vocabulary_size() + 3);
    EXPECT_EQ(theirs.vocabulary_size(), ours.vocabulary_size() + 3);
    std::ifstream lines(kData + texts);
    size_t compared = 0;
    for (std::string line; std::getline(lines, line);) {
      const auto text = nlohmann::json::parse(line)["text"].get<std::string>();
      // GGUF files have no normalizer.
      if (unicode::normalize(text, unicode::Form::kNfc) != text) continue;
      for (const bool special : {false, true}) {
        const auto ids = ours.encode(text, {.special = special});
        EXPECT_EQ(theirs.encode(text, {.special = special}), ids) << text;
        EXPECT_EQ(theirs.decode(ids), ours.decode(ids)) << text;
        ++compared;
      }
    }
    EXPECT_GT(compared, 20U);
  }

  fs::path folder_;
  std::string file_;
  std::vector<std::string> notes_;
};

TEST_F(GgufTokenizers, OfBytesGiveTheSameIds) {
  for (const char* name : {"llama3", "gpt4o"}) {
    SCOPED_TRACE(name);
    expect_same(folder_with(plain(str(name, ".json"))), str(name, ".golden.jsonl"));
  }
}

TEST_F(GgufTokenizers, OfCharactersGiveTheSameIds) {
  expect_same(folder_of("llama2.json"), "llama2.golden.jsonl");
}

TEST_F(GgufTokenizers, OfVocabularyFilesGiveTheSameIds) {
  for (const char* name : {"gpt2", "qwen2"}) {
    SCOPED_TRACE(name);
    expect_same(str(kData, "folders/", name), str("folders/", name, "/golden.jsonl"));
  }
}

TEST_F(GgufTokenizers, KeepTheEndsOfAnswersAndTheTemplate) {
  const std::string folder = folder_with(plain("llama3.json"));
  std::ofstream(folder_ / "tokenizer_config.json")
      << R"({"bos_token": "<s>", "eos_token": "<|end|>", "chat_template": "{{ messages }}"})";
  const Tokenizer ours = load_tokenizer(folder);
  const Tokenizer theirs = written(folder, 500, {*ours.end, 9});
  EXPECT_EQ(theirs.end, ours.end);
  EXPECT_EQ(theirs.beginning, ours.beginning);
  EXPECT_EQ(theirs.chat_template, "{{ messages }}");
  EXPECT_EQ(formats::gguf::Reader::open(file_).integer("tokenizer.ggml.eot_token_id"), 9);
}

TEST_F(GgufTokenizers, ThatGgufCannotDescribeAreRejected) {
  formats::gguf::Metadata metadata;
  const auto rejected = [&](const std::string& folder, const std::string& why, int64_t words) {
    try {
      add_gguf_tokenizer(folder, words, {}, metadata, notes_);
      ADD_FAILURE() << "not rejected: " << why;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kModel);
      EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
    }
  };
  rejected(folder_of("gpt2.json"), "a space in front", 1000);
  rejected(folder_of("bert.json"), "tokenizers of BPE", 1000);
  rejected(folder_of("splits.json"), "GGUF files", 1000);
  rejected(folder_with(plain("llama3.json")), "the model 50", 50);
  rejected(folder_of("gpt4o.json"), "single_word", 1000);
  rejected(kData + "folders/spm", "tokenizer.json", 1000);
  // A pattern that no GGUF file names, and merges that scores do not describe.
  auto tree = plain("llama3.json");
  tree["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "[a-z]+";
  rejected(folder_with(tree), "tokenizer.ggml.pre", 1000);
  tree = nlohmann::json::parse(std::ifstream(kData + "llama2.json"));
  auto& merges = tree["model"]["merges"];
  merges.push_back(merges[0]);
  rejected(folder_with(tree), "do not follow each other", 1000);
  fs::remove(folder_ / "tokenizer.json");
  EXPECT_FALSE(add_gguf_tokenizer(folder_.string(), 1000, {}, metadata, notes_));
}

}  // namespace
}  // namespace paddle::tokenizers
