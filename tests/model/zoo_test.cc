// The models of models/ and models/vision/ compared with PyTorch's: weights under PyTorch's names
// go through the committed rules, the model runs on them, and its ONNX file agrees with it.
// make_zoo.py wrote zoo/*.npz.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "convert/convert.h"
#include "exporter/export_job.h"
#include "formats/npz.h"
#include "formats/safetensors.h"
#include "program/model.h"

namespace paddle {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// Numbers by name and position, the same as those of `values` in make_zoo.py.
Array filled(const std::string& name, const Dims& shape, double gain = 1) {
  uint64_t seed = 14695981039346656037u;
  for (const char c : name) seed = (seed ^ static_cast<unsigned char>(c)) * 1099511628211u;
  double fan_in = 1;
  for (size_t i = 1; i < shape.size(); ++i) fan_in *= static_cast<double>(shape[i]);
  Array out = Array::empty(DType::kF32, shape);
  for (int64_t i = 0; i < out.size(); ++i) {
    uint64_t z = seed + 0x9E3779B97F4A7C15u * (static_cast<uint64_t>(i) + 1);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z = z ^ (z >> 31);
    double u = std::ldexp(static_cast<double>(z >> 11), -52) - 1;
    if (name.ends_with("running_var"))
      u = 1 + 0.5 * u;
    else if (shape.size() > 1)
      u = u * std::sqrt(6 / fan_in);
    else if (name.ends_with("weight"))
      u = 1 + 0.2 * u;
    else
      u = 0.1 * u;
    out.data<float>()[i] = static_cast<float>(gain * static_cast<double>(static_cast<float>(u)));
  }
  return out;
}

class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "paddle_zoo_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { fs::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

class Zoo : public testing::TestWithParam<const char*> {};

TEST_P(Zoo, AgreesWithPyTorchAndIsExported) {
  const Folder folder;
  const formats::NpzReader golden(std::string("tests/model/zoo/") + GetParam() + ".npz");
  const Array text = golden.read("case");
  const Json golden_case = Json::parse(text.data<uint8_t>(), text.data<uint8_t>() + text.size());

  formats::NamedArrays weights;
  for (const auto& weight : golden_case["weights"])
    weights.emplace_back(weight[0], filled(weight[0], weight[1].get<Dims>()));
  formats::write_safetensors(folder / "torch.safetensors", weights);
  convert::Options options;
  options.in = folder / "torch.safetensors";
  options.out = folder / "weights.safetensors";
  options.rules = "models/" + golden_case["rules"].get<std::string>();
  convert::run(options, {[](const std::string&) {}, [](const std::string&) {}});

  exporter::ExportJob job;
  job.model = "models/" + golden_case["model"].get<std::string>();
  job.load.overrides = golden_case["overrides"].get<std::vector<std::string>>();
  job.load.weights = folder / "weights.safetensors";
  const auto model = program::load_model(job.model, job.load);
  std::vector<Array> inputs;
  for (const auto& [name, type] : model->inputs()) {
    const Dims shape = golden_case["inputs"].at(name).get<Dims>();
    inputs.push_back(golden.contains("input." + name) ? golden.read("input." + name)
                                                      : filled(name, shape, 10));
    // Sizes of images are fixed in the file: few models take any.
    for (size_t i = 1; i < shape.size(); ++i)
      for (const std::string symbol : {"rows", "columns"})
        if (type.shape[i].text() == symbol) job.dims[symbol] = shape[i];
  }
  const auto& outputs = model->run(inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Array expected = golden.read("output." + model->outputs()[i]);
    ASSERT_EQ(outputs[i].shape, expected.shape);
    double largest = 0, error = 0;
    for (int64_t k = 0; k < expected.size(); ++k) {
      largest = std::max(largest, std::abs(expected.number(k)));
      error = std::max(error, std::abs(outputs[i].number(k) - expected.number(k)));
    }
    EXPECT_GT(largest, 0);
    EXPECT_LT(error, 1e-4 * largest) << model->outputs()[i];
  }

  job.output = folder / "model.onnx";
  job.checks = 2;
  std::vector<std::string> notes;
  const auto result =
      exporter::run_export(job, [&](const std::string& note) { notes.push_back(note); })[0];
  EXPECT_TRUE(result.passed());
  EXPECT_EQ(notes, std::vector<std::string>{});
  EXPECT_EQ(result.checks.size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(, Zoo,
                         testing::Values("alexnet", "vgg11", "vgg_bn", "squeezenet1_0",
                                         "squeezenet1_1", "mobilenet_v1", "mobilenet_v2",
                                         "mobilenet_v3_large", "mobilenet_v3_small", "resnet18",
                                         "resnet50", "resnext50", "wide_resnet", "densenet",
                                         "googlenet", "inception_v3", "shufflenet_v2",
                                         "efficientnet", "convnext", "vit", "unet", "bert"),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace
}  // namespace paddle
