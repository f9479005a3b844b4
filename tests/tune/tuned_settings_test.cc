// tuned.yaml of models and language models: what is read, and what is rejected where.

#include "tune/tuned_settings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "tune/report.h"

namespace paddle::tune {
namespace {

namespace fs = std::filesystem;

class TunedFile : public testing::Test {
 protected:
  TunedFile() { fs::create_directories(folder_); }
  ~TunedFile() override { fs::remove_all(folder_); }

  std::string path() const { return (folder_ / "tuned.yaml").string(); }
  TunedSettings read(const std::string& text, TunedSubject subject) const {
    write_file_atomically(path(), text);
    return read_tuned(path(), subject, "m.onnx");
  }
  /// The error's line without the folder.
  std::string rejection(const std::string& text, TunedSubject subject) const {
    try {
      read(text, subject);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kConfig);
      const std::string what = e.what();
      return what.substr(what.find("tuned.yaml"));
    }
    return "";
  }

  const fs::path folder_ = fs::temp_directory_path() / ("paddle_tuned_" + std::to_string(getpid()));
};

TEST_F(TunedFile, StatesSettingsOfAModel) {
  const TunedSettings s = read(
      "subject: model\nthreads: 3\nstreams: 2\nbatch: 32\nprecision: bfloat16\nkernels: "
      "kernels.txt\n"
      "codegen: false\nwinograd: false\n",
      TunedSubject::kModel);
  EXPECT_EQ(s.threads, 3);
  EXPECT_EQ(s.streams, 2);
  EXPECT_EQ(s.batch, 32);
  EXPECT_EQ(s.precision, "bfloat16");
  EXPECT_EQ(s.kernels, fs::absolute(folder_ / "kernels.txt").string());  // next to the file
  EXPECT_FALSE(s.codegen);
  EXPECT_TRUE(s.batch_tiling);
  EXPECT_FALSE(s.winograd);
}

TEST_F(TunedFile, StatesSettingsOfALanguageModel) {
  const TunedSettings s =
      read("subject: language_model\nthreads: 2\nchunk: 64\nstreams: 16\nkv: int8\n",
           TunedSubject::kLanguageModel);
  EXPECT_EQ(s.threads, 2);
  EXPECT_EQ(s.chunk, 64);
  EXPECT_EQ(s.streams, 16);
  EXPECT_EQ(s.kv, "int8");
}

TEST_F(TunedFile, LeavesOutWhatItDoesNotState) {
  const TunedSettings s = read("subject: language_model\n", TunedSubject::kLanguageModel);
  EXPECT_EQ(s.threads, 0);
  EXPECT_FALSE(s.chunk || s.streams || s.batch);
  EXPECT_EQ(s.kv + s.precision + s.kernels, "");
  EXPECT_TRUE(s.codegen && s.batch_tiling && s.winograd);
}

TEST_F(TunedFile, RejectsOtherKeysAndValuesWithTheirPlace) {
  const auto model = TunedSubject::kModel, language = TunedSubject::kLanguageModel;
  EXPECT_EQ(rejection("subject: model\nthread: 2\n", model),
            "tuned.yaml:2:1: unknown key 'thread' (did you mean 'threads'?)");
  EXPECT_NE(rejection("subject: model\nchunk: 2\n", model).find("tuned.yaml:2:1: unknown key"),
            std::string::npos);
  EXPECT_NE(rejection("subject: language_model\nstreams: many\n", language).find("yaml:2:10:"),
            std::string::npos);
  for (const char* text : {"chunk: 0", "chunk: 257", "streams: 129", "threads: 0", "kv: fp4",
                           "threads: 1.5", "streams:", "kv: [f32]"})
    EXPECT_NE(rejection(std::string("subject: language_model\n") + text, language).find("yaml:2:"),
              std::string::npos)
        << text;
  EXPECT_NE(rejection("subject: model\nbatch: 2\nbatch: 4\n", model).find("yaml:3:1:"),
            std::string::npos);
}

TEST_F(TunedFile, RejectsAnotherKindOfSubject) {
  const auto model = TunedSubject::kModel, language = TunedSubject::kLanguageModel;
  EXPECT_EQ(rejection("subject: language_model\n", model),
            "tuned.yaml:1:10: these are settings of a language model, but m.onnx is not a language "
            "model");
  EXPECT_EQ(rejection("subject: model\nbatch: 2\n", language),
            "tuned.yaml:1:10: these are settings of a model, but m.onnx is a language model");
  EXPECT_EQ(rejection("# a comment\nextends: train.yaml\n", model),
            "tuned.yaml:2:1: this is the config of a training run; expected settings of a model "
            "that paddle-tune wrote (subject: model)");
  for (const char* text : {"threads: 2\n", "", "[1, 2]\n", "word\n"})
    EXPECT_NE(rejection(text, model).find("there is no key 'subject'"), std::string::npos) << text;
  EXPECT_NE(rejection("subject: run\n", model).find("1:10: 'subject': expected model or language"),
            std::string::npos);
}

TEST_F(TunedFile, IsMissing) {
  try {
    read_tuned((folder_ / "none.yaml").string(), TunedSubject::kModel, "m.onnx");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    EXPECT_NE(std::string(e.what()).find("none.yaml"), std::string::npos);
  }
}

/// A subject that only publishes.
class Published final : public TuningTarget {
 public:
  explicit Published(std::string kind) : kind_(std::move(kind)) {}
  std::string name() const override { return "net"; }
  std::string kind() const override { return kind_; }
  std::vector<std::string> dimensions() const override { return {}; }
  Settings start() const override { return {}; }
  std::vector<Change> candidates(const std::string&, const Settings&, const Budget&) override {
    return {};
  }
  std::unique_ptr<Runner> open(const Settings&) override { return nullptr; }
  std::optional<std::string> rejection_reason(const Settings&, const Change&,
                                              const Budget&) override {
    return "";
  }
  bool same_bits(const Settings&, const Settings&) override { return true; }
  std::string publish(const Change& change, const std::string& folder) override {
    if (change.key == "codegen.schedules") return "";
    return change.key == "kernels" ? folder + "/kernels.txt" : change.value;
  }

