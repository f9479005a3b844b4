// Conversations and instructions as samples of a language model: tokens, targets of the
// assistant's words only, and several records in one sample that do not see each other.

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "data/datasets/sources.h"
#include "data/sources/record_source.h"
#include "formats/compressed/compressed.h"
#include "text/chat_template.h"
#include "text/json_lines.h"
#include "text/json_value.h"
#include "text/tokenizer.h"

namespace paddle::data {
namespace {

constexpr int64_t kNoTarget = -100;
constexpr uint64_t kMaxTemplateBytes = uint64_t{1} << 20;

/// A record: its tokens, and which of them are trained.
struct Conversation {
  std::vector<tokenizers::TokenId> tokens = {};
  std::vector<bool> trained = {};
  int64_t line = 0;
};

class Encoder {
 public:
  explicit Encoder(const ChatOptions& options)
      : options_(options),
        source_(options.chat_template.empty()
                    ? std::string()
                    : read_file(options.chat_template, kMaxTemplateBytes)),
        kept_(options.tokenizer.open(source_)),
        tokenizer_(kept_->tokenizer()) {
    if (is_instruction()) return;
    if (source_.empty()) source_ = tokenizer_.chat_template;
    if (source_.empty())
      fail(ErrorCode::kConfig, "chat: ", kept_->path(),
           " has no chat template; give one with `chat_template`");
    template_.emplace(source_, options.chat_template.empty() ? "chat template of " + kept_->path()
                                                             : options.chat_template);
  }
  const TextTokenizerPtr& kept() const { return kept_; }
  bool is_instruction() const { return !options_.prompt.empty(); }

  void encode(const Json& record, Conversation& out) const {
    if (is_instruction()) {
      if (tokenizer_.beginning) add_token(*tokenizer_.beginning, false, out);
      add_text(text_of(record, options_.prompt), options_.train_all, out);
      add_text(text_of(record, options_.completion), true, out);
      if (tokenizer_.end) add_token(*tokenizer_.end, true, out);
      return;
    }
    encode_messages(record, out);
  }

 private:
  void encode_messages(const Json& record, Conversation& out) const {
    const Json* messages = record.find(options_.messages);
    if (!messages || messages->kind != Json::Kind::kArray || messages->items.empty())
      fail(ErrorCode::kData, "expected a list of messages at '", options_.messages, "'");
    Json conversation = record;
    std::erase_if(conversation.entries,
                  [&](const auto& entry) { return entry.first == "messages"; });
    conversation.entries.emplace_back("messages", Json());
    std::string done;
    const auto render = [&](size_t count, bool prompt) {
      Json& own = conversation.entries.back().second;
      own.kind = Json::Kind::kArray;
      own.items.assign(messages->items.begin(),
                       messages->items.begin() + static_cast<std::ptrdiff_t>(count));
      Json flag;
      flag.kind = Json::Kind::kBoolean;
      flag.boolean = prompt;
      Json all = conversation;
      all.entries.emplace_back("add_generation_prompt", flag);
      return tokenizers::render_chat(*template_, all, &tokenizer_);
    };
    const auto extend = [&](const std::string& text, bool trained) {
      if (!text.starts_with(done))
        fail(ErrorCode::kData, "the chat template changes what it wrote before when a message is ",
             "added, so that the tokens of the assistant cannot be identified");
      add_rendered(std::string_view(text).substr(done.size()), trained, out);
      done = text;
    };
    for (size_t m = 0; m < messages->items.size(); ++m) {
      const Json* role = messages->items[m].find("role");
      if (!role || role->kind != Json::Kind::kString)
        fail(ErrorCode::kData, "message ", m, " has no role");
      if (role->text != "assistant") continue;
      if (m > 0) extend(render(m, true), options_.train_all);
      extend(render(m + 1, false), true);
    }
    const std::string whole = render(messages->items.size(), false);
    if (whole != done) extend(whole, options_.train_all);
  }

