#include "llm/language_model.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "llm/whole_model.h"
#include "program/model_form.h"

namespace paddle::llm {

namespace {

/// A runner with the interface of models: each row of a batch is a sequence of its own.
class StepModel final : public program::Model {
 public:
  StepModel(std::shared_ptr<Runner> runner, std::string name) : runner_(std::move(runner)) {
    name_ = std::move(name);
    const Dim batch = Dim::symbol("batch"), length = Dim::symbol("length");
    inputs_ = {{"tokens", {DType::kI64, {batch, length}}}};
    outputs_ = {"logits"};
    declared_outputs_ = {{"logits", {DType::kF32, {batch, length, Dim(runner_->vocab_size())}}}};
  }

  int64_t parameter_count() const override { return runner_->model().parameter_count(); }

  const std::vector<Array>& run(const std::vector<Array>& inputs) override {
    const Array tokens = inputs.at(0).contiguous();
    const int64_t batch = tokens.shape[0], length = tokens.shape[1],
                  vocab_size = runner_->vocab_size();
    if (length > runner_->context())
      fail(ErrorCode::kData, "the input has ", length, " tokens; the context is ",
           runner_->context());
    results_ = {Array::empty(DType::kF32, {batch, length, vocab_size})};
    float* out = results_[0].data<float>();
    std::vector<tokenizers::TokenId> row(static_cast<size_t>(length));
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t* const from = tokens.data<int64_t>() + b * length;
      std::transform(from, from + length, row.begin(),
                     [](int64_t token) { return static_cast<tokenizers::TokenId>(token); });
      runner_->truncate(0, 0);
      runner_->append_all(0, row, out);
      out += length * vocab_size;
    }
    runner_->truncate(0, 0);
    return results_;
  }

  double flops(const std::vector<Array>& inputs) override {
    const Dims& shape = inputs.at(0).shape;
    return static_cast<double>(shape[0]) * runner_->flops(shape[1]);
  }

 private:
  std::shared_ptr<Runner> runner_;
  std::vector<Array> results_;
};

/// The model of a family without a function `step`: every call computes whole texts.
std::unique_ptr<program::Model> load_whole(const ModelFiles& files, const Family& family,
                                           const std::string& path,
                                           const program::LoadOptions& options) {
  const WholeModel whole = whole_model(files, family, path, options);
  std::unique_ptr<program::Model> model;
  build_model(family, files.config,
              [&] { model = program::load_model(whole.file, whole.options); });
  // Another function need not use all weights.
  if (options.function == "model") whole.weights->check_all_used();
  return model;
}

void check_options(const std::string& path, const program::LoadOptions& options) {
  if (!options.weights.empty())
    fail(ErrorCode::kUsage, "--weights is for model files; ", path, " has its own weights");
}

}  // namespace

bool is_language_model(const std::string& path) {
  return program::form_of_model(path) == program::ModelForm::kLanguage;
}

std::shared_ptr<LoadedModel> load_shared(const std::string& path, const ModelOptions& options) {
  check_options(path, options.load);
  const ModelFiles files = open_model_files(path);
  Family family = find_family(files, options.family);
  if (!family.has_step) return nullptr;
  return std::make_shared<LoadedModel>(files, std::move(family), path, options.load,
                                       options.activations, options.weights);
}

LanguageModel open_language_model(const std::string& path, const ModelOptions& options) {
  check_options(path, options.load);
  const ModelFiles files = open_model_files(path);
  Family family = find_family(files, options.family);
  LanguageModel out;
  out.end_tokens = files.end_tokens;
  out.context = family.context > 0 ? family.context : files.context;
  // Another function of the family's file computes whole texts.
  if (!family.has_step || options.load.function != "model") {
    if (options.runner.context > 0 || options.runner.cache != CacheType::kF32 ||
        options.runner.paged || options.weights != WeightType::kAsIs ||
        !options.runner.adapter.empty())
      fail(ErrorCode::kUsage,
           "--context, --kv, --cache, --weights-as and --adapter need a model family with a "
           "function "
           "'step'; ",
           family.file, " has none");
    out.model = load_whole(files, family, path, options.load);
    return out;
  }
  const auto loaded = std::make_shared<LoadedModel>(files, std::move(family), path, options.load,
                                                    options.activations, options.weights);
  out.runner = std::make_shared<Runner>(loaded, options.runner);
  out.context = out.runner->context();
  out.model = std::make_unique<StepModel>(out.runner, loaded->name());
  return out;
}

}  // namespace paddle::llm
