// The names that `paddle get` knows, and how repositories are named.

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "hub/catalog.h"
#include "hub/huggingface.h"

namespace paddle::hub {
namespace {

TEST(Catalog, WeightsBelongToModelsAndRules) {
  const auto all = list_weights();
  EXPECT_GE(all.size(), 50u);
  for (const Weights& each : all) {
    const std::string model = each.model.substr(0, each.model.find(':'));
    EXPECT_TRUE(file_exists(join_path("models", model))) << each.name;
    EXPECT_TRUE(each.rules.empty() || file_exists(join_path("models", each.rules))) << each.name;
    ASSERT_EQ(each.files.size(), 1u) << each.name;
    // torchvision's names end with the first digits of the hash.
    EXPECT_NE(each.files[0].path.find("-" + each.files[0].sha256 + ".pth"), std::string::npos)
        << each.name;
    EXPECT_TRUE(each.files[0].url.ends_with("/" + each.files[0].path)) << each.name;
  }
}

TEST(Catalog, FilesOfDataSetsHaveSizesAndWholeHashes) {
  int files = 0;
  for (const std::string& name : data::dataset_names()) {
    const auto source = data::find_dataset_origin(name);
    ASSERT_TRUE(source) << name;
    for (const data::RemoteFile& file : source->files) {
      ++files;
      EXPECT_TRUE(file.size) << name;
      EXPECT_EQ(file.sha256.size(), 64u) << name;
      EXPECT_EQ(data::dataset_with_file(file.path), name);
    }
  }
  EXPECT_GE(files, 4);
  EXPECT_EQ(data::dataset_with_file("nothing.txt"), "");
}

TEST(Repository, IsParsed) {
  const Repository plain = parse_repository("hf:owner/Some.name-1");
  EXPECT_EQ(plain.name, "owner/Some.name-1");
  EXPECT_EQ(plain.revision, "main");
  EXPECT_FALSE(plain.is_dataset);
  const Repository data = parse_repository("hf:datasets/owner/name@refs/pr/1");
  EXPECT_TRUE(data.is_dataset);
  EXPECT_EQ(data.revision, "refs/pr/1");
  for (const char* wrong : {"hf:", "hf:owner", "hf:owner/", "hf:/name", "hf:a/b/c", "hf:../x",
                            "hf:owner/na me", "hf:owner/name@", "hf:owner/name@../../x"})
    EXPECT_THROW(parse_repository(wrong), Error) << wrong;
}

TEST(Repository, WhatAModelNeedsIsChosen) {
  const auto names = [](const std::vector<HubFile>& files) {
    std::vector<std::string> out;
    for (const HubFile& file : files) out.push_back(file.path);
    return out;
  };
  const auto chosen = [&](const std::vector<std::string>& paths) {
    std::vector<HubFile> files;
    for (const std::string& path : paths) files.push_back({path, 1, ""});
    return names(choose_files({false, "a/b"}, files, {}));
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(chosen({"config.json", "model.safetensors", "pytorch_model.bin", "onnx/model.onnx",
                    "README.md", "1_Pooling/config.json", "tf_model.h5"}),
            (Names{"config.json", "model.safetensors", "1_Pooling/config.json"}));
  EXPECT_EQ(chosen({"config.json", "pytorch_model.bin", "training_args.bin"}),
            (Names{"config.json", "pytorch_model.bin"}));
  EXPECT_EQ(chosen({"config.json", "m.gguf"}), (Names{"m.gguf"}));
  EXPECT_THROW(chosen({"a.gguf", "b.gguf"}), Error);
  EXPECT_THROW(chosen({"README.md"}), Error);
}

}  // namespace
}  // namespace paddle::hub
