#include "tune/language_model.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/parallel.h"
#include "base/text.h"
#include "llm/benchmark.h"

namespace paddle::tune {
namespace {

using Tokens = std::vector<tokenizers::TokenId>;

/// Reads prompts and generates tokens, a part of a text at a time.
class TextRunner final : public Runner {
 public:
  TextRunner(const std::shared_ptr<llm::LoadedModel>& model, const llm::RunnerOptions& options,
             int64_t prefill, int64_t decode, int threads)
      : threads_(threads), decode_(decode) {
    set_thread_count(threads_);
    runner_ = std::make_unique<llm::Runner>(model, options);
    prompt_ = llm::any_tokens(prefill, runner_->vocab_size());
    texts();
  }

  double block(double seconds) override {
    using Clock = std::chrono::steady_clock;
    set_thread_count(threads_);
    const auto begin = Clock::now();
    double elapsed = 0;
    int64_t rounds = 0;
    while (rounds == 0 || elapsed < seconds) {
      texts();
      ++rounds;
      elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
    }
    const int64_t tokens = static_cast<int64_t>(prompt_.size()) + decode_;
    return elapsed / static_cast<double>(rounds * runner_->sequences() * tokens);
  }

 private:
  void texts() {
    const int64_t streams = runner_->sequences();
    for (int64_t s = 0; s < streams; ++s) {
      runner_->truncate(s, 0);
      runner_->append(s, prompt_);
    }
    for (int64_t i = 0; i < decode_; ++i) {
      const auto& token = prompt_[static_cast<size_t>(i) % prompt_.size()];
      std::vector<llm::StepPart> parts;
      for (int64_t s = 0; s < streams; ++s) parts.push_back({s, {&token, 1}, 1});
      runner_->step(parts);
    }
  }

  int threads_;
  int64_t decode_;
  std::unique_ptr<llm::Runner> runner_;
  Tokens prompt_;
};

class LanguageModelTarget final : public TuningTarget {
 public:
  explicit LanguageModelTarget(LanguageModelOptions options)
      : options_(std::move(options)), model_(llm::load_shared(options_.model, options_.load)) {
    if (!model_)
      fail(ErrorCode::kUsage, options_.model,
           ": the model's family has no function 'step', which is what would be tuned");
    // A text that fits a short context, too.
    const int64_t longest = model_->context();
    options_.prefill = std::max<int64_t>(1, std::min(options_.prefill, longest * 7 / 8));
    options_.decode = std::max<int64_t>(1, std::min(options_.decode, longest - options_.prefill));
    name_ = model_->name().empty() ? std::filesystem::path(options_.model).stem().string()
                                   : model_->name();
    start_ = {{"threads", std::to_string(thread_count())},
              {"chunk", std::to_string(llm::Runner::kMaxRows)},
              {"streams", "1"},
              {"kv", "f32"}};
  }

  std::string name() const override { return name_; }
  std::string kind() const override { return "language model"; }
  std::vector<std::string> dimensions() const override {
    return {"threads", "chunk", "streams", "kv"};
  }
  Settings start() const override { return start_; }

  std::vector<Change> candidates(const std::string& dimension, const Settings& now,
                                 const Budget&) override {
    std::vector<Change> out;
    const auto add = [&](const char* key, const std::string& value) {
      if (now.at(key) != value) out.push_back({key, value});
    };
    if (dimension == "threads") {
      const int cores = available_cores();
      for (const int threads : {cores, (cores + 1) / 2, (cores + 3) / 4, 1})
        add("threads", std::to_string(threads));
    } else if (dimension == "chunk") {
      for (const int64_t chunk : {128, 64, 32})
        if (chunk < options_.prefill) add("chunk", std::to_string(chunk));
    } else if (dimension == "streams") {
      constexpr int64_t kMax = 64;
      const int64_t next = 2 * std::stoll(now.at("streams"));
      if (next <= kMax) add("streams", std::to_string(next));
    } else if (dimension == "kv") {
      for (const char* kind : {"bf16", "int8"}) add("kv", kind);
    }
    return out;
  }

  std::unique_ptr<Runner> open(const Settings& settings) override {
    return std::make_unique<TextRunner>(model_, runner_options(settings), options_.prefill,
                                        options_.decode, std::stoi(settings.at("threads")));
  }

  std::optional<std::string> rejection_reason(const Settings& now, const Change& change,
                                              const Budget&) override {
    if (change.key != "kv") return "";
    Settings settings = now;
    settings[change.key] = change.value;
    const double before = loss(now), after = loss(settings);
    const double moved = std::abs(after - before) / std::max(std::abs(before), 1e-12);
    if (moved <= options_.loss_tolerance) return "";
    return str("the mean loss of ", options_.prefill, " tokens moves by ",
               std::round(1000 * moved) / 10, "%, more than ", 100 * options_.loss_tolerance, "%");
  }

  bool same_bits(const Settings& a, const Settings& b) override { return logits(a) == logits(b); }

  std::string publish(const Change& change, const std::string&) override { return change.value; }

 private:
  llm::RunnerOptions runner_options(const Settings& settings) const {
    return {.sequences = std::stoll(settings.at("streams")),
            .context = options_.prefill + options_.decode,
            .cache = llm::cache_type(settings.at("kv")),
            .adapter = options_.load.runner.adapter,
            .chunk = std::stoll(settings.at("chunk"))};
  }

  /// Logits of all tokens of a prompt.
  std::vector<float> logits(const Settings& settings) {
    set_thread_count(std::stoi(settings.at("threads")));
    llm::RunnerOptions one = runner_options(settings);
    one.sequences = 1;
    llm::Runner runner(model_, one);
    std::vector<float> out(static_cast<size_t>(options_.prefill * runner.vocab_size()));
    runner.append_all(0, llm::any_tokens(options_.prefill, runner.vocab_size()), out.data());
    return out;
  }

  /// Mean loss of the tokens that the model itself finds most likely with keys and values in
  /// float32, under these settings.
  double loss(const Settings& settings) {
    if (likely_.empty()) {
      Settings exact = settings;
      exact["kv"] = "f32";
      const std::vector<float> reference = logits(exact);
      const size_t vocab_size = reference.size() / static_cast<size_t>(options_.prefill);
      for (size_t at = 0; at < reference.size(); at += vocab_size)
        likely_.push_back(static_cast<size_t>(
            std::max_element(reference.begin() + static_cast<ptrdiff_t>(at),
                             reference.begin() + static_cast<ptrdiff_t>(at + vocab_size)) -
            reference.begin() - static_cast<ptrdiff_t>(at)));
    }
    const std::vector<float> found = logits(settings);
    const size_t vocab_size = found.size() / likely_.size();
    double sum = 0;
    for (size_t i = 0; i < likely_.size(); ++i) {
      const float* const row = found.data() + i * vocab_size;
      const double most = *std::max_element(row, row + vocab_size);
      double normalizer = 0;
      for (size_t w = 0; w < vocab_size; ++w) normalizer += std::exp(row[w] - most);
      sum += std::log(normalizer) + most - row[likely_[i]];
    }
    return sum / static_cast<double>(likely_.size());
  }

  LanguageModelOptions options_;
  std::shared_ptr<llm::LoadedModel> model_;
  std::string name_;
  Settings start_;
  std::vector<size_t> likely_;
};

}  // namespace

std::unique_ptr<TuningTarget> language_model_target(LanguageModelOptions options) {
  return std::make_unique<LanguageModelTarget>(std::move(options));
}

}  // namespace paddle::tune
