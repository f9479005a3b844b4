// Datasets of tokens for language models: text, tokens and chat.

#include "data/config/dataset_config.h"
#include "data/dataset_kind.h"

namespace paddle::data {

using config::Schema;
using config::Section;
using config::Spec;

namespace {

void add_window_keys(Schema& s) {
  s.add("context", Spec::integer().at_least(1).fallback("64").doc("tokens per sample"));
  s.add("windows",
        Spec::word({"random", "consecutive"}).fallback("random").doc("where samples begin"));
  s.add("samples", Spec::integer().at_least(0).fallback("0").doc(
                       "samples per epoch; 0: the length of the text decides"));
  s.add("stride", Spec::integer().at_least(0).fallback("0").doc(
                      "tokens between the starts of consecutive windows; 0: context"));
  s.add("token_field", Spec::text().fallback("tokens").doc("name of the field with the tokens"))
      .add("target_field",
           Spec::text().fallback("targets").doc("name of the field with the next tokens"));
}

/// Options with the keys of windows.
template <class Options>
void read_windows(const Section& s, Options& o) {
  o.context = s.integer("context");
  o.windows = s.text("windows") == "random" ? TextWindows::kRandom : TextWindows::kConsecutive;
  o.samples = s.integer("samples");
  o.stride = s.integer("stride");
  o.token_field = s.text("token_field");
  o.target_field = s.text("target_field");
}

void reject_key(const Section& s, const char* key, const char* why) {
  if (s.has(key))
    throw Error(ErrorCode::kConfig, str(key, ": has no effect ", why), s.location(key));
}

Schema text_keys() {
  Schema s;
  s.add("path", paths_spec("files of text; * and ? match several"));
  s.add("level", Spec::word({"characters", "bytes"}).fallback("characters").doc("what a token is"));
  s.add("tokenizer", Spec::text().doc("model folder, tokenizer.json or .model file, whose subwords "
                                      "are the tokens"));
  add_window_keys(s);
  s.add("vocabulary", Spec::list(Spec::text()).fallback("[]").doc("the categories or tokens"))
      .add("vocabulary_file", Spec::text().doc("file with the vocabulary"));
  s.add("documents",
        Spec::word({"none", "files", "jsonl"})
            .fallback("none")
            .doc("tokenizer: keep files, or records of JSON lines, apart as documents"));
  s.add("key", Spec::text().doc("jsonl: key with the text of a document; default: text"));
  s.add("end_token",
        Spec::text().doc("documents: the token that ends one; default: the tokenizer's"));
  return s;
}

DatasetSource read_text(const Section& s) {
  TextOptions o;
  read_paths(s, o.path, o.more_paths);
  o.level = s.text("level") == "bytes" ? TextLevel::kBytes : TextLevel::kCharacters;
  read_windows(s, o);
  o.vocabulary = s.texts("vocabulary");
  o.vocabulary_file = path_of(s, "vocabulary_file");
  o.tokenizer.path = path_of(s, "tokenizer");
  const std::string& documents = s.text("documents");
  o.documents = documents == "files"   ? TextDocuments::kFiles
                : documents == "jsonl" ? TextDocuments::kRecords
                                       : TextDocuments::kNone;
  if (o.tokenizer.given()) {
    if (!o.vocabulary.empty() || s.has("vocabulary_file"))
      throw Error(ErrorCode::kConfig, "vocabulary: has no effect with a tokenizer",
                  s.location("vocabulary"));
    if (o.level == TextLevel::kBytes)
      throw Error(ErrorCode::kConfig, "level: has no effect with a tokenizer", s.location("level"));
  }
  if (o.documents != TextDocuments::kRecords) reject_key(s, "key", "without `documents: jsonl`");
  if (o.documents == TextDocuments::kNone) reject_key(s, "end_token", "without `documents`");
  o.key = s.has("key") ? s.text("key") : "text";
  if (s.has("end_token")) o.end_token = s.text("end_token");
  return o;
}

Schema tokens_keys() {
  Schema s;
  s.add("path", paths_spec("files of token ids without a header; * and ? match several"));
  s.add("dtype",
        Spec::word({"uint16", "uint32"}).fallback("uint16").doc("of an id, little-endian"));
  s.add("vocabulary_size", Spec::integer()
                               .at_least(1)
                               .at_most(int64_t{1} << 31)
                               .doc("ids are below it; default: that of the tokenizer"));
  s.add("tokenizer",
        Spec::text().doc("what made the files: kept with the run for the text that it generates"));
  s.add("end_token",
        Spec::text().doc("id or token that ends a document: documents are kept apart"));
  add_window_keys(s);
  return s;
}

DatasetSource read_tokens(const Section& s) {
  TokensOptions o;
  read_paths(s, o.path, o.more_paths);
  o.width = s.text("dtype") == "uint32" ? 4 : 2;
  if (s.has("vocabulary_size")) o.vocabulary_size = s.integer("vocabulary_size");
  o.tokenizer.path = path_of(s, "tokenizer");
  if (s.has("end_token")) o.end_token = s.text("end_token");
  read_windows(s, o.windows);
  return o;
}

Schema chat_keys() {
  Schema s;
  s.add("path", paths_spec("JSON lines: a conversation or an instruction a line"));
  s.add("tokenizer", Spec::text().required().doc("model folder, tokenizer.json or .model file"));
  s.add("chat_template", Spec::text().doc("Jinja file; default: the tokenizer's template"));
  s.add("messages", Spec::text().fallback("messages").doc("key with the messages"));
  s.add("prompt", Spec::text().doc("key with the text of an instruction, instead of messages"));
  s.add("completion", Spec::text().doc("key with the answer to it"));
  s.add("context", Spec::integer().at_least(2).at_most(1 << 20).fallback("1024").doc(
                       "tokens of a sample; longer records are cut"));
  s.add("pack", Spec::boolean().doc("several records in one sample; default: if the model "
                                    "takes `segments`"));
  s.add("train_on",
        Spec::word({"assistant", "all"}).fallback("assistant").doc("the tokens that are targets"));
  return s;
}

DatasetSource read_chat(const Section& s) {
  ChatOptions o;
  read_paths(s, o.path, o.more_paths);
  o.tokenizer.path = path_of(s, "tokenizer");
  o.chat_template = path_of(s, "chat_template");
  o.messages = s.text("messages");
  if (s.has("prompt")) o.prompt = s.text("prompt");
  if (s.has("completion")) o.completion = s.text("completion");
  o.context = s.integer("context");
  if (s.has("pack")) o.pack = s.boolean("pack");
  o.train_all = s.text("train_on") == "all";
  return o;
}

}  // namespace

DatasetKind text_kind() {
  return {.name = "text",
          .keys = text_keys,
          .read = read_text,
          .path_keys = {"path", "vocabulary_file", "tokenizer"}};
}

DatasetKind tokens_kind() {
  return {.name = "tokens",
          .keys = tokens_keys,
          .read = read_tokens,
          .path_keys = {"path", "tokenizer"}};
}

DatasetKind chat_kind() {
  return {.name = "chat",
          .keys = chat_keys,
          .read = read_chat,
          .path_keys = {"path", "tokenizer", "chat_template"}};
}

}  // namespace paddle::data
