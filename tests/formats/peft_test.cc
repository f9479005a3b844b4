// Patterns of adapters against PEFT's rule, re.match(rf"(.*\.)?({key})$", module), whose first
// match in the order of the file counts: alpha / r by peft.utils.get_pattern_key, with r 4 and
// alpha 16.
#include "formats/peft.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"

namespace paddle::formats {
namespace {

class PeftPatterns : public testing::Test {
 protected:
  PeftPatterns() : folder_(testing::TempDir() + "peft_patterns") {
    PeftOutput adapter;
    adapter.rank = 4;
    adapter.alpha = 16;
    adapter.factors.push_back({"model.layers.0.self_attn.q_proj.weight",
                               Array::zeros(DType::kF32, {4, 6}),
                               Array::zeros(DType::kF32, {5, 4})});
    write_peft(folder_, adapter);
  }
  ~PeftPatterns() override { std::filesystem::remove_all(folder_); }

  std::string error_of(const std::string& keys) {
    try {
      scale(keys, 0, "q_proj");
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kModel);
      return e.what();
    }
    return "none";
  }
  double scale(const std::string& keys, int layer, const std::string& module) {
    write_file_atomically(folder_ + "/adapter_config.json",
                          R"({"peft_type": "LORA", "r": 4, "lora_alpha": 16, )" + keys + "}");
    return PeftAdapter(folder_).scale_of("model.layers." + std::to_string(layer) + ".self_attn." +
                                         module + ".weight");
  }
  std::string folder_;
};

TEST_F(PeftPatterns, AreExpressionsInTheOrderOfTheFile) {
  EXPECT_EQ(scale(R"("alpha_pattern": {})", 0, "q_proj"), 4);
  EXPECT_EQ(scale(R"("alpha_pattern": {"q_proj": 64})", 0, "q_proj"), 16);
  EXPECT_EQ(scale(R"("alpha_pattern": {"proj": 64})", 0, "q_proj"), 4);
  EXPECT_EQ(scale(R"("alpha_pattern": {"q_proj": 64})", 0, "k_proj"), 4);
  const std::string first_layer = R"("alpha_pattern": {".*layers\\.0\\..*q_proj": 64})";
  EXPECT_EQ(scale(first_layer, 0, "q_proj"), 16);
  EXPECT_EQ(scale(first_layer, 1, "q_proj"), 4);
  EXPECT_EQ(scale(R"("alpha_pattern": {"^model.layers.0.self_attn.q_proj": 64})", 0, "q_proj"), 16);
  const std::string two_layers = R"("rank_pattern": {".*layers\\.[01]\\..*q_proj": 8})";
  EXPECT_EQ(scale(two_layers, 1, "q_proj"), 2);
  EXPECT_EQ(scale(two_layers, 2, "q_proj"), 4);
  EXPECT_EQ(scale(R"("alpha_pattern": {"q_.*|k_proj": 32})", 3, "k_proj"), 8);
  // The shorter key comes first in the file, though not in the alphabet.
  const std::string ordered = R"("alpha_pattern": {"q_proj": 64, "layers.0.self_attn.q_proj": 4})";
  EXPECT_EQ(scale(ordered, 0, "q_proj"), 16);
  EXPECT_EQ(scale(R"("use_rslora": true, "rank_pattern": {"q_proj": 16})", 0, "q_proj"), 4);
}

TEST_F(PeftPatterns, WhatIsNotComputedIsRejected) {
  EXPECT_NE(error_of(R"("alpha_pattern": {"(": 64})").find("alpha_pattern: '(': missing"),
            std::string::npos);
  EXPECT_NE(error_of(R"("rank_pattern": {"q_proj": 0})").find("rank_pattern: 'q_proj' is 0"),
            std::string::npos);
  EXPECT_NE(error_of(R"("rank_pattern": {"q_proj": "8"})").find("must be numbers"),
            std::string::npos);
  EXPECT_NE(error_of(R"("rank_pattern": {"(([a-z_.0-9])+)+zq_proj": 8})").find("too many steps"),
            std::string::npos);
  for (const char* key : {"\"layer_replication\": [[0, 1]]", "\"lora_bias\": true",
                          "\"alora_invocation_tokens\": [1]"})
    EXPECT_NE(error_of(key).find("is not supported"), std::string::npos) << key;
  EXPECT_EQ(error_of(R"("layer_replication": null, "lora_bias": false)"), "none");
}

}  // namespace
}  // namespace paddle::formats