  static const std::string& text_of(const Json& record, const std::string& key) {
    const Json* value = record.find(key);
    if (!value || value->kind != Json::Kind::kString)
      fail(ErrorCode::kData, "expected a text at '", key, "'");
    return value->text;
  }
  static void add_token(tokenizers::TokenId id, bool trained, Conversation& out) {
    out.tokens.push_back(id);
    out.trained.push_back(trained);
  }
  void add_text(std::string_view text, bool trained, Conversation& out) const {
    for (const tokenizers::TokenId id : tokenizer_.encode(text)) add_token(id, trained, out);
  }
  void add_rendered(std::string_view text, bool trained, Conversation& out) const {
    for (const tokenizers::TokenId id : tokenizer_.encode(text, {.parse_special = true}))
      add_token(id, trained, out);
  }

  ChatOptions options_;
  std::string source_;  ///< of the template
  TextTokenizerPtr kept_;
  const tokenizers::Tokenizer& tokenizer_;
  std::optional<jinja::Template> template_;
};

class ChatDataset final : public Dataset {
 public:
  explicit ChatDataset(const ChatOptions& options) : options_(options) {
    if (options.context < 2) fail(ErrorCode::kConfig, "chat: context is at least 2");
    if (options.prompt.empty() != options.completion.empty())
      fail(ErrorCode::kConfig, "chat: `prompt` and `completion` must be given together");
    const Encoder encoder(options);
    tokenizer_ = encoder.kept();
    std::vector<std::string> files = expand_pattern(options.path);
    for (const std::string& more : options.more_paths)
      for (std::string& path : expand_pattern(more)) files.push_back(std::move(path));
    for (const std::string& path : files) {
      paths_.push_back(std::filesystem::absolute(path).lexically_normal().string());
      read(path, encoder);
    }
    if (records_.empty() && !left_out_.empty())
      fail(ErrorCode::kData, "no record can be used; the first: ", left_out_[0]);
    if (records_.empty()) fail(ErrorCode::kData, options.path, ": the file is empty");
    pack();
    for (const char* name : {"tokens", "targets", "segments", "positions"}) {
      Field field;
      field.name = name;
      field.dtype = DType::kI64;
      field.shape = {options.context};
      if (fields_.empty()) field.class_count = tokenizer_->size();
      fields_.push_back(std::move(field));
    }
  }
  int64_t size() const override { return static_cast<int64_t>(begins_.size()) - 1; }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(int64_t index, const ReadContext&, Sample& out) const override {
    out.resize(fields_.size());
    for (Value& value : out) {
      value.reset(DType::kI64, fields_[0].shape);
      std::fill_n(value.data<int64_t>(), value.size(), 0);
    }
    int64_t* const tokens = out[0].data<int64_t>();
    int64_t* const targets = out[1].data<int64_t>();
    int64_t* const segments = out[2].data<int64_t>();
    int64_t* const positions = out[3].data<int64_t>();
    std::fill_n(targets, options_.context, kNoTarget);
    int64_t at = 0, segment = 0;
    for (size_t r = begins_[static_cast<size_t>(index)];
         r < begins_[static_cast<size_t>(index) + 1]; ++r) {
      const Conversation& record = records_[r];
      ++segment;
      const int64_t length = length_of_record(record);
      for (int64_t i = 0; i < length; ++i, ++at) {
        const auto next = static_cast<size_t>(i) + 1;
        tokens[at] = record.tokens[static_cast<size_t>(i)];
        if (next < record.tokens.size() && record.trained[next]) targets[at] = record.tokens[next];
        segments[at] = segment;
        positions[at] = i;
      }
    }
  }
  std::string location(int64_t index, int64_t, int64_t) const override {
    const Conversation& record = records_[begins_[static_cast<size_t>(index)]];
    return SourceLocation{file_of(begins_[static_cast<size_t>(index)]),
                          static_cast<int>(record.line)}
        .text();
  }
  std::vector<std::string> paths() const override { return paths_; }
  std::vector<Fitted> fitted() const override {
    Fitted fitted;
    fitted.field = fields_[0].name;
    fitted.tokenizer = tokenizer_;
    return {fitted};
  }
  std::vector<std::string> left_out() const override { return left_out_; }
  std::vector<std::pair<std::string, std::string>> facts() const override {
    int64_t tokens = 0, targets = 0, cut = 0;
    for (const Conversation& record : records_) {
      const int64_t length = length_of_record(record);
      tokens += length;
      cut += static_cast<int64_t>(record.tokens.size()) > length + 1;
      for (int64_t i = 0; i < length; ++i) {
        const auto next = static_cast<size_t>(i) + 1;
        targets += next < record.tokens.size() && record.trained[next];
      }
    }
    const auto percent = [](int64_t part, int64_t whole) {
      return str(whole == 0 ? 0 : part * 100 / whole, "%");
    };
    return {{"records", str(records_.size(), ", ", cut, " of them cut to the context")},
            {"trained tokens", percent(targets, tokens)},
            {"padding", percent(size() * options_.context - tokens, size() * options_.context)}};
  }

