// The keys of config.json as published models of several families carry them, and what broken or
// unusual values of keys are answered with.
#include <gtest/gtest.h>

#include "base/error.h"
#include "llm/family.h"
#include "text/json_value.h"

namespace paddle::llm {
namespace {

ModelFiles files_of(const Json& config) {
  ModelFiles out;
  out.kind = "huggingface";
  out.config = "config.json";
  out.type = config.find("model_type")->text;
  for (const auto& [key, value] : config.entries) {
    out.variables.set(key, jinja::from_json(value));
    out.keys.push_back(key);
  }
  out.variables.set("tensors", jinja::Value::list({}));
  return out;
}

std::string error_of(const ModelFiles& files) {
  try {
    find_family(files, "");
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kModel) << e.what();
    return e.what();
  }
  return "";
}

TEST(FamilyKeys, PublishedModelsAreTaken) {
  const Json configs = read_json_file("tests/llm/data/published_configs.json");
  for (const auto& [name, config] : configs.entries)
    EXPECT_EQ(error_of(files_of(config)), "") << name;
  EXPECT_GT(configs.entries.size(), 25U);
}

TEST(FamilyKeys, ErrorsNameTheFileAndTheKey) {
  const Json configs = read_json_file("tests/llm/data/published_configs.json");
  const struct {
    const char *model, *key, *value, *error;
  } cases[] = {
      {"Llama 2", "num_attention_heads", "0",
       "config.json: num_attention_heads is 0: expected at least 1 for 'heads', found 0"},
      {"Llama 2", "num_attention_heads", "\"many\"", "num_attention_heads is 'many'"},
      {"Llama 2", "num_hidden_layers", "2.5", "num_hidden_layers is 2.5: expected an integer"},
      {"Llama 2", "num_hidden_layers", "-1", "num_hidden_layers is -1: expected a size"},
      {"Llama 2", "num_hidden_layers", "12345678901234567890", "expected a number of 64 bits"},
      {"Llama 2", "num_hidden_layers", "[1]", "num_hidden_layers is [1]: expected a finite number"},
      {"Llama 2", "num_hidden_layers", "true",
       "num_hidden_layers is True: expected a finite number"},
      {"Llama 2", "num_key_value_heads", "3", "not a multiple of those of keys and values, 3"},
      {"Llama 2", "rms_norm_eps", "\"NaN\"", "rms_norm_eps is 'NaN': expected a finite number"},
      {"Llama 2", "rms_norm_eps", "-1.0", "rms_norm_eps is -1.0: expected a number that is not"},
      {"Llama 2", "vocab_size", "null", "no value for the param 'vocab_size' (vocab_size)"},
      {"Llama 2", "hidden_act", "\"relu\"",
       "only where (hidden_act or \"silu\") == \"silu\"; hidden_act is 'relu'"},
      {"Llama 2", "quantization_config", "{\"bits\": 4}",
       "'quantization_config' are not supported"},
      {"Llama 2", "pruned_heads", "{\"0\": [1]}", "'pruned_heads' are not supported"},
      {"Llama 2", "residual_scale", "2.0", "does not know the key 'residual_scale'"},
      {"Llama 2", "_residual_scale", "2.0", ""},
      {"Llama 2", "rope_scaling", "{\"rope_type\": \"linear\", \"factor\": 2.0, \"turned\": 1}",
       "the key 'rope_scaling.turned'"},
      {"Qwen 2.5", "use_mrope", "true", "only where not use_mrope"},
      {"Phi-4 mini", "lm_head_bias", "true", "only where not lm_head_bias"},
      {"Gemma 2", "attn_logit_softcapping", "\"x\"",
       "attn_logit_softcapping is 'x': expected a finite"},
      {"OPT", "_remove_final_layer_norm", "true", "only where not _remove_final_layer_norm"},
      {"RoBERTa", "is_decoder", "true", "only where not is_decoder"}};
  for (const auto& each : cases) {
    Json config = *configs.find(each.model);
    std::erase_if(config.entries, [&](const auto& entry) { return entry.first == each.key; });
    config.entries.emplace_back(each.key, parse_json(each.value, "value"));
    const std::string error = error_of(files_of(config));
    EXPECT_NE(error.find(each.error), std::string::npos)
        << each.key << "=" << each.value << ": " << error;
    EXPECT_EQ(error.empty(), std::string(each.error).empty()) << each.key << ": " << error;
  }
  Json missing = *configs.find("Llama 2");
  std::erase_if(missing.entries,
                [](const auto& entry) { return entry.first == "intermediate_size"; });
  EXPECT_NE(error_of(files_of(missing)).find("config.json: intermediate_size is missing: "),
            std::string::npos);
}

}  // namespace
}  // namespace paddle::llm