 private:
  std::string kind_;
};

/// Each accepted with the gain of 5% (4 to 6.25).
Result accepted(const std::vector<std::array<std::string, 3>>& changes) {
  Result out;
  for (const auto& [key, before, value] : changes) {
    out.best[key] = value;
    Trial& t = out.trials.emplace_back();
    t.change = {key, value};
    t.before = before;
    t.accepted = t.same_bits = true;
    t.gain = {0.05, 0.04, 0.0625};
  }
  out.total.gain = {0.25, 0.2, 0.3};
  out.finished = true;
  return out;
}

TEST_F(TunedFile, OfASearchReadsBack) {
  Published subject("inference");
  const Result result = accepted({{"threads", "2", "1"},
                                  {"batch", "1", "8"},
                                  {"precision", "float32", "float16"},
                                  {"kernels", "", "7 choices"},
                                  {"codegen.schedules", "as cached", "3 groups"},
                                  {"no-codegen", "false", "true"},
                                  {"no-batch-tiling", "false", "true"}});
  const std::string text = tuned_settings_yaml({"m.onnx", {}}, subject, result, folder_.string());
  for (const char* line :
       {"# All changes together: +25.0% (20.0 to 30.0) in samples per second",
        "\nthreads: 1  # +5.0% (4.0 to 6.2), was 2; same bits\n",
        "\nkernels: \"kernels.txt\"  # +5.0% (4.0 to 6.2), was none; same bits\n",
        "\ncodegen: false  # +5.0% (4.0 to 6.2), was true; same bits\n",
        "# codegen.schedules 3 groups: +5.0% (4.0 to 6.2); same bits; kept in the cache"})
    EXPECT_NE(text.find(line), std::string::npos) << line << " in\n" << text;
  const TunedSettings s = read(text, TunedSubject::kModel);
  EXPECT_EQ(s.threads, 1);
  EXPECT_EQ(s.batch, 8);
  EXPECT_EQ(s.precision, "float16");
  EXPECT_EQ(s.kernels, fs::absolute(folder_ / "kernels.txt").string());
  EXPECT_FALSE(s.codegen || s.batch_tiling);
  EXPECT_TRUE(s.winograd);
}

TEST_F(TunedFile, OfALanguageModelReadsBack) {
  Published subject("language model");
  const Result result = accepted({{"threads", "2", "1"},
                                  {"chunk", "256", "64"},
                                  {"streams", "1", "4"},
                                  {"kv", "f32", "bf16"}});
  const Request request{.subject = "llama", .arguments = {"--family x.yaml"}, .family = "x.yaml"};
  const std::string text = tuned_settings_yaml(request, subject, result, folder_.string());
  EXPECT_NE(text.find("tokens per second"), std::string::npos) << text;
  const TunedSettings s = read(text, TunedSubject::kLanguageModel);
  EXPECT_EQ(s.threads, 1);
  EXPECT_EQ(s.chunk, 64);
  EXPECT_EQ(s.streams, 4);
  EXPECT_EQ(s.kv, "bf16");
  EXPECT_EQ(tuned_command(request, subject, result, "t.yaml"),
            "paddle-infer llama --family x.yaml --tuned t.yaml\n"
            "paddle-infer llama --family x.yaml --tuned t.yaml --requests in.jsonl --output "
            "out.jsonl\npaddle-serve llama --family x.yaml --tuned t.yaml");
}

}  // namespace
}  // namespace paddle::tune