 private:
  void read(const std::string& path, const Encoder& encoder) {
    const auto file = formats::open_data_file(path);
    for_each_json_line(file->view(), path, [&](std::string_view row, const SourceLocation& place) {
      Conversation record{.line = place.line};
      try {
        try {
          encoder.encode(parse_json(row, "the record"), record);
        } catch (const Error& e) {
          throw Error(ErrorCode::kData, e.message(), place);
        }
        check_targets(record, place);
      } catch (const Error& e) {
        if (!options_.skips_bad) throw;
        left_out_.emplace_back(e.what());
        return;
      }
      records_.push_back(std::move(record));
    });
    file_ends_.push_back(records_.size());
  }

  /// A record that trains nothing is a mistake in the data, the template or the context.
  void check_targets(const Conversation& record, const SourceLocation& place) const {
    const int64_t length = length_of_record(record);
    for (int64_t i = 1; i <= length && i < static_cast<int64_t>(record.tokens.size()); ++i)
      if (record.trained[static_cast<size_t>(i)]) return;
    throw Error(ErrorCode::kData,
                str("no token is trained: the record has ", record.tokens.size(), " tokens, ",
                    std::count(record.trained.begin(), record.trained.end(), true),
                    " of them of the assistant, and the context is ", options_.context),
                place);
  }

  /// The inputs of a record: its last token is a target only.
  int64_t length_of_record(const Conversation& record) const {
    return std::min(options_.context, static_cast<int64_t>(record.tokens.size()) - 1);
  }

  void pack() {
    int64_t room = 0;
    for (size_t r = 0; r < records_.size(); ++r) {
      const int64_t length = length_of_record(records_[r]);
      if (r == 0 || !options_.pack.value_or(false) || length > room) {
        begins_.push_back(r);
        room = options_.context;
      }
      room -= length;
    }
    begins_.push_back(records_.size());
  }

  const std::string& file_of(size_t record) const {
    return paths_[static_cast<size_t>(
        std::upper_bound(file_ends_.begin(), file_ends_.end(), record) - file_ends_.begin())];
  }

  ChatOptions options_;
  TextTokenizerPtr tokenizer_;
  std::vector<std::string> paths_;
  std::vector<size_t> file_ends_;  ///< records up to the end of each file
  std::vector<Conversation> records_;
  std::vector<std::string> left_out_;  ///< records, with place and reason
  std::vector<size_t> begins_;         ///< the first record of each sample, and the end
  std::vector<Field> fields_;
};

}  // namespace

DatasetPtr make_chat(const ChatOptions& options) { return std::make_shared<ChatDataset>(options); }

}  // namespace paddle::data
