#include "llm/embedder.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "formats/gguf/reader.h"
#include "llm/family.h"
#include "llm/logits.h"
#include "text/json_value.h"
#include "text/load.h"

namespace paddle::llm {

namespace {

/// The pooling that a GGUF file names; the mean if it names none.
void read_gguf_pooling(const std::string& path, Pooling& pooling) {
  enum : int64_t { kNone, kMean, kFirst, kLast };
  const auto file = formats::gguf::Reader::open(path);
  const std::string key = file.text("general.architecture").value_or("") + ".pooling_type";
  const int64_t type = file.integer(key).value_or(kNone);
  if (type == kFirst)
    pooling = Pooling::kFirst;
  else if (type == kLast)
    pooling = Pooling::kLast;
  else if (type != kNone && type != kMean)
    file.refuse(str(key, " is ", type, ", expected 0 to 3: none, mean, first or last token"));
}

/// The settings of sentence-transformers beside the model, if there are any.
void read_pooling(const std::string& path, Pooling& pooling, bool& normalize, int64_t& context) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 20;
  const std::string modules = path + "/modules.json";
  if (file_exists(modules)) {
    const Json list = read_json_file(modules, kMostBytes);
    normalize = std::any_of(list.items.begin(), list.items.end(), [](const Json& each) {
      const Json* const type = each.find("type");
      return type && type->text.ends_with("Normalize");
    });
  }
  const std::string config = path + "/1_Pooling/config.json";
  if (file_exists(config)) {
    const Json content = read_json_file(config, kMostBytes);
    const auto is_on = [&](const char* key) {
      const Json* const value = content.find(key);
      return value && value->boolean;
    };
    if (is_on("pooling_mode_cls_token"))
      pooling = Pooling::kFirst;
    else if (is_on("pooling_mode_lasttoken"))
      pooling = Pooling::kLast;
    else if (!is_on("pooling_mode_mean_tokens"))
      fail(ErrorCode::kModel, config,
           ": the pooling is not supported; expected the mean of "
           "tokens, the first or the last one");
  }
  const std::string limits = path + "/sentence_bert_config.json";
  if (file_exists(limits)) {
    const Json content = read_json_file(limits, kMostBytes);
    const Json* const length = content.find("max_seq_length");
    if (length && length->kind == Json::Kind::kInteger && length->integer > 0)
      context = std::min(context, length->integer);
  }
}

}  // namespace

bool is_encoder(const std::string& path, const std::string& family) {
  return find_family(open_model_files(path), family).has_embed;
}

Embedder::Embedder(const std::string& path, const ModelOptions& options)
    : tokenizer_(tokenizers::load_tokenizer(path)) {
  if (!is_encoder(path, options.family))
    fail(ErrorCode::kUsage, path, ": is not an encoder; its family has no function 'embed'");
  ModelOptions embed = options;
  embed.load.function = "embed";
  LanguageModel opened = open_language_model(path, embed);
  model_ = std::move(opened.model);
  context_ = opened.context;
  if (is_directory(path))
    read_pooling(path, pooling_, normalize_, context_);
  else
    read_gguf_pooling(path, pooling_);
  const Shape& shape = model_->declared_outputs().at(0).second.shape;
  width_ = shape.back().constant().value_or(0);
}

std::vector<tokenizers::TokenId> Embedder::tokens(const std::string& text) const {
  auto out = tokenizer_.encode(text, {.special = true});
  if (static_cast<int64_t>(out.size()) > context_)
    fail(ErrorCode::kUsage, "the text has ", out.size(), " tokens; the model's context is ",
         context_);
  if (out.empty()) fail(ErrorCode::kUsage, "a text without tokens has no embedding");
  return out;
}

std::vector<float> Embedder::embed(const std::vector<tokenizers::TokenId>& tokens) {
  const std::lock_guard lock(mutex_);
  const auto count = static_cast<int64_t>(tokens.size());
  // A few lengths serve all texts, so that few plans do; the length of a text decides its own.
  const int64_t bin =
      std::max(kSmallestBin,
               std::min<int64_t>(static_cast<int64_t>(std::bit_ceil(tokens.size())), context_));
  Array input = Array::zeros(DType::kI64, {1, bin});
  std::copy(tokens.begin(), tokens.end(), input.data<int64_t>());
  const Array hidden =
      model_->run({input, Array::from<int64_t>({count}, {1})})[0].cast(DType::kF32).contiguous();
  const int64_t width = hidden.shape.back();
  std::vector<double> sums(static_cast<size_t>(width), 0);
  const int64_t first = pooling_ == Pooling::kLast ? count - 1 : 0;
  const int64_t last = pooling_ == Pooling::kFirst ? 1 : count;
  for (int64_t t = first; t < last; ++t)
    for (int64_t i = 0; i < width; ++i)
      sums[static_cast<size_t>(i)] += hidden.data<float>()[t * width + i];
  double scale = 1.0 / static_cast<double>(last - first);
  if (normalize_) {
    double squares = 0;
    for (const double x : sums) squares += x * x;
    scale = squares > 0 ? 1 / std::sqrt(squares) : 1;
  }
  std::vector<float> out;
  for (const double x : sums) out.push_back(static_cast<float>(x * scale));
  return out;
}

}  // namespace paddle::llm
