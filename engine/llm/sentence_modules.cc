#include "llm/sentence_modules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "convert/source.h"
#include "formats/gguf/reader.h"
#include "text/json_value.h"

namespace paddle::llm {

namespace {

constexpr uint64_t kMaxSettingsBytes = uint64_t{1} << 20;

Json settings_of(const std::string& path) {
  Json content = read_json_file(path, kMaxSettingsBytes);
  if (content.kind != Json::Kind::kObject) fail(ErrorCode::kModel, path, ": is not a JSON object");
  return content;
}

/// The poolings that a module's file switches on.
void read_poolings(const std::string& path, SentenceModules& modules) {
  const Json content = settings_of(path);
  const JsonValue file(content, path);
  static const std::pair<const char*, Pooling> kModes[] = {
      {"cls_token", Pooling::kFirst},
      {"max_tokens", Pooling::kMax},
      {"mean_tokens", Pooling::kMean},
      {"mean_sqrt_len_tokens", Pooling::kMeanByRoot},
      {"weightedmean_tokens", Pooling::kWeightedMean},
      {"lasttoken", Pooling::kLast}};
  const std::string prefix = "pooling_mode_";
  modules.poolings.clear();
  bool any = false;
  for (const auto& [name, pooling] : kModes) {
    const JsonValue mode = file.get(prefix + name);
    any |= !mode.is_null();
    if (mode.boolean_or(false)) modules.poolings.push_back(pooling);
  }
  for (const auto& [key, value] : content.entries) {
    const bool known =
        std::any_of(std::begin(kModes), std::end(kModes),
                    [&, name = key](const auto& mode) { return name == prefix + mode.first; });
    if (key.starts_with(prefix) && !known && value.boolean)
      file.get(key).reject("this pooling is not supported");
  }
  // Older files name one mode, newer ones may too.
  if (const JsonValue mode = file.get("pooling_mode"); !any && !mode.is_null()) {
    static const std::map<std::string, Pooling> names = {
        {"cls", Pooling::kFirst},
        {"max", Pooling::kMax},
        {"mean", Pooling::kMean},
        {"mean_sqrt_len_tokens", Pooling::kMeanByRoot},
        {"weightedmean", Pooling::kWeightedMean},
        {"lasttoken", Pooling::kLast}};
    const auto found = names.find(mode.text());
    if (found == names.end()) mode.reject("'" + mode.text() + "' is not supported");
    modules.poolings = {found->second};
  }
  if (modules.poolings.empty()) fail(ErrorCode::kModel, path, ": no pooling is switched on");
  if (!file.get("include_prompt").boolean_or(true) && !modules.prompt.empty())
    file.get("include_prompt").reject("pooling without the tokens of the prompt is not supported");
}

DenseLayer::Activation activation_of(const JsonValue& value) {
  using Activation = DenseLayer::Activation;
  const std::string& name = value.text();
  const std::string last = name.substr(name.rfind('.') + 1);
  static const std::map<std::string, Activation> known = {{"Identity", Activation::kNone},
                                                          {"Tanh", Activation::kTanh},
                                                          {"ReLU", Activation::kRelu},
                                                          {"GELU", Activation::kGelu},
                                                          {"Sigmoid", Activation::kSigmoid}};
  const auto found = known.find(last);
  if (found == known.end()) value.reject("'" + name + "' is not supported");
  return found->second;
}

/// A layer of the module's folder for vectors of `features` numbers.
DenseLayer read_dense(const std::string& folder, int64_t features) {
  const std::string path = folder + "/config.json";
  const Json content = settings_of(path);
  const JsonValue file(content, path);
  DenseLayer out;
  out.features = file.at("in_features").integer();
  out.outputs = file.at("out_features").integer();
  if (out.features != features)
    file.get("in_features")
        .reject(str("is ", out.features, ", the vectors have ", features, " numbers"));
  out.activation = activation_of(file.at("activation_function"));
  const bool biased = file.get("bias").boolean_or(true);
  std::string weights = folder + "/model.safetensors";
  if (!file_exists(weights)) weights = folder + "/pytorch_model.bin";
  if (!file_exists(weights))
    fail(ErrorCode::kModel, folder, ": has neither model.safetensors nor pytorch_model.bin");
  const auto source = convert::open_source(
      weights, weights.ends_with(".bin") ? convert::Format::kTorch : convert::Format::kSafetensors);
  const auto read = [&](const std::string& name, const Dims& shape) {
    const auto& tensors = source->tensors();
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const auto& tensor) { return tensor.name == name; });
    if (found == tensors.end()) fail(ErrorCode::kModel, weights, ": has no '", name, "'");
    if (found->shape != shape)
      fail(ErrorCode::kModel, weights, ": '", name, "' is ", str(found->shape), ", expected ",
           str(shape));
    const Array value =
        source->read(static_cast<size_t>(found - tensors.begin())).cast(DType::kF32).contiguous();
    return std::vector<float>(value.data<float>(), value.data<float>() + value.size());
  };
  out.weight = read("linear.weight", {out.outputs, out.features});
  if (biased) out.bias = read("linear.bias", {out.outputs});
  return out;
}

double activated(double x, DenseLayer::Activation activation) {
  using Activation = DenseLayer::Activation;
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kGelu:
      return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
  }
  return x;
}

/// The default prompt of config_sentence_transformers.json, which stands in front of all texts.
std::string default_prompt(const std::string& folder) {
  const std::string path = folder + "/config_sentence_transformers.json";
  if (!file_exists(path)) return "";
  const Json content = settings_of(path);
  const JsonValue file(content, path);
  const JsonValue name = file.get("default_prompt_name");
  return name.is_null() ? "" : file.at("prompts").at(name.text()).text();
}

