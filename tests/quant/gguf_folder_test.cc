// Hugging Face folders as GGUF files: the logits of transformers (tests/llm/make_*.py).
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "formats/npz.h"
#include "llm/gguf_form.h"
#include "llm/language_model.h"
#include "quant/gguf_job.h"
#include "runtime/execute.h"

namespace paddle::quant {
namespace {

namespace fs = std::filesystem;
const std::string kData = "tests/llm/data/";

std::string scratch(const std::string& name) {
  return (fs::temp_directory_path() / str("paddle_gguf_folder_", getpid(), "_", name)).string();
}

/// The tensors in the types of the folder.
std::string gguf_of(const std::string& folder) {
  GgufJob job;
  job.model = folder;
  job.output = scratch("model.gguf");
  job.type = "q8_0";
  job.keep_float = {"*"};
  job.overwrite = true;
  quantize_gguf(job, false, [](const Step&) {});
  return job.output;
}

Array logits_of(const std::string& model, const std::string& family, const Array& tokens) {
  runtime::register_backends();
  const llm::LanguageModel opened =
      llm::open_language_model(model, {"models/llm/" + family + ".yaml", {}});
  return opened.model->run({tokens})[0].contiguous();
}

void expect_near(const Array& found, const Array& wanted) {
  ASSERT_EQ(found.shape, wanted.shape);
  float largest = 0, difference = 0;
  for (int64_t i = 0; i < wanted.size(); ++i) {
    largest = std::max(largest, std::abs(wanted.data<float>()[i]));
    difference = std::max(difference, std::abs(wanted.data<float>()[i] - found.data<float>()[i]));
  }
  EXPECT_LE(difference, 2e-5F * largest);
}

struct Folder {
  std::string name, family = "llama";
};
class GgufFolders : public testing::TestWithParam<Folder> {};

TEST_P(GgufFolders, GiveTheLogitsOfTransformers) {
  const std::string folder = kData + GetParam().name;
  const formats::NpzReader golden(folder + "/golden.npz");
  expect_near(logits_of(gguf_of(folder), GetParam().family, golden.read("tokens")),
              golden.read("logits"));
  fs::remove(scratch("model.gguf"));
}

INSTANTIATE_TEST_SUITE_P(Models, GgufFolders,
                         testing::Values(Folder{"llama"}, Folder{"llama3"}, Folder{"qwen2"},
                                         Folder{"qwen3"}, Folder{"smollm3"}, Folder{"yarn"},
                                         Folder{"ernie4_5"}, Folder{"mixtral"}, Folder{"qwen2_moe"},
                                         Folder{"qwen3_moe"}, Folder{"phi3", "phi3"},
                                         Folder{"gpt2", "gpt2"}, Folder{"gpt_neox", "gpt_neox"},
                                         Folder{"bloom", "bloom"}, Folder{"falcon", "falcon"},
                                         Folder{"falcon_new", "falcon"}, Folder{"glm4", "glm4"},
                                         Folder{"starcoder2", "starcoder2"}),
                         [](const auto& info) { return info.param.name; });

/// A copy of a folder with other text in its config.
std::string changed(const std::string& name, const std::string& from, const std::string& to) {
  const std::string folder = scratch(name);
  fs::remove_all(folder);
  fs::copy(kData + name, folder);
  std::stringstream text;
  text << std::ifstream(folder + "/config.json").rdbuf();
  std::string config = text.str();
  const size_t place = config.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  config.replace(place, from.size(), to);
  std::ofstream(folder + "/config.json") << config;
  return folder;
}

// Norms of Gemma have an offset that GGUF's weights contain.
TEST(GgufFolder, OfGemmaGivesTheLogitsOfTheFolder) {
  const std::string folder =
      changed("gemma2", "\"query_pre_attn_scalar\": 10", "\"query_pre_attn_scalar\": 8");
  const Array tokens = formats::NpzReader(kData + "gemma2/golden.npz").read("tokens");
  expect_near(logits_of(gguf_of(folder), "gemma", tokens), logits_of(folder, "gemma", tokens));
  fs::remove_all(folder);
}

// LongRoPE: frequencies of long texts, and of short ones where the context holds no others.
TEST(GgufFolder, OfLongRopeGivesTheLogitsOfTransformers) {
  const std::string folder = kData + "phi3_longrope", file = gguf_of(folder);
  const formats::NpzReader longer(folder + "/golden.npz"), shorter(folder + "/golden_short.npz");
  expect_near(logits_of(file, "phi3", longer.read("tokens")), longer.read("logits"));
  const llm::LanguageModel model = llm::open_language_model(
      file, {"models/llm/phi3.yaml", {}, llm::Activations::kInt16, {.context = 8}});
  expect_near(model.model->run({shorter.read("tokens")})[0].contiguous(), shorter.read("logits"));
  fs::remove(file);
}

// A window that GGUF's architecture does not have bounds the context instead.
TEST(GgufFolder, OfMistralHasTheContextOfItsWindow) {
  const llm::GgufForm form(kData + "mistral");
  EXPECT_EQ(form.architecture(), "llama");
  const auto values = form.metadata().values();
  const auto context = std::find_if(values.begin(), values.end(), [](const auto& each) {
    return each.key == "llama.context_length";
  });
  ASSERT_NE(context, values.end());
  EXPECT_EQ(context->bytes, std::string_view("\x04\0\0\0\x05\0\0\0", 8));
}

TEST(GgufFolder, IsRejectedWhereTheFileWouldComputeSomethingElse) {
  const auto rejected = [](const std::string& folder, const std::string& why) {
    try {
      llm::GgufForm form(folder);
      ADD_FAILURE() << folder << " is not rejected";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kModel) << e.what();
      EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
    }
  };
  rejected(kData + "gemma2", "query_scale=10, which a GGUF file of the architecture 'gemma2'");
  rejected(kData + "opt", "models of type 'opt' are not written as GGUF files");
  rejected(kData + "bert", "models of type 'bert' are not written as GGUF files");
  rejected(kData + "dynamic", "written as GGUF files only where params.rope_type");
  rejected(kData + "glm4_yarn", "only where params.rope_type == \"default\"");
  const std::string shorter = changed("phi3_longrope", "1.3,\n      1.6", "1.3");
  rejected(shorter, "short_factor of LongRoPE has 3 numbers, expected 4");
  fs::remove_all(shorter);
  rejected(kData + "falcon_rw", "only where params.parallel");
}

TEST(GgufFolder, RowsTakeTheOrderOfGguf) {
  using Rows = std::vector<int64_t>;
  EXPECT_EQ(llm::row_order(llm::RowOrder::kNeighbors, 8, 2, 0), Rows({0, 2, 1, 3, 4, 6, 5, 7}));
  EXPECT_EQ(llm::row_order(llm::RowOrder::kThirds, 6, 2, 0), Rows({0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(llm::row_order(llm::RowOrder::kGroups, 8, 4, 2), Rows({0, 1, 4, 5, 2, 6, 3, 7}));
  EXPECT_THROW(llm::row_order(llm::RowOrder::kNeighbors, 7, 2, 0), Error);
  EXPECT_THROW(llm::row_order(llm::RowOrder::kGroups, 8, 4, 3), Error);
}

}  // namespace
}  // namespace paddle::quant
