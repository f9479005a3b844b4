// Windows of text: tokens and the same shifted by one.

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "data/sources.h"

namespace paddle::data {
namespace {

/// The tokens of a text, in as few bytes each as the vocabulary needs; bytes stay in the file.
class Tokens {
 public:
  Tokens(std::shared_ptr<MappedFile> file, const Vocabulary& vocabulary) : file_(std::move(file)) {
    if (vocabulary.is_bytes()) {
      count_ = static_cast<int64_t>(file_->size());
      return;
    }
    mapped_ = false;
    const std::string_view text = file_->view();
    const auto encode = [&](auto& out) {
      out.reserve(text.size());
      int64_t line = 1, column = 1;
      for (size_t at = 0; at < text.size();) {
        const size_t length = character_length(text, at);
        const std::string_view character = text.substr(at, length);
        const auto id = vocabulary.find(character);
        if (!id)
          throw Error(ErrorCode::kData,
                      str("character '", printable(character), "' is not in the vocabulary of ",
                          vocabulary.size(), " characters"),
                      {file_->path(), static_cast<int>(line), static_cast<int>(column)});
        out.push_back(static_cast<typename std::decay_t<decltype(out)>::value_type>(*id));
        ++column;
        if (character == "\n") ++line, column = 1;
        at += length;
      }
      count_ = static_cast<int64_t>(out.size());
    };
    if (vocabulary.size() <= 256)
      encode(narrow_);
    else
      encode(wide_);
  }
  int64_t count() const { return count_; }
  int64_t operator[](int64_t i) const {
    if (mapped_) return static_cast<int64_t>(file_->data()[i]);
    return narrow_.empty() ? int64_t{wide_[static_cast<size_t>(i)]}
                           : int64_t{narrow_[static_cast<size_t>(i)]};
  }

 private:
  std::shared_ptr<MappedFile> file_;
  std::vector<uint8_t> narrow_;
  std::vector<uint32_t> wide_;
  bool mapped_ = true;
  int64_t count_ = 0;
};

class TextDataset : public Dataset {
 public:
  TextDataset(const TextOptions& options, const DatasetOptions& part)
      : options_(options),
        vocabulary_(choose_vocabulary(options)),
        tokens_(MappedFile::open(options.path), vocabulary_) {
    if (options.context < 1) fail(ErrorCode::kConfig, "text: context is ", options.context);
    if (tokens_.count() == 0) fail(ErrorCode::kData, options.path, ": the text is empty");
    const Part kept = resolve_part(part, tokens_.count(), true);
    begin_ = kept.begin, end_ = kept.end;
    starts_ = end_ - begin_ - options.context;
    if (starts_ < 1)
      fail(ErrorCode::kData, options.path, ": ", end_ - begin_,
           " tokens are too few for windows of ", options.context, " tokens and a target");
    stride_ = options.stride > 0 ? options.stride : options.context;
    if (options.windows == TextWindows::kConsecutive)
      size_ = (starts_ - 1) / stride_ + 1;
    else
      size_ = options.samples > 0 ? options.samples
                                  : std::max<int64_t>(1, (end_ - begin_ - 1) / options.context);
    for (const std::string& name : {options.token_field, options.target_field}) {
      Field field;
      field.name = name;
      field.dtype = DType::kI64;
      field.shape = {options.context};
      field.class_count = vocabulary_.size();
      fields_.push_back(std::move(field));
    }
  }
  int64_t size() const override { return size_; }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(int64_t index, const ReadContext& context, Sample& out) const override {
    out.resize(2);
    int64_t start = begin_ + index * stride_;
    if (options_.windows == TextWindows::kRandom)
      start = begin_ + static_cast<int64_t>(Random(context.seed, kStream, context.epoch)
                                                .below(static_cast<uint64_t>(index),
                                                       static_cast<uint64_t>(starts_)));
    for (int64_t shift = 0; shift < 2; ++shift) {
      Value& value = out[static_cast<size_t>(shift)];
      value.reset(DType::kI64, fields_[0].shape);
      int64_t* ids = value.data<int64_t>();
      for (int64_t i = 0; i < options_.context; ++i) ids[i] = tokens_[start + shift + i];
    }
  }
  std::string location(int64_t index, int64_t, int64_t) const override {
    return str(options_.path, ": window ", index);
  }
  std::vector<std::string> paths() const override {
    return {std::filesystem::absolute(options_.path).lexically_normal().string()};
  }
  const Vocabulary* vocabulary(int64_t) const override { return &vocabulary_; }
  std::vector<Fitted> fitted() const override {
    Fitted fitted;
    fitted.field = options_.token_field;
    fitted.bytes = vocabulary_.is_bytes();
    if (!fitted.bytes) fitted.tokens = vocabulary_.tokens();
    return {fitted};
  }
  std::vector<bool> used_sources() const override {
    std::vector<bool> used(static_cast<size_t>(tokens_.count()));
    std::fill(used.begin() + begin_, used.begin() + end_, true);
    return used;
  }
  std::vector<std::pair<std::string, std::string>> facts() const override {
    return {
        {"tokens", str(end_ - begin_, " of ", tokens_.count())},
        {"vocabulary", str(vocabulary_.size(), vocabulary_.is_bytes() ? " bytes" : " characters")}};
  }

 private:
  static Vocabulary choose_vocabulary(const TextOptions& options) {
    if (!options.vocabulary.empty()) return Vocabulary(options.vocabulary);
    if (!options.vocabulary_file.empty()) return Vocabulary::read(options.vocabulary_file);
    if (options.level == TextLevel::kBytes) return Vocabulary::bytes();
    return Vocabulary::characters_of(MappedFile::open(options.path)->view(), options.path);
  }

  inline static const uint64_t kStream = stream_of("text windows");
  TextOptions options_;
  Vocabulary vocabulary_;
  Tokens tokens_;
  int64_t begin_ = 0, end_ = 0, starts_ = 0, stride_ = 0, size_ = 0;
  std::vector<Field> fields_;
};

}  // namespace

DatasetPtr make_text(const TextOptions& options, const DatasetOptions& part) {
  return std::make_shared<TextDataset>(options, part);
}

}  // namespace paddle::data