/// The files of the module Transformer: how texts are read.
void read_text_settings(const std::string& folder, SentenceModules& modules) {
  const std::string path = folder + "/sentence_bert_config.json";
  if (!file_exists(path)) return;
  const Json content = settings_of(path);
  const JsonValue file(content, path);
  modules.most_tokens = std::max<int64_t>(file.get("max_seq_length").integer_or(0), 0);
  modules.lower_case = file.get("do_lower_case").boolean_or(false);
}

std::string with_slash(const std::string& folder, const std::string& name) {
  return name.empty() ? folder : folder + "/" + name;
}

/// The modules of modules.json, in their order.
void read_modules(const std::string& folder, int64_t hidden_width, SentenceModules& modules) {
  const std::string path = folder + "/modules.json";
  const Json list = read_json_file(path, kMaxSettingsBytes);
  modules.normalize = false;
  modules.strips = true;
  bool pooled = false, encoded = false;
  for (const JsonValue& item : JsonValue(list, path).items()) {
    const std::string& type = item.at("type").text();
    const std::string kind = type.substr(type.rfind('.') + 1);
    const std::string place = item.get("path").text_or("");
    if (std::any_of(place.begin(), place.end(), [](char c) { return c == '/' || c == '\\'; }) ||
        place == "..")
      item.get("path").reject("'" + place + "' is not a folder next to the file");
    const bool early = kind == "Transformer" ? encoded : kind == "Pooling" ? pooled : !pooled;
    if (early || modules.normalize)
      item.at("type").reject("'" + type + "' is not supported at this place");
    if (kind == "Transformer") {
      if (!place.empty() && file_exists(with_slash(folder, place) + "/config.json"))
        item.get("path").reject("a model in a folder of its own is not supported");
      encoded = true;
    } else if (kind == "Pooling") {
      read_poolings(with_slash(folder, place) + "/config.json", modules);
      pooled = true;
    } else if (kind == "Dense") {
      modules.layers.push_back(read_dense(with_slash(folder, place), modules.width(hidden_width)));
    } else if (kind == "Normalize") {
      modules.normalize = true;
    } else if (kind != "Dropout") {  // which does nothing but in training
      item.at("type").reject("'" + type + "' is not supported");
    }
  }
  if (!pooled) fail(ErrorCode::kModel, path, ": there is no module for pooling");
}

}  // namespace

int64_t SentenceModules::width(int64_t hidden_width) const {
  return layers.empty() ? hidden_width * std::ssize(poolings) : layers.back().outputs;
}

std::vector<float> SentenceModules::vector_of(const float* hidden, int64_t count,
                                              int64_t hidden_width) const {
  std::vector<double> x;
  for (const Pooling pooling : poolings) {
    const size_t begin = x.size();
    const bool is_max = pooling == Pooling::kMax;
    x.resize(begin + static_cast<size_t>(hidden_width),
             is_max ? -std::numeric_limits<double>::infinity() : 0);
    const int64_t first = pooling == Pooling::kLast ? count - 1 : 0;
    const int64_t last = pooling == Pooling::kFirst ? 1 : count;
    double weights = 0;
    for (int64_t t = first; t < last; ++t) {
      const double weight = pooling == Pooling::kWeightedMean ? static_cast<double>(t + 1) : 1;
      weights += weight;
      for (int64_t i = 0; i < hidden_width; ++i) {
        double& to = x[begin + static_cast<size_t>(i)];
        const double value = hidden[t * hidden_width + i];
        to = is_max ? std::max(to, value) : to + weight * value;
      }
    }
    const double divisor = is_max                            ? 1
                           : pooling == Pooling::kMeanByRoot ? std::sqrt(weights)
                                                             : weights;
    for (size_t i = begin; i < x.size(); ++i) x[i] /= divisor;
  }
  for (const DenseLayer& layer : layers) {
    std::vector<double> y(static_cast<size_t>(layer.outputs));
    for (size_t o = 0; o < y.size(); ++o) {
      double sum = layer.bias.empty() ? 0 : layer.bias[o];
      for (size_t i = 0; i < x.size(); ++i)
        sum += static_cast<double>(layer.weight[o * x.size() + i]) * x[i];
      y[o] = activated(sum, layer.activation);
    }
    x = std::move(y);
  }
  double scale = 1;
  if (normalize) {
    double squares = 0;
    for (const double value : x) squares += value * value;
    if (squares > 0) scale = 1 / std::sqrt(squares);
  }
  std::vector<float> out;
  for (const double value : x) out.push_back(static_cast<float>(value * scale));
  return out;
}

SentenceModules read_sentence_modules(const std::string& folder, int64_t hidden_width) {
  SentenceModules out;
  out.prompt = default_prompt(folder);
  read_text_settings(folder, out);
  if (file_exists(folder + "/modules.json"))
    read_modules(folder, hidden_width, out);
  else if (const std::string pooling = folder + "/1_Pooling/config.json"; file_exists(pooling))
    read_poolings(pooling, out);
  return out;
}

SentenceModules read_gguf_pooling(const std::string& path) {
  enum : int64_t { kNone, kMean, kFirst, kLast };
  const auto file = formats::gguf::Reader::open(path);
  const std::string key = file.text("general.architecture").value_or("") + ".pooling_type";
  const int64_t type = file.integer(key).value_or(kNone);
  SentenceModules out;
  if (type == kFirst)
    out.poolings = {Pooling::kFirst};
  else if (type == kLast)
    out.poolings = {Pooling::kLast};
  else if (type != kNone && type != kMean)
    file.reject(str(key, " is ", type, ", expected 0 to 3: none, mean, first or last token"));
  return out;
}

}  // namespace paddle::llm
